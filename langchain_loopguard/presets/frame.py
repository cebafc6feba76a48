"""How does a rule that counts calls sit in a guard that sees steps?

The systems re-told here look at one call after the other. `PresetRule` hands a step's calls in
their order to `before` (nothing has run yet) and, once the results are known, to `after`, and
keeps the strongest hit, the later one of two equal ones. It must not know any system's numbers.

A step can only be stopped before it runs, but some systems judge its results. What such a rule
finds is *held*: an ask meets the next step that goes on with it, once, since a refused step brings
no new result to judge and the next one has to have a chance; a stop meets every step until a
person speaks or approves.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
)

import orjson
from pydantic import Field

from langchain_loopguard.core import state as stored
from langchain_loopguard.core.decision import Action, Finding
from langchain_loopguard.core.rules.base import RuleConfig
from langchain_loopguard.presets.parts import Part, Seen, fingerprint, kept_name
from langchain_loopguard.presets.wordings import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_loopguard.core.results import Result
    from langchain_loopguard.core.step import Step

Count: TypeAlias = Annotated[int, Field(ge=1)]
"""A count at which something happens, as a field of a rule."""

ANY_TOOL = 0
"""What is pending meets the next step, whatever is in it."""

_KEPT_TOOLS = 8
"""Tools that a held hit names."""

_DOES = {Action.WARN: "warns", Action.ASK: "asks", Action.STOP: "stops"}


class Made(NamedTuple):
    """One call of a step."""

    name: str
    tool: int
    """The fingerprint of the name."""
    key: int
    """The fingerprint of name and arguments, the order of the keys aside."""
    number: int
    """The step's number."""
    canonical: bytes
    """The arguments in canonical form."""
    arguments: Any
    """The arguments as they came."""

    @property
    def raw_key(self) -> int:
        """The fingerprint in which the order of the keys counts.

        What plain JSON does not know is taken in its canonical form, where the order is lost.
        """
        try:
            written = orjson.dumps(self.arguments)
        except Exception:  # noqa: BLE001 - arguments of hostile types are arguments still
            written = self.canonical
        return fingerprint(self.name, written)

    def seen(self, key: int | None = None, **more: Any) -> Seen:
        """Write the call for a window, under the key by which the rule knows it."""
        key = self.key if key is None else key
        return Seen(key, self.number, kept_name(self.name), **more)


class Hit(NamedTuple):
    """What a rule found at one call: what the system does, what was counted, and how often."""

    action: Action
    kind: Kind
    times: int
    threshold: int
    since: int
    """The step where the loop began."""
    loop: str
    """Names the loop within the rule. `1.77` is key 77 of the rule's second part, which alone is
    forgotten when a person lets the loop go on; without a full stop all is."""
    tools: tuple[str, ...] = ()
    """The tools in it; empty for those of the step."""
    hold: int | None = None
    """For hits about results: the tool whose next call is stopped, or `ANY_TOOL`. `None` when
    the rule finds it again by itself before the next call."""


class PresetConfig(RuleConfig):
    """The numbers of another system's rule.

    Four names of fields mean the same in every rule: at `note_at` or exactly at the numbers of
    `notes_at` the model is warned, from `ask_at` on each step is stopped, from `stop_at` on the
    run ends.
    """

    title: ClassVar[str] = ""
    """What a person knows the system by."""

    known_by: ClassVar[Literal["arguments", "raw"]] = "arguments"
    """Whether calls with equal arguments are the same, or only with their keys in one order."""

    within_message: ClassVar[bool] = False
    """Whether each message starts afresh."""

    turn_clears: ClassVar[bool] = True
    """Whether a user message clears the counters."""

    counts: ClassVar[type[PresetRule[Any]]]
    """The counters that run by these numbers."""

    def build(self) -> PresetRule[Any]:
        """Make fresh counters."""
        return self.counts(self)

    def key(self, call: Made) -> int:
        """Look up the number by which this system knows a call."""
        return call.key if self.known_by == "arguments" else call.raw_key

    def climb(self, count: int) -> tuple[Action, int] | None:
        """Look up what a count asks for, and the number that it reached."""
        for action, name in ((Action.STOP, "stop_at"), (Action.ASK, "ask_at")):
            limit = getattr(self, name, None)
            if limit is not None and count >= limit:
                return action, limit
        notes = (*getattr(self, "notes_at", ()), getattr(self, "note_at", None))
        return (Action.WARN, count) if count in notes else None


Config = TypeVar("Config", bound=PresetConfig)


class PresetRule(Generic[Config]):
    """Hands on calls one by one and turns hits into findings.

    Attributes:
        config: The numbers.
        parts: What the rule counts with; each writes itself into the state.
    """

    def __init__(self, config: Config, *parts: Part) -> None:
        """Start with nothing counted."""
        self.config = config
        self.parts = parts
        self._held: Hit | None = None

    def before(self, call: Made) -> Hit | None:  # noqa: ARG002 - a rule may judge results only
        """Judge a call that is about to run."""
        return None

    def after(self, call: Made, result: Result | None) -> Hit | None:  # noqa: ARG002 - as above
        """Judge what a call got back; `None` is an unknown result."""
        return None

    def judge(self, calls: Sequence[Made]) -> Hit | None:
        """Judge a step that is about to run: its calls, one after the other."""
        return strongest(map(self.before, calls))

    def judge_results(self, calls: Sequence[Made], results: Sequence[Result | None]) -> Hit | None:
        """Judge what a step got back: the results, one after the other."""
        return strongest(map(self.after, calls, results))

    def check(self, step: Step) -> Finding | None:
        """Judge the calls, and what is pending of earlier results."""
        held = self._take_held(step)
        hit = strongest((held, self.judge(calls_of(step))))
        return self._finding(hit, step, ran=False)

    def record(self, step: Step, evidence: Any) -> Finding | None:  # noqa: ARG002 - see `core`
        """Judge the results, and hold what was found for the step that goes on with it."""
        hit = self.judge_results(calls_of(step), step.results)
        if hit is not None and hit.hold is not None and hit.action >= Action.ASK:
            tools = (hit.tools or step.tools)[:_KEPT_TOOLS]
            self._held = hit._replace(tools=tuple(map(kept_name, tools)))
        return self._finding(hit, step, ran=True)

    def start_turn(self) -> None:
        """Clear the counters if a user message does so in this system."""
        if self.config.turn_clears:
            self._held = None
            self.clear()

    def approve(self, loop: str) -> None:
        """Count from the start what a person let go on; all of it for another rule's loop."""
        self._held = None
        rule, _, own = loop.partition(":")
        place, _, key = own.partition(".")
        if rule == self.config.rule and key:
            self.parts[int(place)].drop(int(key))
        else:
            self.clear()

    def clear(self) -> None:
        """Forget all that was counted."""
        for part in self.parts:
            part.clear()

    def to_state(self) -> list[Any]:
        """Write what is pending and the parts."""
        held = None
        if self._held is not None:
            action, kind, *numbers, tools, hold = self._held
            held = [int(action), kind.name, *numbers, list(tools), hold]
        return [held, *(part.to_state() for part in self.parts)]

    def load_state(self, state: Any) -> None:
        """Take over what `to_state` wrote.

        Raises:
            ValueError: If it is something else.
        """
        held, *parts = stored.entries(state, 1 + len(self.parts))
        self._held = None if held is None else _read(held)
        for part, written in zip(self.parts, parts, strict=True):
            part.load_state(written)

    def _finding(self, hit: Hit | None, step: Step, *, ran: bool) -> Finding | None:
        if hit is None:
            return None
        config, tools = self.config, hit.tools or step.tools
        fact, does = hit.kind.to_person(tools, hit.times), _DOES[hit.action]
        return Finding(
            config.rule,
            hit.action,
            tools=tools,
            count=hit.times,
            threshold=hit.threshold,
            since=hit.since,
            loop=f"{config.rule}:{hit.loop}",
            to_model=hit.kind.to_model(hit.action, ran=ran),
            to_person=f"{fact} ({config.title} {does} at {hit.threshold}).",
        )

    def _take_held(self, step: Step) -> Hit | None:
        held = self._held
        if held is None or held.action is Action.STOP:
            return held
        if held.hold not in {ANY_TOOL, *(fingerprint(call.name) for call in step.calls)}:
            return None
        self._held = None
        return held


def calls_of(step: Step) -> list[Made]:
    """List the calls of a step, in their order, as the rules know them."""
    return [
        Made(
            call.name,
            fingerprint(call.name),
            fingerprint(call.name, call.canonical),
            step.number,
            call.canonical,
            call.arguments,
        )
        for call in step.calls
    ]


def strongest(hits: Iterable[Hit | None]) -> Hit | None:
    """Pick the hit with the strongest action, the last of equal ones."""
    found: Hit | None = None
    for hit in hits:
        if hit is not None and (found is None or hit.action >= found.action):
            found = hit
    return found


def hit_at(
    climbed: tuple[Action, int] | None,
    kind: Kind,
    count: int,
    since: int,
    loop: str,
    call: Made,
    hold: int | None = None,
) -> Hit | None:
    """Describe what a count of one call asks for, if it asks for anything."""
    if climbed is None:
        return None
    return Hit(climbed[0], kind, count, climbed[1], since, loop, (call.name,), hold)


def window_hit(action: Action, kind: Kind, count: int, threshold: int, seen: Sequence[Seen]) -> Hit:
    """Describe a loop of calls in a window; it is named by its calls, wherever it begins."""
    return Hit(
        action,
        kind,
        count,
        threshold,
        seen[0].number,
        str(fingerprint(*sorted({one.key for one in seen}))),
        tuple(dict.fromkeys(one.name for one in seen)),
    )


def _read(written: Any) -> Hit:
    count, text = stored.count, stored.text
    action, kind, times, limit, since, loop, tools, hold = stored.row(
        written, count, text, count, count, count, text, _names, count
    )
    return Hit(Action(action), Kind[kind], times, limit, since, loop, tools, hold)


def _names(value: Any) -> tuple[str, ...]:
    return tuple(map(stored.text, stored.entries(value, _KEPT_TOOLS)))
