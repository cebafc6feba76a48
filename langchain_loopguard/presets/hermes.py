"""hermes: the guard as it was published, and hermes-agent as it is now.

Both remember the failures of calls and of tools and the results of reading calls, for one turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import Field

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.base import ToolNames
from langchain_loopguard.presets.frame import (
    ANY_TOOL,
    Count,
    Hit,
    Made,
    PresetConfig,
    PresetRule,
    hit_at,
    strongest,
    window_hit,
)
from langchain_loopguard.presets.parts import Memory, Row, Window, fingerprint
from langchain_loopguard.presets.wordings import Kind
from langchain_loopguard.seed.observation import DEFAULT_OBSERVATION_TOOLS, is_observation_name

if TYPE_CHECKING:
    from langchain_loopguard.core.results import Result

HermesConfig = TypeVar("HermesConfig", bound=PresetConfig)

_KINDS = (Kind.SAME_FAILURE, Kind.TOOL_FAILURE, Kind.SAME_RESULT)


class _Memories(PresetRule[HermesConfig]):
    def __init__(self, config: HermesConfig, limits: tuple[int, int, int], *more: Window) -> None:
        self.calls, self.tools = Memory(limits[0]), Memory(limits[1])
        self.results = Memory(limits[2], width=3)
        super().__init__(config, self.calls, self.tools, self.results, *more)

    def at(self, action: Action, place: int, row: Row, limit: int, call: Made) -> Hit | None:
        climbed = (action, limit) if row.times >= limit else None
        key = call.tool if place == 1 else call.key
        return hit_at(climbed, _KINDS[place], row.times, row.since, f"{place}.{key}", call)


class _Hermes(_Memories["Hermes"]):
    def __init__(self, config: Hermes) -> None:
        super().__init__(config, (64, 48, 64))

    def before(self, call: Made) -> Hit | None:
        config = self.config
        if not config.hard_stop_enabled:
            return None
        ask, calls, repeats = Action.ASK, self.calls.get(call.key), self.results.get(call.key)
        return (
            self.at(ask, 2, repeats, config.noprog_block_after + 1, call)
            or self.at(ask, 0, calls, config.exact_block_after, call)
            or self.at(Action.STOP, 1, self.tools.get(call.tool), config.tool_halt_after, call)
        )

    def after(self, call: Made, result: Result | None) -> Hit | None:
        config, hit = self.config, None
        if result is None:
            return None
        if result.failed:
            exact = self.calls.add(call.key, call.number)
            tool = self.tools.add(call.tool, call.number)
            hit = self.at(Action.WARN, 0, exact, config.exact_warn_after, call) or self.at(
                Action.WARN, 1, tool, config.tool_warn_after, call
            )
        elif call.name in config.idempotent_tools:
            row = self.results.add(call.key, call.number, fingerprint(result.digest))
            block = self.at(Action.ASK, 2, row, config.noprog_block_after + 1, call)
            if block and config.hard_stop_enabled:
                return block
            hit = self.at(Action.WARN, 2, row, config.noprog_warn_after + 1, call)
        return hit if config.warnings_enabled else None


class Hermes(PresetConfig):
    """hermes' `tool-loop-guard` as published with its numbers: three detectors, one turn."""

    title = "hermes tool-loop-guard"
    counts = _Hermes
    rule: Literal["hermes"] = "hermes"
    warnings_enabled: bool = True
    """Whether the model is warned."""
    hard_stop_enabled: bool = False
    """Whether calls are stopped and runs ended."""
    exact_warn_after: Count = 2
    """Failures of one call; the model is warned at each from here on."""
    exact_block_after: Count = 5
    """Failures of one call; the next one is stopped."""
    tool_warn_after: Count = 3
    """Failures of one tool; the model is warned at each from here on."""
    tool_halt_after: Count = 8
    """Failures of one tool; the run ends at its next call."""
    noprog_warn_after: Count = 2
    """Repeats of a reading call's result; the model is warned at each from here on."""
    noprog_block_after: Count = 5
    """Repeats of a reading call's result; the next such call is stopped."""
    idempotent_tools: ToolNames = (
        "browser_snapshot",
        "get_env",
        "get_file_info",
        "glob",
        "grep",
        "list_dir",
        "memory_recall",
        "read_file",
        "search_files",
        "view_image",
        "web_fetch",
        "web_search",
    )
    """Whole names of the tools that only read."""


class _HermesAgent(_Memories["HermesAgent"]):
    def __init__(self, config: HermesAgent) -> None:
        self.pairs = Window(config.longest_period * max(config.laps_note, config.laps_stop))
        super().__init__(config, (56, 40, 40), self.pairs)

    def before(self, call: Made) -> Hit | None:
        config, ask = self.config, Action.ASK
        if not config.hard_stop:
            return None
        calls, results = self.calls.get(call.key), self.results.get(call.key)
        hit = self.at(ask, 0, calls, config.call_failures_block, call) or self.at(
            ask, 2, results, config.same_answer_block, call
        )
        return hit and _of_all(hit)

    def after(self, call: Made, result: Result | None) -> Hit | None:
        if result is None:
            self.pairs.clear()
            return None
        said = fingerprint(result.digest)
        hit = self._failed(call) if result.failed else self._succeeded(call, said)
        return strongest((hit and _of_all(hit), self._cycle(call, said)))

    def _failed(self, call: Made) -> Hit | None:
        config, warn = self.config, Action.WARN
        self.results.drop(call.key)
        exact = self.calls.add(call.key, call.number)
        tool = self.tools.add(call.tool, call.number)
        stop = self.at(Action.STOP, 1, tool, config.tool_failures_stop, call)
        return (
            (stop if config.hard_stop else None)
            or self.at(warn, 0, exact, config.call_failures_note, call)
            or self.at(warn, 1, tool, config.tool_failures_note, call)
        )

    def _succeeded(self, call: Made, said: int) -> Hit | None:
        if not is_observation_name(call.name, self.config.read_only_tools):
            self.calls.clear()
            self.tools.clear()
            return None
        self.calls.drop(call.key)
        self.tools.drop(call.tool)
        row = self.results.add(call.key, call.number, said)
        return self.at(Action.WARN, 2, row, self.config.same_answer_note, call)

    def _cycle(self, call: Made, said: int) -> Hit | None:
        config = self.config
        self.pairs.seen.append(call.seen(fingerprint(call.key, said)))
        least = min(config.laps_note, config.laps_stop)
        period, laps = self.pairs.cycle(range(1, config.longest_period + 1), least)
        if config.hard_stop and laps >= config.laps_stop:
            action, limit = Action.STOP, config.laps_stop
        elif laps >= config.laps_note:
            action, limit = Action.WARN, config.laps_note
        else:
            return None
        kind = Kind.CYCLE if period > 1 else Kind.SAME_CALL
        hit = window_hit(action, kind, laps, limit, self.pairs.last(period * laps))
        return hit._replace(hold=ANY_TOOL)


def _of_all(hit: Hit) -> Hit:
    """Make a hit of one memory one of the rule: approved, all is counted from the start."""
    return hit._replace(loop=f"{hit.kind.name}{hit.loop.partition('.')[2]}", hold=ANY_TOOL)


class HermesAgent(PresetConfig):
    """hermes-agent: failures, results that don't change, streaks and short cycles."""

    title = "hermes-agent"
    counts = _HermesAgent
    rule: Literal["hermes_agent"] = "hermes_agent"
    hard_stop: bool = True
    """Whether calls are stopped and runs ended; without it the model is only warned."""
    call_failures_note: Count = 2
    """Failures of one call; the model is warned."""
    call_failures_block: Count = 5
    """Failures of one call; the next one is stopped."""
    tool_failures_note: Count = 3
    """Failures of one tool; the model is warned."""
    tool_failures_stop: Count = 8
    """Failures of one tool; the run ends."""
    same_answer_note: Count = 2
    """Equal results of a reading call, the first included; the model is warned."""
    same_answer_block: Count = 5
    """Equal results of a reading call, the first included; the next one is stopped."""
    laps_note: Annotated[int, Field(ge=2, le=10)] = 3
    """Equal laps of calls with their results; the model is warned."""
    laps_stop: Annotated[int, Field(ge=2, le=10)] = 5
    """Equal laps of calls with their results; the run ends."""
    longest_period: Annotated[int, Field(ge=1, le=4)] = 4
    """Calls in the longest cycle; 1 is the streak of one call."""
    read_only_tools: ToolNames = DEFAULT_OBSERVATION_TOOLS
    """Parts of the names of tools that only read."""
