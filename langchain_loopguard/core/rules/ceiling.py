"""*ceiling*: one step unbroken, or one call so often that its results no longer matter.

Two limits. An unbroken run of equal steps of a changing tool or a shell interrupts whatever
they answer: an insert whose result shows a file that grows is no progress. The last limit counts
equal calls of a turn, whatever stands between: it bounds random numbers in results and reminders
between steps. A tool may have a limit of its own, see `Policy.for_tool`; a declared poller has
none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from langchain_loopguard.core import state
from langchain_loopguard.core.rules.base import Ask, OwnRule, RuleConfig

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Finding
    from langchain_loopguard.core.evidence import StepEvidence
    from langchain_loopguard.core.step import Step

_RUNS = 8
_CALLS = 32
"""Steps and calls counted at once, the oldest out first; of calls up to twice as many."""


class Ceiling(RuleConfig):
    """The numbers of *ceiling*."""

    reads_evidence: ClassVar[bool] = True
    rising: ClassVar = (("changing", "shell", "total"),)

    rule: Literal["ceiling"] = "ceiling"

    changing: Ask = 10
    """Equal steps of changing tools in a row. Measured: 20 misses a labelled loop."""

    shell: Ask = 20
    """The same for shells. It decides one public report of an agent that asks for the time and one
    of a server that is started again and again."""

    total: Ask = 50
    """Equal calls in one turn, of any tool. It decides no labelled run; without it nothing bounds
    results that hold a random number."""

    def build(self) -> OwnRule:
        """Make fresh counters."""
        return _Ceiling(self)


class _Ceiling(OwnRule):
    _config: Ceiling
    name = "ceiling"
    advice = (
        "The same call was made as often as it may be. Check what it has achieved so far, do the "
        "rest in another way, or say what is missing and finish."
    )
    fact = "The agent made the same call of {tools} {count} times"

    def clear(self) -> None:
        # Step -> how often it came, since when; call -> how often.
        self._runs: dict[int, list[int]] = {}
        self._calls: dict[int, int] = {}
        self._limited: dict[int, int] = {}

    def check(self, step: Step) -> Finding | None:
        found, unbroken = None, None
        for call in step.calls:
            kind = call.kind
            if kind.changing and not kind.idempotent:
                unbroken = self._config.changing
            elif kind.shell:
                unbroken = unbroken or self._config.shell
            # Calls of tools with a limit of their own are not crowded out by others.
            calls = self._calls if kind.limit is None else self._limited
            count = calls[call.identity] = calls.pop(call.identity, 0) + 1
            limit = self._config.total if kind.limit is None and not kind.poller else kind.limit
            if limit is not None and count >= limit:
                found = self._judge((call.name,), count, limit, 0, call.identity)
        for calls in (self._calls, self._limited):
            if len(calls) > 2 * _CALLS:
                state.keep_latest(calls, _CALLS)
        if unbroken is not None:
            run = self._runs.setdefault(step.identity, [0, step.number])
            run[0] += 1
            if run[0] >= unbroken and not step.waits and found is None:
                found = self._judge(step.tools, run[0], unbroken, run[1], step.identity)
            state.keep_latest(self._runs, _RUNS)
        return found

    def record(self, step: Step, evidence: StepEvidence | None) -> Finding | None:
        if evidence is not None and evidence.made_progress:
            run = self._runs.get(step.identity)
            self._runs = {} if run is None else {step.identity: run}
        return None

    def _judge(
        self, tools: tuple[str, ...], count: int, limit: int, since: int, loop: int
    ) -> Finding | None:
        return self.judge(count, None, limit, tools=tools, since=since, loop=f"{loop:x}")

    def to_state(self) -> Any:
        runs = [[f"{key:x}", *run] for key, run in self._runs.items()]
        return [runs, _packed(self._calls), _packed(self._limited)]

    def load_state(self, stored: Any) -> None:
        runs, calls, limited = state.entries(stored, 3)
        rows = state.each(runs, _RUNS, state.digest, state.count, state.count)
        self._runs = {key: run for key, *run in rows}
        self._calls, self._limited = _unpacked(calls), _unpacked(limited)


def _packed(calls: dict[int, int]) -> list[str]:
    return [state.pack(calls, 8), state.pack(calls.values())]


def _unpacked(stored: Any) -> dict[int, int]:
    keys, counts = state.entries(stored, 2)
    found = state.unpack(counts, 2 * _CALLS)
    return dict(zip(state.unpack(keys, 2 * _CALLS, 8), found, strict=True))
