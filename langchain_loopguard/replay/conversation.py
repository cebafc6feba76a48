"""One past run, as far as a guard can see it, and what of an input was not read.

A conversation is a list of events in the order in which they happened:

    {"type": "human"}                                      a person wrote: a turn begins
    {"type": "batch", "calls": [...], "results": [...]}    a step: the calls of one AI message and
                                                           what came back for them
    {"type": "note", "text": "approve"}                    a person let a loop go on

A call is `{"id", "name", "args"}`, a result `{"id", "content", "status"}`. `results` may be missing
or partial, and so may a `status`: then the guard reads from the text whether the call failed, as on
a live agent. A step may also say what a guard of that time did with it, `"approved": true` (a
person approved it; `"always"`: and every loop of it from then on) or `"refused": true` (it was not
run, its results are the guard's own words), the `tokens` its model call took, and the time `at`
which it began, in seconds. Events of another type are ignored.

This file knows nothing of files, formats and verdicts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Outcome: TypeAlias = Literal["success", "fail", "unknown"]
"""How the run ended, as far as its source says."""

Event: TypeAlias = dict[str, Any]
"""One event; see the top of this file."""

_OWN_KEYS = frozenset({"source", "id", "outcome", "events", "place"})
_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", type(None): "null"}


class ConversationError(ValueError):
    """A value is not a conversation; the message says which part is wrong."""


class WorkError(RuntimeError):
    """The work can't be done, for a reason that is not in the input."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of the input that was not read.

    Attributes:
        source: The file, or whatever else was read.
        text: What is wrong, in one line; quotes nothing of the input.
        at: The number of the line (or of the item of a list), from 1; `None` for the whole.
        unit: What `at` counts.
        ignored: Whether it is a file that was only found in a directory and holds no
            conversation, which is no fault of the input.
    """

    source: str
    text: str
    at: int | None = None
    unit: str = "line"
    ignored: bool = False

    def __str__(self) -> str:
        """Say it in one line."""
        where = self.source if self.at is None else f"{self.source}, {self.unit} {self.at}"
        return f"{where}: {self.text}"

    def as_dict(self) -> dict[str, Any]:
        """Return it in JSON types."""
        return {"source": self.source, "at": self.at, "unit": self.unit, "problem": self.text}


@dataclass(frozen=True, slots=True)
class Conversation:
    """One past run.

    Attributes:
        source: Where it comes from: a collection's or a file's name.
        id: What tells it from the others of its source.
        events: What happened, in order.
        outcome: How it ended.
        extra: What else its source says of it (`label`, `expect`), as it came.
        place: Where in its source it stands, such as `line 7`; tells runs of one id apart.
    """

    source: str
    id: str
    events: tuple[Event, ...]
    outcome: Outcome = "unknown"
    extra: Mapping[str, Any] = field(default_factory=dict)
    place: str = field(default="", compare=False)

    @property
    def steps(self) -> Iterator[Event]:
        """The steps in order; one without calls is none."""
        return (event for event in self.events if event["type"] == "batch" and event["calls"])

    @property
    def batches(self) -> Iterator[Event]:
        """The steps, by the name that they have in files."""
        return self.steps

    @property
    def calls(self) -> int:
        """How many calls there are."""
        return sum(len(step["calls"]) for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the conversation in JSON types, as `from_dict` reads it."""
        own = {"source": self.source, "id": self.id, "outcome": self.outcome}
        return {**own, "events": list(self.events), **self.extra}

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], *, source: str = "", name: str = ""
    ) -> Conversation:
        """Read a conversation in its own form.

        Args:
            data: `{"source", "id", "outcome", "events"}`; only the events are required.
            source: The source where `data` names none.
            name: The id where `data` has none.

        Raises:
            ConversationError: If the events are not of the form above.
        """
        events = data.get("events")
        if not isinstance(events, list | tuple):
            raise ConversationError(f"events: must be a list, not {_kind(events)}")
        outcome = data.get("outcome", "unknown")
        return cls(
            source=str(data.get("source") or source),
            id=str(data.get("id") or name),
            events=tuple(_event(event, number) for number, event in enumerate(events)),
            outcome=cast("Outcome", outcome if outcome in get_args(Outcome) else "unknown"),
            extra={key: value for key, value in data.items() if key not in _OWN_KEYS},
        )


def _event(event: Any, number: int) -> Event:
    where = f"events[{number}]"
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise ConversationError(f'{where}: must be an object with a "type", not {_kind(event)}')
    if event["type"] != "batch":
        return event
    calls, results = event.get("calls"), event.get("results")
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise ConversationError(f"{where}.calls: must be a list of objects")
    if not all(isinstance(call.get("name"), str) for call in calls):
        raise ConversationError(f'{where}.calls: each must have a "name" that is a text')
    if results is not None and not isinstance(results, list):
        raise ConversationError(f"{where}.results: must be a list or null, not {_kind(results)}")
    return event


def _kind(value: Any) -> str:
    """Name a value's type as JSON does; the value itself may be large or private."""
    return _KINDS.get(type(value), "a number")
