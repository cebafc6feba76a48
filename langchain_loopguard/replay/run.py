"""What would a guard have said about this run, and when?

The live `LoopGuard` is handed the run's events in order. Nothing is counted here but batches
and calls. A batch that was asked about is taken to have run, as it did, unless `unattended`
refuses it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_loopguard.core.answers import match_results
from langchain_loopguard.core.batch import Batch
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.failures import failed_by_text

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Decision, Finding
    from langchain_loopguard.core.ledger import LedgerReading
    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.replay.conversation import Conversation, Event

Answers: TypeAlias = Literal["new", "equal", "unknown"]
"""Whether the batch's calls had all brought these very answers before; `unknown` when an answer
is missing."""


@dataclass(frozen=True, slots=True)
class Fire:
    """Where the guard did something for the first time.

    Attributes:
        batch: The batch's number, from 1 over the whole run.
        call: The number of its first call, from 1.
        before: Whether it was found before the batch ran, so that the batch could have been held
            back. Otherwise its answers showed it.
        batches_after: Batches that ran from there on: this one too when `before`.
        calls_after: Calls that ran from there on.
    """

    batch: int
    call: int
    before: bool
    batches_after: int
    calls_after: int

    def as_dict(self) -> dict[str, Any]:
        """Give it in JSON types."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Found:
    """One finding of one rule.

    Attributes:
        batch: The number of the batch it was found at.
        before: Whether that was before the batch ran.
        rule: The rule's name.
        action: What the rule asks for.
        tools: The tools in the loop.
        count: How often it was seen.
        threshold: The number that `count` was held against.
        since: The batch where the loop began.
        text: What a person is told; holds no argument and no answer.
    """

    batch: int
    before: bool
    rule: str
    action: Action
    tools: tuple[str, ...]
    count: int
    threshold: int
    since: int
    text: str

    def as_dict(self) -> dict[str, Any]:
        """Give it in JSON types."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "action": self.action.name.lower(), "tools": list(self.tools)}


@dataclass(frozen=True, slots=True)
class Mark:
    """What a report draws for one batch.

    Attributes:
        batch: The batch's number.
        call: The number of its first call.
        calls: How many calls it has.
        turn: The number of the user turn, 0 before the first one.
        key: Equal for equal calls and for no others; a hash, nothing can be read from it.
        tools: The tools called.
        answers: Whether the answers had come before for these calls.
        action: The strongest thing the guard said about it.
        refused: Whether it did not run: refused at the time, or by `unattended`.
    """

    batch: int
    call: int
    calls: int
    turn: int
    key: str
    tools: tuple[str, ...]
    answers: Answers
    action: Action
    refused: bool

    def as_dict(self) -> dict[str, Any]:
        """Give it in JSON types."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "action": self.action.name.lower(), "tools": list(self.tools)}


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a guard would have said about one run.

    Attributes:
        source: The run's source.
        id: The run's id.
        outcome: How the run ended.
        turns: How many user turns it has.
        batches: How many batches it has.
        calls: How many calls it has.
        warn: The first warning.
        ask: The first time it asked, before a batch ran or by its answers.
        held: The first batch that was held back: the first ask or stop before a batch ran, which
            is what a host acts on.
        stop: The first time the run was to end.
        findings: Every finding, in order.
        ledger: What the guard saw that is no verdict.
        marks: One mark a batch; empty when none were wanted.
    """

    source: str
    id: str
    outcome: str
    turns: int
    batches: int
    calls: int
    warn: Fire | None
    ask: Fire | None
    held: Fire | None
    stop: Fire | None
    findings: tuple[Found, ...]
    ledger: LedgerReading
    marks: tuple[Mark, ...] = ()

    @property
    def looped(self) -> bool:
        """Whether the guard would have asked or stopped."""
        return self.ask is not None or self.stop is not None

    @property
    def saved(self) -> int:
        """Calls that would not have run had the run ended at the first batch held back."""
        return self.held.calls_after if self.held is not None else 0

    def bare(self) -> ReplayReport:
        """Give the report without findings and marks, which are what takes space."""
        return dataclasses.replace(self, findings=(), marks=())

    def as_dict(self) -> dict[str, Any]:
        """Give the report in JSON types; holds no argument and no answer."""
        fires = {"warn": self.warn, "ask": self.ask, "held": self.held, "stop": self.stop}
        report: dict[str, Any] = {
            "source": self.source,
            "id": self.id,
            "outcome": self.outcome,
            "turns": self.turns,
            "batches": self.batches,
            "calls": self.calls,
            **{name: fire.as_dict() if fire else None for name, fire in fires.items()},
            "calls_saved": self.saved,
            "findings": [found.as_dict() for found in self.findings],
            "ledger": self.ledger._asdict(),
        }
        if self.marks:
            report["marks"] = [mark.as_dict() for mark in self.marks]
        return report


def replay(
    conversation: Conversation,
    policy: LoopGuardPolicy | None = None,
    *,
    unattended: bool = False,
    marks: bool = True,
) -> ReplayReport:
    """Hand a past run to a guard and note what it says.

    Args:
        conversation: The run.
        policy: The guard's policy, `LoopGuardPolicy()` by default.
        unattended: Refuse every batch that is asked about, as a host without a person does, and
            end at the first stop. The run goes on as it was recorded, which a model that was
            refused might not have done. By default every batch runs.
        marks: Whether to make the marks that a report draws.

    Returns:
        The report.
    """
    run = _Run(LoopGuard(policy), unattended=unattended, marks=marks)
    for event in conversation.events:
        if not run.take(event):
            break
    return run.report(conversation)


class _Run:
    """The guard on its way through one run."""

    def __init__(self, guard: LoopGuard, *, unattended: bool, marks: bool) -> None:
        self._guard = guard
        self._unattended = unattended
        self._marked = marks
        self._turns = 0
        self._batches = 0
        self._calls = 0
        self._asked: Decision | None = None
        # What happened first -> the batch, its first call, whether before it ran.
        self._first: dict[str, tuple[int, int, bool]] = {}
        self._findings: list[Found] = []
        self._marks: list[Mark] = []
        self._seen: set[int] = set()

    def take(self, event: Event) -> bool:
        """Take in the next event; says whether the run goes on."""
        kind = event["type"]
        if kind == "human":
            self._turns += 1
            self._guard.human_message()
        elif kind == "note":
            if self._asked is not None and "approve" in str(event.get("text")):
                self._guard.approve(self._asked)
        elif kind == "batch" and event["calls"]:
            return self._batch(event)
        return True

    def _batch(self, event: Event) -> bool:
        calls = event["calls"]
        number, first = self._batches + 1, self._calls + 1
        self._batches, self._calls = number, self._calls + len(calls)
        decision = self._guard.check(calls)
        record, action = decision.record, decision.action
        if decision.findings:
            self._note(decision, number, first, before=True)
        asked = action >= Action.ASK
        refused = event.get("refused") is True or (asked and self._unattended)
        if asked and event.get("approved") is True and not refused:
            self._guard.approve(decision)
        results = event.get("results") or ()
        if self._guard.policy.reads_failures:
            results = failed_by_text(record, results)
        if refused:
            self._guard.refuse(decision)
        else:
            revealed = self._guard.record_results(record, results)
            if revealed.findings:
                self._note(revealed, number, first, before=False)
                action = max(action, revealed.action)
        if self._marked and isinstance(record, Batch):
            answers: Answers = "unknown" if refused else self._answers(record, results)
            self._marks.append(
                Mark(
                    batch=number,
                    call=first,
                    calls=len(calls),
                    turn=self._turns,
                    key=f"{record.digest:016x}",
                    tools=tuple(dict.fromkeys(record.names)),
                    answers=answers,
                    action=action,
                    refused=refused,
                )
            )
        return not (self._unattended and decision.action is Action.STOP)

    def _note(self, decision: Decision, number: int, call: int, *, before: bool) -> None:
        kinds = []
        if decision.action is Action.WARN:
            kinds.append("warn")
        elif decision.action >= Action.ASK:
            self._asked = decision
            kinds.append("ask" if decision.action is Action.ASK else "stop")
            if before:
                kinds.append("held")
        for kind in kinds:
            self._first.setdefault(kind, (number, call, before))
        for finding in decision.findings:
            self._findings.append(_found(finding, number, before=before))

    def _answers(self, record: Batch, results: Any) -> Answers:
        pairs: list[tuple[int, int]] = []
        for key, answer in zip(record.keys, match_results(record.ids, results), strict=True):
            if answer is None:
                return "unknown"
            pairs.append((key, answer.digest))
        brought = hash(tuple(sorted(pairs)))
        if brought in self._seen:
            return "equal"
        self._seen.add(brought)
        return "new"

    def report(self, conversation: Conversation) -> ReplayReport:
        """Sum up, once every event was taken in."""
        sizes = [len(event["calls"]) for event in conversation.batches]
        batches, calls = len(sizes), sum(sizes)

        def fire(kind: str) -> Fire | None:
            if kind not in self._first:
                return None
            number, call, before = self._first[kind]
            ran = number - 1 if before else number
            ran_calls = call - 1 if before else call - 1 + sizes[number - 1]
            return Fire(number, call, before, batches - ran, calls - ran_calls)

        return ReplayReport(
            source=conversation.source,
            id=conversation.id,
            outcome=conversation.outcome,
            turns=sum(event["type"] == "human" for event in conversation.events),
            batches=batches,
            calls=calls,
            warn=fire("warn"),
            ask=fire("ask"),
            held=fire("held"),
            stop=fire("stop"),
            findings=tuple(self._findings),
            marks=tuple(self._marks),
            ledger=self._guard.ledger(),
        )


def _found(finding: Finding, batch: int, *, before: bool) -> Found:
    return Found(
        batch=batch,
        before=before,
        rule=finding.rule,
        action=finding.action,
        tools=finding.tools,
        count=finding.count,
        threshold=finding.threshold,
        since=finding.since,
        text=finding.to_person,
    )
