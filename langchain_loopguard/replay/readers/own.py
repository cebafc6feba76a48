"""Reads this package's own form of a run.

One JSON object a conversation, as `replay.conversation` says: its `events` (turns, steps with calls
and results, notes of approvals), and if known `source`, `id` and `outcome`. Other keys are kept as
`extra`. The events of other formats have other types, so that an object with those goes to the next
reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation
from langchain_loopguard.replay.readers.base import Format, Place, Values

if TYPE_CHECKING:
    from collections.abc import Iterator


_TYPES = frozenset({"human", "batch", "note"})
"""Types of the events that tell this form from others; any other type is ignored."""


def _matches(value: Any) -> bool:
    events = value["events"]
    return isinstance(events, list) and (
        any(isinstance(event, dict) and event.get("type") in _TYPES for event in events)
        if events
        else "outcome" in value
    )


def _read(values: Values, place: Place) -> Iterator[Conversation]:
    for value in values:
        yield Conversation.from_dict(value, source=place.source, name=place.name)


OWN = Format("loopguard", _matches, _read)
