"""What is one past run, as far as a guard can see it?

A conversation is a list of events in the order in which they happened:

    {"type": "human"}                                      a person spoke
    {"type": "batch", "calls": [...], "results": [...]}    the calls of one AI message and what
                                                           came back for them
    {"type": "note", "text": "approve"}                    a person let a loop go on

A call is `{"id", "name", "args"}`, a result `{"id", "content", "status"}`. `results` may be
missing or partial. A batch may also say what a guard of that time did with it:
`"approved": true` (a person let it run) or `"refused": true` (it was not run, its results are
the guard's own words). Events of another type are ignored.

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


class ConversationError(ValueError):
    """A value is not a conversation; the message says which part is wrong."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One past run.

    Attributes:
        source: Where it comes from: a collection's or a file's name.
        id: What tells it from the others of its source.
        events: What happened, in order.
        outcome: How it ended.
        extra: What else its source says of it (`label`, `expect`), as it came.
    """

    source: str
    id: str
    events: tuple[Event, ...]
    outcome: Outcome = "unknown"
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def batches(self) -> Iterator[Event]:
        """The batches in order; a batch without calls is none."""
        return (event for event in self.events if event["type"] == "batch" and event["calls"])

    @property
    def calls(self) -> int:
        """How many calls there are."""
        return sum(len(event["calls"]) for event in self.batches)

    def to_dict(self) -> dict[str, Any]:
        """Give the conversation in JSON types, as `from_dict` reads it."""
        return {
            "source": self.source,
            "id": self.id,
            "outcome": self.outcome,
            "events": list(self.events),
            **self.extra,
        }

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


_OWN_KEYS = frozenset({"source", "id", "outcome", "events"})


def _event(event: Any, number: int) -> Event:
    where = f"events[{number}]"
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise ConversationError(f'{where}: must be an object with a "type", not {_kind(event)}')
    if event["type"] != "batch":
        return event
    calls, results = event.get("calls"), event.get("results")
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise ConversationError(f"{where}.calls: must be a list of objects")
    if results is not None and not isinstance(results, list):
        raise ConversationError(f"{where}.results: must be a list or null, not {_kind(results)}")
    return event


def _kind(value: Any) -> str:
    """Name a value's type as JSON does; the value itself may be large or private."""
    if value is None:
        return "null"
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a boolean"}
    return kinds.get(type(value), "a number")
