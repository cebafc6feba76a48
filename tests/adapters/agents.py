"""How is an agent with the middleware built in these tests?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import Field

from langchain_loopguard import LoopGuardMiddleware
from tests.adapters.guarded import SEED, WIRINGS
from tests.hosts import (
    MODES,
    Counter,
    ScriptedChatModel,
    agent_graph,
    ai_calls,
    counting_tool,
    repeating_model,
    thread,
)

AGENT_OPTIONS = ("response_format",)

either_order = pytest.mark.parametrize("order", ["guard-first", "guard-last"])
"""The two orders of two middlewares."""

NOTICE_MARK = "[Warning"
SEARCH = ("search", {"q": "a"})
BATCH = [SEARCH, ("open", {"q": "b"})]


class ToolAwareModel(ScriptedChatModel):
    """A scripted model that notes the names of the tools that it is bound to."""

    bound: list[list[str]] = Field(default_factory=list)
    """The tools of every request, in order of arrival."""
    settings: list[dict[str, Any]] = Field(default_factory=list)
    """The other settings of every request."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable:
        kwargs.pop("tool_choice", None)
        return self.bind(bound_tools=[tool.name for tool in tools], **kwargs)

    def _note(self, options: dict[str, Any]) -> None:
        self.bound.append(options.pop("bound_tools", []))
        self.settings.append(options)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs: Any):
        self._note(kwargs)
        return super()._generate(messages, stop, run_manager)

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs: Any):
        return self._generate(messages, stop, run_manager, **kwargs)

    def _stream(self, messages, stop=None, run_manager=None, **kwargs: Any):
        self._note(kwargs)
        yield from super()._stream(messages, stop, run_manager)

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs: Any):
        self._note(kwargs)
        async for chunk in super()._astream(messages, stop, run_manager):
            yield chunk


def guarded_agent(model, tools, *, saver=None, others=(), order="guard-last", **options) -> Any:
    """Build an agent with `create_agent`.

    Args:
        model: The chat model.
        tools: The tools.
        saver: The checkpointer; `False` leaves the agent without one.
        others: More middlewares.
        order: Where the guard is listed among them.
        options: The guard's options, and those of the agent that `AGENT_OPTIONS` lists.
    """
    own = {name: options.pop(name) for name in AGENT_OPTIONS if name in options}
    guard = LoopGuardMiddleware(**{"policy": SEED, **options})
    middleware = [*others, guard] if order == "guard-last" else [guard, *others]
    checkpointer = InMemorySaver() if saver is None else saver or None
    return agent_graph(model, tools, middleware=middleware, checkpointer=checkpointer, **own)


def obedient(calls, answer="This is what I found."):
    """Make a response that repeats a batch until it is told that a call was not run."""

    def respond(messages):
        last = messages[-1]
        if not isinstance(last, HumanMessage | AIMessage) and "not run" in str(last.content):
            return AIMessage(content=answer)
        return ai_calls(calls, sum(isinstance(message, AIMessage) for message in messages))

    return respond


WAYS = {**WIRINGS, "middleware": guarded_agent}
"""Every way to guard a graph from within, by test id."""

every_way = pytest.mark.parametrize("build", WAYS.values(), ids=WAYS)
every_way_and_mode = pytest.mark.parametrize(
    ("build", "mode"),
    [
        pytest.param(build, mode, id=f"{name}-{mode}")
        for name, build in WAYS.items()
        for mode in (MODES if name in {"owned", "middleware"} else MODES[::3])
    ],
)
"""As `every_graph_and_mode`; what differs between the others is how the node is wired."""


def looping(build, *, model=None, names=("search",), **options):
    """Build a graph that repeats one failing call for ever; gives graph, counter and model."""
    counter = Counter()
    model = model or repeating_model()
    tools = [counting_tool(counter, name, native_async=True) for name in names]
    return build(model, tools, **options), counter, model


def beside(others, order, *, model=None, **options):
    """Build an agent that repeats a step for ever, with other middlewares beside the guard."""
    counter = Counter()
    model = model or repeating_model(*BATCH)
    tools = [counting_tool(counter, name, native_async=True) for name in ("search", "open")]
    graph = guarded_agent(model, tools, others=others, order=order, **options)
    return graph, counter, model


def resume(graph, value):
    """Give the agent a person's answer."""
    return graph.invoke(Command(resume=value), thread("t"))


def kinds(result):
    """List what a person is asked."""
    return [asked.value.get("type", "approval") for asked in result.get("__interrupt__", ())]
