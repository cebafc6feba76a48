"""Does reading with ever other numbers bring the same answer?

Pages beyond the last one, dates without a flight: calls that differ in numbers only and get one
and the same answer. A solved run searches 13 dates in a row, so the limit is high.

What it does not see: searches in ever new words, shell commands, and empty answers, all of
which honest work has many of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field
from xxhash import xxh3_64_intdigest

from langchain_loopguard.core import stored
from langchain_loopguard.core.answers import DIGITS
from langchain_loopguard.core.decision import Action, Finding
from langchain_loopguard.core.rules.base import Rule, RuleConfig
from langchain_loopguard.core.tools import name_hash

if TYPE_CHECKING:
    from langchain_loopguard.core.batch import Batch, Outcome


class SameNumbers(RuleConfig):
    """One reading call whose arguments differ in numbers only, with the same answer.

    An answer that says something new is not counted, only its repeats are.
    """

    needs_progress: ClassVar[bool] = True
    counts_in_check: ClassVar[bool] = False

    rule: Literal["same_numbers"] = "same_numbers"

    ask: int = Field(default=15, ge=2)
    """The loop is detected.

    Measured: a solved run goes up to 13, benign ones to 4. 10 to 13 ask about that solved run,
    14 to 16 give the same figures, with 17 a case is asked about too late. Of the invented
    shapes, 14 asks about fourteen sums with one result."""

    def build(self) -> Rule:
        """Make fresh counters."""
        return _SameNumbersRule(self)


class _SameNumbersRule:
    def __init__(self, config: SameNumbers) -> None:
        self._config = config
        self._clear()

    def _clear(self) -> None:
        self._call = self._answer = self._count = self._since = 0

    def check(self, batch: Batch) -> Finding | None:
        if (
            self._count >= self._config.ask
            and len(batch.traits) == 1
            and _shape(batch) == self._call
        ):
            return self._finding(batch)
        return None

    def record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        if outcome.worked:
            # Hashing every reading call without its numbers would take longer than all other rules.
            if self._count:
                self._clear()
            return None
        if len(batch.traits) != 1 or not batch.traits[0].read_only:
            return None
        call = _shape(batch)
        if call is None or call != self._call:
            if self._count <= 1:
                self._clear()
            if call is None or self._count:
                return None
        answer = outcome.results[0]
        if answer is None or answer.error or not answer.text.strip():
            return None
        if answer.digest != self._answer:
            self._count = 0
        if self._count == 0:
            self._call, self._answer, self._since = call, answer.digest, batch.number
        self._count += 1
        return self._finding(batch) if self._count >= self._config.ask else None

    def human_message(self) -> None:
        self._clear()

    def approve(self, loop: str) -> None:  # noqa: ARG002 - there is one count
        self._clear()

    def to_state(self) -> list[Any]:
        return [f"{self._call:x}", f"{self._answer:x}", self._count, self._since]

    def load_state(self, state: Any) -> None:
        call, answer, count, since = stored.entries(state, 4)
        counts = stored.count(count), stored.count(since)
        self._call, self._answer = stored.digest(call), stored.digest(answer)
        self._count, self._since = counts

    def _finding(self, batch: Batch) -> Finding:
        tool = batch.names[0]
        return Finding(
            "same_numbers",
            Action.ASK,
            tools=(tool,),
            count=self._count,
            threshold=self._config.ask,
            since=self._since,
            loop=f"same_numbers:{self._call:x}",
            to_model=(
                "Going through further numbers brings the same answer each time. Stop counting "
                "up: use what you know, look in a different way, or say what is missing and "
                "finish."
            ),
            to_person=(
                f"The agent called {tool} {self._count} times with arguments that differ in "
                f"numbers only and got one and the same answer (limit {self._config.ask})."
            ),
        )


def _shape(batch: Batch) -> int | None:
    """Hash a single call without the numbers in its arguments."""
    if batch.traits[0].poller:
        return None
    arguments = batch.canonical[0]
    shape = arguments.translate(None, DIGITS)
    if len(shape) == len(arguments):
        return None
    return xxh3_64_intdigest(shape, name_hash(batch.names[0]))
