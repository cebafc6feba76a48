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
from langchain_loopguard.core.results import DIGITS, MOST_LINES

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

_MEMORY = 256
"""Hashes in a generation of what was seen; two generations are kept. Measured: 250 and no limit
give the same verdicts on all runs and reports."""

_MOST_STORED = _MEMORY + 2 * MOST_LINES
"""Hashes in a stored generation: the last result may fill it beyond its size."""

_RANK = re.compile(rb"\A(?:\d{1,3}[.):]|[-*])\s+")
_JSON_PARTS = re.compile(rb"[{}\[\],]+\s*")

_LOOKED_AT = 400
"""Bytes at the beginning and at the end of a long text that are searched for signs of waiting."""

_FRAMES = 6
"""Tools whose frames are kept, those used last."""

_BUSY = (
    rb"(?:pending|running|in[ _-]?progress|queued|processing|provisioning|starting|building"
    rb"|compiling|deploying|waiting|scheduled|initiali[sz]ing|creating)"
)
_RETRY = (
    rb"\b(?:retry[- ]after|try again (?:later|in)|rate limit|too many requests"
    rb"|not (?:yet )?(?:ready|complete|finished|done|available))\b"
)
_SAYS_WAIT = re.compile(
    rb"\A\W*" + _BUSY + rb"\W*\Z"
    rb"|\b(?:status|state|phase|stage)\W{1,6}(?:is\W)?" + _BUSY + rb"\b"
    rb"|\b(?:is|are|still|currently)\s(?:still\s)?" + _BUSY + rb"\b"
    rb"|\bcontainercreating\b|" + _RETRY
)
_ERROR_SAYS_WAIT = re.compile(_RETRY)
"""What a result says of something that needs time: a state that is not final, or that asking
again later is right. Of an error only the latter."""


_WAIT_SIGNS = (
    b"ing",
    b"queued",
    b"progress",
    b"schedul",
    b"retry",
    b"try ag",
    b"ate l",
    b"not ",
    b"y req",
)
"""In lower case; a text without any of these says nothing of waiting."""


class CallEvidence(NamedTuple):
    """What one call brought."""

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

    @property
    def made_progress(self) -> bool:
        """Whether anything happened that makes old questions worth asking again."""
        return self.progress is Progress.NEW or bool(self.changed_by)


class Evidence:
    """Remembers what was seen in a turn and judges each step by it."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._seen = _Seen()
        # Tool -> its last result, the lines that all its results hold, whether results differed.
        self._frames: dict[int, tuple[int, frozenset[int], bool]] = {}
        self._waiting = False

    def start_turn(self) -> None:
        """Forget everything."""
        self.__init__()  # type: ignore[misc]

    def observe(self, text: bytes) -> bool:
        """Take in what another agent reported; says whether a line of it is new in words."""
        return self._new_in_words(text.split(b"\n", MOST_LINES)[:MOST_LINES])

    def judge(self, step: Step) -> StepEvidence:
        """Judge a step whose results are known."""
        calls = []
        changed_by: set[str] = set()
        tells = in_words = says_wait = False
        for call, result in zip(step.calls, step.results, strict=True):
            is_first = not self._seen.add(call.identity)
            if result is None:
                said, form, new_in_words, is_receipt = Said.MISSING, None, False, False
            else:
                said, form, new_in_words, is_receipt = self._said(call, result)
                says_wait = says_wait or _says_wait(result)
            progress = _look_up(said, call.kind, is_first=is_first)
            if result is not None and not result.failed:
                if call.kind.thinking:
                    progress = Progress.OPEN
                else:
                    in_words = in_words or new_in_words
                    is_news = said in (Said.NEW_LONG, Said.NEW_SHORT) or (
                        said is Said.MOVED and is_first
                    )
                    tells = tells or (is_news and progress is Progress.NEW)
                    if not call.kind.read_only and (is_news or progress is not Progress.NONE):
                        changed_by.add(call.name)
            calls.append(CallEvidence(progress, said, form, is_receipt))
        progress = max([call.progress for call in calls])
        waits = says_wait or any(call.waits for call in step.calls)
        found = StepEvidence(
            progress,
            tuple(calls),
            frozenset(changed_by),
            tells,
            in_words,
            waits or self._waiting,
        )
        self._waiting = waits or (self._waiting and not found.made_progress)
        return found

    def is_waiting(self, step: Step) -> bool:
        """Tell of a step that is about to run whether it waits, or follows on waiting."""
        return self._waiting or any(call.waits for call in step.calls)

    def _said(self, call: Call, result: Result) -> tuple[Said, int, bool, bool]:
        lines = [result.form] if result.is_long else result.form.split(b"\n")
        lines = [stripped for line in lines if (stripped := line.strip())]
        hashes = [xxh3_64_intdigest(line) for line in lines]
        # The order of lines says nothing: a listing may come in any.
        form = sum(hashes) & 0xFFFFFFFF
        size = MOST_LINES + 1
        if not result.is_long:
            size = self._size(xxh3_64_intdigest(call.name.encode()) & 0xFFFFFFFF, hashes, form)
        new_in_words = self._new_in_words(lines) and size > 0
        is_new = self._seen.add_all(hashes if result.is_long else _parts(lines))
        again = self._seen.add(call.identity + (form << 1) + 1)
        is_short = size <= SHORT
        if result.is_long and is_new:
            self._seen.add(result.digest)
        if result.failed:
            said = Said.NEW_ERROR if is_new and not again else Said.KNOWN_ERROR
        elif result.is_long and not is_new and not self._seen.add(result.digest):
            said = Said.MOVED
        elif again:
            said = Said.AGAIN
        elif is_new:
            said = Said.NEW_SHORT if is_short else Said.NEW_LONG
        else:
            said = Said.RECEIPT if is_short else Said.KNOWN_LONG
        is_receipt = 0 < size <= SHORT and not is_new and not result.failed
        return said, form, new_in_words and not result.failed, is_receipt

    def _size(self, tool: int, hashes: list[int], form: int) -> int:
        """Count the lines of a result without its tool's frame, and learn the frame."""
        lines = frozenset([line & 0xFFFFFFFF for line in hashes])
        last, frame, differ = self._frames.pop(tool, (form, lines, False))
        if form != last:
            frame, differ = frame & lines, True
        self._frames[tool] = (form, frame, differ)
        if len(self._frames) > _FRAMES:
            state.keep_latest(self._frames, _FRAMES)
        return sum([line not in frame for line in lines]) if differ else len(hashes)

    def _new_in_words(self, lines: list[bytes]) -> bool:
        words = [xxh3_64_intdigest(line.translate(None, DIGITS), 1) for line in lines]
        return self._seen.add_all(words)

    def to_state(self) -> dict[str, Any]:
        """Return what is remembered in JSON types, at most 4 KB."""
        return {
            "seen": self._seen.to_state(),
            "frames": [
                [tool, last, differ, state.pack(sorted(frame))]
                for tool, (last, frame, differ) in self._frames.items()
            ],
            "waiting": self._waiting,
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
        self._waiting = state.flag(stored["waiting"])


class _Seen:
    """A set of 32-bit hashes that forgets the oldest."""

    __slots__ = ("_new", "_old", "_packed")

    def __init__(self) -> None:
        self._new: dict[int, None] = {}
        self._old: dict[int, None] = {}
        self._packed = ""

    def add(self, digest: int) -> bool:
        """Take in a hash; says whether it was there."""
        return not self.add_all((digest,))

    def add_all(self, digests: Iterable[int]) -> bool:
        """Take in hashes; says whether one of them was not there."""
        new, old, found = self._new, self._old, False
        for digest in digests:
            short = digest & 0xFFFFFFFF
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
        unranked = _RANK.sub(b"", line)
        parts += _JSON_PARTS.split(unranked) if line[:1] in (b"{", b"[") else [unranked]
    return [xxh3_64_intdigest(part) for part in parts if part]


def _look_up(said: Said, kind: ToolKind, *, is_first: bool) -> Progress:
    return TABLE[said][0 if is_first else 1][0 if kind.read_only else 2 if kind.changing else 1]


def _says_wait(result: Result) -> bool:
    form = result.form
    lowered = (form[:_LOOKED_AT] + form[-_LOOKED_AT:] if result.is_long else form).lower()
    for sign in _WAIT_SIGNS:
        if sign in lowered:
            break
    else:  # As most texts: the patterns take twenty times as long.
        return False
    return (_ERROR_SAYS_WAIT if result.failed else _SAYS_WAIT).search(lowered) is not None
