"""How does a rule remember things by key and stay small?

The systems that are re-told here keep a map that grows with the run. A guard's state is stored
with every step of a conversation, so here the map forgets: it holds the keys that were touched
last. In 1,359 real runs no call came back after more than 30 other different calls, so the
limits that the rules set for calls (40 and more) change nothing there; a longer gap than the
limit is where a rule departs from its original.

In the state a memory is one text, 6 bytes a number in base64: written out as a list the same
rows take half as much again.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


_BYTES = 6
"""Bytes of a number; a fingerprint has 48 bits, and counts stay far below."""

_MOST = 2 ** (8 * _BYTES) - 1
"""A count that was stored as large as that goes no further."""


class Memory:
    """A row of numbers for each of the keys touched last.

    Attributes:
        limit: How many keys are kept.
        width: How many numbers a row has.
    """

    __slots__ = ("_rows", "limit", "width")

    def __init__(self, limit: int, width: int) -> None:
        """Start empty."""
        self.limit = limit
        self.width = width
        self._rows: dict[int, list[int]] = {}

    def get(self, key: int) -> list[int] | None:
        """Give the key's row without touching it."""
        return self._rows.get(key)

    def put(self, key: int, row: list[int]) -> None:
        """Keep the row as the one touched last; the oldest goes when there are too many."""
        self._rows.pop(key, None)
        self._rows[key] = row
        if len(self._rows) > self.limit:
            del self._rows[next(iter(self._rows))]

    def drop(self, key: int) -> None:
        """Forget one key."""
        self._rows.pop(key, None)

    def drop_where(self, unwanted: Callable[[list[int]], bool]) -> None:
        """Forget every key whose row is unwanted."""
        self._rows = {key: row for key, row in self._rows.items() if not unwanted(row)}

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()

    def to_state(self) -> str:
        """Give the rows, each with its key in front, the one touched last at the end."""
        numbers = [number for key, row in self._rows.items() for number in (key, *row)]
        packed = b"".join(min(number, _MOST).to_bytes(_BYTES, "big") for number in numbers)
        return base64.b64encode(packed).decode("ascii")

    def load_state(self, state: Any) -> None:
        """Take over what `to_state` gave."""
        size = _BYTES * (1 + self.width)
        if type(state) is not str or len(state) > (size * self.limit + 2) // 3 * 4:
            raise ValueError(f"at most {self.limit} rows are remembered")
        packed = base64.b64decode(state, validate=True)
        if len(packed) % size:
            raise ValueError(f"each remembered row has {1 + self.width} numbers")
        numbers = [
            int.from_bytes(packed[place : place + _BYTES], "big")
            for place in range(0, len(packed), _BYTES)
        ]
        rows = [
            numbers[place : place + 1 + self.width]
            for place in range(0, len(numbers), 1 + self.width)
        ]
        self._rows = {key: row for key, *row in rows}
