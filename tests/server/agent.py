"""Which graphs does the development server of the tests serve?

Loaded by the server, in a process of its own; a scripted model stands in for a provider.
"""

from __future__ import annotations

from langchain.agents import create_agent
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode

from langchain_loopguard import LoopGuardMiddleware, LoopGuardPolicy, LoopGuardState, add_loop_guard
from tests.hosts import Counter, counting_tool, repeating_model

SEED = LoopGuardPolicy.seed()
_TOOLS = [counting_tool(Counter(), native_async=True)]
_MODEL = repeating_model()


async def _agent(state: LoopGuardState):
    return {"messages": [await _MODEL.ainvoke(state["messages"])]}


def _with_node():
    builder = StateGraph(LoopGuardState)
    builder.add_node("agent", _agent)
    builder.add_node("tools", ToolNode(_TOOLS))
    builder.add_edge(START, "agent")
    return add_loop_guard(builder, policy=SEED).compile()


# The server brings the checkpointer.
node = _with_node()
middleware = create_agent(_MODEL, _TOOLS, middleware=[LoopGuardMiddleware(SEED)])
