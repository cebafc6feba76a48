"""Has the same batch of tool calls come too often in a row?

Rules of this file: no I/O, no clock, no logging, no host. What is not allowed leaves the state as
it was.

The theory. A *run* is the same batch of calls, time after time. It is a loop when it goes on and
nothing changes, so two numbers are kept: how often the batch came since its answers last changed
(`count`), and how often it came in the run (`total`). The first has a small limit. The second
has a ceiling, because a clock or a counter in an answer makes it new each time without any
progress. A tool that only looks and costs nothing has no ceiling: reading on, page by
page, or waiting for a build is no loop as long as something new comes back.

What it does not catch: two batches in turn (A, B, A, B) break each other's run for ever, and so
does any longer cycle.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_loopguard.core import state as stored
from langchain_loopguard.core.calls import call_name
from langchain_loopguard.core.errors import LoopDetectedError
from langchain_loopguard.seed.observation import (
    DEFAULT_OBSERVATION_TOOLS,
    is_costly_batch,
    is_observation_batch,
)
from langchain_loopguard.seed.signature import batch_signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_loopguard.core.calls import ToolCall

_LONGEST_SIGNATURE = 2**20
"""Characters of a stored signature, which names every call of a batch."""


class RepeatOutcome(enum.Enum):
    """What the answers of a batch say about the run it belongs to."""

    NOT_THE_CURRENT_RUN = "not_the_current_run"
    """Another batch runs now, or this one's answers are in already: nothing was recorded."""

    ANSWER_CHANGED = "answer_changed"
    """The answers differ from the last ones: the count starts again."""

    ANSWER_REPEATED = "answer_repeated"
    """The answers are the last ones again."""

    NOT_COMPARABLE = "not_comparable"
    """These answers or the last ones are not known."""


class BatchRecord:
    """A batch that was counted, and whose answers may be recorded once.

    Attributes:
        signature: The batch's signature, `""` for a batch without calls.
        used: Whether its answers were recorded.
    """

    __slots__ = ("signature", "used")

    def __init__(self, signature: str) -> None:
        """Take a batch as counted and not yet answered."""
        self.signature = signature
        self.used = False

    def __repr__(self) -> str:
        return f"BatchRecord({self.signature!r}, used={self.used})"


@dataclass(slots=True)
class _Run:
    signature: str
    count: int  # occurrences since the answers last changed
    total: int  # occurrences in the run
    last_answers: int | None  # hash of the last answers, if known


class LoopDetector:
    """Counts the same batch of tool calls back to back.

    One detector watches one conversation. Its limits may be changed at any time and hold from
    the next `check` on.
    """

    __slots__ = ("_max_observation_steps", "_max_strikes", "_observation_tools", "_run")

    def __init__(
        self,
        max_strikes: int = 2,
        observation_tools: Iterable[str] = DEFAULT_OBSERVATION_TOOLS,
        max_observation_steps: int | None = 15,
    ) -> None:
        """Start without a run.

        Args:
            max_strikes: How often a batch may come without a changed answer. Nothing was
                measured for the default.
            observation_tools: Parts of the names of tools that only look, in any case. They
                replace the default; an empty list means that no tool only looks.
            max_observation_steps: How often a batch that only looks may come without a changed
                answer, and how often any other batch may come whatever it answers. `None` gives
                every batch `max_strikes`, whatever it does and answers. Nothing was measured
                for the default.

        Raises:
            ValueError: If a value is not allowed; the text names the field.
        """
        self.max_strikes = max_strikes
        self.observation_tools = observation_tools
        self.max_observation_steps = max_observation_steps
        self._run: _Run | None = None

    @property
    def max_strikes(self) -> int:
        """How often a batch may come without a changed answer."""
        return self._max_strikes

    @max_strikes.setter
    def max_strikes(self, value: int) -> None:
        if not _is_count(value):
            raise ValueError(f"max_strikes must be a whole number from 0 up, not {value!r}")
        self._max_strikes = value

    @property
    def observation_tools(self) -> tuple[str, ...]:
        """Parts of the names of tools that only look."""
        return self._observation_tools

    @observation_tools.setter
    def observation_tools(self, value: Iterable[str]) -> None:
        self._observation_tools = _patterns(value)

    @property
    def max_observation_steps(self) -> int | None:
        """How often a batch that only looks may come without a changed answer."""
        return self._max_observation_steps

    @max_observation_steps.setter
    def max_observation_steps(self, value: int | None) -> None:
        if value is not None and not _is_count(value):
            raise ValueError(
                f"max_observation_steps must be a whole number from 0 up or None, not {value!r}"
            )
        self._max_observation_steps = value

    def check(self, calls: Sequence[ToolCall]) -> BatchRecord:
        """Count a batch that is about to run.

        Args:
            calls: The tool calls of one AI message. A batch without calls is not counted and
                breaks no run.

        Returns:
            The record with which the batch's answers are recorded.

        Raises:
            LoopDetectedError: If the batch came too often. It stays counted, so the same batch
                raises again until something else comes.
        """
        if not calls:
            return BatchRecord("")
        signature = batch_signature(calls)
        self.check_batch(
            signature,
            [call_name(call) for call in calls],
            read_only=is_observation_batch(calls, self._observation_tools),
            costly=is_costly_batch(calls),
        )
        return BatchRecord(signature)

    def check_batch(
        self, signature: str, names: Sequence[str], *, read_only: bool, costly: bool
    ) -> None:
        """Do what `check` does for a batch whose signature and kind are known already.

        Args:
            signature: The batch's signature, not empty.
            names: The names of its tools, for the error.
            read_only: Whether every call only looks.
            costly: Whether any call costs something each time it runs.

        Raises:
            LoopDetectedError: As in `check`.
        """
        run = self._run
        if run is not None and run.signature == signature:
            run.count += 1
            run.total += 1
        else:
            run = self._run = _Run(signature, 1, 1, None)
        steps, strikes = self._max_observation_steps, self._max_strikes
        allowance = strikes if steps is None else steps
        count, limit = run.count, allowance if read_only else strikes
        if count <= limit:
            if read_only and steps is not None and not costly:
                return
            count, limit = run.total, max(allowance, strikes)
            if count <= limit:
                return
        raise LoopDetectedError(signature, tuple(dict.fromkeys(names)), count, limit)

    def record_results(self, record: BatchRecord, answers: int | None) -> RepeatOutcome:
        """Record what a batch brought.

        Args:
            record: What `check` returned for the batch.
            answers: What `hash_results` gave for its answers, `None` when they are not known.
                Unknown answers are remembered as such, and what follows them is compared with
                nothing.

        Returns:
            What the answers say. After `NOT_THE_CURRENT_RUN` all is as it was.
        """
        run = self._run
        if record.used or run is None or run.signature != record.signature:
            return RepeatOutcome.NOT_THE_CURRENT_RUN
        record.used = True
        last, run.last_answers = run.last_answers, answers
        if last is None or answers is None:
            return RepeatOutcome.NOT_COMPARABLE
        if last == answers:
            return RepeatOutcome.ANSWER_REPEATED
        run.count = 1
        return RepeatOutcome.ANSWER_CHANGED

    def break_run(self) -> None:
        """Forget the run: a person spoke."""
        self._run = None

    def to_state(self) -> dict[str, Any]:
        """Give the run in JSON types, empty when there is none; the limits are not part of it.

        The hash is text: not every reader of JSON keeps a number beyond 53 bits.
        """
        run = self._run
        if run is None:
            return {}
        answers = None if run.last_answers is None else f"{run.last_answers:x}"
        return {
            "signature": run.signature,
            "count": run.count,
            "total": run.total,
            "last_answers": answers,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take up the run that `to_state` gave.

        Raises:
            ValueError: If the state is of another form; the run is then as it was.
        """
        self._run = _run(state) if state else None


def _run(state: Mapping[str, Any]) -> _Run:
    try:
        signature, count, total = state["signature"], state["count"], state["total"]
        answers = state["last_answers"]
        # Whoever uses the detector alone may count answers by any number.
        last = None if answers is None else int(stored.text(answers), 16)
        stored.text(signature, _LONGEST_SIGNATURE)
        return _Run(signature, stored.count(count), stored.count(total), last)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a state that `to_state` gave: {error!r}") from error


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _patterns(value: Any) -> tuple[str, ...]:
    """Check patterns; text alone would be taken as a list of its letters."""
    try:
        patterns = None if isinstance(value, (str, bytes)) else tuple(value)
    except TypeError:
        patterns = None
    if patterns is None or not all(isinstance(item, str) and item.strip() for item in patterns):
        raise ValueError(
            "observation_tools must be a list of non-empty parts of tool names "
            f"(an empty list means that no tool only looks), not {value!r}"
        )
    return patterns
