"""opencode's signal C: one tool fails with the same error, whatever the arguments.

Known by tool and error text with its digits masked. Other tools' successes reset nothing and
neither does a user message.

Readings: a success of the tool itself clears its counts, which is what "not reset by other
tools' successes" leaves. The note is given at exactly its number. An ask meets the next call of
that tool, once for each further failure, since before the call its error cannot be known. The
original keeps every pair; here 24 are kept (see `memory`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import Call, HarnessRule, Hit
from langchain_loopguard.core.rules.harnesses.keys import fingerprint
from langchain_loopguard.core.rules.harnesses.ladder import rung
from langchain_loopguard.core.rules.harnesses.memory import Memory
from langchain_loopguard.core.rules.harnesses.wordings import Kind

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.rules.base import Rule

_KEYS = 24


class SignalC(ForeignRule):
    """Numbers for one tool that fails with one error."""

    title: ClassVar[str] = "opencode signal C"

    rising: ClassVar = (("note_at", "ask_at"),)

    rule: Literal["signal_c"] = "signal_c"

    note_at: int = Field(default=4, ge=1)
    """Equal errors of one tool; the model is told."""

    ask_at: int = Field(default=6, ge=1)
    """Equal errors of one tool; a person is asked."""

    def build(self) -> Rule:
        """Make fresh counters."""
        return _SignalCRule(self)


class _SignalCRule(HarnessRule):
    human_resets = False

    def __init__(self, config: SignalC) -> None:
        super().__init__(config)
        self._note_at = config.note_at
        self._ask_at = config.ask_at
        self._seen = Memory(_KEYS, 3)  # tool and error: tool, count, first batch

    def after(self, call: Call, answer: Answer | None) -> Hit | None:
        if answer is None:
            return None
        if not answer.error:
            self._seen.drop_where(lambda row: row[0] == call.tool)
            return None
        key = fingerprint(call.tool, answer.error_digest)
        _, count, since = self._seen.get(key) or [call.tool, 0, call.number]
        self._seen.put(key, [call.tool, count + 1, since])
        found = rung(count + 1, notes=(self._note_at,), ask_at=self._ask_at)
        if found is None:
            return None
        action, threshold = found
        return Hit(
            action,
            Kind.SAME_ERROR,
            count + 1,
            threshold,
            since,
            str(key),
            tools=(call.name,),
            hold=call.tool,
        )

    def forget(self, loop: str) -> None:
        self._seen.drop(int(loop))

    def counters(self) -> str:
        return self._seen.to_state()

    def load_counters(self, counters: Any) -> None:
        self._seen.load_state(counters)
