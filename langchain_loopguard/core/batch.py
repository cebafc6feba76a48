"""What does one batch of tool calls amount to, before and after it ran?

A `Batch` holds what the rules need to know of the calls, an `Outcome` what their answers say;
both are worked out once and handed to every rule. A rule may look at arguments and answers
through them and must keep nothing but hashes, counts and tool names.

Calls and answers are known by xxh3 in 64 bits, lines by 32. That is no cryptographic hash: with
a known seed, somebody who computes for it can make two calls that are one here. No repeat hides
behind that, since equal calls always have equal hashes: a collision can only merge what differs,
so the harm is a warning or a question that comes too early, about the tool that was called. A
random seed was rejected: it would have to be saved with the counts, where whoever can read them
reads it too, and no run could be told again. By chance two of a million calls collide once in
37 million conversations; a new line is taken for a known one once in 9 million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xxhash import xxh3_128_hexdigest

from langchain_loopguard.core.calls import call_arguments
from langchain_loopguard.core.canonical import canonical_arguments
from langchain_loopguard.core.detector import BatchRecord
from langchain_loopguard.core.progress import News
from langchain_loopguard.core.signature import join_signatures, sign_canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.calls import ToolCall
    from langchain_loopguard.core.tools import ToolTraits

_UNDECIDED = News.UNDECIDED
_MASK = 0xFFFFFFFFFFFFFFFF

_LONGEST_KEY = 120
"""Characters; a signature is a tool's name and 17 more. A batch can hold thousands of calls,
and what the rules keep must stay small."""


class Batch(BatchRecord):
    """One batch, counted and about to run.

    Attributes:
        number: The batch's number, counted from 1 over the guard's life; 0 when it was not
            counted.
        calls: The calls as they came.
        ids: The calls' ids, `None` for a call without one.
        names: The calls' tool names.
        canonical: The calls' arguments in canonical form; empty once the batch was answered, since
            a host may keep the record and orjson gives the shortest text 4 KB of memory.
        keys: A 64-bit hash of each call, seeded by the tool's name: what the rules keep of a
            call.
        traits: What kind of tool each call is for.
        digest: One such hash for the batch, whatever the order of its calls.
        ran_before: Whether every call of it ran before in this user turn.
    """

    __slots__ = (
        "_signatures",
        "calls",
        "canonical",
        "digest",
        "ids",
        "keys",
        "names",
        "number",
        "ran_before",
        "traits",
    )

    def __init__(
        self,
        number: int,
        calls: Sequence[ToolCall],
        ids: tuple[str | None, ...],
        names: tuple[str, ...],
        canonical: tuple[bytes, ...],
        keys: tuple[int, ...],
        traits: tuple[ToolTraits, ...],
    ) -> None:
        """Keep the parts as given; signatures are worked out when asked for."""
        self.used = False
        self.number = number
        self.calls = calls
        self.ids = ids
        self.names = names
        self.canonical = canonical
        self.keys = keys
        self.traits = traits
        self.digest = keys[0] if len(keys) == 1 else sum(keys) & _MASK
        self.ran_before = False
        self._signature = None
        self._signatures: list[str] | None = None

    def __repr__(self) -> str:
        """Show the signature and whether it was answered."""
        return f"Batch({self.signature!r}, used={self.used})"

    @property
    def signatures(self) -> list[str]:
        """The calls' signatures."""
        if self._signatures is None:
            written: Sequence[bytes] = self.canonical
            if len(written) < len(self.calls):
                written = [canonical_arguments(call_arguments(call)) for call in self.calls]
            self._signatures = list(map(sign_canonical, self.names, written))
        return self._signatures

    @property
    def signature(self) -> str:
        """The batch's signature, `""` for a batch without calls."""
        if self._signature is None:
            self._signature = join_signatures(self.signatures)
        return self._signature

    @property
    def key(self) -> str:
        """The signature, or a hash of it when it is long: what a rule keeps of a batch."""
        if len(self.signature) <= _LONGEST_KEY:
            return self.signature
        digest = xxh3_128_hexdigest(self.signature.encode("utf-8", "backslashreplace"))
        return f"{len(self.names)} calls:{digest}"


class _SingleBatch(Batch):
    # A class's own `__init__` takes Python four times as long to call as a function.
    __slots__ = ()
    __init__ = object.__init__


def single_batch(
    number: int,
    calls: Sequence[ToolCall],
    call_id: str | None,
    names: tuple[str, ...],
    canonical: bytes,
    key: int,
    traits: tuple[ToolTraits, ...],
) -> Batch:
    """Make a batch of one call, as most are, in half the time that `Batch` takes."""
    batch: Batch = _SingleBatch()
    batch.used = batch.ran_before = False
    batch.number = number
    batch.calls = calls
    batch.ids = (call_id,)
    batch.names = names
    batch.canonical = (canonical,)
    batch.keys = (key,)
    batch.traits = traits
    batch.digest = key
    batch._signature = batch._signatures = None  # noqa: SLF001 - it is made here
    return batch


class Outcome:
    """What came back for a batch.

    Attributes:
        results: The calls' answers in the order of the calls, `None` for an unknown one.
        digest: A 64-bit hash of every call with its own answer, whatever their order, `None` when
            an answer is missing.
        failed: Whether a call failed, by its answer's status.
        news: Whether the answers said anything new.
        worked: Whether something happened that makes it worth asking an old question again.
        changed: Whether a call succeeded for the first time that is not known to only look.
        clock_only: Whether all that was new was a clock, in the answer of a call that only reads.
        first_look: Whether all its calls only read, were made for the first time, and were
            answered at length with what was known.
        new_words: Whether a call that may change something, made before, answered with a line
            that is new by more than clocks and numbers.
    """

    __slots__ = (
        "changed",
        "clock_only",
        "digest",
        "failed",
        "first_look",
        "new_words",
        "news",
        "results",
        "worked",
    )

    def __init__(self, batch: Batch, results: Sequence[Answer | None]) -> None:
        """Keep the parts as given."""
        self.results = results
        self.digest: int | None
        self.news = _UNDECIDED
        self.worked = self.changed = self.clock_only = self.new_words = self.failed = False
        self.first_look = False
        # A sum, so that the order of the calls does not matter; of pairs, so that two calls with
        # each other's answers differ.
        digest = 0
        known = True
        for key, answer in zip(batch.keys, results, strict=True):
            if answer is None:
                known = False
            else:
                self.failed = self.failed or answer.error
                digest += key ^ answer.digest
        self.digest = digest & _MASK if known else None


class _SingleOutcome(Outcome):
    __slots__ = ()
    __init__ = object.__init__  # As in `_SingleBatch`.


def single_outcome(batch: Batch, answer: Answer | None) -> Outcome:
    """Make the outcome of a batch of one call in half the time that `Outcome` takes.

    What `Progress.judge` writes is left to it; without progress no rule reads that.
    """
    outcome: Outcome = _SingleOutcome()
    outcome.results = (answer,)
    if answer is None:
        outcome.digest = None
        outcome.failed = False
    else:
        outcome.digest = batch.digest ^ answer.digest
        outcome.failed = answer.error
    return outcome
