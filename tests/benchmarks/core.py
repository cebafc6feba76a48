"""What does one tool call cost in the core, by size and by length of history?

Check and record of one call, the guard with its default rules, the guard with the seed's rule,
and the bare `LoopDetector`. The aim is 5 microseconds for 100 bytes of arguments and 200 of
answer, 30 for 10 KB and 10 KB, 700 for an answer of 1 MB, and the same after 100,000 calls as
after 10.
"""

from __future__ import annotations

from typing import Any

from langchain_loopguard.core.detector import LoopDetector
from rich.table import Table

from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.results import hash_results
from tests.benchmarks.made import HISTORIES, SIZES, Made, guard_work, made, text
from tests.benchmarks.timing import by_turns

GOALS = {"100 B + 200 B": 5.0, "10 KB + 10 KB": 30.0, "100 B + 1 MB": 700.0}
"""Microseconds for the default guard."""

_WORKS = ("default", "seed", "detector")


def detector_work(detector: LoopDetector) -> Any:
    """Give what a host does with a bare detector for one call."""

    def work(item: Made) -> None:
        calls = [item.call]
        record = detector.check(calls)
        detector.record_results(record, hash_results(calls, [item.answer]))

    return work


def _works() -> dict[str, Any]:
    return {
        "default": guard_work(LoopGuard()),
        "seed": guard_work(LoopGuard(LoopGuardPolicy.seed())),
        "detector": detector_work(LoopDetector()),
    }


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Measure everything this file asks."""
    sizes = {}
    for name, items in _sized(quick=quick).items():
        sizes[name] = by_turns(_works(), items, _piece(len(items)))
    # Histories differ little, so they take turns too.
    old: dict[tuple[str, str], Any] = {}
    for history in HISTORIES[: 2 if quick else 3]:
        for name, work in _works().items():
            old[str(history), name] = work
            for start in range(0, history, 1000):
                for item in made(min(1000, history - start), 100, 200, start):
                    work(item)
    items = made(1000 if quick else 5000, 100, 200, max(HISTORIES))
    timed = by_turns(old, items, 25)
    histories = {history: {name: timed[history, name] for name in _WORKS} for history, _ in timed}
    return {
        part: {name: _row(costs) for name, costs in found.items()}
        for part, found in (("sizes", sizes), ("histories", histories))
    }


def _row(costs: Any) -> dict[str, Any]:
    row: dict[str, Any] = {name: costs[name]._asdict() for name in _WORKS}
    row["ratio"] = costs["default"].least / costs["detector"].least
    return row


def _piece(count: int) -> int:
    """Give how many items to time at once: few of the big ones, which are slow enough alone."""
    return 25 if count >= 500 else 5 if count >= 100 else 1


def _sized(*, quick: bool) -> dict[str, list[Made]]:
    counts = (1000, 100, 8) if quick else (5000, 400, 40)
    found = {
        name: made(count, *size) for (name, size), count in zip(SIZES.items(), counts, strict=True)
    }
    for tool in ("read_file", "bash"):
        items = found["100 B + 200 B"]
        found[f"100 B + 200 B of `{tool}`"] = [
            item._replace(call={**item.call, "name": tool}) for item in items
        ]
    if quick:
        return found
    big = found["10 KB + 10 KB"]
    edits = [{"old": "a" * 20, "new": "b" * 20, "line": line} for line in range(150)]
    found["10 KB of brackets + 10 KB"] = [
        _with(item, {"content": f"{n} " + "x[{" * 3333}) for n, item in enumerate(big)
    ]
    found["10 KB in 150 objects + 10 KB"] = [
        _with(item, {"edits": [*edits, n]}) for n, item in enumerate(big)
    ]
    few = made(400, 100, 200)
    odd: dict[str, Any] = {"a set": {"a", "b", "c"}, "a number that is none": float("nan")}
    for what, value in odd.items():
        found[f"{what}, 200 B"] = [
            _with(item, {"value": value, "n": n}) for n, item in enumerate(few)
        ]
    small = made(40, 100, 10)
    found["100 B + 1 MB outside of ASCII"] = [
        item._replace(answer=text(333_000, n).replace("w", "\u2603\u2603"))
        for n, item in enumerate(small)
    ]
    return found


def _with(item: Made, arguments: dict[str, Any]) -> Made:
    return item._replace(call={**item.call, "args": arguments})


def tables(found: dict[str, Any]) -> list[Table]:
    """Show what was measured."""
    shown = []
    for part, title in (
        ("sizes", "Check and record of one call, by size (microseconds: least / median)"),
        ("histories", "The same for 100 B + 200 B, by calls before it"),
    ):
        table = Table("", "guard", "goal", "guard, seed's rule", "detector", "guard : detector")
        table.title = title
        for name, row in found[part].items():
            goal = GOALS.get(name, GOALS["100 B + 200 B"] if part == "histories" else None)
            shape = f"{int(name):,}" if part == "histories" else name
            table.add_row(
                shape,
                _pair(row["default"]),
                f"{goal:,.0f}" if goal else "",
                _pair(row["seed"]),
                _pair(row["detector"]),
                f"{row['ratio']:.2f}",
            )
        shown.append(table)
    return shown


def _pair(found: dict[str, float]) -> str:
    digits = 1 if found["least"] < 100 else 0
    return f"{found['least']:,.{digits}f} / {found['median']:,.{digits}f}"


__all__ = ["GOALS", "detector_work", "measure", "tables"]
