"""*cycle*: the same few steps in turn, whatever they answer.

Two to eight equal steps, six rounds. A cycle in which more than a third of the steps say
something new in words is work: results that are paged through, a form for one record after
another. New numbers are no excuse: a screen that differs each time, a file that grows. A cycle
that waits is left to *repeat*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core import state
from langchain_loopguard.core.rules.base import Ask, OwnRule, RuleConfig, kept_names

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Finding
    from langchain_loopguard.core.evidence import StepEvidence
    from langchain_loopguard.core.step import Step

_LONGEST = 8
_NEWS_ONE_IN = 3
_TOOLS = 3
"""Names kept of a step's tools."""


class Cycle(RuleConfig):
    """The numbers of *cycle*."""

    reads_evidence: ClassVar[bool] = True

    rule: Literal["cycle"] = "cycle"

    rounds: Ask = 6
    """Equal rounds in a row. Measured: 5 stops two more of 112 pieces of good work, 6 to 8 are
    equal. Without the rule one labelled loop of 122 and one public report are missed."""

    longest: int = Field(default=_LONGEST, ge=2, le=_LONGEST)
    """Steps of the longest cycle that is looked for."""

    def build(self) -> OwnRule:
        """Make fresh counters."""
        return _Cycle(self)


class _Cycle(OwnRule):
    _config: Cycle
    name = "cycle"
    advice = (
        "The last steps go round in a circle. Use what they have shown, do something that you "
        "have not done before, or say what is missing and finish."
    )
    fact = "The agent went through the same steps with {tools} {count} times"

    def clear(self) -> None:
        # The last steps, newest last: identity and tools.
        self._last: list[tuple[int, list[str]]] = []
        # Period -> for how many steps each was the one a period before it, how many of these
        # said something new in words.
        self._equal: dict[int, list[int]] = {}

    def check(self, step: Step) -> Finding | None:
        last = self._last
        last.append((step.identity, kept_names(step.tools)[:_TOOLS]))
        found: Finding | None = None
        before, self._equal = self._equal, {}
        for period, (identity, _) in enumerate(last[-3 : -2 - self._config.longest : -1], 2):
            if identity != step.identity:
                continue
            equal = self._equal[period] = before.get(period, [0, 0])
            equal[0] += 1
            rounds = 1 + equal[0] // period
            if rounds < self._config.rounds or step.waits or found is not None:
                continue
            if equal[1] * _NEWS_ONE_IN > equal[0]:
                continue
            cycle = last[-period:]
            if len({identity for identity, _ in cycle}) > 1:
                found = self.judge(
                    rounds,
                    None,
                    self._config.rounds,
                    tools=[tool for _, tools in cycle for tool in tools],
                    since=max(1, step.number - equal[0] - period + 1),
                    loop=f"{sum(identity for identity, _ in cycle) & 0xFFFFFFFFFFFFFFFF:x}",
                )
        del last[: -_LONGEST - 1]
        return found

    def record(self, step: Step, evidence: StepEvidence | None) -> Finding | None:  # noqa: ARG002
        if evidence is not None and evidence.in_words:
            for equal in self._equal.values():
                equal[1] += 1
        return None

    def to_state(self) -> Any:
        # Copies: a host may write the state down later, when the next steps have been counted.
        last = [[f"{identity:x}", tools] for identity, tools in self._last]
        return [last, [[*self._equal.get(period, (0, 0))] for period in range(_LONGEST + 1)]]

    def load_state(self, stored: Any) -> None:
        last, equal = state.entries(stored, 2)
        self._last = [
            (identity, tools)
            for identity, tools in state.each(
                last,
                _LONGEST + 1,
                state.digest,
                lambda names: [state.text(name) for name in state.entries(names, _TOOLS)],
            )
        ]
        rows = state.each(equal, _LONGEST + 1, state.count, state.count)
        if len(rows) != _LONGEST + 1:
            raise ValueError("a row for each period is missing")
        self._equal = {period: row for period, row in enumerate(rows) if row[0]}
