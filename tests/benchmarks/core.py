"""What does one tool call cost in the core, by size and by length of history?

Check and record of one call by the guard with its default rules, for a tool that changes things
and for one that reads, and by the bare `LoopDetector` of the seed. Then one call that comes again
and again, each time with another result. All other calls differ, so that nothing is found.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

from langchain_loopguard import LoopGuard
from langchain_loopguard.seed.detector import LoopDetector
from langchain_loopguard.seed.results import hash_results
from tests.benchmarks.made import HISTORIES, SIZES, Made, guard_work, made

GOALS = {"100 B + 200 B": 10.0, "10 KB + 10 KB": 30.0, "100 B + 1 MB": 1000.0}
"""Microseconds for the default guard."""


def detector_work(detector: LoopDetector) -> Any:
    """Give what a host does with a bare detector for one call."""

    def work(item: Made) -> None:
        calls = [item.call]
        record = detector.check(calls)
        detector.record_results(record, hash_results(calls, [item.result]))

    return work


def repeated_work() -> Any:
    """Give a guard's work on one call that is asked for again, with a result of its own."""
    call = made(1, 100, 10)[0].call
    one = guard_work(LoopGuard())
    return lambda item: one(Made(call, item.result))


def by_turns(
    works: Mapping[str, Callable[[Any], Any]], items: Sequence[Any], size: int
) -> dict[str, dict[str, float]]:
    """Time the works piece by piece, by turns, so that a busy moment hits all of them.

    Args:
        works: Names and what is done with an item.
        items: What to work on, every work on all of it.
        size: How many items are one piece.

    Returns:
        For each work the least and the median microseconds of the processor for one item.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    order = list(works)
    for start in range(0, len(items) - size + 1, size):
        order.append(order.pop(0))
        for name in order:
            times[name].append(_each(works[name], items[start : start + size]))
    return {
        name: {"least": min(found), "median": statistics.median(found)}
        for name, found in times.items()
    }


def _each(work: Callable[[Any], Any], items: Sequence[Any]) -> float:
    begun = time.process_time_ns()
    for item in items:
        work(item)
    return (time.process_time_ns() - begun) / len(items) / 1000


def measure(*, quick: bool = False) -> list[dict[str, Any]]:
    """Measure everything this file asks; gives a row for each size and history."""
    rows = []
    counts = (1000, 100, 10) if quick else (5000, 400, 40)
    for (name, size), count in zip(SIZES.items(), counts, strict=True):
        items = made(count, *size)
        works = {
            "changing": guard_work(LoopGuard()),
            "reading": _of("read_file", guard_work(LoopGuard())),
            "repeated": repeated_work(),
            "detector": detector_work(LoopDetector()),
        }
        piece = 25 if count >= 1000 else 5 if count >= 100 else 1
        rows.append({"what": name, "goal": GOALS[name], **by_turns(works, items, piece)})
    for history in HISTORIES[: 2 if quick else 3]:
        work = guard_work(LoopGuard())
        _play(work, history)
        items = made(1000, 100, 200, max(HISTORIES))
        row = by_turns({"changing": work}, items, 25)
        rows.append({"what": f"after {history:,} calls", "goal": GOALS["100 B + 200 B"], **row})
    return rows


def _play(work: Callable[[Made], None], history: int) -> None:
    for start in range(0, history, 1000):
        for item in made(min(1000, history - start), 100, 200, start):
            work(item)


def _of(tool: str, work: Callable[[Made], None]) -> Callable[[Made], None]:
    return lambda item: work(item._replace(call={**item.call, "name": tool}))


def tables(found: Iterable[dict[str, Any]]) -> list[Table]:
    """Show what was measured."""
    names = ("changing", "reading", "repeated", "detector")
    table = Table("", "changes", "reads", "the same call", "seed's detector", "goal", "")
    table.title = "Check and record of one call (microseconds of the processor: least / median)"
    for row in found:
        cells = [_pair(row[name]) if name in row else "" for name in names]
        met = "yes" if row["changing"]["least"] <= row["goal"] else "[bold]no[/bold]"
        table.add_row(row["what"], *cells, f"{row['goal']:,.0f}", met)
    return [table]


def _pair(found: dict[str, float]) -> str:
    return f"{found['least']:,.1f} / {found['median']:,.1f}"
