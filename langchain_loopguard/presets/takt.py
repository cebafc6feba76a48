"""takt's guards on an attempt: what an agent's calls came to, and three chances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.base import ToolNames
from langchain_loopguard.presets.error_texts import says_bad_arguments, says_no_such_tool
from langchain_loopguard.presets.frame import ANY_TOOL, Count, Hit, Made, PresetConfig, PresetRule
from langchain_loopguard.presets.parts import Memory, Seen, Streak, Window, fingerprint
from langchain_loopguard.presets.wordings import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard.core.results import Result

_KEYS = 32
_RECENT = 100
"""Outcomes that are kept, the most that the rule may ask for."""


class Trouble(NamedTuple):
    """A count that is too high; `of` is the call or tool that it is about, if it is about one."""

    kind: Kind
    times: int
    threshold: int
    since: int
    of: str = ""


class _Takt(PresetRule["Takt"]):
    def __init__(self, config: Takt) -> None:
        self.equal, self.failing, self.missing = Streak(), Streak(), Streak()
        self.refused, self.without_success = Streak(), Streak()
        self.outcomes, self.edits = Window(_RECENT, width=1), Memory(_KEYS)
        self.attempt = (
            *(self.equal, self.failing, self.missing, self.refused, self.without_success),
            *(self.outcomes, self.edits),
        )
        self.corrected, self.restarts = Memory(_KEYS, width=0), Streak()
        super().__init__(config, *self.attempt, self.corrected, self.restarts)

    def judge_results(self, calls: Sequence[Made], results: Sequence[Result | None]) -> Hit | None:
        number = calls[0].number
        steps = self.without_success.next(0, number)
        found: Trouble | None = None
        for call, result in zip(calls, results, strict=True):
            if result is not None:
                self._take(call, result)
                found = self._trouble(call, result) or found
        limit = self.config.steps_without_success
        if found is None and steps >= limit and self.without_success.count:
            found = Trouble(Kind.NO_SUCCESS, steps, limit, self.without_success.since)
        return None if found is None else self._escalate(found, number)

    def _take(self, call: Made, result: Result) -> None:
        self.equal.next(fingerprint(call.key, result.failed, result.digest), call.number)
        self.outcomes.seen.append(Seen(int(result.failed)))
        if not result.failed:
            for part in (self.failing, self.missing, self.refused, self.without_success):
                part.clear()
            self.edits.clear()
            return
        self.failing.next(0, call.number)
        if says_no_such_tool(result):
            self.missing.next(0, call.number)
        else:
            self.missing.clear()
        if says_bad_arguments(result):
            self.refused.next(call.tool, call.number)
        else:
            self.refused.clear()
        if call.name.lower() in self.config.edit_tools:
            self.edits.add(call.key, call.number)

    def _trouble(self, call: Made, result: Result) -> Trouble | None:
        config, since = self.config, self.failing.since
        if (count := self.equal.count) >= config.equal_tuples:
            begun, of = self.equal.since, str(call.key)
            return Trouble(Kind.SAME_RESULT, count, config.equal_tuples, begun, of)
        if not result.failed:
            return None
        last = self.outcomes.last(config.recent)
        failed = sum(seen.key for seen in last) if len(last) == config.recent else 0
        least = -(-config.recent * config.recent_percent // 100)
        tool, key = str(call.tool), str(call.key)
        counts = (
            (Kind.NO_SUCH_TOOL, self.missing.count, config.missing_tools, tool),
            (Kind.BAD_ARGUMENTS, self.refused.count, config.bad_arguments, tool),
            (Kind.SAME_FAILURE, self.edits.get(call.key).times, config.failed_edits, key),
            (Kind.FAILURES, self.failing.count, config.failures, ""),
            (Kind.FAILURES, failed, least, ""),
        )
        for kind, count, limit, of in counts:
            if count >= limit:
                return Trouble(kind, count, limit, since, of)
        return None

    def _escalate(self, found: Trouble, number: int) -> Hit:
        loop = f"{found.kind.name}{found.of}"
        trouble = fingerprint(loop)
        known = self.corrected.get(trouble).times > 0
        if not known:
            self.corrected.add(trouble, number)
            action = Action.WARN
        elif self.restarts.count < self.config.restarts:
            self.restarts.next(0, number)
            action = Action.ASK
        else:
            action = Action.STOP
        for part in self.attempt:
            part.clear()
        return Hit(action, *found[:4], loop, hold=ANY_TOOL)


class Takt(PresetConfig):
    """takt: numbers for one attempt, and how many chances there are."""

    title = "takt"
    counts = _Takt
    rule: Literal["takt"] = "takt"
    equal_tuples: Annotated[int, Field(ge=2)] = 12
    """Calls in a row that are equal in tool, outcome, input and result."""
    missing_tools: Count = 2
    """Failures in a row of tools that don't exist."""
    bad_arguments: Count = 4
    """Failures in a row of one tool for its arguments."""
    failed_edits: Count = 3
    """Failures of one edit."""
    failures: Count = 10
    """Failures in a row."""
    recent: Annotated[int, Field(ge=1, le=100)] = 20
    """Calls of which a share may fail."""
    recent_percent: Annotated[int, Field(ge=1, le=100)] = 90
    """That share, judged at a failure once so many calls are known."""
    steps_without_success: Count = 120
    """Steps in a row without a call that worked."""
    restarts: Annotated[int, Field(ge=0)] = 1
    """How often an attempt may be started again."""
    edit_tools: ToolNames = (
        "apply_patch",
        "edit",
        "edit_file",
        "multi_edit",
        "patch",
        "replace",
        "str_replace",
    )
    """Whole names, in lower case, of tools that edit a text in its place."""
