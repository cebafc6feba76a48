"""hermes' `tool-loop-guard` as published with its numbers: three detectors, one turn.

The same call failed; the same tool failed, whatever the arguments; a read-only tool gave the same
answer. Each first warns. Hard stops are opt-in: the call that failed often enough is held back
before its next run, the tool that failed often enough ends the run at its next call, and the
answer that came often enough holds back the next such call.

Exactly as published, no success clears a failure count; only a new turn does. The number of equal
answers counts repeats, so 2 is the third equal answer.

Readings: the publication lists a warning for the same tool at 3 and its code leaves it out; here
it is given, when the same call has not earned one already. Its code blocks a read-only call's
answer after it came; here the next such call is held back as well. The maps are unbounded there;
here 64, 48 and 64 entries are kept (see `memory`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.base import ToolNames
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import Call, HarnessRule, Hit
from langchain_loopguard.core.rules.harnesses.keys import fingerprint
from langchain_loopguard.core.rules.harnesses.memory import Memory
from langchain_loopguard.core.rules.harnesses.wordings import Kind

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.rules.base import Rule

_CALLS = 64
_TOOLS = 48


class Hermes(ForeignRule):
    """The published numbers."""

    title: ClassVar[str] = "hermes tool-loop-guard"

    rule: Literal["hermes"] = "hermes"

    warnings_enabled: bool = True
    """Whether the model is told."""

    hard_stop_enabled: bool = False
    """Whether calls are held back and runs ended."""

    exact_warn_after: int = Field(default=2, ge=1)
    """Failures of one call; the model is told at each from here on."""

    exact_block_after: int = Field(default=5, ge=1)
    """Failures of one call; the next one is held back."""

    tool_warn_after: int = Field(default=3, ge=1)
    """Failures of one tool; the model is told at each from here on."""

    tool_halt_after: int = Field(default=8, ge=1)
    """Failures of one tool; the run ends at its next call."""

    noprog_warn_after: int = Field(default=2, ge=1)
    """Repeats of a read-only call's answer; the model is told at each from here on."""

    noprog_block_after: int = Field(default=5, ge=1)
    """Repeats of a read-only call's answer; the next such call is held back."""

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

    def build(self) -> Rule:
        """Make fresh counters."""
        return _HermesRule(self)


class _HermesRule(HarnessRule):
    def __init__(self, config: Hermes) -> None:
        super().__init__(config)
        self._config = config
        self._calls = Memory(_CALLS, 2)  # call: failures, first batch
        self._tools = Memory(_TOOLS, 2)  # tool: failures, first batch
        self._answers = Memory(_CALLS, 3)  # read-only call: answer, repeats, first batch

    def before(self, call: Call) -> Hit | None:
        config = self._config
        if not config.hard_stop_enabled:
            return None
        if (row := self._answers.get(call.key)) and row[1] >= config.noprog_block_after:
            return _same_answer(Action.ASK, call, row, config.noprog_block_after)
        if (row := self._calls.get(call.key)) and row[0] >= config.exact_block_after:
            return _same_call(Action.ASK, call, row, config.exact_block_after)
        if (row := self._tools.get(call.tool)) and row[0] >= config.tool_halt_after:
            return _same_tool(Action.STOP, call, row, config.tool_halt_after)
        return None

    def after(self, call: Call, answer: Answer | None) -> Hit | None:
        if answer is None:
            return None
        if answer.error:
            return self._failed(call)
        if call.name in self._config.idempotent_tools:
            return self._read(call, fingerprint(answer.digest))
        return None

    def _failed(self, call: Call) -> Hit | None:
        config = self._config
        exact = _one_more(self._calls, call.key, call.number)
        tool = _one_more(self._tools, call.tool, call.number)
        if not config.warnings_enabled:
            return None
        if exact[0] >= config.exact_warn_after:
            return _same_call(Action.WARN, call, exact, config.exact_warn_after)
        if tool[0] >= config.tool_warn_after:
            return _same_tool(Action.WARN, call, tool, config.tool_warn_after)
        return None

    def _read(self, call: Call, said: int) -> Hit | None:
        config = self._config
        row = self._answers.get(call.key)
        if row is None or row[0] != said:
            self._answers.put(call.key, [said, 0, call.number])
            return None
        row = [said, row[1] + 1, row[2]]
        self._answers.put(call.key, row)
        if config.hard_stop_enabled and row[1] >= config.noprog_block_after:
            return _same_answer(Action.ASK, call, row, config.noprog_block_after)
        if config.warnings_enabled and row[1] >= config.noprog_warn_after:
            return _same_answer(Action.WARN, call, row, config.noprog_warn_after)
        return None

    def clear(self) -> None:
        for memory in (self._calls, self._tools, self._answers):
            memory.clear()

    def forget(self, loop: str) -> None:
        memory = {"c": self._calls, "t": self._tools, "a": self._answers}[loop[0]]
        memory.drop(int(loop[1:]))

    def counters(self) -> list[str]:
        return [memory.to_state() for memory in (self._calls, self._tools, self._answers)]

    def load_counters(self, counters: Any) -> None:
        calls, tools, answers = counters
        self._calls.load_state(calls)
        self._tools.load_state(tools)
        self._answers.load_state(answers)


def _one_more(memory: Memory, key: int, number: int) -> list[int]:
    row = memory.get(key)
    row = [1, number] if row is None else [row[0] + 1, row[1]]
    memory.put(key, row)
    return row


def _same_call(action: Action, call: Call, row: list[int], threshold: int) -> Hit:
    count, since = row
    loop = f"c{call.key}"
    return Hit(action, Kind.SAME_FAILURE, count, threshold, since, loop, (call.name,))


def _same_tool(action: Action, call: Call, row: list[int], threshold: int) -> Hit:
    count, since = row
    loop = f"t{call.tool}"
    return Hit(action, Kind.TOOL_FAILURE, count, threshold, since, loop, (call.name,))


def _same_answer(action: Action, call: Call, row: list[int], threshold: int) -> Hit:
    _, repeats, since = row
    loop = f"a{call.key}"
    return Hit(
        action, Kind.SAME_ANSWER, repeats + 1, threshold + 1, since, loop, tools=(call.name,)
    )
