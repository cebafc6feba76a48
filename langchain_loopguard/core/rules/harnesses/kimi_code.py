"""kimi-code's repeat breaker: equal calls in a row across steps, in one turn.

Known by tool and key-sorted arguments. Notes at 3, 5 and 8, the turn stops at 12. Any other call
breaks the streak, so it does not see rotations at all.

Reading: the notes are given at exactly those counts.
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


class KimiCode(StreakConfig):
    """Numbers for equal calls in a row."""

    title: ClassVar[str] = "kimi-code"

    rising: ClassVar = (("notes_at", "stop_at"),)

    rule: Literal["kimi_code"] = "kimi_code"

    notes_at: Steps = (3, 5, 8)
    """The model is told."""

    stop_at: int = Field(default=12, ge=1)
    """The run ends."""

    def judge(self, count: int) -> tuple[Action, int] | None:
        """Tell, then stop."""
        return rung(count, notes=self.notes_at, stop_at=self.stop_at)

    def build(self) -> Rule:
        """Make a fresh counter."""
        return StreakRule(self)
