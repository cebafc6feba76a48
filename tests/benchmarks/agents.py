"""How much processor time does a guard add to an agent?

Real agents with a scripted model, so that all that is left is the host and the guard: one new
call a step with a new result, 20 steps a run. Each guard is set against the same agent without
one, and the middleware against LangChain's own `ToolCallLimitMiddleware`, which counts calls and
has the same kind of hooks. All take turns within one process, a run each, so that a busy moment
hits all of them; compared is the processor's time, in the median of all rounds.

`blocks` writes what is found as the marked tables of `adapters/README.md`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ToolCallLimitMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphRecursionError
from rich.table import Table

from langchain_loopguard import LoopGuardCallbackHandler, add_loop_guard
from langchain_loopguard.middleware import LoopGuardMiddleware
from tests.adapters.guarded import builder_for
from tests.evaluation.tables import markdown_table
from tests.hosts import ScriptedChatModel, agent_graph, ai_calls, tool_node_graph

STEPS = 20
_OPTIONS: dict[str, Any] = {"on_detected": "raise", "fail_open": False}


class _Model(ScriptedChatModel):
    """A scripted model that keeps no requests."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.respond(messages))])


def parts(steps: int = STEPS) -> tuple[ScriptedChatModel, list[BaseTool]]:
    """Make a model that makes one new call a step, and the tool, whose result is new each time."""

    def respond(messages: Sequence[BaseMessage]) -> AIMessage:
        step = len(messages) // 2
        return AIMessage("done") if step >= steps else ai_calls([("work", {"n": step})], step)

    def work(n: int) -> str:
        return f"line {n}\nother {n}"

    return _Model(respond=respond), [
        StructuredTool.from_function(func=work, name="work", description="Works.")
    ]


def guarded_graph(chat: Any, tools: Sequence[Any], *, saver: Any = None, **options: Any) -> Any:
    """Build agent and tools, guarded by `add_loop_guard`."""
    builder = builder_for(chat, tools)
    add_loop_guard(builder, **options)
    return builder.compile(checkpointer=saver)


def plain_graph(chat: Any, tools: Sequence[Any], *, saver: Any = None) -> Any:
    """Build the same graph without a guard."""
    return tool_node_graph(chat, tools, checkpointer=saver)


AGENTS: dict[str, Callable[[int], Any]] = {
    "create_agent": lambda steps: agent_graph(*parts(steps)),
    "create_agent, ToolCallLimitMiddleware": lambda steps: agent_graph(
        *parts(steps), middleware=[ToolCallLimitMiddleware(run_limit=1000)]
    ),
    "create_agent, LoopGuardMiddleware": lambda steps: agent_graph(
        *parts(steps), middleware=[LoopGuardMiddleware(**_OPTIONS)]
    ),
    "create_agent, LoopGuardCallbackHandler": lambda steps: agent_graph(*parts(steps)),
    "create_agent, a handler that does nothing": lambda steps: agent_graph(*parts(steps)),
    "graph": lambda steps: plain_graph(*parts(steps)),
    "graph, add_loop_guard": lambda steps: guarded_graph(*parts(steps), **_OPTIONS),
}
"""Makes an agent that works for so many steps."""

PAIRS: dict[tuple[str, str], float | None] = {
    ("create_agent, LoopGuardMiddleware", "create_agent, ToolCallLimitMiddleware"): 1.15,
    ("create_agent, LoopGuardCallbackHandler", "create_agent"): 1.15,
    ("create_agent, a handler that does nothing", "create_agent"): None,
    ("graph, add_loop_guard", "graph"): 1.15,
}
"""A guard and what it is set against -> how many times its time the guard may take."""

_LIMIT = 25
"""LangGraph's `recursion_limit` unless set otherwise."""


def _handlers(name: str) -> list[BaseCallbackHandler]:
    made = {
        "create_agent, LoopGuardCallbackHandler": lambda: LoopGuardCallbackHandler(**_OPTIONS),
        "create_agent, a handler that does nothing": BaseCallbackHandler,
    }
    return [made[name]()] if name in made else []


def most_turns() -> dict[str, int]:
    """Count how many tool turns each agent can finish under the default `recursion_limit`."""
    return {name: _most_turns(make, _handlers(name)) for name, make in AGENTS.items()}


def _most_turns(make: Callable[[int], Any], handlers: list[BaseCallbackHandler]) -> int:
    config: Any = {"recursion_limit": _LIMIT, "callbacks": handlers}
    for turns in range(_LIMIT // 2, 0, -1):  # A turn is two super-steps at least.
        try:
            make(turns).invoke({"messages": [HumanMessage("go")]}, config)
        except GraphRecursionError:
            continue
        return turns
    return 0


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Measure everything this file asks: milliseconds a step, and the ratios."""
    agents = {name: make(STEPS) for name, make in AGENTS.items()}
    handlers = {name: _handlers(name) for name in AGENTS}
    times: dict[str, list[float]] = {name: [] for name in AGENTS}
    order = list(AGENTS)
    for number in range(5 if quick else 60):
        order.append(order.pop(0))
        for name in order:
            spent = _run(agents[name], handlers[name], number)
            if number >= (1 if quick else 4):  # The first runs fill caches.
                times[name].append(spent)
    return {
        "steps": STEPS,
        "turns": most_turns(),
        "ms_a_step": {name: statistics.median(found) / STEPS for name, found in times.items()},
        "ratios": [
            {"guard": one, "over": other, "goal": goal, "ratio": _ratio(times[one], times[other])}
            for (one, other), goal in PAIRS.items()
        ],
    }


def _run(agent: Any, handlers: Sequence[Any], number: int) -> float:
    config = {
        "callbacks": list(handlers),
        "recursion_limit": 10 * STEPS,
        "configurable": {"thread_id": str(number)},
    }
    begun = time.process_time()
    agent.invoke({"messages": [HumanMessage("go")]}, config)
    return (time.process_time() - begun) * 1000


def _ratio(mine: Sequence[float], its: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(mine, its, strict=True))


def tables(found: Mapping[str, Any]) -> list[Table]:
    """Show what was measured."""
    table = Table("guard", "over", "ms a step", "against", "ratio", "goal", "")
    table.title = f"Processor time of {found['steps']} steps"
    for row in found["ratios"]:
        times = [f"{found['ms_a_step'][row[which]]:.2f}" for which in ("guard", "over")]
        goal = row["goal"]
        met = "" if goal is None else "yes" if row["ratio"] <= goal else "[bold]no[/bold]"
        numbers = (f"{row['ratio']:.3f}", "" if goal is None else f"{goal:.2f}", met)
        table.add_row(row["guard"], row["over"], *times, *numbers)
    return [table]


def blocks(found: Mapping[str, Any]) -> dict[str, str]:
    """Write the marked blocks of `adapters/README.md`; a ratio that misses its goal is bold."""
    turns = [[name, str(most)] for name, most in found["turns"].items()]
    times = []
    for row in found["ratios"]:
        goal, ratio = row["goal"], f"{row['ratio']:.2f}"
        missed = goal is not None and row["ratio"] > goal
        goal = "none" if goal is None else f"{goal:.2f}"
        times.append([row["guard"], row["over"], f"**{ratio}**" if missed else ratio, goal])
    return {
        "turns": markdown_table(["agent", "tool turns"], turns),
        "times": markdown_table(["guard", "beside", "ratio", "goal"], times),
    }
