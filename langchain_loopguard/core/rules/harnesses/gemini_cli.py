"""gemini-cli's `LoopDetectionService`: the last calls are five equal laps of one to five calls.

Known by a hash of name and JSON with the keys as given, judged before the call runs. The first
hit gives the model a feedback turn, the second ends the run; a cycle that goes on hits again at
the next call. A user message clears everything.

The original's two other layers, repeated prose and a judging model, see no tool calls and are
not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core import stored
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import HarnessRule
from langchain_loopguard.core.rules.harnesses.window import Window

if TYPE_CHECKING:
    from langchain_loopguard.core.rules.base import Rule
    from langchain_loopguard.core.rules.harnesses.frame import Call, Hit


class GeminiCli(ForeignRule):
    """Numbers for a cycle of calls; the window is the longest cycle times its laps."""

    title: ClassVar[str] = "gemini-cli"

    rule: Literal["gemini_cli"] = "gemini_cli"

    longest_period: int = Field(default=5, ge=1, le=10)
    """Calls in the longest cycle that is looked for."""

    laps: int = Field(default=5, ge=2, le=10)
    """Equal laps that make a hit."""

    stop_at_hit: int = Field(default=2, ge=1)
    """The hit that ends the run; the model is told at those before it."""

    def build(self) -> Rule:
        """Make a fresh window."""
        return _GeminiCliRule(self)


class _GeminiCliRule(HarnessRule):
    def __init__(self, config: GeminiCli) -> None:
        super().__init__(config)
        self._config = config
        self._window = Window(config.longest_period * config.laps)
        self._hits = 0

    def before(self, call: Call) -> Hit | None:
        config = self._config
        self._window.add(call.raw_key(), call)
        period, laps = self._window.cycle(range(1, config.longest_period + 1), config.laps)
        if not period:
            return None
        self._hits += 1
        action = Action.STOP if self._hits >= config.stop_at_hit else Action.WARN
        return self._window.hit(action, config.laps, period, laps)

    def clear(self) -> None:
        self._window.clear()
        self._hits = 0

    def counters(self) -> list[Any]:
        return [self._hits, self._window.to_state()]

    def load_counters(self, counters: Any) -> None:
        hits, window = stored.entries(counters, 2)
        self._hits = stored.count(hits)
        self._window.load_state(window)
