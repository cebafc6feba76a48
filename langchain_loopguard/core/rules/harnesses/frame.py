"""How does a rule that counts calls sit in a guard that sees batches?

The systems re-told here look at one call after the other. `HarnessRule` feeds a batch's calls in
their order to `before` (nothing has run yet) and, once the answers are known, to `after`, and
keeps the strongest hit, the later one of two equal ones. It must not know any system's numbers.

A batch can only be held back before it runs, but some systems judge its answers. What such a
rule finds is *held*: an ask meets the next batch that goes on with it, once, since a refused
batch brings no new answer to judge and the next one has to have a chance; a stop meets every
batch until a person speaks or lets it go on.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from langchain_loopguard.core import stored
from langchain_loopguard.core.calls import call_arguments
from langchain_loopguard.core.decision import Action, Finding
from langchain_loopguard.core.rules.base import Rule
from langchain_loopguard.core.rules.harnesses.keys import fingerprint, raw_key
from langchain_loopguard.core.rules.harnesses.wordings import Kind, to_model, to_person
from langchain_loopguard.core.tools import kept_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.batch import Batch, Outcome
    from langchain_loopguard.core.calls import ToolCall
    from langchain_loopguard.core.rules.foreign import ForeignRule

_KEPT_TOOLS = 8
"""Tools that a held finding names."""

ANY_TOOL = 0
"""A held finding that meets the next batch, whatever is in it."""


class Call(NamedTuple):
    """One call of a batch.

    Attributes:
        name: The tool's name.
        tool: The tool's fingerprint.
        key: The fingerprint of name and arguments, the order of the keys aside.
        number: The batch's number.
        arguments: The arguments in canonical form.
        given: The call as it came.
    """

    name: str
    tool: int
    key: int
    number: int
    arguments: bytes
    given: ToolCall

    def raw_key(self) -> int:
        """Give the fingerprint in which the order of the keys counts."""
        return raw_key(self.name, call_arguments(self.given), self.arguments)


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule found at one call.

    Attributes:
        action: What the system does.
        kind: What was counted, for the wordings.
        count: How often.
        threshold: The number that was reached.
        since: The batch where the loop began.
        loop: Names the loop within the rule.
        tools: The tools in it; empty for those of the batch.
        hold: For findings about answers: the tool whose next call is held back, or `ANY_TOOL`.
            `None` when the rule finds it again by itself before the next call.
    """

    action: Action
    kind: Kind
    count: int
    threshold: int
    since: int
    loop: str
    tools: tuple[str, ...] = ()
    hold: int | None = None


class HarnessRule(Rule):
    """Feeds calls one by one and turns hits into findings."""

    human_resets: ClassVar[bool] = True
    """Whether a user message clears the counters."""

    def __init__(self, config: ForeignRule) -> None:
        """Start with nothing counted."""
        self._name = config.rule
        self._title = config.title
        self._held: Hit | None = None

    def before(self, call: Call) -> Hit | None:  # noqa: ARG002 - a rule may judge answers only
        """Judge a call that is about to run."""
        return None

    def after(self, call: Call, answer: Answer | None) -> Hit | None:  # noqa: ARG002 - see `before`
        """Judge what a call got back; `None` is an unknown answer."""
        return None

    def clear(self) -> None:
        """Forget all that was counted."""

    def forget(self, loop: str) -> None:  # noqa: ARG002 - most rules know one loop at a time
        """Forget one loop; all of them unless a rule knows better."""
        self.clear()

    @abstractmethod
    def counters(self) -> Any:
        """Give the counters in JSON types."""

    @abstractmethod
    def load_counters(self, counters: Any) -> None:
        """Take over what `counters` gave."""

    def check(self, batch: Batch) -> Finding | None:
        """Judge the calls in their order, and what is held of earlier answers."""
        hit = self._take_held(batch)
        for call in calls_of(batch):
            hit = stronger(hit, self.before(call))
        return self.finding(hit, batch, ran=False)

    def record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        """Judge the answers in the order of the calls."""
        hit: Hit | None = None
        for call, answer in zip(calls_of(batch), outcome.results, strict=True):
            hit = stronger(hit, self.after(call, answer))
        return self.hold(hit, batch)

    def hold(self, hit: Hit | None, batch: Batch) -> Finding | None:
        """Keep a hit about answers for the batch that goes on with it."""
        if hit is not None and hit.hold is not None and hit.action >= Action.ASK:
            tools = hit.tools or tuple(dict.fromkeys(batch.names))
            kept = tuple(kept_name(name) for name in tools[:_KEPT_TOOLS])
            self._held = replace(hit, tools=kept)
        return self.finding(hit, batch, ran=True)

    def human_message(self) -> None:
        """A person spoke: clear the counters if the system does."""
        if self.human_resets:
            self._held = None
            self.clear()

    def approve(self, loop: str) -> None:
        """A person let the loop go on: count it anew."""
        self._held = None
        self.forget(loop.removeprefix(f"{self._name}:"))

    def to_state(self) -> Any:
        """Give the counters and what is held."""
        held = self._held
        return [None if held is None else _written(held), self.counters()]

    def load_state(self, state: Any) -> None:
        """Take over what `to_state` gave."""
        held, counters = stored.entries(state, 2)
        self._held = None if held is None else _read(held)
        self.load_counters(counters)

    def finding(self, hit: Hit | None, batch: Batch, *, ran: bool) -> Finding | None:
        """Put a hit into words."""
        if hit is None:
            return None
        tools = hit.tools or tuple(batch.names)
        return Finding(
            self._name,
            hit.action,
            tools=tools,
            count=hit.count,
            threshold=hit.threshold,
            since=hit.since,
            loop=f"{self._name}:{hit.loop}",
            to_model=to_model(hit.kind, hit.action, ran=ran),
            to_person=to_person(
                hit.kind,
                hit.action,
                title=self._title,
                tools=tools,
                count=hit.count,
                threshold=hit.threshold,
            ),
        )

    def _take_held(self, batch: Batch) -> Hit | None:
        held = self._held
        if held is None or held.action is Action.STOP:
            return held
        if held.hold != ANY_TOOL and all(held.hold != fingerprint(name) for name in batch.names):
            return None
        self._held = None
        return held


def calls_of(batch: Batch) -> Iterator[Call]:
    """Give the calls of a batch in their order."""
    for name, arguments, given in zip(batch.names, batch.canonical, batch.calls, strict=True):
        tool, key = fingerprint(name), fingerprint(name, arguments)
        yield Call(name, tool, key, batch.number, arguments, given)


def stronger(first: Hit | None, second: Hit | None) -> Hit | None:
    """Give the hit with the stronger action, the second of two equals."""
    if second is None or (first is not None and first.action > second.action):
        return first
    return second


def _written(hit: Hit) -> list[Any]:
    return [
        int(hit.action),
        str(hit.kind),
        hit.count,
        hit.threshold,
        hit.since,
        hit.loop,
        list(hit.tools),
        hit.hold,
    ]


def _read(written: Any) -> Hit:
    action, kind, count, threshold, since, loop, tools, hold = stored.entries(written, 8)
    return Hit(
        Action(stored.count(action)),
        Kind(stored.text(kind)),
        stored.count(count),
        stored.count(threshold),
        stored.count(since),
        stored.text(loop),
        tuple(stored.text(tool) for tool in stored.entries(tools, _KEPT_TOOLS)),
        stored.count(hold),
    )
