"""How do tests tell a guard a story and read its verdicts?

A story is a list of steps: a call, a list of calls made in one message, or `HUMAN`. A verdict
is a line such as `2? warn 3/3`: the batch's place from 0, `?` before it ran or `!` after its
answers, the action, the count and the number that it was held against.
"""

import itertools
import json
from typing import Any

from langchain_loopguard.core.guard import LoopGuard

HUMAN = "a user message"
UNKNOWN = object()
"""An answer that never came."""


def call(
    name: str = "bash", /, *, say: Any = "ok", fails: bool = False, **args: Any
) -> dict[str, Any]:
    """Tell of one call and its answer."""
    return {"name": name, "args": args, "say": say, "fails": fails}


def new(**call_args: Any) -> list[dict[str, Any]]:
    """Tell of 999 calls of which none was seen before, and neither were their answers."""
    return [call(**call_args, n=n, say=f"said {n} for the first time") for n in range(999)]


def between(steps: list[Any], others: list[Any]) -> list[Any]:
    """Put one of the others after each of the steps."""
    return list(itertools.chain.from_iterable(zip(steps, others, strict=False)))


def parts(step: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Give the calls of a step and the answers to them, as a guard takes them."""
    calls = step if isinstance(step, list) else [step]
    given = [
        {"name": c["name"], "args": c["args"], "id": f"c{place}"} for place, c in enumerate(calls)
    ]
    results = [
        {"id": f"c{place}", "content": c["say"], "status": "error" if c["fails"] else "success"}
        for place, c in enumerate(calls)
        if c["say"] is not UNKNOWN
    ]
    return given, results


def run(guard: LoopGuard, step: Any) -> list[tuple[str, Any]]:
    """Play one step and give the decisions, `?` before it ran and `!` after."""
    given, results = parts(step)
    decision = guard.check(given)
    return [("?", decision), ("!", guard.record_results(decision.record, results))]


def verdicts(policy: Any, steps: list[Any], *, reload: bool = False) -> list[str]:
    """Play a story and give every finding; `reload` stores and loads the state at each step."""
    guard = LoopGuard(policy)
    lines = []
    place = 0
    for step in steps:
        if reload:
            guard = LoopGuard.from_state(policy, json.loads(json.dumps(guard.to_state())))
        if step is HUMAN:
            guard.human_message()
            continue
        for when, decision in run(guard, step):
            lines.extend(
                f"{place}{when} {f.action.name.lower()} {f.count}/{f.threshold}"
                for f in decision.findings
            )
        place += 1
    return lines
