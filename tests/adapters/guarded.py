"""How is a graph with a guard node built and driven in these tests?"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.langchain.messages import calls_of as tool_calls_of
from langchain_loopguard.node import LoopGuardNode, LoopGuardState, add_loop_guard
from tests.hosts import Counter, counting_tool, repeating_model

SEED = LoopGuardPolicy.seed()


def builder_for(model, tools, schema=MessagesState, tools_node=None, agent_node=None) -> StateGraph:
    """Build agent and tools without the edges that are the guard's to make."""
    bound = model.bind_tools(list(tools))

    def agent(state) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    async def aagent(state) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    builder = StateGraph(schema)
    builder.add_node("agent", agent_node or RunnableLambda(agent, aagent))
    builder.add_node("tools", tools_node or ToolNode(list(tools)))
    builder.add_edge(START, "agent")
    return builder


def builder(model=None, tools=None, schema=MessagesState):
    """Build the same of a model that loops."""
    return builder_for(model or repeating_model(), tools or [counting_tool(Counter())], schema)


def compiled(graph, **options):
    """Add the guard to a graph and compile it."""
    add_loop_guard(graph, **{"policy": SEED, **options})
    return graph.compile(checkpointer=InMemorySaver())


def owned(model, tools, *, saver=None, **options) -> Any:
    """Build a graph whose edges `add_loop_guard` owns; `saver=False` leaves it without one."""
    builder = builder_for(model, tools, **_parts(options))
    add_loop_guard(builder, **{"policy": SEED, **options})
    return _compiled(builder, saver)


def by_hand(model, tools, *, saver=None, **options) -> Any:
    """Build a graph in which the guard is wired by hand, behind the agent only."""
    builder = builder_for(model, tools, **_parts(options))
    builder.add_node("guard", LoopGuardNode(**{"policy": SEED, **options}))
    builder.add_edge("agent", "guard")
    builder.add_edge("tools", "agent")
    return _compiled(builder, saver)


def _parts(options: dict[str, Any]) -> dict[str, Any]:
    """Take the parts of the graph out of the guard's options."""
    names = ("schema", "tools_node", "agent_node")
    return {name: options.pop(name) for name in names if name in options}


def _compiled(builder: StateGraph, saver: Any) -> Any:
    return builder.compile(checkpointer=InMemorySaver() if saver is None else saver or None)


def with_channel(model, tools, **options) -> Any:
    """Build a graph whose state's schema lists the counts."""
    return owned(model, tools, **{"schema": LoopGuardState, **options})


def by_hand_with_channel(model, tools, **options) -> Any:
    """Build a graph by hand, with the counts in the state's schema."""
    return by_hand(model, tools, **{"schema": LoopGuardState, **options})


WIRINGS = {
    "owned": owned,
    "owned-schema": with_channel,
    "by-hand-folding": by_hand,
    "by-hand-schema": by_hand_with_channel,
}
"""Every way to put the node into a graph, by test id. Only `by-hand-folding` has no channel."""


def assert_complete(messages) -> None:
    """Check that every call, unparsed ones included, is answered once and in its place."""
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        assert not isinstance(message, ToolMessage), f"an answer without a call at {at - 1}"
        if isinstance(message, AIMessage):
            wanted = sorted(str(call["id"]) for call in tool_calls_of(message))
            answers = []
            while at < len(messages) and isinstance(messages[at], ToolMessage):
                answers.append(messages[at].tool_call_id)
                at += 1
            assert sorted(answers) == wanted


def assert_requests_complete(model) -> None:
    """Check every history that was sent to the model, as a provider would."""
    for request in model.requests:
        assert_complete(request)
