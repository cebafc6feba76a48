"""opencode pull request #46272: ten equal calls in a row within a user turn end the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.rules.harnesses.ladder import rung
from langchain_loopguard.core.rules.harnesses.streak import StreakConfig, StreakRule

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Action
    from langchain_loopguard.core.rules.base import Rule


class Pr46272(StreakConfig):
    """Numbers for equal calls in a row."""

    title: ClassVar[str] = "opencode #46272"

    rule: Literal["pr_46272"] = "pr_46272"

    stop_at: int = Field(default=10, ge=1)
    """Equal calls in a row; the run ends."""

    def judge(self, count: int) -> tuple[Action, int] | None:
        """Stop."""
        return rung(count, stop_at=self.stop_at)

    def build(self) -> Rule:
        """Make a fresh counter."""
        return StreakRule(self)
