"""How long does something take on a machine that others use too?

What is compared takes turns, piece by piece, so that a busy moment hits everything alike. Of the
pieces the least and the median are kept: the least is what the work costs, the median what this
machine made of it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar


class Cost(NamedTuple):
    """Times of one thing, in one unit."""

    least: float
    median: float


def cost(times: Sequence[float]) -> Cost:
    """Sum up the times of one thing."""
    return Cost(min(times), statistics.median(times))


_Name = TypeVar("_Name", bound=Hashable)


def by_turns(
    works: Mapping[_Name, Callable[[Any], Any]], items: Sequence[Any], size: int
) -> dict[_Name, Cost]:
    """Give the microseconds an item costs in each of several works.

    Args:
        works: Names and what is done with an item.
        items: What to work on, every work on all of it.
        size: How many items are one piece.
    """
    times: dict[_Name, list[float]] = {name: [] for name in works}
    order = list(works)
    for start in range(0, len(items) - size + 1, size):
        piece = items[start : start + size]
        order.append(order.pop(0))
        for name in order:
            work = works[name]
            begun = time.perf_counter_ns()
            for item in piece:
                work(item)
            times[name].append((time.perf_counter_ns() - begun) / size / 1000)
    return {name: cost(found) for name, found in times.items()}


__all__ = ["Cost", "by_turns", "cost"]
