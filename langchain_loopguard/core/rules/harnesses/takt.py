"""takt's guards on an attempt: what an agent's calls came to, and three chances.

Judged after each answer, by tool, outcome and hashes of input and result: twelve equal tuples in a
row; two failures in a row of tools that don't exist; four in a row of one tool for its arguments;
the same edit failed three times; ten failures in a row or 18 of the last 20; 120 steps without a
call that worked. Any success clears what counts failures, but for the last 20.

The first time a kind of trouble shows, the agent is corrected; when that was done for it already,
the attempt is started again, once; after that the run fails. Each of these begins a new attempt
with nothing counted.

Readings: correcting is a warning, starting again an ask (the run can't go on as it is and somebody
has to decide), failing a stop. A user message begins a new attempt with all three chances. The
"budget of 120 cycles" counts steps since the last success, as the project's own code does: by
steps alone the incident of 200 calls would exceed it. Two edits are the same when their whole
arguments are. Steps with unknown answers count for the budget only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core import stored
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.base import ToolNames
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import (
    ANY_TOOL,
    Call,
    HarnessRule,
    Hit,
    calls_of,
)
from langchain_loopguard.core.rules.harnesses.keys import fingerprint
from langchain_loopguard.core.rules.harnesses.memory import Memory
from langchain_loopguard.core.rules.harnesses.takt_attempt import Attempt, Trouble
from langchain_loopguard.core.rules.harnesses.wordings import Kind

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.batch import Batch, Outcome
    from langchain_loopguard.core.decision import Finding
    from langchain_loopguard.core.rules.base import Rule

_KEYS = 32


class Takt(ForeignRule):
    """Numbers for one attempt, and how many chances there are."""

    title: ClassVar[str] = "takt"

    rule: Literal["takt"] = "takt"

    equal_tuples: int = Field(default=12, ge=2)
    """Calls in a row that are equal in tool, outcome, input and result."""

    missing_tools: int = Field(default=2, ge=1)
    """Failures in a row of tools that don't exist."""

    bad_arguments: int = Field(default=4, ge=1)
    """Failures in a row of one tool for its arguments."""

    failed_edits: int = Field(default=3, ge=1)
    """Failures of one edit."""

    failures: int = Field(default=10, ge=1)
    """Failures in a row."""

    recent: int = Field(default=20, ge=1, le=100)
    """Calls of which a share may fail."""

    recent_percent: int = Field(default=90, ge=1, le=100)
    """That share, judged at a failure once so many calls are known."""

    steps_without_success: int = Field(default=120, ge=1)
    """Steps in a row without a call that worked."""

    restarts: int = Field(default=1, ge=0)
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

    def build(self) -> Rule:
        """Make a fresh attempt."""
        return _TaktRule(self)


class _TaktRule(HarnessRule):
    def __init__(self, config: Takt) -> None:
        super().__init__(config)
        self._config = config
        self._attempt = Attempt()
        self._corrected = Memory(_KEYS, 0)  # troubles that were corrected
        self._restarts = 0

    def record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        config, attempt = self._config, self._attempt
        attempt.steps += 1
        found: Trouble | None = None
        for call, answer in zip(calls_of(batch), outcome.results, strict=True):
            if answer is not None:
                attempt.take(call, answer, is_edit=call.name.lower() in config.edit_tools)
                found = self._judge(call, answer) or found
        limit = config.steps_without_success
        if found is None and attempt.steps >= limit:
            since = batch.number - attempt.steps + 1
            found = Trouble(Kind.NO_SUCCESS, attempt.steps, limit, since)
        return self.hold(None if found is None else self._escalate(found, batch), batch)

    def _judge(self, call: Call, answer: Answer) -> Trouble | None:
        config, now = self._config, self._attempt
        if now.equal >= config.equal_tuples:
            return Trouble(
                Kind.SAME_ANSWER, now.equal, config.equal_tuples, now.equal_since, str(call.key)
            )
        if not answer.error:
            return None
        since, tool = now.failing_since, str(call.tool)
        if now.missing >= config.missing_tools:
            return Trouble(Kind.NO_SUCH_TOOL, now.missing, config.missing_tools, since, tool)
        if now.refused >= config.bad_arguments:
            return Trouble(Kind.BAD_ARGUMENTS, now.refused, config.bad_arguments, since, tool)
        if (edits := now.failed_edits(call)) >= config.failed_edits:
            return Trouble(Kind.SAME_FAILURE, edits, config.failed_edits, since, str(call.key))
        if now.failures >= config.failures:
            return Trouble(Kind.FAILURES, now.failures, config.failures, since)
        failed = now.failed_of_the_last(config.recent)
        least = -(-config.recent * config.recent_percent // 100)
        return Trouble(Kind.FAILURES, failed, least, since) if failed >= least else None

    def _escalate(self, found: Trouble, batch: Batch) -> Hit:
        loop = f"{found.kind}{found.of}"
        trouble = fingerprint(loop)
        if self._corrected.get(trouble) is None:
            self._corrected.put(trouble, [])
            action = Action.WARN
        elif self._restarts < self._config.restarts:
            self._restarts += 1
            action = Action.ASK
        else:
            action = Action.STOP
        self._attempt = Attempt()
        return Hit(
            action,
            found.kind,
            found.number,
            found.threshold,
            found.since,
            loop,
            tools=tuple(dict.fromkeys(batch.names)),
            hold=ANY_TOOL,
        )

    def clear(self) -> None:
        self._attempt = Attempt()
        self._corrected.clear()
        self._restarts = 0

    def counters(self) -> list[Any]:
        return [self._restarts, self._corrected.to_state(), self._attempt.to_state()]

    def load_counters(self, counters: Any) -> None:
        restarts, corrected, attempt = stored.entries(counters, 3)
        self._restarts = stored.count(restarts)
        self._corrected.load_state(corrected)
        self._attempt.load_state(attempt)
