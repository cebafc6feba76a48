"""OpenHands' `StuckDetector`: the last steps, calls with their answers, repeat.

Four equal pairs of call and answer; three equal calls that all failed, whatever the errors; or
two pairs in turn, three times each. Each ends the run. Only what came after the last user message
counts.

Readings: judged after the answer, so the stop meets every later call until a person speaks. A
call with an unknown answer is no step that could be compared and breaks the tail. The original's
two other checks, repeated prose and an exceeded context window, see no tool calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core import stored
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.cycles import laps_at_end
from langchain_loopguard.core.rules.harnesses.frame import (
    ANY_TOOL,
    Call,
    HarnessRule,
    Hit,
)
from langchain_loopguard.core.rules.harnesses.keys import fingerprint, set_key
from langchain_loopguard.core.rules.harnesses.wordings import Kind
from langchain_loopguard.core.tools import kept_name

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.rules.base import Rule


_LONGEST = 20
"""Steps in a stored tail, with the largest numbers that are allowed."""


class OpenHands(ForeignRule):
    """Numbers for steps that repeat at the end of the turn."""

    title: ClassVar[str] = "OpenHands"

    rule: Literal["openhands"] = "openhands"

    equal_pairs: int = Field(default=4, ge=2, le=20)
    """Equal pairs of call and answer in a row; the run ends."""

    equal_failures: int = Field(default=3, ge=2, le=20)
    """Equal calls in a row that failed; the run ends."""

    alternations: int = Field(default=3, ge=2, le=10)
    """How often two pairs come in turn; the run ends."""

    def build(self) -> Rule:
        """Make a fresh tail."""
        return _OpenHandsRule(self)


class _OpenHandsRule(HarnessRule):
    def __init__(self, config: OpenHands) -> None:
        super().__init__(config)
        self._config = config
        self._longest = max(config.equal_pairs, config.equal_failures, 2 * config.alternations)
        self._tail: list[tuple[int, int, bool, int, str]] = []  # call, pair, failed, batch, tool

    def after(self, call: Call, answer: Answer | None) -> Hit | None:
        if answer is None:
            self._tail.clear()
            return None
        pair = fingerprint(call.key, answer.digest)
        step = (call.key, pair, answer.error, call.number, kept_name(call.name))
        self._tail = [*self._tail, step][-self._longest :]
        config = self._config
        pairs = [pair for _, pair, _, _, _ in self._tail]
        if (count := laps_at_end(pairs, 1)) >= config.equal_pairs:
            return self._hit(Kind.SAME_ANSWER, count, config.equal_pairs, count)
        if (count := self._equal_failures()) >= config.equal_failures:
            return self._hit(Kind.SAME_FAILURE, count, config.equal_failures, count)
        if (count := laps_at_end(pairs, 2)) >= config.alternations and pairs[-1] != pairs[-2]:
            return self._hit(Kind.CYCLE, count, config.alternations, 2 * count)
        return None

    def _equal_failures(self) -> int:
        count = 0
        for key, _, failed, _, _ in reversed(self._tail):
            if not failed or key != self._tail[-1][0]:
                break
            count += 1
        return count

    def _hit(self, kind: Kind, count: int, threshold: int, length: int) -> Hit:
        steps = self._tail[-length:]
        return Hit(
            Action.STOP,
            kind,
            count,
            threshold,
            steps[0][3],
            str(set_key(step[0] for step in steps)),
            tools=tuple(dict.fromkeys(step[4] for step in steps)),
            hold=ANY_TOOL,
        )

    def clear(self) -> None:
        self._tail.clear()

    def counters(self) -> list[list[Any]]:
        return [list(step) for step in self._tail]

    def load_counters(self, counters: Any) -> None:
        number = stored.number
        rows = stored.each(
            counters, self._longest, number, number, stored.flag, stored.count, stored.text
        )
        self._tail = [(key, pair, failed, batch, name) for key, pair, failed, batch, name in rows]
