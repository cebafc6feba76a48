"""opencode pull request #47845: three equal laps of calls within one message.

Like #47797, but nothing is kept from one message to the next.

Reading: the period is not bounded by a number but by the message, as "block repeats inside one
message" says; a batch of more than 60 calls is read to its 60th.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import HarnessRule, calls_of
from langchain_loopguard.core.rules.harnesses.window import Window

if TYPE_CHECKING:
    from langchain_loopguard.core.batch import Batch
    from langchain_loopguard.core.decision import Finding
    from langchain_loopguard.core.rules.base import Rule
    from langchain_loopguard.core.rules.harnesses.frame import Hit

_READ = 60
"""Calls of a batch that are read; the search costs the square of it."""


class Pr47845(ForeignRule):
    """Numbers for a cycle of calls within one message."""

    title: ClassVar[str] = "opencode #47845"

    rule: Literal["pr_47845"] = "pr_47845"

    laps: int = Field(default=3, ge=2)
    """Equal laps at which a person is asked."""

    def build(self) -> Rule:
        """Make a rule; it keeps nothing from one message to the next."""
        return _Pr47845Rule(self)


class _Pr47845Rule(HarnessRule):
    def __init__(self, config: Pr47845) -> None:
        super().__init__(config)
        self._laps = config.laps

    def check(self, batch: Batch) -> Finding | None:
        hit: Hit | None = None
        window = Window(_READ)
        for place, call in enumerate(calls_of(batch), start=1):
            if place > _READ:
                break
            window.add(call.key, call)
            period, laps = window.cycle(range(1, place // self._laps + 1), self._laps)
            if period:
                hit = window.hit(Action.ASK, self._laps, period, laps)
        return self.finding(hit, batch, ran=False)

    def counters(self) -> None:
        """There is nothing to keep."""

    def load_counters(self, counters: Any) -> None:
        """There is nothing to load."""
        if counters is not None:
            raise ValueError("this rule counts nothing")
