"""OpenClaw's `tool-loop-detection`: the last 30 calls of a run, judged before the next one.

The same call ten times in the window is a warning, whatever the answers were. The same call with
equal answers twenty times, the other calls between skipped, is held back, and thirty times ends
the run; so the answer gates only the block. Two calls in turn are a warning at ten calls, the
present one included, and held back at twenty when each of the two always answered the same. A
tool that did not exist ten times running is held back. The original is off by default.

A window of 30 cannot hold twenty of one call in a cycle of two or more, so a rotation is warned
of and never held back.

Readings: a run is what one user message starts, so a user message empties the window. Warnings
are given at every call from their number on; the original shows some of them less often.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from langchain_loopguard.core import stored
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.cycles import repeating_tail
from langchain_loopguard.core.rules.harnesses.error_texts import says_no_such_tool
from langchain_loopguard.core.rules.harnesses.frame import (
    Call,
    HarnessRule,
    Hit,
    stronger,
)
from langchain_loopguard.core.rules.harnesses.keys import fingerprint, set_key
from langchain_loopguard.core.rules.harnesses.ladder import rung
from langchain_loopguard.core.rules.harnesses.wordings import Kind
from langchain_loopguard.core.tools import kept_name

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.rules.base import Rule

_UNKNOWN = -1
"""Stands for the answer of a call that has none."""


class OpenClaw(ForeignRule):
    """The window and its numbers."""

    title: ClassVar[str] = "OpenClaw"

    rising: ClassVar = (("warn_at", "block_at", "stop_at"),)

    rule: Literal["openclaw"] = "openclaw"

    window: int = Field(default=30, ge=2, le=50)
    """Calls that are remembered."""

    warn_at: int = Field(default=10, ge=1)
    """Earlier occurrences of the call in the window, or calls in turn; the model is told."""

    block_at: int = Field(default=20, ge=1)
    """Earlier occurrences with equal answers, or calls in turn that answer the same; the call is
    held back."""

    stop_at: int = Field(default=30, ge=1)
    """Earlier occurrences with equal answers; the run ends."""

    unknown_tool_at: int = Field(default=10, ge=1)
    """Calls in a row of one tool that did not exist; the next one is held back."""

    def build(self) -> Rule:
        """Make an empty window."""
        return _OpenClawRule(self)


_LONGEST = 50
"""Calls in a stored window, which is the largest that is allowed."""


class _Seen(NamedTuple):
    key: int
    tool: int
    number: int
    name: str
    answer: int = _UNKNOWN
    missing: bool = False


class _OpenClawRule(HarnessRule):
    def __init__(self, config: OpenClaw) -> None:
        super().__init__(config)
        self._config = config
        self._seen: deque[_Seen] = deque(maxlen=config.window)

    def before(self, call: Call) -> Hit | None:
        hit = stronger(self._repeats(call), self._equal_answers(call))
        hit = stronger(stronger(hit, self._in_turn(call)), self._missing_tool(call))
        self._seen.append(_Seen(call.key, call.tool, call.number, kept_name(call.name)))
        return hit

    def after(self, call: Call, answer: Answer | None) -> Hit | None:
        if answer is None:
            return None
        for place in reversed(range(len(self._seen))):
            seen = self._seen[place]
            if seen.key == call.key and seen.answer == _UNKNOWN:
                said, missing = fingerprint(answer.digest), says_no_such_tool(answer)
                self._seen[place] = seen._replace(answer=said, missing=missing)
                break
        return None

    def _repeats(self, call: Call) -> Hit | None:
        same = [seen for seen in self._seen if seen.key == call.key]
        warn_at = self._config.warn_at
        if len(same) < warn_at:
            return None
        return _hit(Action.WARN, Kind.SAME_CALL_AGAIN, len(same), warn_at, same, call)

    def _equal_answers(self, call: Call) -> Hit | None:
        known = [s for s in self._seen if s.key == call.key and s.answer != _UNKNOWN]
        count = repeating_tail([seen.answer for seen in known], 1)
        found = rung(count, ask_at=self._config.block_at, stop_at=self._config.stop_at)
        if found is None:
            return None
        return _hit(found[0], Kind.SAME_ANSWER, count, found[1], known[-count:], call)

    def _in_turn(self, call: Call) -> Hit | None:
        keys = [*(seen.key for seen in self._seen), call.key]
        count = repeating_tail(keys, 2)
        config = self._config
        if count < config.warn_at or keys[-1] == keys[-2]:
            return None
        tail = list(self._seen)[1 - count :]
        answers = {(seen.key, seen.answer) for seen in tail}
        stuck = len(answers) == len({key for key, _ in answers})
        known = all(seen.answer != _UNKNOWN for seen in tail)
        if count >= config.block_at and stuck and known:
            return _hit(Action.ASK, Kind.IN_TURN, count, config.block_at, tail, call)
        return _hit(Action.WARN, Kind.IN_TURN, count, config.warn_at, tail, call)

    def _missing_tool(self, call: Call) -> Hit | None:
        count = 0
        for seen in reversed(self._seen):
            if seen.tool != call.tool or not seen.missing:
                break
            count += 1
        limit = self._config.unknown_tool_at
        if count < limit:
            return None
        return _hit(Action.ASK, Kind.NO_SUCH_TOOL, count, limit, list(self._seen)[-count:], call)

    def clear(self) -> None:
        self._seen.clear()

    def counters(self) -> list[list[Any]]:
        return [list(seen) for seen in self._seen]

    def load_counters(self, counters: Any) -> None:
        number = stored.number
        rows = stored.each(
            counters, _LONGEST, number, number, stored.count, stored.text, number, stored.flag
        )
        self._seen = deque((_Seen(*row) for row in rows), maxlen=self._seen.maxlen)


def _hit(
    action: Action, kind: Kind, count: int, threshold: int, of: list[_Seen], call: Call
) -> Hit:
    if kind is Kind.NO_SUCH_TOOL:
        loop = f"tool{call.tool}"
    else:
        loop = str(set_key([call.key, *(seen.key for seen in of)]))
    tools = tuple(dict.fromkeys([*(seen.name for seen in of), call.name]))
    return Hit(action, kind, count, threshold, of[0].number, loop, tools=tools)
