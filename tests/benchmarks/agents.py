"""How much processor time does a guard add to an agent?

Real agents with a scripted model, so that all that is left is the host and the guard: one new
call a step with a new result, 20 steps a run. Each guard is set against the same agent without
one, and the middleware against LangChain's own `ToolCallLimitMiddleware`, which counts calls and
has the same kind of hooks. All take turns within one process, a run each, so that a busy moment
hits all of them; compared is the processor's time, in the median of all rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ToolCallLimitMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from rich.table import Table

from langchain_loopguard import LoopGuardCallbackHandler, add_loop_guard
from langchain_loopguard.middleware import LoopGuardMiddleware
from tests.adapters.guarded import builder_for
from tests.hosts import ScriptedChatModel, agent_graph, ai_calls, tool_node_graph

STEPS = 20
_OPTIONS: dict[str, Any] = {"on_detected": "raise", "fail_open": False}


class _Model(ScriptedChatModel):
    """A scripted model that keeps no requests."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.respond(messages))])


def _respond(messages: Sequence[BaseMessage]) -> AIMessage:
    step = len(messages) // 2
    return AIMessage("done") if step >= STEPS else ai_calls([("work", {"n": step})], step)


def parts() -> tuple[ScriptedChatModel, list[BaseTool]]:
    """Make a model that makes one new call a step, and the tool, whose result is new each time."""

    def work(n: int) -> str:
        return f"line {n}\nother {n}"

    return _Model(respond=_respond), [
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


AGENTS: dict[str, Callable[[], Any]] = {
    "create_agent": lambda: agent_graph(*parts()),
    "create_agent, ToolCallLimitMiddleware": lambda: agent_graph(
        *parts(), middleware=[ToolCallLimitMiddleware(run_limit=1000)]
    ),
    "create_agent, LoopGuardMiddleware": lambda: agent_graph(
        *parts(), middleware=[LoopGuardMiddleware(**_OPTIONS)]
    ),
    "create_agent, LoopGuardCallbackHandler": lambda: agent_graph(*parts()),
    "graph": lambda: plain_graph(*parts()),
    "graph, add_loop_guard": lambda: guarded_graph(*parts(), **_OPTIONS),
}

PAIRS: dict[tuple[str, str], float] = {
    ("create_agent, LoopGuardMiddleware", "create_agent, ToolCallLimitMiddleware"): 1.15,
    ("create_agent, LoopGuardCallbackHandler", "create_agent"): 1.15,
    ("graph, add_loop_guard", "graph"): 1.15,
}
"""A guard and what it is set against -> how many times its time the guard may take."""


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Measure everything this file asks: milliseconds a step, and the ratios."""
    agents = {name: make() for name, make in AGENTS.items()}
    handlers = {name: [] for name in AGENTS}
    handlers["create_agent, LoopGuardCallbackHandler"] = [LoopGuardCallbackHandler(**_OPTIONS)]
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
        met = "yes" if row["ratio"] <= row["goal"] else "[bold]no[/bold]"
        numbers = (f"{row['ratio']:.3f}", f"{row['goal']:.2f}", met)
        table.add_row(row["guard"], row["over"], *times, *numbers)
    return [table]
