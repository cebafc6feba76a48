"""OpenClaw's `tool-loop-detection`: the last 30 calls of a run, judged before the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from langchain_loopguard.core.decision import Action
from langchain_loopguard.presets.error_texts import says_no_such_tool
from langchain_loopguard.presets.frame import (
    Count,
    Hit,
    Made,
    PresetConfig,
    PresetRule,
    strongest,
    window_hit,
)
from langchain_loopguard.presets.parts import Window, fingerprint, repeating_tail
from langchain_loopguard.presets.wordings import Kind

if TYPE_CHECKING:
    from langchain_loopguard.core.results import Result

_UNKNOWN = -1
"""Stands for the result of a call that has none."""


class _OpenClaw(PresetRule["OpenClaw"]):
    def __init__(self, config: OpenClaw) -> None:
        self.window = Window(config.window, width=6)
        super().__init__(config, self.window)

    def before(self, call: Made) -> Hit | None:
        rules = (self._repeats, self._equal_results, self._in_turn, self._missing_tool)
        hit = strongest(rule(call) for rule in rules)
        self.window.seen.append(call.seen(tool=call.tool))
        return hit and hit._replace(tools=tuple(dict.fromkeys((*hit.tools, call.name))))

    def after(self, call: Made, result: Result | None) -> Hit | None:
        if result is None:
            return None
        said, missing = fingerprint(result.digest), says_no_such_tool(result)
        seen = self.window.seen
        for place in reversed(range(len(seen))):
            if (seen[place].key, seen[place].said) == (call.key, _UNKNOWN):
                seen[place] = seen[place]._replace(said=said, failed=missing)
                break
        return None

    def _repeats(self, call: Made) -> Hit | None:
        same = [seen for seen in self.window.seen if seen.key == call.key]
        limit = self.config.warn_at
        if len(same) < limit:
            return None
        return window_hit(Action.WARN, Kind.SAME_CALL_AGAIN, len(same), limit, same)

    def _equal_results(self, call: Made) -> Hit | None:
        known = [s for s in self.window.seen if s.key == call.key and s.said != _UNKNOWN]
        count, config = repeating_tail([seen.said for seen in known], 1), self.config
        if count < config.block_at:
            return None
        stops = count >= config.stop_at
        action, limit = (Action.STOP, config.stop_at) if stops else (Action.ASK, config.block_at)
        return window_hit(action, Kind.SAME_RESULT, count, limit, known[-count:])

    def _in_turn(self, call: Made) -> Hit | None:
        keys, config = [*(seen.key for seen in self.window.seen), call.key], self.config
        count = repeating_tail(keys, 2)
        if count < config.warn_at or keys[-1] == keys[-2]:
            return None
        tail = list(self.window.seen)[1 - count :]
        results = {(seen.key, seen.said) for seen in tail}
        stuck = len(results) == len({key for key, _ in results})
        known = all(seen.said != _UNKNOWN for seen in tail)
        blocks = count >= config.block_at and stuck and known
        action, limit = (Action.ASK, config.block_at) if blocks else (Action.WARN, config.warn_at)
        return window_hit(action, Kind.IN_TURN, count, limit, tail)

    def _missing_tool(self, call: Made) -> Hit | None:
        tools = [(seen.tool, seen.failed) for seen in self.window.seen]
        count, limit = repeating_tail(tools, 1), self.config.unknown_tool_at
        if count < limit or tools[-1] != (call.tool, True):
            return None
        last = self.window.last(count)
        hit = window_hit(Action.ASK, Kind.NO_SUCH_TOOL, count, limit, last)
        return hit._replace(loop=f"tool{call.tool}")


class OpenClaw(PresetConfig):
    """OpenClaw: the window and its numbers."""

    title = "OpenClaw"
    counts = _OpenClaw
    rising = (("warn_at", "block_at", "stop_at"),)
    rule: Literal["openclaw"] = "openclaw"
    window: Annotated[int, Field(ge=2, le=50)] = 30
    """Calls that are remembered."""
    warn_at: Count = 10
    """Earlier occurrences of the call in the window, or calls in turn; the model is warned."""
    block_at: Count = 20
    """Earlier occurrences with equal results, or calls in turn that give the same; the call is
    stopped."""
    # `stop_at`: earlier occurrences with equal results.
    stop_at: Count = 30
    unknown_tool_at: Count = 10
    """Calls in a row of one tool that did not exist; the next one is stopped."""
