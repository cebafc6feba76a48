"""opencode's signal A: the same call gave the same answer again, however far apart.

Known by tool and canonical arguments; the answer is compared byte for byte and judged after it
came. Other calls between reset nothing, and neither does a user message: in the incident behind
it the agent went on for 138 calls after it was interrupted. An answer that differs starts the
count at 1; an unknown answer counts neither way.

Readings: the note is given at exactly its number, so that it is said once. From the ask on each
further call of that signature is asked about, before it runs, until a person lets it go on.
The original keeps every signature; here 48 are kept (see `memory`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import Call, HarnessRule, Hit
from langchain_loopguard.core.rules.harnesses.keys import fingerprint
from langchain_loopguard.core.rules.harnesses.ladder import rung
from langchain_loopguard.core.rules.harnesses.memory import Memory
from langchain_loopguard.core.rules.harnesses.wordings import Kind

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.rules.base import Rule

_KEYS = 48


class SignalA(ForeignRule):
    """Numbers for the same call with the same answer."""

    title: ClassVar[str] = "opencode signal A"

    rising: ClassVar = (("note_at", "ask_at"),)

    rule: Literal["signal_a"] = "signal_a"

    note_at: int = Field(default=3, ge=1)
    """Equal answers of one call, the first included; the model is told."""

    ask_at: int = Field(default=6, ge=1)
    """Equal answers of one call; a person is asked about every further one."""

    def build(self) -> Rule:
        """Make fresh counters."""
        return _SignalARule(self)


class _SignalARule(HarnessRule):
    human_resets = False

    def __init__(self, config: SignalA) -> None:
        super().__init__(config)
        self._note_at = config.note_at
        self._ask_at = config.ask_at
        self._seen = Memory(_KEYS, 3)  # call: answer, count, first batch

    def before(self, call: Call) -> Hit | None:
        row = self._seen.get(call.key)
        if row is None or row[1] < self._ask_at:
            return None
        return self._hit(Action.ASK, self._ask_at, call, row)

    def after(self, call: Call, answer: Answer | None) -> Hit | None:
        if answer is None:
            return None
        said = fingerprint(answer.digest)
        row = self._seen.get(call.key)
        if row is None or row[0] != said:
            row = [said, 0, call.number]
        row = [said, row[1] + 1, row[2]]
        self._seen.put(call.key, row)
        found = rung(row[1], notes=(self._note_at,), ask_at=self._ask_at)
        return None if found is None else self._hit(*found, call, row)

    def _hit(self, action: Action, threshold: int, call: Call, row: list[int]) -> Hit:
        return Hit(
            action, Kind.SAME_ANSWER, row[1], threshold, row[2], str(call.key), tools=(call.name,)
        )

    def forget(self, loop: str) -> None:
        self._seen.drop(int(loop))

    def counters(self) -> str:
        return self._seen.to_state()

    def load_counters(self, counters: Any) -> None:
        self._seen.load_state(counters)
