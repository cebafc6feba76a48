"""How often was the same call made, one after the other?

Six systems count nothing else; they differ in their numbers, in what makes two calls the same,
and in what a user message does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.core import stored
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import Call, HarnessRule, Hit
from langchain_loopguard.core.rules.harnesses.wordings import Kind

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Action


class StreakConfig(ForeignRule):
    """Numbers for a streak of equal calls."""

    def judge(self, count: int) -> tuple[Action, int] | None:
        """Say what the system does at the `count`-th equal call in a row, and the number."""


class StreakRule(HarnessRule):
    """Counts equal calls in a row, across batches and within one, before they run."""

    def __init__(self, config: StreakConfig) -> None:
        """Start with no call seen."""
        super().__init__(config)
        self._judge = config.judge
        self._key = -1
        self._count = 0
        self._since = 0

    def key(self, call: Call) -> int:
        """Give the number by which this system knows a call."""
        return call.key

    def before(self, call: Call) -> Hit | None:
        """Count the call."""
        key = self.key(call)
        if key != self._key:
            self._key, self._count, self._since = key, 0, call.number
        self._count += 1
        found = self._judge(self._count)
        if found is None:
            return None
        action, threshold = found
        return Hit(action, Kind.SAME_CALL, self._count, threshold, self._since, str(key))

    def clear(self) -> None:
        """Forget the last call."""
        self._key, self._count, self._since = -1, 0, 0

    def counters(self) -> list[int]:
        """Give the last call's key, its count and the batch where the streak began."""
        return [self._key, self._count, self._since]

    def load_counters(self, counters: Any) -> None:
        """Take over what `counters` gave."""
        key, count, since = stored.entries(counters, 3)
        self._key, self._count, self._since = map(stored.number, (key, count, since))
