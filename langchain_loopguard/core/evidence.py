"""What one step brought: the table on which every rule rests.

`Evidence.judge` looks at the results of a step once, and each rule reads what it found. What one
call brought is a row of `TABLE`; a step brought the best of its calls:

- `NEW`: it said something that was not known. Only a success can.
- `OPEN`: it may have done something; it neither counts nor clears.
- `NONE`: it brought nothing.

A result is known by its lines. A line is *new* when no result of this turn held it. A line that
every result of a tool holds, while other lines differ, is the tool's frame and says nothing; the
lines that are left are the result's *size*. One line or two are short: a receipt, a count.

What is remembered is bounded and holds hashes of 32 bits only; see `_MEMORY`.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from xxhash import xxh3_64_intdigest

from langchain_loopguard.core import state
from langchain_loopguard.core.clock import DIGITS
from langchain_loopguard.core.results import MOST_LINES, says_wait

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_loopguard.core.kinds import ToolKind
    from langchain_loopguard.core.results import Result
    from langchain_loopguard.core.step import Call, Step


class Progress(enum.IntEnum):
    """What a call or a step brought; the numbers order it."""

    NONE = 0
    OPEN = 1
    NEW = 2


class Said(enum.Enum):
    """What a result says, beside everything that was said in this turn."""

    __hash__ = object.__hash__  # `Enum` asks Python code.

    NEW_LONG = "a new line, more than two lines"
    NEW_SHORT = "a new line, short"
    KNOWN_LONG = "nothing new, more than two lines"
    RECEIPT = "nothing new, short"
    AGAIN = "what this call said before"
    MOVED = "the same at length, with other numbers"
    NEW_ERROR = "an error, new text"
    KNOWN_ERROR = "an error, known text"
    MISSING = "no result"


_N, _O, _X = Progress.NEW, Progress.OPEN, Progress.NONE

TABLE: dict[Said, tuple[tuple[Progress, Progress, Progress], tuple[Progress, Progress, Progress]]]
TABLE = {
    # What the result says -> for a call that is new in this turn, and for one that is not: when
    # the tool only reads, when it is a shell or unknown, when it changes something.
    Said.NEW_LONG: ((_N, _N, _N), (_N, _N, _N)),
    Said.NEW_SHORT: ((_O, _O, _N), (_N, _N, _N)),
    Said.KNOWN_LONG: ((_X, _X, _X), (_X, _X, _X)),
    Said.RECEIPT: ((_O, _O, _N), (_X, _X, _X)),
    Said.AGAIN: ((_X, _X, _X), (_X, _X, _X)),
    Said.MOVED: ((_N, _N, _N), (_O, _O, _O)),
    Said.NEW_ERROR: ((_O, _O, _O), (_O, _O, _O)),
    Said.KNOWN_ERROR: ((_X, _X, _X), (_X, _X, _X)),
    Said.MISSING: ((_O, _O, _O), (_X, _X, _X)),
}
"""A tool that only takes down thoughts is the exception: its successes are `OPEN`."""

SHORT = 2
"""Lines of a short result. Measured: 3 halves the warnings of solved runs and finds 5 of 144
loops that follow from the table less."""

_32_BITS = 0xFFFFFFFF

_MEMORY = 256
"""Hashes in a generation of what was seen; two generations are kept. Measured: 250 and no limit
give the same verdicts on all runs and reports."""

_MOST_STORED = _MEMORY + 2 * MOST_LINES
"""Hashes in a stored generation: the last result may fill it beyond its size."""

_RANK = re.compile(rb"\A(?:\d{1,3}[.):]|[-*])\s+")
_RANKS = b"-*0123456789"
"""What a rank begins with, as most lines do not."""
_JSON_MARKS = bytes.maketrans(b"{}[],", b"\n" * 5)

_FRAMES = 6
"""Tools whose frames are kept, those used last."""


class CallEvidence(NamedTuple):
    """What one call brought."""

    call: Call
    progress: Progress
    said: Said
    form: int | None
    """32 bits of the result as it is compared, `None` for a missing one."""
    is_receipt: bool
    """Whether a success said something short that was known."""


class StepEvidence(NamedTuple):
    """What one step brought."""

    progress: Progress
    calls: tuple[CallEvidence, ...]
    changed_by: frozenset[str]
    """The tools that may have changed something: a success that the call never had before, of a
    tool that does not only read. Old questions are worth asking again then."""
    tells: bool
    """Whether a success said something new and not only did something."""
    in_words: bool
    """Whether it said something new in words: a line that is new without its digits."""
    waits: bool
    """Whether the step waits, or looks at what was waited for: patience, not advice."""
    made_progress: bool
    """Whether anything happened that makes old questions worth asking again."""


class Evidence:
    """Remembers what was seen in a turn and judges each step by it."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._seen = _Seen()
        # Tool -> its last result, the lines that all its results hold, whether results differed.
        self._frames: dict[int, tuple[int, frozenset[int], bool]] = {}
        self.waits = False
        """Whether the next step follows on waiting."""

    def start_turn(self) -> None:
        """Forget everything."""
        self.__init__()  # type: ignore[misc]

    def observe(self, text: bytes) -> bool:
        """Take in what another agent reported; says whether a line of it is new in words."""
        words = text.translate(None, DIGITS).split(b"\n", MOST_LINES)[:MOST_LINES]
        return self._seen.add([xxh3_64_intdigest(line, 1) for line in words])

    def judge(self, step: Step) -> StepEvidence:
        """Judge a step whose results are known."""
        calls = []
        best = Progress.NONE
        changed_by: set[str] = set()
        tells = in_words = waits = False
        for call, result in zip(step.calls, step.results, strict=True):
            is_first = self._seen.add([call.identity])
            if result is None:
                said, form, new_in_words, is_receipt = Said.MISSING, None, False, False
            else:
                said, form, new_in_words, is_receipt = self._said(call, result)
                waits = waits or says_wait(result)
            progress = _look_up(said, call.kind, is_first=is_first)
            if result is not None and not result.failed:
                if call.kind.thinking:
                    progress = Progress.OPEN
                else:
                    in_words = in_words or new_in_words
                    tells = tells or (progress is Progress.NEW and said is not Said.RECEIPT)
                    if not call.kind.read_only and progress is not Progress.NONE:
                        changed_by.add(call.name)
            waits = waits or call.waits
            best = max(best, progress)
            calls.append(CallEvidence(call, progress, said, form, is_receipt))
        made_progress = best is Progress.NEW or bool(changed_by)
        follows, self.waits = self.waits, waits or (self.waits and not made_progress)
        return StepEvidence(
            best,
            tuple(calls),
            frozenset(changed_by),
            tells,
            in_words,
            waits or follows,
            made_progress,
        )

    def _said(self, call: Call, result: Result) -> tuple[Said, int, bool, bool]:
        lines = [result.form] if result.is_long else result.form.split(b"\n")
        lines = list(filter(None, map(bytes.strip, lines)))
        hashes = [xxh3_64_intdigest(line) & _32_BITS for line in lines]
        # The order of lines says nothing: a listing may come in any.
        form = sum(hashes) & _32_BITS
        if result.is_long:  # Compared without digits anyway.
            size, words, parts = MOST_LINES + 1, lines, hashes
        else:
            size = self._size(call.name, hashes, form)
            words = [line.translate(None, DIGITS) for line in lines]
            parts = _parts(lines)
        new_in_words = self._seen.add([xxh3_64_intdigest(line, 1) for line in words]) and size > 0
        is_new = self._seen.add(parts)
        again = not self._seen.add([call.identity + (form << 1) + 1])
        is_short = size <= SHORT
        if result.is_long and is_new:
            self._seen.add([result.digest])
        if result.failed:
            said = Said.NEW_ERROR if is_new and not again else Said.KNOWN_ERROR
        elif result.is_long and not is_new and self._seen.add([result.digest]):
            said = Said.MOVED
        elif again:
            said = Said.AGAIN
        elif is_new:
            said = Said.NEW_SHORT if is_short else Said.NEW_LONG
        else:
            said = Said.RECEIPT if is_short else Said.KNOWN_LONG
        is_receipt = 0 < size <= SHORT and not is_new and not result.failed
        return said, form, new_in_words and not result.failed, is_receipt

    def _size(self, name: str, hashes: list[int], form: int) -> int:
        """Count the lines of a result without its tool's frame, and learn the frame."""
        tool, lines = xxh3_64_intdigest(name.encode()) & _32_BITS, frozenset(hashes)
        last, frame, differ = self._frames.pop(tool, (form, lines, False))
        if form != last:
            frame, differ = frame & lines, True
        self._frames[tool] = (form, frame, differ)
        if len(self._frames) > _FRAMES:
            state.keep_latest(self._frames, _FRAMES)
        return len(lines - frame) if differ else len(hashes)

    def to_state(self) -> dict[str, Any]:
        """Return what is remembered in JSON types, at most 4 KB."""
        return {
            "seen": self._seen.to_state(),
            "frames": [
                [tool, last, differ, state.pack(sorted(frame))]
                for tool, (last, frame, differ) in self._frames.items()
            ],
            "waiting": self.waits,
        }

    def load_state(self, stored: Any) -> None:
        """Take over what `to_state` returned.

        Raises:
            ValueError, KeyError: If it is of another form.
        """
        self._seen.load_state(stored["seen"])
        frames = state.each(
            stored["frames"],
            _FRAMES,
            state.count,
            state.count,
            state.flag,
            lambda packed: frozenset(state.unpack(packed, MOST_LINES + 1)),
        )
        self._frames = {tool: (last, frame, differ) for tool, last, differ, frame in frames}
        self.waits = state.flag(stored["waiting"])


class _Seen:
    """A set of 32-bit hashes that forgets the oldest."""

    __slots__ = ("_new", "_old", "_packed")

    def __init__(self) -> None:
        self._new: dict[int, None] = {}
        self._old: dict[int, None] = {}
        self._packed = ""

    def add(self, digests: Iterable[int]) -> bool:
        """Take in hashes; says whether one of them was not there."""
        new, old, found = self._new, self._old, False
        for digest in digests:
            short = digest & _32_BITS
            if short not in new:
                found = found or short not in old
                new[short] = None
        if len(new) >= _MEMORY:
            self._old, self._new = new, {}
            self._packed = state.pack(new)
        return found

    def to_state(self) -> list[str]:
        return [state.pack(self._new), self._packed]

    def load_state(self, stored: Any) -> None:
        new, old = state.entries(stored, 2)
        self._new = state.hashes(new, _MOST_STORED)
        self._old = state.hashes(old, _MOST_STORED)
        self._packed = old


def _parts(lines: list[bytes]) -> list[int]:
    """Hash what is new or known of a short result: its lines, of JSON the values in them.

    So a list in another order says nothing new, nor does a hit that is the third now instead of
    the first.
    """
    parts: list[bytes] = []
    for line in lines:
        if line[0] in b"{[":
            parts += map(bytes.lstrip, line.translate(_JSON_MARKS).split(b"\n"))
        else:
            parts.append(_RANK.sub(b"", line) if line[0] in _RANKS else line)
    return [xxh3_64_intdigest(part) for part in parts if part]


def _look_up(said: Said, kind: ToolKind, *, is_first: bool) -> Progress:
    return TABLE[said][0 if is_first else 1][0 if kind.read_only else 2 if kind.changing else 1]
