"""Does a line of each answer only count the steps?

Some harnesses write into every answer how many steps were made or are left. With such a line
every answer is new, and none is the same as before. Progress that is waited for counts as well,
and so does a tool that goes through numbered things; the difference is that a harness counts on
whatever is called. So a line is taken for a count of steps when one of its numbers went up or down
by one with every batch of a user turn, over calls that differ, of several tools or of a shell, and
without standing in the calls. From then on it is left out of the answers before anything is
compared.

What is stored are hashes of the lines that are expected next, never a line or its numbers. A
guard that is not stored between the first two batches makes them only if a number of the second
is next to one of the first, and not if the calls of both say so: most answers cost little then.

What it does not see: a count that moves by more than one (tokens, seconds), stands beside another
in one line, in the middle of an answer or inside JSON, or begins in the middle of a turn; a loop
that begins before the count is known.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from xxhash import xxh32_intdigest

from langchain_loopguard.core import stored
from langchain_loopguard.core.answers import Answer
from langchain_loopguard.core.clock import mask_clock
from langchain_loopguard.core.packing import pack
from langchain_loopguard.core.tools import name_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_loopguard.core.batch import Batch

# Measured on the open corpus with a count of steps in every answer (`tests.rules.test_retold`).

_BATCHES = 5
"""Batches in which a line must have counted before it is left out. With 3 to 8 all 20 labelled
loops are asked about, on average at step 14.8 to 15.5, with 10 one is missed; no good run is."""

_CALLS = 4
"""Calls among them that differ: jobs that are polled in turn may all advance by one per cent.
With 2 to 6 all loops are found, on average at step 14.9 to 15.1."""

_TOOLS = 2
"""Tools among them; each call of a shell is one, since it may run anything. With 1 to
3 the figures are the same."""

_PATIENCE = 12
"""Batches after which a line that counts, over fewer calls than that, is looked at no more. With
8 to 20 the figures are the same."""

_AHEAD = 4
"""Steps that may be missing: their answers were lost, or the calls refused. With 1
to 8 the figures are the same, since no answer of the corpus is."""

_EDGE = 2
"""Lines at the beginning and at the end of an answer that are looked at. With 1 the
figures are the same, with 3 a loop is missed."""

_MOST_KEPT = 2
"""Lines that are left out at once."""

_LONGEST = 200  # bytes
_MOST_NUMBERS = 2
_MOST_LINES = 2 * _EDGE * 2 * _MOST_NUMBERS
_MOVES = (-1, 0, 1)
_NUMBER = re.compile(rb"(\d+)")
_MOST_DIGITS = 9
_WITH_NEIGHBOURS = re.compile(rb"(^|\D)(\d+)(?=(\D|$))")
_MOST_ARGUMENTS = 4096
"""Bytes of a batch's arguments in which numbers are looked for."""


class _Line(NamedTuple):
    moves: tuple[int, ...]
    """What is added to each of its numbers with every batch."""
    ahead: tuple[int, ...]
    """Hashes of the line as it is now and as it will be after one batch, two, and so on."""
    said: bool = False
    """Of the first answer's: whether the call said the number that moves."""


class StepLines:
    """Learns which lines count the steps of a user turn, and leaves them out of answers.

    Attributes:
        watching: Whether answers are to be looked at; otherwise nothing counts here.
    """

    __slots__ = (
        "_arguments",
        "_batches",
        "_believed",
        "_calls",
        "_first",
        "_lines",
        "_tools",
        "watching",
    )

    def __init__(self) -> None:
        """Start with nothing learned."""
        self.human_message()

    def human_message(self) -> None:
        """A user turn: a harness may count anew."""
        self.watching = True
        self._believed = False
        self._batches = 0
        # Batches over which a line counted, and what was called in them.
        self._calls: set[int] = set()
        self._tools: set[int] = set()
        self._lines: list[_Line] = []
        # The lines of the first answer and what its calls said, until the second has come.
        self._first: list[bytes] = []
        self._arguments = b""

    def without(self, batch: Batch, answers: Sequence[Answer | None]) -> Sequence[Answer | None]:
        """Give the answers of a batch without the lines that count steps."""
        if all(answer is None for answer in answers):
            return answers
        if not self._batches:
            self._first = _numbered(next(answer for answer in answers if answer is not None))
            self._arguments = _arguments_of(batch)
            self._learn(batch, told=False)
            return answers
        if self._first:
            pieces = self._pieces_to_watch(batch, answers)
            self._lines = list(_candidates(pieces, self._arguments))
            self._first, self._arguments = [], b""
            if not self._lines:
                self._forget()
                return answers
        # The place of each line that was found -> its parts
        found: dict[int, list[bytes]] = {}
        left = [self._look(answer, found) for answer in answers]
        counted = {
            place: _expected(parts, self._lines[place].moves, _AHEAD)
            for place, parts in found.items()
        }
        if self._believed:
            self._lines = [counted.get(place, line) for place, line in enumerate(self._lines)]
            return left
        arguments = _arguments_of(batch) if found else b""
        told = {
            place
            for place, parts in found.items()
            if any(
                move and _says(arguments, int(number))
                for number, move in zip(parts[1::2], self._lines[place].moves, strict=True)
            )
        }
        # A call that goes through numbered things says so from the first one on.
        own = {place for place in told if self._lines[place].said}
        counted = {place: line for place, line in counted.items() if place not in own}
        self._lines = list(counted.values())[:_MOST_KEPT]
        self._learn(batch, told=bool(told - own))
        return answers

    def to_state(self) -> list[Any] | None:
        """Give what was learned in JSON types, at most 0.5 KB; `None` when nothing counts here."""
        if not self.watching:
            return None
        lines = self._lines or _candidates(self._first, self._arguments)
        return [
            self._believed,
            self._batches,
            [f"{call:x}" for call in sorted(self._calls)],
            [f"{tool:x}" for tool in sorted(self._tools)],
            [[list(line.moves), pack(line.ahead), *[True] * line.said] for line in lines],
        ]

    def load_state(self, state: Any) -> None:
        """Take over what `to_state` gave; raises on a state of another form."""
        if state is None:
            self.watching = False
            return
        believed, batches, calls, tools, kept = stored.entries(state, 5)
        lines = [
            _Line(
                tuple(map(_move, stored.entries(moves, _MOST_NUMBERS))),
                tuple(stored.hashes(ahead, _AHEAD + 1)),
                any(map(stored.flag, said)),
            )
            for moves, ahead, *said in stored.entries(kept, _MOST_LINES)
        ]
        counts = stored.flag(believed), stored.count(batches)
        called = set(stored.digests(calls, _PATIENCE)), set(stored.digests(tools, _TOOLS))
        self.watching = True
        self._lines = lines
        self._believed, self._batches = counts
        self._calls, self._tools = called

    def _look(self, answer: Answer | None, found: dict[int, list[bytes]]) -> Answer | None:
        """Note which lines of an answer are expected ones; give it without them."""
        if answer is None:
            return None
        pieces = _pieces(answer.text)
        middle = _middle(pieces)
        kept = []
        for number, piece in enumerate(pieces):
            parts = [] if number == middle else _parts(piece)
            digest = xxh32_intdigest(b"".join(parts)) if parts else None
            counts = False
            for place, line in enumerate(self._lines):
                if digest in line.ahead and len(parts) == 2 * len(line.moves) + 1:
                    counts = True
                    # One that stands still is expected of parallel calls only.
                    if digest != line.ahead[0]:
                        found[place] = parts
            if not counts:
                kept.append(piece)
        if len(kept) == len(pieces):
            return answer
        return Answer(b"\n".join(kept).decode("utf-8", "surrogatepass"), answer.error)

    def _pieces_to_watch(self, batch: Batch, answers: Sequence[Answer | None]) -> list[bytes]:
        """Give the lines of the first answer of which the second batch may have the next.

        Which takes a number that is by one more or less, with the same characters beside it, and
        that not both batches' calls said. Nothing that looking closely would find is left out.
        """
        second = _arguments_of(batch)
        following = {
            number
            for answer in answers
            if answer is not None
            for piece in _numbered(answer)
            for number in _WITH_NEIGHBOURS.findall(piece)
        }
        return [
            piece
            for piece in self._first
            if any(
                (before, b"%0*d" % (_width(number), int(number) + move), after) in following
                and not (_says(self._arguments, int(number)) and _says(second, int(number) + move))
                for before, number, after in _WITH_NEIGHBOURS.findall(piece)
                for move in (-1, 1)
            )
        ]

    def _learn(self, batch: Batch, *, told: bool) -> None:
        self._batches += 1
        if not told:
            self._calls.add(batch.digest)
            for name, traits in zip(batch.names, batch.traits, strict=True):
                if len(self._tools) < _TOOLS:  # A batch may hold any number of names.
                    self._tools.add(batch.digest if traits.shell else name_hash(name))
        if not (self._lines or self._first) or self._batches >= _PATIENCE:
            self._forget()
        elif (
            self._batches >= _BATCHES and len(self._calls) >= _CALLS and len(self._tools) >= _TOOLS
        ):
            self._believed = True
            self._calls.clear()
            self._tools.clear()

    def _forget(self) -> None:
        """Nothing counts here."""
        self.human_message()
        self.watching = False


def _arguments_of(batch: Batch) -> bytes:
    return b"\n".join(batch.canonical)[:_MOST_ARGUMENTS]


def _says(arguments: bytes, number: int) -> bool:
    digits = b"%d" % number
    return digits in arguments and digits in _NUMBER.findall(arguments)


def _numbered(answer: Answer) -> list[bytes]:
    """Give the lines of an answer that may hold a count."""
    pieces = _pieces(answer.text)
    middle = _middle(pieces)
    return [
        piece
        for number, piece in enumerate(pieces)
        if number != middle and _may_count(piece) and _NUMBER.search(piece)
    ]


def _candidates(pieces: Sequence[bytes], arguments: bytes) -> Iterator[_Line]:
    """Give what each line of the first answer may be after the next batch."""
    for piece in pieces:
        parts = _parts(piece)
        for at, move in product(range(len(parts) // 2), (-1, 1)):
            moves = tuple(move if at == place else 0 for place in range(len(parts) // 2))
            said = _says(arguments, int(parts[2 * at + 1]))
            yield _expected(parts, moves, 1, said=said)


def _pieces(text: bytes) -> list[bytes]:
    """Cut off the lines at both ends; what is between them is one piece."""
    *head, rest = text.strip().split(b"\n", _EDGE)
    return [*head, *rest.rsplit(b"\n", _EDGE)]


def _middle(pieces: Sequence[bytes]) -> int:
    """Give the place of what is between the ends, -1 if nothing is."""
    return _EDGE if len(pieces) > 2 * _EDGE else -1


def _may_count(piece: bytes) -> bool:
    return len(piece) <= _LONGEST and b"\n" not in piece


def _parts(piece: bytes) -> list[bytes]:
    """Split a line at its numbers, which are every second part; empty if there are too many."""
    if not _may_count(piece) or not _NUMBER.search(piece):
        return []
    parts = _NUMBER.split(mask_clock(piece.strip()))
    if len(parts) > 2 * _MOST_NUMBERS + 1 or any(len(n) > _MOST_DIGITS for n in parts[1::2]):
        return []
    return parts if len(parts) > 1 else []


def _width(number: bytes) -> int:
    """Give to how many digits a number is filled up with noughts."""
    return len(number) if number.startswith(b"0") else 1


def _expected(
    parts: Sequence[bytes], moves: tuple[int, ...], steps: int, *, said: bool = False
) -> _Line:
    ahead = []
    for step in range(steps + 1):
        line = list(parts)
        for at, move in enumerate(moves):
            number = line[2 * at + 1]
            # Below zero nothing is expected: no line has such a number.
            line[2 * at + 1] = b"%0*d" % (_width(number), int(number) + step * move)
        ahead.append(xxh32_intdigest(b"".join(line)))
    return _Line(moves, tuple(ahead), said)


def _move(value: Any) -> int:
    if stored.number(value) not in _MOVES:
        raise ValueError("a move is missing")
    return int(value)
