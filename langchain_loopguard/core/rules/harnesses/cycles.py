"""Does a list of calls end in the same few calls over and over?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def repeating_tail(items: Sequence[object], period: int) -> int:
    """Give the length of the end of the list in which each item is the one `period` before it.

    The first `period` items of that end count too, so a list of at least `period` items has an
    end of at least that length; a shorter list has none.
    """
    if len(items) < period:
        return 0
    length = period
    for item, before in zip(reversed(items), reversed(items[:-period]), strict=False):
        if item != before:
            break
        length += 1
    return length


def laps_at_end(items: Sequence[object], period: int) -> int:
    """Count how many times in a row the last `period` items stand at the end of the list."""
    return repeating_tail(items, period) // period


def shortest_cycle(items: Sequence[object], periods: Iterable[int], laps: int) -> int:
    """Give the first period with at least `laps` equal laps at the end, 0 without one."""
    for period in periods:
        if laps_at_end(items, period) >= laps:
            return period
    return 0
