"""What were the last calls, and do they go in a circle?"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from langchain_loopguard.core import stored
from langchain_loopguard.core.rules.harnesses.cycles import laps_at_end, shortest_cycle
from langchain_loopguard.core.rules.harnesses.frame import Hit
from langchain_loopguard.core.rules.harnesses.keys import set_key
from langchain_loopguard.core.rules.harnesses.wordings import Kind
from langchain_loopguard.core.tools import kept_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_loopguard.core.decision import Action
    from langchain_loopguard.core.rules.harnesses.frame import Call

_LONGEST = 128
"""Calls in a stored window; the largest that any policy allows has 100."""


class Window:
    """The keys, batch numbers and tool names of the last `limit` calls."""

    __slots__ = ("_seen",)

    def __init__(self, limit: int) -> None:
        """Start empty."""
        self._seen: deque[tuple[int, int, str]] = deque(maxlen=limit)

    def add(self, key: int, call: Call) -> None:
        """Take in one call under the key by which the rule knows it."""
        self._seen.append((key, call.number, kept_name(call.name)))

    def clear(self) -> None:
        """Forget all calls."""
        self._seen.clear()

    def cycle(self, periods: Iterable[int], laps: int) -> tuple[int, int]:
        """Give the shortest period with `laps` equal laps at the end, and its laps, or zeros."""
        keys = [key for key, _, _ in self._seen]
        period = shortest_cycle(keys, periods, laps)
        return (period, laps_at_end(keys, period)) if period else (0, 0)

    def hit(
        self, action: Action, threshold: int, period: int, laps: int, hold: int | None = None
    ) -> Hit:
        """Describe the cycle of that period; it is named by its calls, wherever it begins."""
        seen = list(self._seen)
        return Hit(
            action,
            Kind.CYCLE if period > 1 else Kind.SAME_CALL,
            laps,
            threshold,
            seen[-period * laps][1],
            str(set_key(key for key, _, _ in seen[-period:])),
            tuple(dict.fromkeys(name for _, _, name in seen[-period:])),
            hold,
        )

    def to_state(self) -> list[list[Any]]:
        """Give the calls in JSON types."""
        return [list(entry) for entry in self._seen]

    def load_state(self, state: Any) -> None:
        """Take over what `to_state` gave."""
        rows = stored.each(state, _LONGEST, stored.number, stored.count, stored.text)
        self._seen = deque(map(tuple, rows), maxlen=self._seen.maxlen)
