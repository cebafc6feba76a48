"""Cline's `LoopDetectionTracker`: equal calls next to each other.

Known by name and deep-sorted JSON; any other call resets it, a user message doesn't. A note at
exactly 3, the run stops from 5 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.rules.harnesses.ladder import rung
from langchain_loopguard.core.rules.harnesses.streak import StreakConfig, StreakRule

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Action
    from langchain_loopguard.core.rules.base import Rule


class Cline(StreakConfig):
    """Numbers for equal calls in a row."""

    title: ClassVar[str] = "Cline"

    rising: ClassVar = (("note_at", "stop_at"),)

    rule: Literal["cline"] = "cline"

    note_at: int = Field(default=3, ge=1)
    """The model is told."""

    stop_at: int = Field(default=5, ge=1)
    """The run ends."""

    def judge(self, count: int) -> tuple[Action, int] | None:
        """Tell, then stop."""
        return rung(count, notes=(self.note_at,), stop_at=self.stop_at)

    def build(self) -> Rule:
        """Make a fresh counter."""
        return _ClineRule(self)


class _ClineRule(StreakRule):
    human_resets = False
