"""Roo Code's `ToolRepetitionDetector`: equal calls next to each other.

Known by stable JSON of name and parameters; a user message resets nothing. Its limit of 3 means
repeats after the first: the 4th call is held back and a person is asked. Then it starts again
with no call seen, so that of an unbroken run every 4th call is held back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.rules.harnesses.ladder import rung
from langchain_loopguard.core.rules.harnesses.streak import StreakConfig, StreakRule

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Action
    from langchain_loopguard.core.rules.base import Rule
    from langchain_loopguard.core.rules.harnesses.frame import Call, Hit


class RooCode(StreakConfig):
    """Numbers for equal calls in a row."""

    title: ClassVar[str] = "Roo Code"

    rule: Literal["roo_code"] = "roo_code"

    repeats: int = Field(default=3, ge=1)
    """Repeats after the first call; the one that reaches the number is held back."""

    def judge(self, count: int) -> tuple[Action, int] | None:
        """Hold back."""
        return rung(count, ask_at=self.repeats + 1)

    def build(self) -> Rule:
        """Make a fresh counter."""
        return _RooCodeRule(self)


class _RooCodeRule(StreakRule):
    human_resets = False

    def before(self, call: Call) -> Hit | None:
        hit = super().before(call)
        if hit is not None:
            self.clear()
        return hit
