"""How is a run written down in this package's own form?

One JSON object a conversation, as `replay.conversation` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation
from langchain_loopguard.replay.readers.base import Format, Place, Values

if TYPE_CHECKING:
    from collections.abc import Iterator


def _matches(value: Any) -> bool:
    return isinstance(value, dict) and "events" in value


def _read(values: Values, place: Place) -> Iterator[Conversation]:
    for value in values:
        yield Conversation.from_dict(value, source=place.source, name=place.name)


OWN = Format("loopguard", _matches, _read)
"""The package's own form."""
