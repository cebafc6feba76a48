"""Reads a long JSON list item by item, up to where it breaks off."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation, Problem
from langchain_loopguard.replay.readers import format_of, read_values
from langchain_loopguard.replay.streams import MAX_LINE, MAX_MEMORY, UNPACK_ERRORS, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_loopguard.replay.readers import Format

_ITEMS = 64
"""Items of a long list that make one piece."""

_NESTED = 1000
"""How deep brackets may be nested, as in orjson."""

_PORTION = 2**22
"""Bytes that the parser of long lists is handed at once: it reads a token that goes on over many
portions again from its start, so that small ones take a time that grows with the square."""

UNKNOWN = 10_000
"""Items, or lines, without a run among them after which a text is not read on."""

TOO_MUCH = f"more than {MAX_MEMORY >> 20} MB of memory"


@dataclass(frozen=True, slots=True)
class Items:
    """Values that are read already: a document as one of them, or items of a list."""

    source: str
    values: list[tuple[int, Any]]
    size: int
    unit: str = "item"

    def read(self) -> Iterator[Conversation | Problem]:
        """Read the values."""
        return read_values(self.values, self.source, unit=self.unit)


def long_list(  # noqa: C901 - a loop and the ways in which it ends
    source: str, stream: Joined, *, why: str = ""
) -> Iterator[Items | Problem]:
    """Read a list's items one by one, up to where it breaks off, and say why if that is known."""
    try:
        import ijson  # noqa: PLC0415 - needed for long and broken lists alone
    except ImportError:
        text = "a long or broken list needs ijson: pip install 'langchain-loopguard[cli]'"
        yield Problem(source, text)
        return
    items: list[tuple[int, Any]] = []
    number = weight = 0
    known: Format | None = None
    problem: Problem | None = None
    try:
        for number, (item, size) in enumerate(_items_of(ijson, stream), 1):
            known = known or format_of(item)
            if known is None and number > UNKNOWN:
                problem = Problem(source, f"no run in its first {UNKNOWN:,} items, not read on")
                items = []
                break
            # The items of one run stay together.
            full = len(items) >= _ITEMS or weight + size > MAX_MEMORY
            if items and full and (known is None or known.group is None):
                yield Items(source, items, 0)
                items, weight = [], 0
            elif weight + size > MAX_MEMORY:
                problem = Problem(source, f"a run that takes {TOO_MUCH}, not read on", number)
                break
            items.append((number, item))
            weight += size
    except _TooLargeError:
        problem = Problem(source, f"too large, or {TOO_MUCH}, not read on", number + 1, "item")
    except (ijson.JSONError, ValueError):  # The latter for text that is not UTF-8.
        text = f"a list that breaks off or is not JSON after item {number}{why}"
        problem = Problem(source, text)
    except UNPACK_ERRORS as error:
        problem = Problem(source, f"cannot be read to its end: {reason_of(error)}")
    if items:
        yield Items(source, items, 0)
    if problem is not None:
        yield problem


_EVENT = 96
"""Bytes of memory that an event of the parser stands for, its text aside; see `streams`."""


class _TooLargeError(Exception):
    """One item, or a text or number in it, is too large."""


def _items_of(ijson: Any, stream: Joined) -> Iterator[tuple[Any, int]]:
    """Yield a list's items, each with the memory that it takes.

    `ijson.items` keeps the path to where it is as text: brackets nested without end fill the
    memory.
    """
    builder: Any = None
    depth = weight = 0
    for event, value in ijson.basic_parse(stream, use_float=True, buf_size=_PORTION):
        stream.since = 0
        ends = event in {"end_map", "end_array"}
        depth -= ends
        if event in {"start_map", "start_array"}:
            depth += 1
            if depth > _NESTED:
                raise ijson.JSONError
            if depth == 1:
                continue
        if depth == 0:
            continue  # More than blanks behind the list is an error.
        builder = builder or ijson.ObjectBuilder()
        builder.event(event, value)
        weight += _EVENT + (len(value) if isinstance(value, str) else 0)
        if weight > MAX_MEMORY:
            raise _TooLargeError
        if depth == 1:
            yield builder.value, weight
            builder, weight = None, 0


class Joined:
    """A beginning that was read already, and the rest of its stream.

    Attributes:
        since: Bytes that were read since the parser found something in them.
    """

    def __init__(self, start: bytes, rest: Any) -> None:
        self._start = io.BytesIO(start)
        self._rest = rest
        self.since = 0

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes."""
        read: bytes = self._start.read(size) or self._rest.read(size)
        self.since += len(read)
        if self.since > MAX_LINE // 4:
            raise _TooLargeError
        return read
