"""How is an agent under a callback handler built and driven in these tests?"""

from __future__ import annotations

import gc
import inspect
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import pytest
from langchain.agents.middleware import human_in_the_loop
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from langchain_loopguard import LoopGuardCallbackHandler, LoopGuardPolicy
from tests.hosts import (
    GRAPHS,
    Counter,
    Outcome,
    ask,
    counting_tool,
    drive,
    listed_model,
    repeating_model,
    thread,
)

SEED = LoopGuardPolicy.seed()
THREE = (("search", {"q": "a"}), ("search", {"q": "b"}), ("search", {"q": "c"}))
"""The calls of a step."""


# What older releases can't do stands in the README of the adapters.
since_langchain_1_3_15 = pytest.mark.skipif(
    tuple(map(int, version("langchain").split(".")[:3])) < (1, 3, 15),
    reason="its retry middleware takes the handler's signals for errors",
)
marks_a_persons_answer = pytest.mark.skipif(
    "hitl_interrupt_decision" not in inspect.getsource(human_in_the_loop),
    reason="this LangChain doesn't mark a result that a person gave",
)


def handler(policy: LoopGuardPolicy | None = SEED, **options: Any) -> LoopGuardCallbackHandler:
    """Make a handler that hides none of its own faults."""
    return LoopGuardCallbackHandler(policy, **{"fail_open": False, **options})


def left(kind: type) -> int:
    """Count what is in memory of a kind; `isinstance` would run what a class of a test says."""
    gc.collect()
    return sum(type(one) is kind for one in gc.get_objects())


def once(messages):
    """Make one call, by an id that no other has."""
    if any(isinstance(message, AIMessage) for message in messages):
        return AIMessage("done")
    call = {"name": "search", "args": {"q": "a"}, "id": uuid4().hex, "type": "tool_call"}
    return AIMessage("", id=uuid4().hex, tool_calls=[call])


def make(host, model, ran, **options):
    """Build a graph of one tool on a saver."""
    return GRAPHS[host](model, [counting_tool(ran)], checkpointer=InMemorySaver(), **options)


def graph_of(agent, tools, schema=MessagesState, key="messages", extra=None):
    """Build a graph around a node that calls a model, with another node behind the tools."""
    builder = StateGraph(schema)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(tools, messages_key=key))
    builder.add_node("extra", extra or (lambda state: {}))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", lambda s: tools_condition(s, messages_key=key))
    builder.add_edge("tools", "extra")
    builder.add_edge("extra", "agent")
    return builder.compile(checkpointer=InMemorySaver())


class Looping:
    """An agent that repeats its calls, on one thread, under a handler."""

    def __init__(
        self, host, *calls, model=None, saved=True, saver=None, tool=None, build=None,
        native_async=False, **options,
    ):  # fmt: skip
        self.ran, self.guard = Counter(), handler(**options)
        self.model = model or repeating_model(*calls)
        saved_to = {"checkpointer": saver or InMemorySaver()} if saved else {}
        tool = tool or counting_tool(self.ran, native_async=native_async)
        self.graph = GRAPHS[host](self.model, [tool], **saved_to, **(build or {}))
        self.config = thread("t", self.guard)

    def take_over(self, fresh: bool = True) -> None:
        """Go on under a handler that knows nothing yet, as another process would."""
        if fresh:
            self.config = thread("t", handler())

    async def play(self, mode, *answers) -> Outcome:
        """Run it on a user's message and on a person's answers; gives the last outcome."""
        outcome = await drive(self.graph, mode, ask(), self.config)
        for answer in answers:
            outcome = await self.resume(mode, answer)
        return outcome

    async def resume(self, mode, answer) -> Outcome:
        """Run it on a person's answer."""
        return await drive(self.graph, mode, Command(resume=answer), self.config)

    @property
    def messages(self) -> list[BaseMessage]:
        return self.graph.get_state(self.config).values["messages"]

    def results(self, count: int) -> list[ToolMessage]:
        """Give the last results."""
        return [m for m in self.messages if isinstance(m, ToolMessage)][-count:]


def ending(host, **options) -> Looping:
    """Make an agent that is done after three steps, of which the third is a loop."""
    return Looping(host, model=listed_model(THREE, THREE, THREE, []), **options)
