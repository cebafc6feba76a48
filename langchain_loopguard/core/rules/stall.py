"""*stall*: step after step brought nothing, whatever the calls were.

Finds cycles of any length and any wording, since it does not look at the calls. Steps that may
have done something (`Progress.OPEN`) neither count nor clear. The first look after a change is
free: who edits and tests has the same test fail many times. Not seen: a loop in which every round
says something new, be it a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from xxhash import xxh3_64_hexdigest

from langchain_loopguard.core import state
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.evidence import Progress
from langchain_loopguard.core.rules.base import Ask, OwnRule, RuleConfig, Warn, kept_names

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Finding
    from langchain_loopguard.core.evidence import StepEvidence
    from langchain_loopguard.core.step import Step

_TOOLS = 8


class Stall(RuleConfig):
    """The numbers of *stall*."""

    reads_evidence: ClassVar[bool] = True
    rising: ClassVar = (("warn", "ask", "ask_after_change"),)

    rule: Literal["stall"] = "stall"

    warn: Warn = 5
    """The model is warned. Measured: 4 warns more solved runs, see the README."""

    ask: Ask = 8
    """The loop is detected."""

    ask_after_change: Ask = 12
    """The same when a tool did something for the first time in between. Measured: 8 finds a few
    loops more and stops a form that is filled in for one record after another."""

    def build(self) -> OwnRule:
        """Make a fresh counter."""
        return _Stall(self)


class _Stall(OwnRule):
    _config: Stall
    name = "stall"
    advice = (
        "The last steps showed nothing that you had not seen before. Decide with what you know, "
        "look somewhere else, or say what is missing and finish."
    )
    fact = "{count} steps in a row, with {tools}, brought nothing new"

    def clear(self) -> None:
        self._count = self._since = 0
        self._changed = self._free = False
        self._tools: list[str] = []

    def check(self, step: Step) -> Finding | None:
        if step.waits or self._count < self._limit:
            return None
        if not set(kept_names(step.tools)) <= set(self._tools):
            return None
        return self._found(Action.ASK)

    def record(self, step: Step, evidence: StepEvidence | None) -> Finding | None:
        if evidence is None:
            return None
        if evidence.progress is Progress.NEW:
            self.clear()
        elif evidence.changed_by:
            self._free = True
            self._changed = self._count > 0
        elif evidence.progress is Progress.NONE:
            if self._free:
                self._free = False
                return None
            self._count += 1
            self._since = self._since or step.number
            self._tools = list(dict.fromkeys([*kept_names(step.tools), *self._tools]))[:_TOOLS]
            if evidence.waits:
                return None
            if self._count >= self._limit:
                return self._found(Action.ASK)
            if self._count >= self._config.warn:
                return self._found(Action.WARN)
        return None

    @property
    def _limit(self) -> int:
        return self._config.ask_after_change if self._changed else self._config.ask

    def _found(self, action: Action) -> Finding:
        return self.found(
            action,
            tools=self._tools,
            count=self._count,
            threshold=self._limit if action is Action.ASK else self._config.warn,
            since=self._since,
            loop=xxh3_64_hexdigest("|".join(sorted(self._tools)).encode()),
        )

    def to_state(self) -> Any:
        return [self._count, self._since, self._changed, self._free, self._tools]

    def load_state(self, stored: Any) -> None:
        count, since, changed, free, tools = state.entries(stored, 5)
        self._count, self._since = state.count(count), state.count(since)
        self._changed, self._free = state.flag(changed), state.flag(free)
        self._tools = [state.text(name) for name in state.entries(tools, _TOOLS)]
