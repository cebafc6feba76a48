"""Reads LangChain's messages, in the forms in which they are written.

Three forms of one message are read: `messages_to_dict` (`type` and `data`), `dumpd` (`lc` and
`id`), and `model_dump` (`type` beside `content`), which LangSmith and the LangGraph server use.

Facts: langchain-core 1.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers.base import Dialect

if TYPE_CHECKING:
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


def events_of(values: list[Any]) -> list[Event]:
    """Read written messages; what stands between them is no message of a conversation."""
    from langchain_loopguard.replay.readers import (  # noqa: PLC0415 - see that file
        langchain_messages,
    )

    return langchain_messages.events_of(
        langchain_messages.messages_of(value for value in values if is_message(value))
    )


LANGCHAIN = Dialect("LangChain messages", is_message, events_of)
