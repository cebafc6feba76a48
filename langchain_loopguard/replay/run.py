"""What a guard would have said about one run, and when.

The live `LoopGuard` is handed the run's events in order. Nothing is counted here but steps,
calls, tokens and time. A step at which a person was asked is treated as approved once, as it ran,
unless `unattended` refuses it.

The one file of `replay` that knows what the guard's records look like inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.replay.verdicts import (
    Fire,
    FoundAt,
    Novelty,
    ReplayedStep,
    ReplayReport,
    SeenCall,
)

if TYPE_CHECKING:
    from langchain_loopguard import LoopGuardPolicy
    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.core.step import Step
    from langchain_loopguard.replay.conversation import Conversation, Event


def replay(
    conversation: Conversation,
    policy: LoopGuardPolicy | None = None,
    *,
    unattended: bool = False,
    steps: bool = True,
) -> ReplayReport:
    """Hand a past run to a guard and note what it says.

    Args:
        conversation: The run.
        policy: The guard's policy, `LoopGuardPolicy()` by default.
        unattended: Refuse every step at which a person is asked, as a host without a person does,
            and end at the first stop. The run goes on as it was recorded, which a model that was
            refused might not have done. By default every step runs.
        steps: Whether to note the steps that a report draws.

    Returns:
        The report.
    """
    walk = _Walk(LoopGuard(policy), unattended=unattended, steps=[] if steps else None)
    for event in conversation.events:
        if not walk.take(event):
            break
    return _report(conversation, walk)


@dataclass(slots=True)
class _Walk:
    """The guard on its way through one run."""

    guard: LoopGuard
    unattended: bool
    steps: list[ReplayedStep] | None
    first: dict[str, tuple[int, int, bool]] = field(default_factory=dict)
    """What happened first -> the step, its first call, whether before it ran."""
    findings: list[FoundAt] = field(default_factory=list)
    turns: int = 0
    number: int = 0
    calls: int = 0
    asked: Decision | None = None
    seen: set[tuple[int, int]] = field(default_factory=set)

    def take(self, event: Event) -> bool:
        """Take in the next event; returns whether the run goes on."""
        kind = event["type"]
        if kind == "human":
            self.turns += 1
            self.guard.start_turn()
        elif kind == "note" and self.asked is not None and "approve" in str(event.get("text")):
            self.guard.approve(self.asked)
        elif kind == "batch" and event["calls"]:
            return self._step(event)
        return True

    def _step(self, event: Event) -> bool:
        self.number += 1
        first, self.calls = self.calls + 1, self.calls + len(event["calls"])
        decision = self.guard.check(event["calls"])
        action = decision.action
        self._note(decision, first, before=True)
        asked = action >= Action.ASK
        refused = event.get("refused") is True or (asked and self.unattended)
        approved = event.get("approved")
        if asked and not refused and (approved is True or approved == "always"):
            self.guard.approve(decision, always=approved == "always")
        if refused:
            self.guard.refuse(decision)
        else:
            revealed = self.guard.record_results(decision.record, event.get("results") or ())
            self._note(revealed, first, before=False)
            action = max(action, revealed.action)
        if self.steps is not None:
            calls = _seen_calls(decision.record, self.seen, refused=refused)
            self.steps.append(ReplayedStep(self.number, first, self.turns, calls, action, refused))
        return not (self.unattended and decision.action is Action.STOP)

    def _note(self, decision: Decision, call: int, *, before: bool) -> None:
        if decision.action is Action.ALLOW:
            return
        kinds = [decision.action.name.lower()]
        if decision.action >= Action.ASK:
            self.asked = decision
            kinds += ["held"] if before else []
        for kind in kinds:
            self.first.setdefault(kind, (self.number, call, before))
        names = ("rule", "action", "tools", "count", "threshold", "since")
        for finding in decision.findings:
            parts = {name: getattr(finding, name) for name in names}
            found = FoundAt(step=self.number, before=before, text=finding.to_person, **parts)
            self.findings.append(found)


def _seen_calls(step: Step, seen: set[tuple[int, int]], *, refused: bool) -> tuple[SeenCall, ...]:
    """Read a step's calls and results out of the guard's record."""
    calls = []
    results = step.results or (None,) * len(step.calls)
    for call, result in zip(step.calls, results, strict=True):
        novelty: Novelty = "refused" if refused else "missing"
        if result is not None:
            known = (call.identity, result.digest) in seen
            seen.add((call.identity, result.digest))
            novelty = "known" if known else "new"
            if result.failed:
                novelty = "failed again" if known else "failed"
        text = None if result is None else result.text
        calls.append(SeenCall(call.name, call.identity, call.arguments, text, novelty))
    return tuple(calls)


def _report(conversation: Conversation, walk: _Walk) -> ReplayReport:
    """Sum up, once every event was taken in."""
    events = list(conversation.steps)
    sizes = [len(event["calls"]) for event in events]
    tokens = [event.get("tokens") for event in events]
    times = [event.get("at") for event in events]
    spent = [count if type(count) is int else 0 for count in tokens]
    known = [float(at) for at in times if isinstance(at, int | float)]

    def fire(kind: str) -> Fire | None:
        if kind not in walk.first:
            return None
        number, call, before = walk.first[kind]
        ran = number - 1 if before else number
        calls = sum(sizes[ran:])
        left = [float(at) for at in times[ran:] if isinstance(at, int | float)]
        seconds = max(known[-1] - left[0], 0.0) if left else 0.0
        return Fire(number, call, before, len(sizes) - ran, calls, sum(spent[ran:]), seconds)

    return ReplayReport(
        source=conversation.source,
        id=conversation.id,
        place=conversation.place,
        outcome=conversation.outcome,
        turns=sum(event["type"] == "human" for event in conversation.events),
        step_count=len(sizes),
        calls=sum(sizes),
        tokens=sum(spent) if any(spent) else None,
        seconds=max(known[-1] - known[0], 0.0) if len(known) > 1 else None,
        warn=fire("warn"),
        ask=fire("ask"),
        held=fire("held"),
        stop=fire("stop"),
        findings=tuple(walk.findings),
        steps=tuple(walk.steps or ()),
    )
