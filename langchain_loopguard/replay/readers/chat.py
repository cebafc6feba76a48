"""Which provider wrote these chat messages, and where are they kept?

OpenAI's chat, OpenAI's Responses and Anthropic's messages share their plain messages
(`role` and `content`), so that only the list as a whole tells them apart. Requests and
responses of all three are read too: the messages are under `messages`, `input`, `output`,
`choices`, `request`, `response`, or a state's `values`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation, ConversationError
from langchain_loopguard.replay.readers import (
    anthropic,
    langchain,
    openai_chat,
    openai_responses,
)
from langchain_loopguard.replay.readers.base import Format, Place, Values, first_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_loopguard.replay.conversation import Event

_ROLES = frozenset("system developer user assistant tool function".split())
_PARTS = ("request", "kwargs", "body", "values", "inputs", "response", "outputs")
_LISTS = ("messages", "input")
_IDS = ("id", "thread_id", "conversation_id", "session_id", "run_id", "task_id", "instance_id")
_DEEPEST = 4


def is_chat_message(value: Any) -> bool:
    """Tell whether a value is one message, or one item of the Responses API."""
    if not isinstance(value, dict):
        return False
    if value.get("role") in _ROLES and ("content" in value or "tool_calls" in value):
        return "info" not in value and "parts" not in value
    return openai_responses.is_item(value)


def events_of(messages: list[Any]) -> list[Event]:
    """Turn a list of messages of any of the providers, or of LangChain, into events."""
    if any(langchain.is_message(message) for message in messages):
        found = [one for one in messages if langchain.is_message(one)]
        return langchain.events_of(found)
    found = [message for message in messages if isinstance(message, dict)]
    if any(openai_responses.is_item(message) for message in found):
        return openai_responses.events_of(found)
    if any(anthropic.has_blocks(message) for message in found):
        return anthropic.events_of(found)
    return openai_chat.events_of(found)


def messages_in(value: Any, depth: int = 0) -> list[Any]:
    """Collect the messages that a request, a response, or both in one value hold."""
    if not isinstance(value, dict) or depth > _DEEPEST:
        return []
    messages: list[Any] = []
    for later in (*_sent(value, depth), *_received(value, depth)):
        # The output of an agent repeats what went in.
        repeats = later[: len(messages)] == messages
        messages = later if repeats else [*messages, *later]
    return messages


def _sent(value: dict[str, Any], depth: int) -> Iterator[list[Any]]:
    for key in _LISTS:
        given = value.get(key)
        if isinstance(given, list):
            yield _flat(given)
        elif key == "input" and isinstance(given, str) and "output" in value:
            yield [{"role": "user", "content": given}]
        elif key == "input":
            yield messages_in(given, depth + 1)
    for key in _PARTS:
        yield messages_in(value.get(key), depth + 1)


def _received(value: dict[str, Any], depth: int) -> Iterator[list[Any]]:
    output = value.get("output")
    if isinstance(output, list):
        yield [one for one in output if is_chat_message(one) or _is_langchain(one)]
    else:
        yield messages_in(output, depth + 1)
    for key in ("choices", "generations"):
        answers = value.get(key)
        first = answers[0] if isinstance(answers, list) and answers else None
        if isinstance(first, list) and first:
            first = first[0]
        message = first.get("message") if isinstance(first, dict) else None
        if isinstance(message, dict):
            yield [message]
    if depth and value.get("role") == "assistant" and isinstance(value.get("content"), list):
        yield [value]


def _flat(given: list[Any]) -> list[Any]:
    """Unpack a list of lists of messages, as a model run's inputs are written."""
    if given and all(isinstance(inner, list) for inner in given):
        return list(given[0])
    return given


def _is_langchain(value: Any) -> bool:
    return langchain.is_message(value)


def _holds_messages(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return any(is_chat_message(one) or _is_langchain(one) for one in messages_in(value)[:50])


def _read_messages(values: Values, place: Place) -> Iterator[Conversation]:
    yield Conversation(place.source, place.name, tuple(events_of(values)))


def _read_holders(values: Values, place: Place) -> Iterator[Conversation]:
    for value in values:
        messages = messages_in(value)
        if not messages:
            raise ConversationError("holds no messages")
        name = first_text(value, *_IDS) or place.name
        yield Conversation(place.source, name, tuple(events_of(messages)))


MESSAGES = Format("chat messages", is_chat_message, _read_messages, group=lambda _: "")
"""Messages, one a value."""

HOLDERS = Format("requests and responses", _holds_messages, _read_holders)
"""One run a value, its messages under a key."""
