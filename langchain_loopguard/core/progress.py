"""Did this batch bring anything new?

The one idea the default rules stand on. A batch brought something new when an answer held a
line that was not seen before in this user turn, or when a call that changes something ran for
the first time and succeeded. Everything else either counts for nothing (a first call with a
short answer: silent commands and receipts look alike whatever they did) or brought nothing.

What is kept are hashes, oldest out first, so the state is of one size however long a turn is.

Choices, each with the wrong answer of the other one:

- Lines, not whole answers: a rotation with ever other spellings of one command prints the same
  lines in answers that differ as a whole (the incident).
- A whole answer counts as seen for the call that gave it: without that, answers with more lines
  than are kept would be new for ever (a labelled cycle of six file views).
- What a change answers when it first succeeds is not remembered. It is something new whatever it
  says, and who reads back what was just written does not go round in circles. (On the runs the
  one difference are three warnings of failed runs that are not given; it saves a quarter of
  the time.)
- Numbers are removed from errors, never from successes: a line number that moves with every
  rejected edit is no news, a build that goes from 10 % to 20 % is.
- A line that is new by a clock alone is no news, and no proof of a loop either: of a call that
  only reads it counts for nothing, since that is what waiting looks like.
- Lines that stand in every answer of a tool (its frame, such as a fixed header and an exit
  code) do not make an answer long: a harness that wraps silent commands in three fixed lines
  had 4 of 366 solved runs warned.

What it does not see, and which loops that hides, is told in `rules.nothing_new`.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from xxhash import xxh32_intdigest

from langchain_loopguard.core import stored
from langchain_loopguard.core.answers import DIGITS, encode_text
from langchain_loopguard.core.calls import call_arguments
from langchain_loopguard.core.clock import mask_clock
from langchain_loopguard.core.packing import Packing, pack
from langchain_loopguard.core.tools import name_hash

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.batch import Batch, Outcome

GENERATION = 272
"""Hashes in a generation. Two are kept, so the last 272 to 544 of a turn are remembered: calls,
their answers, and lines. The labelled loops are all found with 60 as well; of the invented
shapes 150 misses a rotation of 24 long answers. 4 bytes each are what a state of 8 KB has room
for."""

SHORT_ANSWER = 2
"""Lines up to which a first answer is short: a receipt, or one with a line of status. With 1 the
labelled loops are found 0.25 batches later, and edits by shell that each print `patched 1 file`
and `exit code 0` are asked about; with 3 the incident is asked about at call 37."""

SHORT_KNOWN = 1
"""The same where a call that only reads found what is known: it gives no receipts. 0 warns one more
solved run and asks about thirty short files that say the same; with 2 a search that finds the same
two lines for ever new words is never found."""

LONG_ANSWER = 32
"""Lines above which an answer is remembered as a whole only: a long answer must not push out what
the short ones said. With 128 a rotation of six answers of 100 lines is not found, with 64 one more
solved run is warned; 16 gives the same figures."""

_LONG_TEXT = 8192
"""Bytes above which an answer is long without counting its lines, which takes longer than
hashing it."""

_MOST_HASHES = GENERATION + 128
"""Hashes of a stored generation: one more answer is remembered before a full one is closed, which
are its call, itself, and its lines with and without clocks."""

_MAX_FRESH = 3
"""New lines among known ones up to which a first answer is looked at for clocks: masking takes
longer than all the rest, and a clock is in one line or two."""

_FRAME_EDGE = 4
_MAX_FRAMES = 8
_MASK = 0xFFFFFFFF
_MASKED = 1
_NUMBERLESS = 2


class News(enum.IntEnum):
    """What a batch brought."""

    NOTHING = 0
    """No answer said anything that was not known."""
    UNDECIDED = 1
    """It counts neither way."""
    SOMETHING = 2
    """An answer said something new, or a first change succeeded."""


# Looked up once: in every batch it would take as long as hashing the answer.
_NOTHING, _UNDECIDED, _SOMETHING = News


class Progress:
    """Remembers what was seen in a user turn and judges batches by it."""

    __slots__ = ("_frames", "_fresh", "_new", "_new_packed", "_old", "_old_packed")

    def __init__(self) -> None:
        """Start with nothing seen."""
        # The keys of dictionaries: see `Packing`.
        self._new: dict[int, None] = {}
        self._old: dict[int, None] = {}
        self._new_packed = Packing()
        self._old_packed = Packing()
        # The new lines of the answer read last, `None` when there are many or all are.
        self._fresh: list[bytes] | None = None
        # Hash of the tool's name -> (the last answer's lines in any order, the lines common to all
        # answers, whether two answers differed)
        self._frames: dict[int, tuple[int, frozenset[int], bool]] = {}

    def ran_before(self, batch: Batch) -> bool:
        """Tell whether every call of the batch ran before in this turn."""
        return all(key & _MASK in self._new or key & _MASK in self._old for key in batch.keys)

    def judge(self, batch: Batch, outcome: Outcome) -> None:  # noqa: C901, PLR0912, PLR0915 - one pass
        """Judge what a batch brought, remember it and write it into `outcome`.

        Sets `news`, `worked`, `changed`, `clock_only`, `first_look` and `new_words`; see
        `Outcome`.
        """
        something = undecided = worked = changed = clock_only = new_words = False
        looks = 0
        place = -1  # `enumerate` would cost as much as hashing the answer.
        for answer in outcome.results:
            place += 1
            recent, old = self._new, self._old
            if len(recent) > GENERATION:
                old = self._old = recent
                recent = self._new = {}
            key = batch.keys[place]
            call = key & _MASK
            seen = call in recent or call in old
            recent[call] = None
            if answer is None:
                # An unknown answer is no news, and of a first call no proof of the contrary.
                undecided = undecided or not seen
                continue
            pair = (call ^ answer.digest) & _MASK
            error = answer.error
            read_only, shell, _, thinking = batch.traits[place]
            if thinking and not error:
                # A thought is no proof of anything, however new it is.
                undecided = True
            elif seen:
                known = pair in recent or pair in old
                recent[pair] = None
                new = not known and self._read(batch.names[place], answer)[0]
                if new and (error or self._moved(answer)):
                    something = True
                    if not (error or read_only or new_words):
                        new_words = self._reworded(answer)
                elif new and read_only:
                    undecided = clock_only = True
            elif not (read_only or shell or error):
                # A first change: see above.
                recent[pair] = None
                something = changed = True
            else:
                recent[pair] = None
                new, size = self._read(batch.names[place], answer)
                short = size <= (SHORT_ANSWER if new or not read_only else SHORT_KNOWN)
                if new and not (short or error):
                    new = self._fresh is None or self._more_than_clocks(self._fresh)
                    short = _echoes(answer, batch, place)
                if read_only:
                    looks += not (new or short or error)
                elif not error:
                    worked = worked or new or short
                    changed = changed or short
                if new and not short:
                    something = True
                # The error of another call is no news, however short. What cannot be read is left
                # to `same_error`: of thirty links some are dead.
                undecided = undecided or (short and (new or not error or read_only))
        outcome.changed = changed
        outcome.clock_only = clock_only
        outcome.new_words = new_words
        outcome.worked = worked or something
        if something:
            outcome.news = _SOMETHING
            outcome.first_look = False
        else:
            outcome.news = _UNDECIDED if undecided else _NOTHING
            outcome.first_look = looks == len(outcome.results)

    def hear(self, text: str) -> bool:
        """Remember what another agent said; tell whether a line is new by more than clocks."""
        if len(self._new) > GENERATION:  # As in `judge`, of which there may be none for long.
            self._old, self._new = self._new, {}
        new = False
        for line in mask_clock(encode_text(text)).split(b"\n", LONG_ANSWER):
            stripped = line.strip()
            if stripped and not self._remember(xxh32_intdigest(stripped, _MASKED)):
                new = True
        return new

    def human_message(self) -> None:
        """A user turn: what was seen before it may be asked for again."""
        self._new = {}
        self._old = {}

    def to_state(self) -> dict[str, Any]:
        """Give what is remembered in JSON types, at most 5 KB."""
        return {
            "new": self._new_packed.of(self._new),
            "old": self._old_packed.of(self._old),
            "frames": [
                [tool, last, pack(sorted(lines)), told_apart]
                for tool, (last, lines, told_apart) in self._frames.items()
            ],
        }

    def load_state(self, state: Any) -> None:
        """Take over what `to_state` gave; raises on a state of another form."""
        new = stored.hashes(state["new"], _MOST_HASHES)
        old = stored.hashes(state["old"], _MOST_HASHES)
        frames = {
            stored.count(tool): (
                stored.count(last),
                frozenset(stored.hashes(packed, 2 * _FRAME_EDGE)),
                stored.flag(told_apart),
            )
            for tool, last, packed, told_apart in stored.entries(state["frames"], _MAX_FRAMES)
        }
        self._new, self._old, self._frames = new, old, frames

    def _remember(self, digest: int) -> bool:
        """Remember a hash; tell whether it was known."""
        if digest in self._new:
            return True
        self._new[digest] = None
        return digest in self._old

    def _read(self, name: str, answer: Answer) -> tuple[bool, int]:
        """Remember an answer's lines; tell whether one is new and how many there are.

        Lines of the tool's frame are not counted.
        """
        self._fresh = None
        text = answer.text
        lines = text.split(b"\n", LONG_ANSWER) if len(text) <= _LONG_TEXT else ()
        if not lines or len(lines) > LONG_ANSWER:
            return not self._remember(answer.digest & _MASK), LONG_ANSWER
        error = answer.error
        if error:
            lines = answer.masked.translate(None, DIGITS).split(b"\n")
        old, recent = self._old, self._new
        hashes = []
        fresh = []
        for line in lines:
            stripped = line.strip()
            if stripped:
                digest = xxh32_intdigest(stripped)
                hashes.append(digest)
                if digest not in recent:
                    recent[digest] = None
                    if digest not in old:
                        fresh.append(stripped)
        size, new = len(hashes), bool(fresh)
        if error or size <= 1:
            return new, size
        if len(fresh) <= _MAX_FRESH and len(fresh) < len(set(hashes)):
            self._fresh = fresh
        frame = self._frames.get(name_hash(name))
        if frame is None or frame[1]:
            size = self._without_frame(name_hash(name), hashes)
        return new, size

    def _without_frame(self, tool: int, hashes: list[int]) -> int:
        # A sum, for the same lines in another order tell nothing apart: found passages by rank.
        whole = sum(hashes) & _MASK
        frame = self._frames.get(tool)
        if frame is None:
            edge = frozenset(hashes[:_FRAME_EDGE] + hashes[-_FRAME_EDGE:])
            self._frames[tool] = (whole, edge, False)
            while len(self._frames) > _MAX_FRAMES:
                del self._frames[next(iter(self._frames))]
            return len(hashes)
        last, common, told_apart = frame
        if whole != last and common:
            common = common.intersection(hashes)
            told_apart = True
            self._frames[tool] = (whole, common, told_apart)
        if not told_apart or not common:
            return len(hashes)
        return len(hashes) - sum(digest in common for digest in hashes)

    def _more_than_clocks(self, fresh: list[bytes]) -> bool:
        """Tell whether new lines are new by more than a clock."""
        moved = False
        for line in fresh:
            if not self._remember(xxh32_intdigest(mask_clock(line), _MASKED)):
                moved = True
        return moved

    def _moved(self, answer: Answer) -> bool:
        """Tell whether a repeated call's answer is new by more than a clock."""
        masked = [answer.masked] if _is_long(answer.text) else answer.masked.split(b"\n")
        moved = False
        for line in masked:
            if not self._remember(xxh32_intdigest(line.strip(), _MASKED)):
                moved = True
        return moved

    def _reworded(self, answer: Answer) -> bool:
        """Tell whether a repeated call's answer is new by more than clocks and numbers.

        The lines of a call's first answer are not remembered so, to spare every first answer the
        work: the second is taken for new.
        """
        lines = answer.masked.translate(None, DIGITS).split(b"\n", LONG_ANSWER)
        new = False
        for line in lines[:LONG_ANSWER]:
            if not self._remember(xxh32_intdigest(line.strip(), _NUMBERLESS)):
                new = True
        return new


def _echoes(answer: Answer, batch: Batch, place: int) -> bool:
    """Tell whether the answer only says what the call said."""
    text = answer.text.strip()
    if len(text) > len(batch.canonical[place]):
        return False
    arguments = call_arguments(batch.calls[place])
    if type(arguments) is not dict:
        return False
    said = text.decode("utf-8", "surrogatepass")
    return any(type(value) is str and said in value for value in arguments.values())


def _is_long(text: bytes) -> bool:
    return len(text) > _LONG_TEXT or text.count(b"\n") >= LONG_ANSWER
