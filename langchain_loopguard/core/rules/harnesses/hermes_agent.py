"""hermes-agent as it is now: failures, answers that don't change, streaks and short cycles.

Per turn. The same call failed: a note at 2, held back from its 6th try on. The same tool failed:
a note at 3, the run ends at 8. A read-only call gave the same answer: a note at 2, held back from
its 6th try on. The same call with the same answer in a row, or a cycle of two to four of them: a
note at 3 laps, the run ends at 5.

Readings: notes are given at each count from their number on, as in the published guard. A success
of a tool that changes something clears every failure count, a success of a reading tool those of
the call and the tool. Which tools read is judged by this package's name patterns, since the row
behind this rule names none. An unknown answer breaks streak and cycle. With `hard_stop` off only
the notes are left. The maps are unbounded there; here 56, 40 and 40 entries are kept (see
`memory`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.observation import DEFAULT_OBSERVATION_TOOLS, is_observation_name
from langchain_loopguard.core.rules.base import ToolNames
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import (
    ANY_TOOL,
    Call,
    HarnessRule,
    Hit,
    stronger,
)
from langchain_loopguard.core.rules.harnesses.keys import fingerprint
from langchain_loopguard.core.rules.harnesses.ladder import rung
from langchain_loopguard.core.rules.harnesses.memory import Memory
from langchain_loopguard.core.rules.harnesses.window import Window
from langchain_loopguard.core.rules.harnesses.wordings import Kind

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.rules.base import Rule

_CALLS = 56
_TOOLS = 40
_ANSWERS = 40


class HermesAgent(ForeignRule):
    """The numbers of the five detectors."""

    title: ClassVar[str] = "hermes-agent"

    rule: Literal["hermes_agent"] = "hermes_agent"

    hard_stop: bool = True
    """Whether calls are held back and runs ended; without it the model is only told."""

    call_failures_note: int = Field(default=2, ge=1)
    """Failures of one call; the model is told."""

    call_failures_block: int = Field(default=5, ge=1)
    """Failures of one call; the next one is held back."""

    tool_failures_note: int = Field(default=3, ge=1)
    """Failures of one tool; the model is told."""

    tool_failures_stop: int = Field(default=8, ge=1)
    """Failures of one tool; the run ends."""

    same_answer_note: int = Field(default=2, ge=1)
    """Equal answers of a read-only call, the first included; the model is told."""

    same_answer_block: int = Field(default=5, ge=1)
    """Equal answers of a read-only call, the first included; the next one is held back."""

    laps_note: int = Field(default=3, ge=2, le=10)
    """Equal laps of calls with their answers; the model is told."""

    laps_stop: int = Field(default=5, ge=2, le=10)
    """Equal laps of calls with their answers; the run ends."""

    longest_period: int = Field(default=4, ge=1, le=4)
    """Calls in the longest cycle; 1 is the streak of one call."""

    read_only_tools: ToolNames = DEFAULT_OBSERVATION_TOOLS
    """Parts of the names of tools that only read."""

    def build(self) -> Rule:
        """Make fresh counters."""
        return _HermesAgentRule(self)


class _HermesAgentRule(HarnessRule):
    def __init__(self, config: HermesAgent) -> None:
        super().__init__(config)
        self._config = config
        self._calls = Memory(_CALLS, 2)  # call: failures, first batch
        self._tools = Memory(_TOOLS, 2)  # tool: failures, first batch
        self._answers = Memory(_ANSWERS, 3)  # read-only call: answer, count, first batch
        self._pairs = Window(config.longest_period * max(config.laps_note, config.laps_stop))

    def before(self, call: Call) -> Hit | None:
        config = self._config
        if not config.hard_stop:
            return None
        row, limit = self._calls.get(call.key), config.call_failures_block
        if row is not None and row[0] >= limit:
            return _hit(Action.ASK, Kind.SAME_FAILURE, row[0], limit, row[1], call)
        row, limit = self._answers.get(call.key), config.same_answer_block
        if row is not None and row[1] >= limit:
            return _hit(Action.ASK, Kind.SAME_ANSWER, row[1], limit, row[2], call)
        return None

    def after(self, call: Call, answer: Answer | None) -> Hit | None:
        if answer is None:
            self._pairs.clear()
            return None
        said = fingerprint(answer.digest)
        hit = self._failed(call) if answer.error else self._succeeded(call, said)
        return stronger(hit, self._cycle(call, said))

    def _failed(self, call: Call) -> Hit | None:
        config = self._config
        self._answers.drop(call.key)
        failures, since = self._calls.get(call.key) or [0, call.number]
        self._calls.put(call.key, [failures + 1, since])
        of_tool, tool_since = self._tools.get(call.tool) or [0, call.number]
        self._tools.put(call.tool, [of_tool + 1, tool_since])
        hit = None
        if of_tool + 1 >= config.tool_failures_note:
            hit = _hit(
                Action.WARN,
                Kind.TOOL_FAILURE,
                of_tool + 1,
                config.tool_failures_note,
                tool_since,
                call,
            )
        if failures + 1 >= config.call_failures_note:
            note = config.call_failures_note
            hit = _hit(Action.WARN, Kind.SAME_FAILURE, failures + 1, note, since, call)
        if config.hard_stop and of_tool + 1 >= config.tool_failures_stop:
            stop = config.tool_failures_stop
            hit = _hit(Action.STOP, Kind.TOOL_FAILURE, of_tool + 1, stop, tool_since, call)
        return hit

    def _succeeded(self, call: Call, said: int) -> Hit | None:
        config = self._config
        if not is_observation_name(call.name, config.read_only_tools):
            self._calls.clear()
            self._tools.clear()
            return None
        self._calls.drop(call.key)
        self._tools.drop(call.tool)
        row = self._answers.get(call.key)
        _, count, since = row if row and row[0] == said else [said, 0, call.number]
        self._answers.put(call.key, [said, count + 1, since])
        if count + 1 < config.same_answer_note:
            return None
        note = config.same_answer_note
        return _hit(Action.WARN, Kind.SAME_ANSWER, count + 1, note, since, call)

    def _cycle(self, call: Call, said: int) -> Hit | None:
        config = self._config
        self._pairs.add(fingerprint(call.key, said), call)
        least = min(config.laps_note, config.laps_stop)
        period, laps = self._pairs.cycle(range(1, config.longest_period + 1), least)
        stop_at = config.laps_stop if config.hard_stop else None
        found = rung(laps, notes=range(config.laps_note, laps + 1), stop_at=stop_at)
        if not period or found is None:
            return None
        threshold = config.laps_note if found[0] is Action.WARN else found[1]
        return self._pairs.hit(found[0], threshold, period, laps, ANY_TOOL)

    def clear(self) -> None:
        for memory in (self._calls, self._tools, self._answers):
            memory.clear()
        self._pairs.clear()

    def counters(self) -> list[Any]:
        return [
            self._calls.to_state(),
            self._tools.to_state(),
            self._answers.to_state(),
            self._pairs.to_state(),
        ]

    def load_counters(self, counters: Any) -> None:
        calls, tools, answers, pairs = counters
        self._calls.load_state(calls)
        self._tools.load_state(tools)
        self._answers.load_state(answers)
        self._pairs.load_state(pairs)


def _hit(action: Action, kind: Kind, count: int, threshold: int, since: int, call: Call) -> Hit:
    key = call.tool if kind is Kind.TOOL_FAILURE else call.key
    return Hit(
        action, kind, count, threshold, since, f"{kind}{key}", tools=(call.name,), hold=ANY_TOOL
    )
