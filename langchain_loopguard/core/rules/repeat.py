"""*repeat*: the same call had the same result, again and again.

The strongest sign of a loop, at any distance, as long as nothing happened in between that makes
it worth asking again: a success that said something new, or a change. News that another tool only
read does not excuse a repeated command or change, it makes the rule slower.

Calls are counted, not steps: equal calls of one step are as many. Not seen: a call whose result
differs each time (*ceiling*), a call whose arguments differ each time (*stall*, *in_vain*).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from langchain_loopguard.core import state
from langchain_loopguard.core.evidence import Progress, Said
from langchain_loopguard.core.rules.base import Ask, OwnRule, RuleConfig, Warn

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Finding
    from langchain_loopguard.core.evidence import StepEvidence
    from langchain_loopguard.core.step import Call, Step

_CALLS = 16
"""Calls counted at once, the oldest out first, up to twice as many; longer cycles are found by
*stall*."""


class Repeat(RuleConfig):
    """The numbers of *repeat*. Counts include the first occurrence."""

    reads_evidence: ClassVar[bool] = True
    rising: ClassVar = (("warn", "ask", "ask_across", "patience"),)

    rule: Literal["repeat"] = "repeat"

    warn: Warn = 4
    """The model is warned. Measured: 3 warns more solved runs, see the README."""

    ask: Ask = 5
    """The loop is detected. Measured on the first corpus: good runs go up to 4."""

    ask_across: Ask = 12
    """The same when other tools read news in between. It decides no labelled run; a command that
    fails for ever while the agent reads one new file after another is the case."""

    patience: Ask = 20
    """The same where the agent waits. A reported poll of 1,535 calls cost 150 dollars, so waiting
    has a limit too. Measured: 5 stops 5 of 62 pieces of good work of public reports."""

    def build(self) -> OwnRule:
        """Make fresh counters."""
        return _Repeat(self)


@dataclass(slots=True)
class _Count:
    form: int | None
    count: int
    since: int
    reads: bool
    across: bool = False
    limit: int = 0


class _Repeat(OwnRule):
    _config: Repeat
    name = "repeat"
    advice = (
        "The same call has had the same result several times, and asking again will not change "
        "it. Use what you already know, try a different approach, or say what is missing and "
        "finish."
    )
    fact = "The same call of {tools} had the same result {count} times"

    def clear(self) -> None:
        self._counts: dict[int, _Count] = {}

    def check(self, step: Step) -> Finding | None:
        for call in step.calls:
            counted = self._counts.get(call.identity)
            if counted is not None and counted.count >= counted.limit:
                return self._judge(call, counted, warn=None)
        return None

    def record(self, step: Step, evidence: StepEvidence | None) -> Finding | None:
        if evidence is None:
            return None
        if evidence.made_progress:
            self._forgive(step, evidence)
        strongest: Finding | None = None
        for brought in evidence.calls:
            call = brought.call
            counted = self._counts.pop(call.identity, None)
            if counted is None or counted.form != brought.form:
                counted = _Count(brought.form, 1, step.number, call.kind.read_only)
            elif evidence.progress is Progress.NEW or evidence.changed_by - {call.name}:
                counted.count, counted.since = 1, step.number
            else:
                counted.count += 1
            self._counts[call.identity] = counted
            counted.across = counted.across or brought.said is Said.MOVED
            counted.limit = self._limit(call, counted, waits=evidence.waits)
            found = self._judge(call, counted, None if evidence.waits else self._config.warn)
            if found is not None and (strongest is None or found.action > strongest.action):
                strongest = found
        if len(self._counts) > 2 * _CALLS:
            state.keep_latest(self._counts, _CALLS)
        return strongest

    def _forgive(self, step: Step, evidence: StepEvidence) -> None:
        """Drop the counts of other calls, or mark them when the news was only read."""
        own = {call.identity for call in step.calls}
        for identity, counted in list(self._counts.items()):
            if identity in own:
                continue
            if evidence.changed_by or counted.reads:
                del self._counts[identity]
            else:
                counted.across = True

    def _limit(self, call: Call, counted: _Count, *, waits: bool) -> int:
        if call.kind.limit is not None:
            return call.kind.limit
        if waits:
            return self._config.patience
        return self._config.ask_across if counted.across else self._config.ask

    def _judge(self, call: Call, counted: _Count, warn: int | None) -> Finding | None:
        return self.judge(
            counted.count,
            warn,
            counted.limit,
            tools=(call.name,),
            since=counted.since,
            loop=f"{call.identity:x}",
        )

    def to_state(self) -> Any:
        return [
            [f"{key:x}", one.form, one.count, one.since, one.reads, one.across, one.limit]
            for key, one in self._counts.items()
        ]

    def load_state(self, stored: Any) -> None:
        rows = state.each(
            stored,
            2 * _CALLS,
            state.digest,
            lambda form: None if form is None else state.count(form),
            state.count,
            state.count,
            state.flag,
            state.flag,
            state.count,
        )
        self._counts = {key: _Count(*counted) for key, *counted in rows}
