"""crewAI's tool usage check: the call that was just made, made again.

Known by the tool's name in lower case with `_` for other signs, and the arguments. Any immediate
repeat is skipped and the model is told so.

Readings: a user message is a new task, which starts afresh. Arguments are compared as a whole,
where the original compares the top level with `==`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.rules.harnesses.keys import sanitised_key
from langchain_loopguard.core.rules.harnesses.ladder import rung
from langchain_loopguard.core.rules.harnesses.streak import StreakConfig, StreakRule

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Action
    from langchain_loopguard.core.rules.base import Rule
    from langchain_loopguard.core.rules.harnesses.frame import Call


class CrewAI(StreakConfig):
    """Numbers for equal calls in a row."""

    title: ClassVar[str] = "crewAI"

    rule: Literal["crewai"] = "crewai"

    ask_at: int = Field(default=2, ge=1)
    """Equal calls in a row; from here on each one is skipped."""

    def judge(self, count: int) -> tuple[Action, int] | None:
        """Skip."""
        return rung(count, ask_at=self.ask_at)

    def build(self) -> Rule:
        """Make a fresh counter."""
        return _CrewAIRule(self)


class _CrewAIRule(StreakRule):
    def key(self, call: Call) -> int:
        return sanitised_key(call.name, call.arguments)
