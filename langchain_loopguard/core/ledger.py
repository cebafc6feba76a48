"""What did the guard see that is no verdict?

Counts for a person who wonders whether the numbers fit their agents: how often a batch came
back with a result it had before at any distance, how often the answers could not be known, and
how often a repeat passed only because its answer had changed. Nothing is decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_loopguard.core import stored
from langchain_loopguard.core.packing import Packing

if TYPE_CHECKING:
    from langchain_loopguard.core.batch import Batch, Outcome

_GENERATION = 40
"""Results remembered in a generation; two are kept. A repeat at a distance of more than 40 to
80 batches is not counted."""

_MOST_STORED = 65
"""Results of a stored generation; some states hold so many."""

_FREE_REPEATS = 2
"""Batches in a row that nobody would object to: the seed's allowance."""

_MASK = 0xFFFFFFFF


class LedgerReading(NamedTuple):
    """The counts of one conversation so far."""

    batches: int = 0
    """Batches whose answers were recorded."""
    identical_result_repeats: int = 0
    """Batches that had the same calls and the same answers before, at any distance."""
    not_evaluated: int = 0
    """Batches with an answer missing."""
    passed_on_changed_answer: int = 0
    """Batches that came more than twice in a row and were let through because the answer had
    changed."""


class Ledger:
    """Keeps the counts."""

    __slots__ = (
        "_batches",
        "_changed",
        "_digest",
        "_new",
        "_new_packed",
        "_old",
        "_old_packed",
        "_repeats",
        "_result",
        "_run",
        "_unknown",
    )

    def __init__(self) -> None:
        """Start with nothing seen."""
        # The counts of a `LedgerReading`.
        self._batches = self._repeats = self._unknown = self._changed = 0
        # The keys of dictionaries: see `Packing`.
        self._new: dict[int, None] = {}
        self._old: dict[int, None] = {}
        self._new_packed = Packing()
        self._old_packed = Packing()
        # The batch that comes in a row, how often, its last result, whether that was a new one.
        self._digest = self._run = 0
        self._result: int | None = None

    def note(self, batch: Batch, outcome: Outcome) -> None:
        """Count a batch whose answers were recorded."""
        digest = outcome.digest
        self._batches += 1
        if batch.digest == self._digest:
            self._repeated(digest)
        else:
            self._run = 1
            self._digest = batch.digest
        self._result = digest
        if digest is None:
            self._unknown += 1
            return
        result, new = digest & _MASK, self._new
        if result in new:
            self._repeats += 1
            return
        if result in self._old:
            self._repeats += 1
        new[result] = None
        if len(new) > _GENERATION:
            self._old, self._new = new, {}

    def _repeated(self, digest: int | None) -> None:
        self._run += 1
        if self._run > _FREE_REPEATS and None not in (self._result, digest):
            self._changed += self._result != digest

    def read(self) -> LedgerReading:
        """Give the counts so far."""
        return LedgerReading(self._batches, self._repeats, self._unknown, self._changed)

    def to_state(self) -> dict[str, Any]:
        """Give what is remembered in JSON types, at most 0.6 KB."""
        return {
            "counts": list(self.read()),
            "new": self._new_packed.of(self._new),
            "old": self._old_packed.of(self._old),
            "run": [
                f"{self._digest:x}",
                self._run,
                None if self._result is None else f"{self._result:x}",
            ],
        }

    def load_state(self, state: Any) -> None:
        """Take over what `to_state` gave; raises on a state of another form."""
        counts = [stored.count(one) for one in stored.entries(state["counts"], 4)]
        new = stored.hashes(state["new"], _MOST_STORED)
        old = stored.hashes(state["old"], _MOST_STORED)
        digest, run, result = stored.entries(state["run"], 3)
        self._result = stored.digest_or_none(result)
        self._digest, self._run = stored.digest(digest), stored.count(run)
        self._batches, self._repeats, self._unknown, self._changed = counts
        self._new, self._old = new, old
