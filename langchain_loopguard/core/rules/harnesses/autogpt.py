"""AutoGPT's platform: a call that keeps failing, and messages without arguments.

Known by tool and sorted JSON arguments. Three failures of one call and the fourth is refused.
Other calls between don't reset the count; any success of the same tool does. Five messages in a
row with a call that has no arguments end the run. A user message resets nothing.

Readings: "empty calls" are counted by message and in a row, so a message without one starts
afresh, and a tool that takes no arguments counts as well, since the original doesn't look at what
a tool takes. The original keeps every call that failed; here 96 are kept (see `memory`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core import stored
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import (
    Call,
    HarnessRule,
    Hit,
    calls_of,
    stronger,
)
from langchain_loopguard.core.rules.harnesses.keys import is_empty
from langchain_loopguard.core.rules.harnesses.memory import Memory
from langchain_loopguard.core.rules.harnesses.wordings import Kind

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.batch import Batch
    from langchain_loopguard.core.decision import Finding
    from langchain_loopguard.core.rules.base import Rule

_KEYS = 96
_EMPTY = "empty"


class AutoGpt(ForeignRule):
    """Numbers for failing and for empty calls."""

    title: ClassVar[str] = "AutoGPT"

    rule: Literal["autogpt"] = "autogpt"

    failures: int = Field(default=3, ge=1)
    """Failures of one call; the next one is refused."""

    empty_messages: int = Field(default=5, ge=1)
    """Messages in a row that hold a call without arguments; the run ends."""

    def build(self) -> Rule:
        """Make fresh counters."""
        return _AutoGptRule(self)


class _AutoGptRule(HarnessRule):
    human_resets = False

    def __init__(self, config: AutoGpt) -> None:
        super().__init__(config)
        self._config = config
        self._failed = Memory(_KEYS, 3)  # call: tool, count, first batch
        self._empty = 0
        self._since = 0

    def check(self, batch: Batch) -> Finding | None:
        hit = self._empty_message(batch)
        for call in calls_of(batch):
            hit = stronger(hit, self.before(call))
        return self.finding(hit, batch, ran=False)

    def before(self, call: Call) -> Hit | None:
        row = self._failed.get(call.key)
        limit = self._config.failures
        if row is None or row[1] < limit:
            return None
        return Hit(
            Action.ASK,
            Kind.SAME_FAILURE,
            row[1],
            limit,
            row[2],
            str(call.key),
            tools=(call.name,),
        )

    def after(self, call: Call, answer: Answer | None) -> Hit | None:
        if answer is None:
            return None
        if answer.error:
            _, count, since = self._failed.get(call.key) or [call.tool, 0, call.number]
            self._failed.put(call.key, [call.tool, count + 1, since])
        else:
            self._failed.drop_where(lambda row: row[0] == call.tool)
        return None

    def _empty_message(self, batch: Batch) -> Hit | None:
        empty = tuple(
            name
            for name, arguments in zip(batch.names, batch.canonical, strict=True)
            if is_empty(arguments)
        )
        if not empty:
            self._empty = 0
            return None
        self._since = self._since if self._empty else batch.number
        self._empty += 1
        limit = self._config.empty_messages
        if self._empty < limit:
            return None
        return Hit(
            Action.STOP, Kind.NO_ARGUMENTS, self._empty, limit, self._since, _EMPTY, tools=empty
        )

    def forget(self, loop: str) -> None:
        if loop == _EMPTY:
            self._empty = self._since = 0
        else:
            self._failed.drop(int(loop))

    def counters(self) -> list[Any]:
        return [self._failed.to_state(), self._empty, self._since]

    def load_counters(self, counters: Any) -> None:
        failed, empty, since = stored.entries(counters, 3)
        self._failed.load_state(failed)
        self._empty, self._since = stored.count(empty), stored.count(since)
