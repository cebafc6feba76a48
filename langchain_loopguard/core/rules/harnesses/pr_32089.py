"""opencode pull request #32089: the same call for the third time in the session.

No window, no reset: the same command hours apart counts too, which is what the pull request was
criticised for. The original counts every signature of the session; here the 224 touched last are
kept (see `memory`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import Call, HarnessRule, Hit
from langchain_loopguard.core.rules.harnesses.ladder import rung
from langchain_loopguard.core.rules.harnesses.memory import Memory
from langchain_loopguard.core.rules.harnesses.wordings import Kind

if TYPE_CHECKING:
    from langchain_loopguard.core.rules.base import Rule

_KEYS = 224


class Pr32089(ForeignRule):
    """Numbers for the same call anywhere in the session."""

    title: ClassVar[str] = "opencode #32089"

    rule: Literal["pr_32089"] = "pr_32089"

    ask_at: int = Field(default=3, ge=1)
    """Occurrences of one call; from here on a person is asked about each."""

    def build(self) -> Rule:
        """Make fresh counters."""
        return _Pr32089Rule(self)


class _Pr32089Rule(HarnessRule):
    human_resets = False

    def __init__(self, config: Pr32089) -> None:
        super().__init__(config)
        self._ask_at = config.ask_at
        self._seen = Memory(_KEYS, 2)  # call: count, first batch

    def before(self, call: Call) -> Hit | None:
        count, since = self._seen.get(call.key) or [0, call.number]
        self._seen.put(call.key, [count + 1, since])
        found = rung(count + 1, ask_at=self._ask_at)
        if found is None:
            return None
        action, threshold = found
        return Hit(
            action,
            Kind.SAME_CALL_AGAIN,
            count + 1,
            threshold,
            since,
            str(call.key),
            tools=(call.name,),
        )

    def forget(self, loop: str) -> None:
        self._seen.drop(int(loop))

    def counters(self) -> str:
        return self._seen.to_state()

    def load_counters(self, counters: Any) -> None:
        self._seen.load_state(counters)
