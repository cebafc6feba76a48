"""*in vain*: one tool gives one short, known result under different arguments each time.

A search that finds nothing in any wording, a guess that is wrong each time. A harmless receipt
looks the same: thirty expenses logged are thirty times `Logged.` Two signs tell them apart. A
tool that only reads gives no receipts. And who gets receipts does not make a call again that had
one already, while who guesses does. Without either sign the rule only warns.

A success that says something new clears, and so does a change by another tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from xxhash import xxh3_64_intdigest

from langchain_loopguard.core import state
from langchain_loopguard.core.evidence import Said
from langchain_loopguard.core.rules.base import Ask, OwnRule, RuleConfig, Warn, kept_names

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Finding
    from langchain_loopguard.core.evidence import StepEvidence
    from langchain_loopguard.core.step import Call, Step

_RESULTS = 8
_NEVER = 2**40


class InVain(RuleConfig):
    """The numbers of *in vain*."""

    reads_evidence: ClassVar[bool] = True
    rising: ClassVar = (("ask_again", "warn", "ask"),)

    rule: Literal["in_vain"] = "in_vain"

    ask_again: Ask = 8
    """The loop is detected if some of the calls were made before, with this very result. Without
    this sign most labelled loops of guesses are missed."""

    repeats: Ask = 2
    """So many of the calls. Measured: 3 finds as many loops."""

    warn: Warn = 10
    """The model is warned otherwise."""

    ask: Ask = 15
    """The loop is detected if the tool only reads."""

    def build(self) -> OwnRule:
        """Make fresh counters."""
        return _InVain(self)


class _InVain(OwnRule):
    _config: InVain
    name = "in_vain"
    advice = (
        "This tool gives the same short result whatever it is asked. Find out what it needs, try "
        "a different approach, or say what is missing and finish."
    )
    fact = "{tools} gave the same short result {count} times, for different arguments"

    def clear(self) -> None:
        # Tool and result -> how often, how often for a call made before, since when, at which
        # count a person is asked, the tool.
        self._counts: dict[int, list[Any]] = {}

    def check(self, step: Step) -> Finding | None:
        for call in () if step.waits else step.calls:
            for key, counted in self._counts.items():
                count, _, _, limit, tool = counted
                if count >= limit and [tool] == kept_names([call.name]):
                    return self._judge(key, counted, warn=None)
        return None

    def record(self, step: Step, evidence: StepEvidence | None) -> Finding | None:
        if evidence is None:
            return None
        if evidence.tells:
            self.clear()
        elif evidence.changed_by and self._counts:
            only = kept_names(list(evidence.changed_by)) if len(evidence.changed_by) == 1 else None
            self._counts = {
                k: counted for k, counted in self._counts.items() if [counted[4]] == only
            }
        found: Finding | None = None
        for brought in evidence.calls:
            if not brought.is_receipt:
                continue
            name = brought.call.name
            key = (xxh3_64_intdigest(name.encode()) ^ (brought.form or 0)) & 0xFFFFFFFF
            fresh = [0, 0, step.number, _NEVER, kept_names([name])[0]]
            counted = self._counts.pop(key, fresh)
            counted[0] += 1
            counted[1] += brought.said is Said.AGAIN
            counted[3] = self._limit(brought.call, counted[1])
            self._counts[key] = counted
            if not evidence.waits:
                found = self._judge(key, counted, self._config.warn) or found
        state.keep_latest(self._counts, _RESULTS)
        return found

    def _limit(self, call: Call, repeats: int) -> int:
        if repeats >= self._config.repeats and not call.kind.shell:
            return self._config.ask_again
        return self._config.ask if call.kind.read_only else _NEVER

    def _judge(self, key: int, counted: list[Any], warn: int | None) -> Finding | None:
        count, _, since, limit, tool = counted
        return self.judge(count, warn, limit, tools=(tool,), since=since, loop=key)

    def to_state(self) -> Any:
        return [[key, *counted] for key, counted in self._counts.items()]

    def load_state(self, stored: Any) -> None:
        rows = state.each(
            stored,
            _RESULTS,
            state.count,
            state.count,
            state.count,
            state.count,
            state.count,
            state.text,
        )
        self._counts = {key: counted for key, *counted in rows}
