"""How are LangChain messages written down?

Three forms of one message are read: `messages_to_dict` (`type` and `data`), `dumpd` (`lc` and
`id`), and `model_dump` (`type` beside `content`), which LangSmith and the LangGraph server use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation
from langchain_loopguard.replay.readers.base import Format, Place, Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_loopguard.replay.conversation import Event

_TYPES = frozenset(
    "human ai tool system function chat remove HumanMessageChunk AIMessageChunk ToolMessageChunk "
    "SystemMessageChunk FunctionMessageChunk ChatMessageChunk".split()
)


def is_message(value: Any) -> bool:
    """Tell whether a value is one message in one of the forms."""
    if not isinstance(value, dict):
        return False
    if value.get("lc") == 1:
        names = value.get("id")
        last = str(names[-1]) if isinstance(names, list) and names else ""
        return last.removesuffix("Chunk").endswith("Message")
    if not isinstance(value.get("type"), str) or value["type"] not in _TYPES:
        return False
    return isinstance(value.get("data"), dict) or ("content" in value and "role" not in value)


def events_of(values: Values) -> list[Event]:
    """Turn written messages into events."""
    from langchain_loopguard.replay.readers import (  # noqa: PLC0415 - see that file
        langchain_messages,
    )

    return langchain_messages.events_of(langchain_messages.messages_of(values))


def _read(values: Values, place: Place) -> Iterator[Conversation]:
    yield Conversation(place.source, place.name, tuple(events_of(values)))


LANGCHAIN = Format("LangChain messages", is_message, _read, group=lambda _: "")
"""LangChain's messages, one a value."""
