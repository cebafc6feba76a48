"""What a guard would have said about one run, and when.

The live `LoopGuard` is handed the run's events in order. Nothing is counted here but steps,
calls, tokens and time. A step at which a person was asked is treated as approved once, as it ran,
unless `unattended` refuses it.

The one file of `replay` that knows what the guard's records look like inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard

if TYPE_CHECKING:
    from langchain_loopguard import LoopGuardPolicy
    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.core.step import Step
    from langchain_loopguard.replay.conversation import Conversation, Event

Novelty: TypeAlias = Literal["new", "known", "failed", "failed again", "missing", "refused"]
"""A result beside the earlier ones of the same call: `failed` with an error that is new."""


class SeenCall(NamedTuple):
    """One call as the guard reads it.

    Attributes:
        name: The tool.
        identity: Equal for equal calls and for no others; a hash, nothing can be read from it.
        arguments: The arguments as they came.
        text: The result's text as UTF-8, `None` without a result.
        novelty: What the result brought.
    """

    name: str
    identity: int
    arguments: Any
    text: bytes | None
    novelty: Novelty


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """What a report draws for one step.

    Attributes:
        number: The step's number, from 1.
        call: The number of its first call, from 1.
        turn: The number of the turn, 0 before the first one.
        calls: Its calls.
        action: The strongest thing the guard said about it.
        refused: Whether it did not run: refused at the time, or by `unattended`.
    """

    number: int
    call: int
    turn: int
    calls: tuple[SeenCall, ...]
    action: Action
    refused: bool

    @property
    def brought_nothing(self) -> bool:
        """Whether the guard found something at it, or all its results had come before."""
        known = {"known", "failed again"}
        return self.action > Action.ALLOW or all(call.novelty in known for call in self.calls)


@dataclass(frozen=True, slots=True)
class Fire:
    """Where the guard did something for the first time.

    Attributes:
        step: The step's number, from 1 over the whole run.
        call: The number of its first call, from 1.
        before: Whether it was found before the step ran, so that the step could have been
            stopped before it ran. Otherwise its results showed it.
        steps_after: Steps that ran from there on: this one too when `before`.
        calls_after: Calls that ran from there on.
        tokens_after: Tokens that were spent from there on, 0 where the source has none.
        seconds_after: Seconds that the run took from there on, 0 where the source has no times.
    """

    step: int
    call: int
    before: bool
    steps_after: int
    calls_after: int
    tokens_after: int = 0
    seconds_after: float = 0

    def as_dict(self) -> dict[str, Any]:
        """Return it in JSON types."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class FoundAt:
    """One finding of one rule, and the step it was found at.

    Attributes:
        step: The number of the step.
        before: Whether that was before the step ran.
        rule: The rule's name.
        action: What the rule asks for.
        tools: The tools in the loop.
        count: How often it was seen.
        threshold: The number that `count` was compared with.
        since: The step where the loop began.
        text: What a person reads; holds no argument and no result.
    """

    step: int
    before: bool
    rule: str
    action: Action
    tools: tuple[str, ...]
    count: int
    threshold: int
    since: int
    text: str

    def as_dict(self) -> dict[str, Any]:
        """Return it in JSON types."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "action": self.action.name.lower(), "tools": list(self.tools)}

    @property
    def why(self) -> str:
        """The rule, the tools and the count in a few words."""
        return f"{self.rule}: {', '.join(self.tools)}, {self.count} times"


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a guard would have said about one run.

    Attributes:
        source: The run's source.
        id: The run's id.
        place: Where in its source it stands; tells runs of one id apart.
        outcome: How the run ended.
        turns: How many turns it has.
        step_count: How many steps it has.
        calls: How many calls it has.
        tokens: How many tokens its steps took, `None` where the source has none.
        seconds: How long it took from its first step to its last, `None` as for tokens.
        warn: The first warning.
        ask: The first time it asked a person, before a step ran or by its results.
        held: The first step that was stopped before it ran: the first ask or stop that a host
            can act on.
        stop: The first time the run was to end.
        findings: Every finding, in order.
        steps: The steps that were replayed; empty when they were not wanted.
    """

    source: str
    id: str
    place: str
    outcome: str
    turns: int
    step_count: int
    calls: int
    tokens: int | None
    seconds: float | None
    warn: Fire | None
    ask: Fire | None
    held: Fire | None
    stop: Fire | None
    findings: tuple[FoundAt, ...]
    steps: tuple[ReplayedStep, ...] = ()

    @property
    def looped(self) -> bool:
        """Whether the guard would have asked or stopped."""
        return self.ask is not None or self.stop is not None

    @property
    def saved(self) -> int:
        """Calls that would not have run had the run ended at the first step stopped."""
        return self.held.calls_after if self.held is not None else 0

    @property
    def first_fire(self) -> Fire | None:
        """The first ask or stop."""
        fires = [fire for fire in (self.ask, self.stop) if fire is not None]
        return min(fires, key=lambda fire: (fire.step, not fire.before), default=None)

    @property
    def why(self) -> str:
        """The finding that asked first, else the one that warned first; empty without any."""
        asks = (one for one in self.findings if one.action >= Action.ASK)
        first = next(asks, self.findings[0] if self.findings else None)
        return first.why if first is not None else ""

    def bare(self) -> ReplayReport:
        """Return the report without findings and steps, which are what takes space."""
        return replace(self, findings=(), steps=())

    def as_dict(self) -> dict[str, Any]:
        """Return the report in JSON types; holds no argument and no result."""
        plain = ("source", "id", "place", "outcome", "turns")
        fires = ("warn", "ask", "held", "stop")
        return {
            **{name: getattr(self, name) for name in plain},
            "steps": self.step_count,
            **{name: getattr(self, name) for name in ("calls", "tokens", "seconds")},
            **{name: fire.as_dict() if (fire := getattr(self, name)) else None for name in fires},
            "calls_saved": self.saved,
            "why": self.why,
            "findings": [found.as_dict() for found in self.findings],
        }


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


def with_rules(policy: LoopGuardPolicy, rules: tuple[Any, ...]) -> LoopGuardPolicy:
    """Copy a policy with other rules that judges failures as the whole policy does."""
    return policy.model_copy(update={"rules": rules})
