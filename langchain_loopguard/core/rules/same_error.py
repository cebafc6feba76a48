"""Does one tool fail again and again with the same error?

The arguments may be others each time: up to 40 rejected edits in the labelled runs. Numbers and
clocks are masked, since a line number in the error moves with every try, and so is what the call
itself said. Counted once a batch (one failed fetch gave its seven siblings one error text), and
for each error on its own (two errors may alternate). Cleared by a success of that tool, and by
the first success of a change elsewhere: a failing test is run again after every edit. What a
tool that only reads could not find is cleared by any news from reading as well: a search goes on
that finds something between dead links.

What it does not see: a failure that the host reports as a success, one error in ever other
words, and one tool after another that fails (`nothing_new` sees the last when the errors are
known).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core import stored
from langchain_loopguard.core.decision import Action, Finding
from langchain_loopguard.core.latest import keep_latest
from langchain_loopguard.core.rules.base import Rule, RuleConfig
from langchain_loopguard.core.tools import name_hash

if TYPE_CHECKING:
    from langchain_loopguard.core.batch import Batch, Outcome

_MAX_STREAKS = 16
"""Tools and errors counted at once, oldest out first."""

_DUE, _READS = 1, 2
"""What a streak says besides its count."""


class SameError(RuleConfig):
    """One tool failing with one error, whatever its arguments."""

    needs_progress: ClassVar[bool] = True
    counts_in_check: ClassVar[bool] = False

    rising: ClassVar = (("warn", "ask"),)

    rule: Literal["same_error"] = "same_error"

    warn: int = Field(default=4, ge=1)
    """Tell the model.

    Measured: 4 of 366 solved runs are warned, with 3 it is 5, with 2 it is 14, with 1 it is
    122; from 5 on it is 3."""

    ask: int = Field(default=8, ge=1)
    """The loop is detected.

    Measured: good runs go up to 4. 5 to 18 ask about the same runs, on average 4.15 to 4.75
    batches after the first repeat; twice the longest good run is a margin, not a measurement."""

    def build(self) -> Rule:
        """Make fresh counters."""
        return _SameErrorRule(self)


class _SameErrorRule:
    def __init__(self, config: SameError) -> None:
        self._config = config
        # (hash of the tool's name, error) -> [count, number of the batch where it began, whether
        # the next batch with other arguments is to be asked about (`_DUE`) and whether the tool
        # only reads (`_READS`)]
        self._streaks: dict[tuple[int, int], list[int]] = {}

    def check(self, batch: Batch) -> Finding | None:
        for name in batch.names:
            tool = name_hash(name)
            for key, streak in self._streaks.items():
                if key[0] != tool or streak[0] < self._config.ask:
                    continue
                if streak[2] & _DUE or batch.ran_before:
                    # Other arguments meet the question once. If they were refused, the next
                    # ones are let through: they may be the way out.
                    streak[2] &= ~_DUE
                    return self._finding(Action.ASK, name, key, self._config.ask)
        return None

    def record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        if outcome.failed or self._streaks:
            return self._record(batch, outcome)
        return None

    def _record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        streaks = self._streaks
        if streaks and outcome.changed:
            streaks.clear()
        reading = {
            name for name, traits in zip(batch.names, batch.traits, strict=True) if traits.read_only
        }
        if streaks and outcome.worked and len(reading) == len(set(batch.names)):
            self._streaks = streaks = {
                key: streak for key, streak in streaks.items() if not streak[2] & _READS
            }
        found: Finding | None = None
        for name, error in _errors(batch, outcome).items():
            tool = name_hash(name)
            if error is None:
                for key in [key for key in streaks if key[0] == tool]:
                    del streaks[key]
                continue
            streak = streaks.pop((tool, error), None)
            if streak is None:
                streak = [0, batch.number, _READS if name in reading else 0]
            streaks[tool, error] = streak
            streak[0] += 1
            if streak[0] >= self._config.ask:
                streak[2] |= _DUE
                found = self._finding(Action.ASK, name, (tool, error), self._config.ask)
            elif streak[0] >= self._config.warn and found is None:
                found = self._finding(Action.WARN, name, (tool, error), self._config.warn)
        keep_latest(streaks, _MAX_STREAKS)
        return found

    def human_message(self) -> None:
        # What was flagged stays on probation: one more failure runs, the second asks.
        self._streaks = {
            key: [self._config.ask - 2, streak[1], streak[2] & _READS]
            for key, streak in self._streaks.items()
            if streak[0] >= self._config.ask > 1
        }

    def approve(self, loop: str) -> None:  # noqa: ARG002 - whatever it is, it may go on
        self._streaks.clear()

    def to_state(self) -> list[Any]:
        return [[key[0], f"{key[1]:x}", *streak] for key, streak in self._streaks.items()]

    def load_state(self, state: Any) -> None:
        self._streaks = {
            (stored.count(tool), stored.digest(error)): [
                stored.count(count),
                stored.count(since),
                stored.count(due),
            ]
            for tool, error, count, since, due in stored.entries(state, _MAX_STREAKS)
        }

    def _finding(self, action: Action, name: str, key: tuple[int, int], threshold: int) -> Finding:
        count, since, _ = self._streaks[key]
        return Finding(
            "same_error",
            action,
            tools=(name,),
            count=count,
            threshold=threshold,
            since=since,
            loop=f"same_error:{key[0]:x}:{key[1]:x}",
            to_model=(
                "This tool keeps failing for the same reason, and other arguments have not helped. "
                "Read the error again, reach the goal in a different way, or say what is missing "
                "and finish."
            ),
            to_person=(
                f"{name} failed {count} times with the same error and no success in between "
                f"(limit {threshold}); numbers and arguments in the error are not compared."
            ),
        )


def _errors(batch: Batch, outcome: Outcome) -> dict[str, int | None]:
    """Find each tool's first error in the batch, `None` for a tool that also succeeded."""
    errors: dict[str, int | None] = {}
    for name, answer in zip(batch.names, outcome.results, strict=True):
        if answer is not None:
            if not answer.error:
                errors[name] = None
            elif name not in errors:
                errors[name] = answer.error_digest
    return errors
