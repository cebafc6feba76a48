"""Systems that look for a cycle in the last calls: three rows over one window, and OpenHands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from langchain_loopguard.core.decision import Action
from langchain_loopguard.presets.frame import (
    ANY_TOOL,
    Count,
    Hit,
    Made,
    PresetConfig,
    PresetRule,
    window_hit,
)
from langchain_loopguard.presets.parts import (
    Streak,
    Window,
    fingerprint,
    laps_at_end,
    repeating_tail,
)
from langchain_loopguard.presets.wordings import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard.core.results import Result

_READ = 60
"""Calls of one message that are read: the search for cycles of any length costs the square."""


class _Cycle(PresetRule["CycleConfig"]):
    def __init__(self, config: CycleConfig) -> None:
        self.hits = Streak()
        self.window = Window(_READ if config.within_message else config.longest * config.laps)
        super().__init__(config, self.hits, self.window)

    def judge(self, calls: Sequence[Made]) -> Hit | None:
        if not self.config.within_message:
            return super().judge(calls)
        self.clear()
        hit = super().judge(calls[:_READ])
        self.clear()
        return hit

    def before(self, call: Made) -> Hit | None:
        config, window = self.config, self.window
        window.seen.append(call.seen(config.key(call)))
        period, laps = window.cycle(range(1, config.longest + 1), config.laps)
        if not period:
            return None
        action = config.action(self.hits.next(0, call.number))
        kind = Kind.CYCLE if period > 1 else Kind.SAME_CALL
        return window_hit(action, kind, laps, config.laps, window.last(period * laps))


class CycleConfig(PresetConfig):
    """Numbers for a cycle of calls."""

    counts = _Cycle

    laps: int

    @property
    def longest(self) -> int:
        """The longest period; without a number of its own the message's length bounds it."""
        return getattr(self, "longest_period", _READ // self.laps)

    def action(self, hits: int) -> Action:  # noqa: ARG002 - for most each hit is alike
        """Say what the system does at its `hits`-th hit."""
        return Action.ASK


class GeminiCli(CycleConfig):
    """gemini-cli's `LoopDetectionService`: five equal laps of one to five calls."""

    title = "gemini-cli"
    known_by = "raw"
    rule: Literal["gemini_cli"] = "gemini_cli"
    longest_period: Annotated[int, Field(ge=1, le=10)] = 5
    laps: Annotated[int, Field(ge=2, le=10)] = 5
    stop_at_hit: Count = 2
    """The hit that ends the run; the model is warned at those before it."""

    def action(self, hits: int) -> Action:
        """Tell, then stop."""
        return Action.STOP if hits >= self.stop_at_hit else Action.WARN


class Pr47797(CycleConfig):
    """opencode #47797: three equal laps of one to ten calls; asks at every call of the cycle."""

    title = "opencode #47797"
    rule: Literal["pr_47797"] = "pr_47797"
    longest_period: Annotated[int, Field(ge=1, le=10)] = 10
    laps: Annotated[int, Field(ge=2, le=5)] = 3


class Pr47845(CycleConfig):
    """opencode #47845: three equal laps within one message; nothing is kept to the next one."""

    title = "opencode #47845"
    within_message = True
    rule: Literal["pr_47845"] = "pr_47845"
    laps: Annotated[int, Field(ge=2)] = 3


class _OpenHands(PresetRule["OpenHands"]):
    def __init__(self, config: OpenHands) -> None:
        self.window = Window(max(1, config.window // 2), width=5)
        super().__init__(config, self.window)

    def after(self, call: Made, result: Result | None) -> Hit | None:
        if result is None:
            self.clear()
            return None
        config, window = self.config, self.window
        pair = fingerprint(call.key, result.digest)
        window.seen.append(call.seen(said=pair, failed=result.failed))
        calls = [(seen.key, seen.failed) for seen in window.seen]
        failures = repeating_tail(calls, 1) if result.failed else 0
        if failures == config.equal_failures:
            return self._hit(Action.WARN, Kind.SAME_FAILURE, failures, failures)
        pairs = [seen.said for seen in window.seen]
        if (count := laps_at_end(pairs, 1)) >= config.equal_pairs:
            return self._hit(Action.STOP, Kind.SAME_RESULT, count, config.equal_pairs)
        if failures > config.equal_failures:
            limit = config.equal_failures + 1
            return self._hit(Action.STOP, Kind.SAME_FAILURE, failures, limit)
        if (count := laps_at_end(pairs, 2)) >= config.alternations and pairs[-1] != pairs[-2]:
            return self._hit(Action.STOP, Kind.CYCLE, count, config.alternations, calls=2 * count)
        return None

    def _hit(self, action: Action, kind: Kind, count: int, limit: int, calls: int = 0) -> Hit:
        seen = self.window.last(calls or count)
        return window_hit(action, kind, count, limit, seen)._replace(hold=ANY_TOOL)


class OpenHands(PresetConfig):
    """OpenHands' `StuckDetector`: the last steps, calls with their results, repeat."""

    title = "OpenHands"
    counts = _OpenHands
    rule: Literal["openhands"] = "openhands"
    window: Annotated[int, Field(ge=2, le=40)] = 20
    """Events that are looked at, two for each call."""
    equal_pairs: Annotated[int, Field(ge=2, le=20)] = 4
    """Equal pairs of call and result in a row; the run ends."""
    equal_failures: Annotated[int, Field(ge=2, le=20)] = 3
    """Equal calls in a row that failed; the model is warned, and one more ends the run."""
    alternations: Annotated[int, Field(ge=2, le=10)] = 3
    """How often two pairs come in turn; the run ends."""
