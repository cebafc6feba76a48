"""How much slower is an agent with a guard?

Real agents with a scripted model, so that all that is left is the host and the guard: with
`create_agent`, as a graph with a `ToolNode`, and as a loop written by hand around a model and a
tool. Each has one call a step, always a new one with a new answer.

A guard is set against the same agent without one, and against the same agent with something
empty in its place: a handler with the same events, a node in the same places that only routes, a
middleware with the same hooks. LangGraph runs and saves every node and hook as a step of its
own, whatever is in it; what the empty ones cost is the host's.

A tool either does nothing or takes 5 ms, asleep. Compared is the processor's time, with 5 ms
added for each call that slept: the time on the clock is no measure on a machine that is shared.
It is measured too and is in the JSON file. All agents run at once and take turns of up to ten
steps, so what is compared was done within the same few moments.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware, hook_config
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool
from langchain_loopguard.graph.tracing import TRACE_POLICY, node_options
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command
from rich.table import Table

from langchain_loopguard import LoopGuardCallbackHandler, add_loop_guard
from langchain_loopguard.middleware import LoopGuardMiddleware
from tests.hosts import ScriptedChatModel, agent_graph, ai_calls, lcel_chain, tool_node_graph

STEPS = (1, 10, 100)
TOOLS = {"a tool that does nothing": 0.0, "a tool that takes 5 ms": 0.005}
"""Seconds that each call sleeps."""

GOALS = {"a tool that does nothing": 1.10, "a tool that takes 5 ms": 1.02}
"""A guard's time over that of what it is set against: for the handler the agent without one, for
the node and the middleware the empty ones."""

WAYS = ("invoke", "ainvoke")

_CLOCKS = ("cpu", "clock")

_PATIENCE = 120.0
"""Seconds for which an agent waits for its turn."""

_TURN = 10
"""Steps that an agent does in one go. With one step a turn every agent would find the processor's
caches full of the others, and take twice as long as it does alone."""

_PARTS = 800
"""About how many steps of each agent are timed, in runs of any length."""

# --- Agents -----------------------------------------------------------------------------------


class _Model(ScriptedChatModel):
    """A scripted model that remembers nothing."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.respond(messages))])


def model(steps: int, asked: Callable[[], None]) -> _Model:
    """Make a model that makes one new call a step and then is done.

    Args:
        steps: How many.
        asked: Is called each time the model is.
    """

    def respond(messages: Sequence[BaseMessage]) -> AIMessage:
        asked()
        step = len(messages) // 2
        return AIMessage("done") if step >= steps else ai_calls([("work", {"n": step})], step)

    return _Model(respond=respond)


def tool(seconds: float) -> StructuredTool:
    """Make a tool whose answer is always new."""

    def work(n: int) -> str:
        if seconds:
            time.sleep(seconds)
        return f"line {n}\nother {n}"

    async def awork(n: int) -> str:
        if seconds:
            await asyncio.sleep(seconds)
        return f"line {n}\nother {n}"

    return StructuredTool.from_function(
        func=work, coroutine=awork, name="work", description="Works."
    )


def by_hand(chat: Any, tools: Sequence[Any]) -> Any:
    """Build a loop around a chain of a model and a tool, itself one run."""
    chain = lcel_chain(chat, tools)

    def loop(state: Mapping[str, Any]) -> list[BaseMessage]:
        messages = state["messages"]
        while True:
            new = chain.invoke(messages)
            messages = [*messages, *new]
            if len(new) == 1:
                return messages

    async def aloop(state: Mapping[str, Any]) -> list[BaseMessage]:
        messages = state["messages"]
        while True:
            new = await chain.ainvoke(messages)
            messages = [*messages, *new]
            if len(new) == 1:
                return messages

    return RunnableLambda(loop, aloop)


# --- What stands in a guard's place -----------------------------------------------------------


def empty_handler() -> BaseCallbackHandler:
    """Make a handler that hears the same events and does nothing."""

    def nothing(self: Any, *args: Any, **kwargs: Any) -> None:
        pass

    own = vars(LoopGuardCallbackHandler)
    parts: dict[str, Any] = {
        name: nothing if name.startswith("on_") else value
        for name, value in own.items()
        if name.startswith(("on_", "ignore_")) or name in {"raise_error", "run_inline"}
    }
    return type("EmptyHandler", (BaseCallbackHandler,), parts)()


class EmptyMiddleware(AgentMiddleware):
    """Has the guard's hooks and does nothing in them."""

    trace_policy = TRACE_POLICY

    def before_model(self, state, runtime) -> None:
        """Do nothing."""

    async def abefore_model(self, state, runtime) -> None:
        """Do nothing."""

    @hook_config(can_jump_to=["model", "end"])
    def after_model(self, state, runtime) -> None:
        """Do nothing."""

    @hook_config(can_jump_to=["model", "end"])
    async def aafter_model(self, state, runtime) -> None:
        """Do nothing."""

    def wrap_model_call(self, request, handler) -> Any:
        """Call the model."""
        return handler(request)

    async def awrap_model_call(self, request, handler) -> Any:
        """Call the model."""
        return await handler(request)


def _route(state: Any) -> Command[Any]:
    last = state["messages"][-1]
    if not isinstance(last, AIMessage):
        return Command(goto="agent")
    return Command(goto="tools" if last.tool_calls else END)


def node_graph(
    chat: Any, tools: Sequence[Any], *, guard: str, checkpointer: Any = None, **options: Any
) -> Any:
    """Build agent and tools with a guard's node between them, or with one that only routes.

    Args:
        chat: The model.
        tools: The tools.
        guard: `node` or `empty node`.
        checkpointer: Where the graph is saved.
        options: The guard's.
    """
    bound = chat.bind_tools(list(tools))

    def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    async def aagent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", RunnableLambda(agent, aagent))
    builder.add_node("tools", ToolNode(list(tools)))
    builder.add_edge(START, "agent")
    if guard == "node":
        add_loop_guard(builder, **options)
        return builder.compile(checkpointer=checkpointer)
    # As `add_loop_guard` wires it, the node before the agent included.
    ends = ("tools", "agent", END)
    builder.add_node("loop_guard", _route, destinations=ends, **node_options())
    builder.add_node("loop_guard_repair", lambda state: {}, **node_options())
    builder.edges.remove((START, "agent"))
    builder.add_edge(START, "loop_guard_repair")
    builder.add_edge("loop_guard_repair", "agent")
    builder.add_edge("agent", "loop_guard")
    builder.add_edge("tools", "loop_guard")
    return builder.compile(checkpointer=checkpointer)


# --- Variants ---------------------------------------------------------------------------------

PAIRS = {
    "create_agent, handler": ("handler", "empty handler", "none"),
    "create_agent, middleware": ("middleware", "empty middleware", "none"),
    "ToolNode graph, handler": ("handler", "empty handler", "none"),
    "ToolNode graph, node": ("node", "empty node", "none"),
    "loop by hand, handler": ("handler", "empty handler", "none"),
}
"""A guard, what is empty in its place, and nothing."""


def build_agent(host: str, variant: str, chat: Any, seconds: float) -> tuple[Any, list[Any]]:
    """Build an agent; gives it and its handlers."""
    tools = [tool(seconds)]
    options: dict[str, Any] = {"on_detected": "raise", "fail_open": False}
    handlers: list[Any] = []
    if variant == "handler":
        handlers = [LoopGuardCallbackHandler(**options)]
    elif variant == "empty handler":
        handlers = [empty_handler()]
    if host == "create_agent":
        middleware: list[Any] = []
        if variant == "middleware":
            middleware = [LoopGuardMiddleware(**options)]
        elif variant == "empty middleware":
            middleware = [EmptyMiddleware()]
        return agent_graph(chat, tools, middleware=middleware), handlers
    if host == "loop by hand":
        return by_hand(chat, tools), handlers
    if variant == "node":
        return node_graph(chat, tools, guard=variant, **options), handlers
    if variant == "empty node":
        return node_graph(chat, tools, guard=variant), handlers
    return tool_node_graph(chat, tools), handlers


class _Timed:
    """An agent, and the milliseconds that each of its turns took."""

    def __init__(self, host: str, variant: str, steps: int, seconds: float, way: str) -> None:
        self._agent, self._handlers = build_agent(host, variant, model(steps, self._asked), seconds)
        self._slept = seconds * min(_TURN, steps)
        self._steps = steps
        self._calls = 0
        self._way = way
        self._runs = 0
        self._turn = self._next = threading.Semaphore(0)
        self._from = (0.0, 0.0)
        self.parts: list[tuple[float, float]] = []
        """Of each turn the processor's time, with what was slept, and that on the clock."""

    def run(self) -> None:
        """Run it once, taking turns with the others."""
        self._runs += 1
        config = {
            "callbacks": self._handlers,
            "recursion_limit": 10 * self._steps + 50,
            "configurable": {"thread_id": str(self._runs)},
        }
        value = {"messages": [HumanMessage("go")]}
        self._calls = 0
        self._begin()
        if self._way == "ainvoke":
            asyncio.run(self._agent.ainvoke(value, config))
        else:
            self._agent.invoke(value, config)
        self._end()

    def _asked(self) -> None:
        if 0 < self._calls < self._steps and self._calls % _TURN == 0:
            self._end()
            self._begin()
        self._calls += 1

    def _begin(self) -> None:
        if not self._turn.acquire(timeout=_PATIENCE):
            raise TimeoutError("another agent did not come to its end")
        self._from = (time.process_time(), time.perf_counter())

    def _end(self) -> None:
        cpu, clock = time.process_time() - self._from[0], time.perf_counter() - self._from[1]
        self.parts.append(((cpu + self._slept) * 1000, clock * 1000))
        self._next.release()


def _by_turns(all_timed: Sequence[_Timed]) -> None:
    """Run agents side by side, of which one at a time takes its turn."""
    for one in all_timed:
        one._turn = threading.Semaphore(0)
    for one, after in zip(all_timed, [*all_timed[1:], all_timed[0]], strict=True):
        one._next = after._turn
    all_timed[0]._turn.release()
    with ThreadPoolExecutor(len(all_timed)) as pool:
        for done in [pool.submit(one.run) for one in all_timed]:
            done.result()


def measure(
    *, quick: bool = False, hosts: Sequence[str] = (), steps: Sequence[int] = (), rounds: int = 0
) -> list[dict[str, Any]]:
    """Measure everything this file asks; gives a row for each guard, host, tool and way.

    Args:
        quick: Whether to measure less.
        hosts: Which hosts and guards, all by default.
        steps: How many steps, all of `STEPS` by default.
        rounds: How often everything takes its turn.
    """
    return [
        row
        for number in steps or (STEPS[:2] if quick else STEPS)
        for what, seconds in TOOLS.items()
        for way in WAYS
        for row in _rows(
            number, what, seconds, way, rounds or (3 if quick else _rounds(number)), hosts
        )
    ]


def _rounds(steps: int) -> int:
    return _PARTS // max(steps, 4)


def _rows(
    steps: int, what: str, seconds: float, way: str, rounds: int, hosts: Sequence[str]
) -> list[dict[str, Any]]:
    wanted = {name: trio for name, trio in PAIRS.items() if not hosts or name in hosts}
    timed: dict[tuple[str, str], _Timed] = {}
    for name, trio in wanted.items():
        host = name.split(",")[0]
        for variant in trio:
            if (host, variant) not in timed:
                timed[host, variant] = _Timed(host, variant, steps, seconds, way)
    order = list(timed.values())
    _by_turns(order)
    for one in order:
        one.parts.clear()
    for _ in range(rounds):
        order.append(order.pop(0))
        _by_turns(order)
    rows = []
    for name, (guard, empty, none) in wanted.items():
        host = name.split(",")[0]
        mine, theirs, bare = (timed[host, variant] for variant in (guard, empty, none))
        rows.append(
            {
                "guard": name,
                "tool": what,
                "steps": steps,
                "way": way,
                "ms_a_step": _each(_means(mine, rounds * steps)),
                "over_empty": _ratios(mine, theirs),
                "over_none": _ratios(mine, bare),
                "aim": "over_none" if guard == "handler" else "over_empty",
                "goal": GOALS[what],
            }
        )
    return rows


def _each(values: Sequence[float]) -> dict[str, float]:
    return dict(zip(_CLOCKS, values, strict=True))


def _means(one: _Timed, steps: int) -> list[float]:
    return [sum(times) / steps for times in zip(*one.parts, strict=True)]


def _ratios(one: _Timed, other: _Timed) -> dict[str, float]:
    """Give how many times as long one took as the other, in the median of all turns."""
    pairs = list(zip(one.parts, other.parts, strict=True))
    return _each(
        [
            statistics.median(mine[place] / its[place] for mine, its in pairs)
            for place in range(len(_CLOCKS))
        ]
    )


def tables(found: list[dict[str, Any]]) -> list[Table]:
    """Show what was measured."""
    shown = []
    for what in TOOLS:
        table = Table(
            "agent, guard", "way", "steps", "ms a step", "over empty", "over none", "goal", ""
        )
        table.title = f"Guarded over unguarded, {what}: processor time, median of all turns"
        for row in found:
            if row["tool"] != what:
                continue
            table.add_row(
                row["guard"],
                row["way"],
                str(row["steps"]),
                f"{row['ms_a_step']['cpu']:.2f}",
                *(f"{row[name]['cpu']:.3f}" for name in ("over_empty", "over_none")),
                f"{row['goal']:.2f} {row['aim'].replace('_', ' ')}",
                "yes" if row[row["aim"]]["cpu"] <= row["goal"] else "[bold]no[/bold]",
            )
        shown.append(table)
    return shown


__all__ = [
    "PAIRS",
    "EmptyMiddleware",
    "build_agent",
    "measure",
    "model",
    "node_graph",
    "tables",
    "tool",
]
