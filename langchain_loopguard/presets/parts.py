"""Of which parts are other systems' rules made?

A streak, a memory of counters by key, a window of the last calls: each
is a few numbers that a rule fills and asks, and each writes itself into the state of the
conversation. So none keeps an argument or a result, only 48 bits of a hash: enough to tell some
thousand values apart (a wrong match among 1,000 is less likely than one in 500 million), and
exact in every JSON reader, which 64 bits are not.

This file knows no system and no action.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash

from langchain_loopguard.core import state as stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CUT = 16
"""Bits of the 64-bit hash that are dropped."""

_LONGEST_NAME = 48
"""Characters of a tool's name that a state keeps."""


def fingerprint(*parts: str | bytes | int) -> int:
    """Hash all the parts, in their order, to one 48-bit number."""
    hasher = xxhash.xxh3_64()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "backslashreplace")
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.intdigest() >> _CUT


def kept_name(name: str) -> str:
    """Cut a tool's name to what a state keeps of it: its beginning, in ASCII."""
    return name[:_LONGEST_NAME].encode("ascii", "replace").decode()


class Part(ABC):
    """What a rule is made of."""

    @abstractmethod
    def clear(self) -> None:
        """Forget everything."""

    def drop(self, key: int) -> None:  # noqa: ARG002 - most parts know one loop
        """Forget one loop: a person let it go on."""
        self.clear()

    @abstractmethod
    def to_state(self) -> Any:
        """Write the numbers in JSON types."""

    @abstractmethod
    def load_state(self, state: Any) -> None:
        """Take over what `to_state` wrote.

        Raises:
            ValueError: If it is something else.
        """


class Streak(Part):
    """How often the same key came, one time after the other.

    Attributes:
        key: The key that came last, -1 before any.
        count: How often it came in a row.
        since: The step where the row began.
    """

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.key, self.count, self.since = -1, 0, 0

    def next(self, key: int, number: int) -> int:
        """Count a key at a step."""
        if key != self.key or not self.count:
            self.key, self.count, self.since = key, 0, number
        self.count += 1
        return self.count

    def clear(self) -> None:
        """Forget the key."""
        self.key, self.count, self.since = -1, 0, 0

    def to_state(self) -> list[int]:
        """Write key, count and beginning."""
        return [self.key, self.count, self.since]

    def load_state(self, state: Any) -> None:
        """Take over what `to_state` wrote."""
        read = stored.number
        self.key, self.count, self.since = stored.row(state, read, read, read)


class Row(NamedTuple):
    """What a memory keeps by a key."""

    times: int = 1
    since: int = 0
    tag: int = 0


class Memory(Part):
    """Counters by key, of the keys touched last.

    The systems re-told here keep a map that grows with the run; a guard's state is stored with
    every step, so here the map forgets. In 1,359 real runs no call came back after more than 30
    other different calls, so the limits that the rules set for calls (40 and more) change nothing
    there; a longer gap than the limit is where a rule departs from its original.
    """

    def __init__(self, limit: int, width: int = 2, size: int = 6) -> None:
        """Start empty.

        Args:
            limit: How many keys are kept.
            width: How much of a row is stored: 0 for the keys alone, 2 for counts, 3 with the tag.
            size: Bytes of a stored number.
        """
        self._limit, self._width, self._size = limit, width, size
        self._rows: dict[int, Row] = {}

    def get(self, key: int) -> Row:
        """Look a key up without touching it; a count of 0 is a key that is not known."""
        return self._rows.get(key, Row(0))

    def add(self, key: int, number: int, tag: int = 0) -> Row:
        """Count a key at a step, from 1 again if its tag changed; the oldest key goes."""
        row = self._rows.pop(key, None)
        if row is None or row.tag != tag:
            row = Row(0, number, tag)
        row = self._rows[key] = row._replace(times=row.times + 1)
        stored.keep_latest(self._rows, self._limit)
        return row

    def drop(self, key: int) -> None:
        """Forget one key."""
        self._rows.pop(key, None)

    def drop_tag(self, tag: int) -> None:
        """Forget every key with that tag."""
        self._rows = {key: row for key, row in self._rows.items() if row.tag != tag}

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()

    def to_state(self) -> str:
        """Write the rows, each with its key in front, the one touched last at the end."""
        rows = ((key, *row[: self._width]) for key, row in self._rows.items())
        return stored.pack([number for row in rows for number in row], self._size)

    def load_state(self, state: Any) -> None:
        """Take over what `to_state` wrote."""
        size = 1 + self._width
        numbers = stored.unpack(state, size * self._limit, self._size)
        if len(numbers) % size:
            raise ValueError(f"a remembered row has {size} numbers")
        rows = (numbers[place : place + size] for place in range(0, len(numbers), size))
        self._rows = {key: Row(*row) for key, *row in rows}


class Seen(NamedTuple):
    """One call of a window."""

    key: int
    number: int = 0
    name: str = ""
    said: int = -1
    failed: bool = False
    tool: int = -1


_NUMBER = stored.number
_READERS = (_NUMBER, stored.count, stored.text, _NUMBER, stored.flag, _NUMBER)


class Window(Part):
    """The last calls of a conversation, the newest at the end.

    Attributes:
        seen: The calls; as many as the limit says.
    """

    def __init__(self, limit: int, width: int = 3) -> None:
        """Start empty; `width` says how many parts of a call are stored."""
        self._limit = limit
        self._width = width
        self.seen: deque[Seen] = deque(maxlen=limit)

    def cycle(self, periods: Iterable[int], laps: int) -> tuple[int, int]:
        """Find the first period with so many equal laps at the end, and its laps, or zeros."""
        keys = [seen.key for seen in self.seen]
        for period in periods:
            found = laps_at_end(keys, period)
            if found >= laps:
                return period, found
        return 0, 0

    def last(self, calls: int) -> list[Seen]:
        """List so many last calls."""
        return list(self.seen)[-calls:]

    def clear(self) -> None:
        """Forget all calls."""
        self.seen.clear()

    def to_state(self) -> list[list[Any]]:
        """Write the calls."""
        return [list(seen[: self._width]) for seen in self.seen]

    def load_state(self, state: Any) -> None:
        """Take over what `to_state` wrote."""
        rows = stored.each(state, self._limit, *_READERS[: self._width])
        self.seen = deque((Seen(*row) for row in rows), maxlen=self._limit)


def repeating_tail(items: Sequence[object], period: int) -> int:
    """Measure the end of a list in which each item is the one `period` before it.

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
