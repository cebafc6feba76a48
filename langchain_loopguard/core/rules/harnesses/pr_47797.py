"""opencode pull request #47797: the last calls are three equal laps of one to ten calls.

A ring of the last 30 calls, which a user message empties. A person is asked at every call while
the cycle goes on ("re-prompts every round").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import HarnessRule
from langchain_loopguard.core.rules.harnesses.window import Window

if TYPE_CHECKING:
    from langchain_loopguard.core.rules.base import Rule
    from langchain_loopguard.core.rules.harnesses.frame import Call, Hit


class Pr47797(ForeignRule):
    """Numbers for a cycle of calls; the window is the longest cycle times its laps."""

    title: ClassVar[str] = "opencode #47797"

    rule: Literal["pr_47797"] = "pr_47797"

    longest_period: int = Field(default=10, ge=1, le=10)
    """Calls in the longest cycle that is looked for."""

    laps: int = Field(default=3, ge=2, le=5)
    """Equal laps at which a person is asked."""

    def build(self) -> Rule:
        """Make a fresh window."""
        return _Pr47797Rule(self)


class _Pr47797Rule(HarnessRule):
    def __init__(self, config: Pr47797) -> None:
        super().__init__(config)
        self._config = config
        self._window = Window(config.longest_period * config.laps)

    def before(self, call: Call) -> Hit | None:
        config = self._config
        self._window.add(call.key, call)
        period, laps = self._window.cycle(range(1, config.longest_period + 1), config.laps)
        return self._window.hit(Action.ASK, config.laps, period, laps) if period else None

    def clear(self) -> None:
        self._window.clear()

    def counters(self) -> list[list[Any]]:
        return self._window.to_state()

    def load_counters(self, counters: Any) -> None:
        self._window.load_state(counters)
