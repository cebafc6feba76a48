"""Pieces of an input that can be read apart, in another process too, so that no run is torn.

A text is lines, each a JSON value, or one JSON document. A file of lines is never in memory as a
whole. A document is, up to a limit, unless it is a long list, whose items are read one by one.
Where a document breaks off, the whole items before that are read.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from langchain_loopguard.replay.conversation import Conversation, ConversationError, Problem
from langchain_loopguard.replay.lists import TOO_MUCH, UNKNOWN, Items, Joined, long_list
from langchain_loopguard.replay.readers import format_of, is_list_of_runs, read_values
from langchain_loopguard.replay.readers.langgraph_postgres import SCHEMES, PostgresStore
from langchain_loopguard.replay.readers.langgraph_sqlite import SqliteStore
from langchain_loopguard.replay.streams import (
    BOM,
    MAX_LINE,
    MAX_MEMORY,
    UNPACK_ERRORS,
    lines_of,
    parse,
    reason_of,
    try_parse,
    weigh,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from langchain_loopguard.replay.readers import Format
    from langchain_loopguard.replay.readers.checkpoints import Store, Thread

MAX_DOCUMENT = MAX_LINE
"""Bytes of one JSON document that is no list, and of one run that is spread over many lines."""

_STREAMED = 32 * 2**20
"""Bytes from which on a JSON list is read item by item, which is slower."""

_PIECE = 2**18
"""Bytes of lines that make one piece: some tenths of a second, so that Ctrl-C is soon seen."""

_NO_RUN = "holds no run of a known format"

Found: TypeAlias = "tuple[str, Piece | Problem]"
"""A piece, or what could not be read, and the source it comes from."""

Numbered: TypeAlias = "tuple[int, bytes | None]"


class Piece(Protocol):
    """A part of the input."""

    @property
    def size(self) -> int:
        """How many bytes of the input it stands for, 0 when that is not known."""

    def read(self) -> Iterator[Conversation | Problem]:
        """Read what it holds; never raises for bad input."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a file, each with its number; `None` for one that was too long."""

    source: str
    lines: list[Numbered]
    size: int

    def read(self) -> Iterator[Conversation | Problem]:
        """Read each line as a JSON value."""
        if sum(weigh(line) for _, line in self.lines if line is not None) > MAX_MEMORY:
            yield Problem(self.source, f"takes {TOO_MUCH}, not read", self.lines[0][0])
            return
        problems: list[Problem] = []
        for found in read_values(self._values(problems), self.source):
            yield from problems
            problems.clear()
            yield found
        yield from problems

    def _values(self, problems: list[Problem]) -> Iterator[tuple[int, Any]]:
        for number, line in self.lines:
            if line is None:
                text = f"longer than {MAX_LINE >> 20} MB, skipped"
                problems.append(Problem(self.source, text, number))
                continue
            try:
                yield number, parse(line)
            except ValueError as error:
                problems.append(Problem(self.source, f"not JSON: {error}", number))


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of a checkpointer."""

    address: str
    source: str
    threads: list[Thread]
    size: int = 0

    def read(self) -> Iterator[Conversation | Problem]:
        """Read the threads."""
        try:
            store = open_store(self.address)
        except ConversationError as error:
            yield Problem(self.source, str(error))
            return
        # Loads langchain_core, which takes longer than reading most inputs.
        from langchain_loopguard.replay.readers.langgraph import read_thread  # noqa: PLC0415

        try:
            for thread in self.threads:
                try:
                    yield read_thread(store, thread, self.source)
                except ConversationError as error:
                    yield Problem(f"{self.source}, thread {thread.name}", str(error))
        finally:
            store.close()


@dataclass(frozen=True, slots=True)
class Document:
    """A text that is one JSON value, or was meant to be."""

    source: str
    text: bytes
    found: bool

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.text)

    def read(self) -> Iterator[Conversation | Problem]:
        """Read the value, or what can be read of it."""
        try:
            value = parse(self.text)
        except ValueError as error:
            for piece in _broken(self.source, self.text, error):
                yield from [piece] if isinstance(piece, Problem) else piece.read()
            return
        if self.found and not _holds_runs(value):
            yield Problem(self.source, _NO_RUN, ignored=True)
            return
        yield from Items(self.source, [(1, value)], 0, unit="value").read()


def open_store(address: str) -> Store:
    """Open a checkpointer's file or database.

    Raises:
        ConversationError: If it can't be read.
    """
    return PostgresStore(address) if is_postgres(address) else SqliteStore(address)


def is_postgres(name: str) -> bool:
    """Return whether a path is the address of a Postgres database."""
    return name.startswith(SCHEMES)


def text_pieces(
    source: str, stream: io.BufferedReader, *, found: bool
) -> Iterator[Piece | Problem]:
    """Cut a text into pieces.

    Args:
        source: What it is called.
        stream: Its bytes, unpacked.
        found: Whether it was found in a directory, so that a text without runs is no fault.
    """
    start = stream.readline(_STREAMED)
    if len(start) == _STREAMED and start.removeprefix(BOM).lstrip()[:1] == b"[":
        yield from long_list(source, Joined(start, stream))
        return
    lines = lines_of(stream, start)
    first = list(islice(lines, 2))
    if not first:
        yield Problem(source, "empty", ignored=found)
    elif len(first) == 1:
        if first[0][1] is None:
            yield Lines(source, first, 0)
        else:
            yield from _document(source, first[0][1], stream, found=found)
    elif _are_lines([line for _, line in first]):
        if found and not any(_holds_runs(try_parse(line)) for _, line in first):
            yield Problem(source, _NO_RUN, ignored=True)
        else:
            yield from _line_pieces(source, chain(first, lines))
    else:
        start = b"".join(line or b"" for _, line in first)
        yield from _document(source, start, stream, found=found)


def are_runs_a_line(stream: io.BufferedReader) -> bool:
    """Return whether each line of a text is a run, so that it may be cut at any of them."""
    first = [line for _, line in islice(lines_of(stream), 2)]
    if len(first) < 2 or not _are_lines(first):  # noqa: PLR2004 - one line is a document
        return False
    known = [found for line in first if (found := format_of(try_parse(line))) is not None]
    return bool(known) and known[0].group is None


def _are_lines(lines: list[bytes | None]) -> bool:
    """Tell lines that are a value each from a document that is spread over lines."""
    if lines[0] is not None and lines[0].strip() in {b"[", b"{"}:
        return False
    return any(line is None or isinstance(try_parse(line), dict | list) for line in lines)


def _document(
    source: str, start: bytes, stream: io.BufferedReader, *, found: bool
) -> Iterator[Piece | Problem]:
    is_list = start.lstrip()[:1] == b"["
    limit = _STREAMED if is_list else MAX_DOCUMENT
    text = start + stream.read(max(limit - len(start) + 1, 0))
    if len(text) <= limit:
        yield Document(source, text, found)
    elif is_list:
        yield from long_list(source, Joined(text, stream))
    else:
        yield Problem(source, f"one JSON object of more than {limit >> 20} MB, not read")


def _broken(source: str, text: bytes, error: ValueError) -> Iterator[Piece | Problem]:
    """Read what can be read of a text that is no JSON as a whole."""
    lines = list(lines_of(io.BufferedReader(io.BytesIO(text))))
    if len(lines) > 1 and any(format_of(try_parse(line)) is not None for _, line in lines):
        yield from _line_pieces(source, lines)
    elif text.lstrip()[:1] == b"[":
        yield from long_list(source, Joined(b"", io.BytesIO(text)), why=f": {error}")
    else:
        yield Problem(source, f"not JSON: {error}")


def _line_pieces(source: str, lines: Iterable[Numbered]) -> Iterator[Piece | Problem]:
    """Gather lines into pieces."""
    gathered: list[Numbered] = []
    size = 0
    runs = _Runs()
    problem: Problem | None = None
    try:
        for number, line in lines:
            length = len(line) if line is not None else 0
            may_end = runs.may_end_before(line)
            if gathered and may_end and size + length > _PIECE:
                yield Lines(source, gathered, size)
                gathered, size = [], 0
            elif size + length > MAX_DOCUMENT:
                text = f"a run of more than {MAX_DOCUMENT >> 20} MB, not read on"
                problem = Problem(source, text, number)
                break
            elif not runs.any_known and number > UNKNOWN:
                problem = Problem(source, f"no run in its first {UNKNOWN:,} lines, not read on")
                break
            gathered.append((number, line))
            size += length
    except UNPACK_ERRORS as error:
        problem = Problem(source, f"cannot be read to its end: {reason_of(error)}")
    if gathered:
        yield Lines(source, gathered, size)
    if problem is not None:
        yield problem


class _Runs:
    """Tells where one run ends and another begins."""

    def __init__(self) -> None:
        self._format: Format | None = None
        self._key: str | None = None

    @property
    def any_known(self) -> bool:
        """Whether a line of a known format was seen."""
        return self._format is not None

    def may_end_before(self, line: bytes | None) -> bool:
        """Return whether a cut may be made before this line."""
        if self._format is not None and self._format.group is None:
            return True  # A line is a run: there is no need to look.
        value = try_parse(line)
        if self._format is None:
            self._format = format_of(value)
            if self._format is not None and self._format.group is not None:
                self._key = self._format.group(value)
            return self._format is None or self._format.group is None
        if self._format.group is None or not self._format.matches(value):
            return False
        key = self._format.group(value)
        if key is None or key == self._key:
            return False
        known, self._key = self._key, key
        return known is not None


def _holds_runs(value: Any) -> bool:
    return format_of(value) is not None or is_list_of_runs(value)
