"""What did the calls of one takt attempt come to?

Counts only; which count is too many is the rule's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_loopguard.core import stored
from langchain_loopguard.core.rules.harnesses.error_texts import (
    says_bad_arguments,
    says_no_such_tool,
)
from langchain_loopguard.core.rules.harnesses.keys import fingerprint
from langchain_loopguard.core.rules.harnesses.memory import Memory

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.rules.harnesses.frame import Call
    from langchain_loopguard.core.rules.harnesses.wordings import Kind

_EDITS = 32
_RECENT = 100
"""Outcomes that are kept, the most that the rule may ask about."""


class Trouble(NamedTuple):
    """A count that is too high.

    Attributes:
        kind: What was counted.
        number: How often.
        threshold: The number that was reached.
        since: The batch where it began.
        of: The call or tool that it is about, empty when it is about all.
    """

    kind: Kind
    number: int
    threshold: int
    since: int
    of: str = ""


class Attempt:
    """The counts of one attempt.

    Attributes:
        equal: Calls in a row that were equal in tool, input, outcome and result.
        equal_since: The batch where they began.
        failures: Failures in a row.
        failing_since: The batch where they began.
        missing: Failures in a row of tools that don't exist.
        refused: Failures in a row of one tool for its arguments.
        steps: Batches since a call worked.
    """

    def __init__(self) -> None:
        """Start with nothing counted."""
        self.equal = self.equal_since = 0
        self.failures = self.failing_since = 0
        self.missing = self.refused = self.steps = 0
        self._last = -1
        self._refusing = -1
        self._recent = ""  # one sign a call: 1 failed, 0 worked
        self._edits = Memory(_EDITS, 1)  # edit: failures

    def take(self, call: Call, answer: Answer, *, is_edit: bool) -> None:
        """Count one call with its answer."""
        key = fingerprint(call.key, answer.error, answer.digest)
        if key != self._last:
            self._last, self.equal, self.equal_since = key, 0, call.number
        self.equal += 1
        self._recent = (self._recent + str(int(answer.error)))[-_RECENT:]
        if answer.error:
            self._failed(call, answer, is_edit=is_edit)
        else:
            self.failures = self.missing = self.refused = self.steps = 0
            self._refusing = -1
            self._edits.clear()

    def failed_edits(self, call: Call) -> int:
        """Say how often this edit failed; 0 for a call that is no edit."""
        return (self._edits.get(call.key) or [0])[0]

    def failed_of_the_last(self, calls: int) -> int:
        """Say how many of so many last calls failed; 0 before there were so many."""
        return self._recent[-calls:].count("1") if len(self._recent) >= calls else 0

    def to_state(self) -> list[Any]:
        """Give the counts in JSON types."""
        return [
            self.equal,
            self.equal_since,
            self.failures,
            self.failing_since,
            self.missing,
            self.refused,
            self.steps,
            self._last,
            self._refusing,
            self._recent,
            self._edits.to_state(),
        ]

    def load_state(self, state: Any) -> None:
        """Take over what `to_state` gave."""
        *numbers, recent, edits = stored.entries(state, 11)
        (
            self.equal,
            self.equal_since,
            self.failures,
            self.failing_since,
            self.missing,
            self.refused,
            self.steps,
            self._last,
            self._refusing,
        ) = map(stored.number, numbers)
        self._recent = stored.text(recent)
        self._edits.load_state(edits)

    def _failed(self, call: Call, answer: Answer, *, is_edit: bool) -> None:
        self.failing_since = self.failing_since if self.failures else call.number
        self.failures += 1
        self.missing = self.missing + 1 if says_no_such_tool(answer) else 0
        if not says_bad_arguments(answer):
            self._refusing, self.refused = -1, 0
        elif call.tool == self._refusing:
            self.refused += 1
        else:
            self._refusing, self.refused = call.tool, 1
        if is_edit:
            self._edits.put(call.key, [self.failed_edits(call) + 1])
