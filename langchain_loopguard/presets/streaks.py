"""Systems that count equal calls next to each other: eight rows over one streak.

They differ in what makes two calls the same, in their numbers, in what a user message does, and
in whether the streak is one of calls, of whole messages or of outputs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.base import Steps, ToolNames
from langchain_loopguard.presets.frame import (
    ANY_TOOL,
    Count,
    Hit,
    Made,
    PresetConfig,
    PresetRule,
    hit_at,
)
from langchain_loopguard.presets.parts import Memory, Streak, fingerprint
from langchain_loopguard.presets.wordings import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard.core.results import Result

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")


class _Streak(PresetRule["StreakConfig"]):
    def __init__(self, config: StreakConfig, *parts: Memory) -> None:
        self.streak = Streak()
        super().__init__(config, self.streak, *parts)

    def judge(self, calls: Sequence[Made]) -> Hit | None:
        if self.config.within_message:
            self.streak.clear()
        return super().judge(calls)

    def key(self, call: Made) -> int:
        return self.config.key(call)

    def before(self, call: Made) -> Hit | None:
        key = self.key(call)
        count = self.streak.next(key, call.number)
        climbed = self.config.climb(count)
        hit = hit_at(climbed, Kind.SAME_CALL, count, self.streak.since, str(key), call)
        if hit and self.config.starts_again:
            self.streak.clear()
        return hit


class StreakConfig(PresetConfig):
    """Numbers for a streak of equal calls."""

    counts: ClassVar[type[PresetRule[Any]]] = _Streak

    starts_again: ClassVar[bool] = False
    """Whether a hit starts the streak again."""


class KimiCode(StreakConfig):
    """kimi-code's repeat breaker: equal calls in a row across the steps of one turn."""

    title = "kimi-code"
    rising = (("notes_at", "stop_at"),)
    rule: Literal["kimi_code"] = "kimi_code"
    notes_at: Steps = (3, 5, 8)
    stop_at: Count = 12


class DeepseekHarness(StreakConfig):
    """deepseek-harness' repeat reminder: equal calls in a row, until a user speaks."""

    title = "deepseek-harness"
    rising = (("notes_at", "ask_at"),)
    rule: Literal["deepseek_harness"] = "deepseek_harness"
    notes_at: Steps = (3, 5)
    ask_at: Count = 8


class Cline(StreakConfig):
    """Cline's `LoopDetectionTracker`: equal calls next to each other; a user resets nothing."""

    title = "Cline"
    turn_clears = False
    rising = (("note_at", "stop_at"),)
    rule: Literal["cline"] = "cline"
    note_at: Count = 3
    stop_at: Count = 5


class RooCode(StreakConfig):
    """Roo Code's `ToolRepetitionDetector`: the call after so many repeats is stopped."""

    title = "Roo Code"
    turn_clears = False
    starts_again = True
    rule: Literal["roo_code"] = "roo_code"
    repeats: Count = 3
    """Repeats after the first call; the one that reaches the number is stopped."""

    def climb(self, count: int) -> tuple[Action, int] | None:
        """Stop the call."""
        return (Action.ASK, self.repeats + 1) if count > self.repeats else None


class Pr46272(StreakConfig):
    """opencode #46272: ten equal calls in a row within a user turn end the run."""

    title = "opencode #46272"
    rule: Literal["pr_46272"] = "pr_46272"
    stop_at: Count = 10


class OpencodeV1(StreakConfig):
    """opencode v1's `doom_loop`: three equal calls running within one message."""

    title = "opencode v1"
    known_by = "raw"
    within_message = True
    rule: Literal["opencode_v1"] = "opencode_v1"
    ask_at: Count = 3


class _CrewAI(_Streak):
    def __init__(self, config: CrewAI) -> None:
        self.limit = config.same_result_stop
        self.tally = Memory(_CREWAI_KEYS)
        super().__init__(config, self.tally)

    def key(self, call: Made) -> int:
        return fingerprint(_NOT_IN_A_NAME.sub("_", call.name.lower()).strip("_"), call.canonical)

    def after(self, call: Made, result: Result | None) -> Hit | None:
        if result is None:
            return None
        key = fingerprint(call.key, result.digest)
        count, since, _ = self.tally.add(key, call.number)
        climbed = (Action.STOP, self.limit) if count >= self.limit else None
        loop = f"1.{key}"
        return hit_at(climbed, Kind.SAME_RESULT_AGAIN, count, since, loop, call, ANY_TOOL)


_CREWAI_KEYS = 192


class CrewAI(StreakConfig):
    """crewAI: any immediate repeat is skipped; the fifth equal call and result ends the run."""

    title = "crewAI"
    counts = _CrewAI
    rule: Literal["crewai"] = "crewai"
    ask_at: Count = 2
    same_result_stop: Count = 5
    """Equal calls with equal results in one run; the run ends."""


class _Terminal(PresetRule["Pr37109"]):
    def __init__(self, config: Pr37109) -> None:
        self.streak = Streak()
        super().__init__(config, self.streak)

    def after(self, call: Made, result: Result | None) -> Hit | None:
        name = call.name.lower()
        if result is None or not any(part.lower() in name for part in self.config.terminal_tools):
            return None
        count = self.streak.next(fingerprint(result.digest), call.number)
        climbed, since = self.config.climb(count), self.streak.since
        return hit_at(climbed, Kind.SAME_OUTPUT, count, since, "", call, call.tool)


class Pr37109(PresetConfig):
    """opencode #37109: the terminal printed the same three times in a row."""

    title = "opencode #37109"
    counts = _Terminal
    turn_clears = False
    rule: Literal["pr_37109"] = "pr_37109"
    ask_at: Count = 3
    terminal_tools: ToolNames = ("bash", "shell", "terminal", "command")
    """Parts of the names, in any case, of tools that run commands."""


class _AgentSight(PresetRule["AgentSight"]):
    def __init__(self, config: AgentSight) -> None:
        self.streak = Streak()
        super().__init__(config, self.streak)

    def judge(self, calls: Sequence[Made]) -> Hit | None:
        config, key = self.config, fingerprint(*(call.raw_key for call in calls))
        count = self.streak.next(key, calls[0].number)
        kill_at = config.equal_messages + config.kill_after_count - 1
        if config.kill_enabled and count >= kill_at:
            action, limit = Action.STOP, kill_at
        elif count >= config.equal_messages:
            action, limit = Action.WARN, config.equal_messages
        else:
            return None
        return Hit(action, Kind.SAME_STEP, count, limit, self.streak.since, str(key))


class AgentSight(PresetConfig):
    """AgentSight's dead-loop detector: five messages in a row with the same calls."""

    title = "AgentSight"
    counts = _AgentSight
    rule: Literal["agentsight"] = "agentsight"
    equal_messages: Count = 5
    """Messages with the same calls in a row; each one from here on is reported."""
    kill_enabled: bool = False
    """Whether reports end the run."""
    kill_after_count: Count = 3
    """The report that ends the run."""
