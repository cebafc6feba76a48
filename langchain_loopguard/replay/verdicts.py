"""What a replay says of one run: its steps, findings, and where the guard did something first.

Plain data that pickles. Only `ReplayedStep` holds arguments and results, for who shows them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from langchain_loopguard.core.decision import Action

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
