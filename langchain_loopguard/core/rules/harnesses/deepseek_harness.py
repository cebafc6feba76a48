"""deepseek-harness' repeat reminder: equal calls in a row, until a user speaks.

Known by tool and deep key-sorted arguments. Notes at exactly 3 and 5, the call is refused at 8
and at every later one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.rules.base import Steps
from langchain_loopguard.core.rules.harnesses.ladder import rung
from langchain_loopguard.core.rules.harnesses.streak import StreakConfig, StreakRule

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Action
    from langchain_loopguard.core.rules.base import Rule


class DeepseekHarness(StreakConfig):
    """Numbers for equal calls in a row."""

    title: ClassVar[str] = "deepseek-harness"

    rising: ClassVar = (("notes_at", "ask_at"),)

    rule: Literal["deepseek_harness"] = "deepseek_harness"

    notes_at: Steps = (3, 5)
    """The model is told."""

    ask_at: int = Field(default=8, ge=1)
    """From here on each call is held back."""

    def judge(self, count: int) -> tuple[Action, int] | None:
        """Tell, then hold back."""
        return rung(count, notes=self.notes_at, ask_at=self.ask_at)

    def build(self) -> Rule:
        """Make a fresh counter."""
        return StreakRule(self)
