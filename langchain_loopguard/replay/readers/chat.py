"""Tells which provider wrote chat messages, and where they are kept.

The providers share their plain messages (`role` and `content`), so that only the list as a whole
tells them apart: the first dialect that knows one of the messages reads them all. Requests and
responses are read too: the messages are under `messages`, `contents`, `input`, `output`,
`choices`, `request`, `response`, or a state's `values`. A list of pairs (`[time, message]`) is a
list of messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.ag2 import AG2
from langchain_loopguard.replay.readers.agentdojo import AGENTDOJO
from langchain_loopguard.replay.readers.anthropic import ANTHROPIC
from langchain_loopguard.replay.readers.autogen import AUTOGEN
from langchain_loopguard.replay.readers.base import (
    Dialect,
    Events,
    Format,
    as_dict,
    first_text,
    one_run,
)
from langchain_loopguard.replay.readers.bedrock import BEDROCK
from langchain_loopguard.replay.readers.cline import CLINE
from langchain_loopguard.replay.readers.gemini import GEMINI
from langchain_loopguard.replay.readers.inspect_ai import INSPECT_MESSAGES
from langchain_loopguard.replay.readers.langchain import LANGCHAIN
from langchain_loopguard.replay.readers.openai_chat import OPENAI_CHAT
from langchain_loopguard.replay.readers.openai_responses import OPENAI_RESPONSES
from langchain_loopguard.replay.readers.otel_messages import OTEL_MESSAGES
from langchain_loopguard.replay.readers.pydantic_ai import PYDANTIC_AI
from langchain_loopguard.replay.readers.vercel import VERCEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_loopguard.replay.conversation import Event

DIALECTS: tuple[Dialect, ...] = (
    LANGCHAIN,
    PYDANTIC_AI,
    AUTOGEN,
    OPENAI_RESPONSES,
    OTEL_MESSAGES,
    GEMINI,
    VERCEL,
    BEDROCK,
    AGENTDOJO,
    INSPECT_MESSAGES,
    AG2,
    CLINE,
    ANTHROPIC,
    OPENAI_CHAT,
)
"""Every dialect, the more special ones first; the last one takes what none of them knows."""

_ROLES = frozenset("system developer user assistant tool function model".split())
_SAID = ("content", "tool_calls", "function_call", "parts", "toolInvocations")
_PARTS = "request kwargs body values inputs llm_context response outputs".split()
_LISTS = ("messages", "contents", "input")
_IDS = ("id", "thread_id", "conversation_id", "session_id", "run_id", "task_id", "instance_id")
_DEEPEST = 4
_LOOKED_AT = 50


def is_message(value: Any) -> bool:
    """Tell whether a value is one message of any dialect."""
    if not isinstance(value, dict):
        return False
    role = value.get("role")
    if isinstance(role, str) and role in _ROLES and "info" not in value:
        return any(key in value for key in _SAID)
    return any(dialect.knows(value) for dialect in DIALECTS)


def dialect_of(messages: list[Any]) -> Dialect:
    """Find the dialect of a list of messages."""
    known = (one for one in DIALECTS if any(one.knows(message) for message in messages))
    return next(known, OPENAI_CHAT)


def events_of(messages: list[Any]) -> list[Event]:
    """Read the messages of one conversation, whatever their dialect.

    Raises:
        ConversationError: If one of them is of an unknown form.
    """
    return dialect_of(messages).events_of(messages)


def messages_in(value: Any, depth: int = 0) -> list[Any]:
    """Collect the messages that a request, a response, or both in one value hold."""
    if isinstance(value, list):
        return _flat(value)
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
        if value.get(key) and isinstance(value[key], dict):
            yield messages_in(value[key], depth + 1)


def _received(value: dict[str, Any], depth: int) -> Iterator[list[Any]]:
    output = value.get("output")
    if isinstance(output, list):
        yield [one for one in output if is_message(one)]
    else:
        yield messages_in(output, depth + 1)
    for key in ("choices", "generations", "candidates"):
        answers = value.get(key)
        first = answers[0] if isinstance(answers, list) and answers else None
        if isinstance(first, list) and first:
            first = first[0]
        message = as_dict(first).get("message") or as_dict(first).get("content")
        if isinstance(message, dict):
            yield [message]
    message = value.get("message")
    if isinstance(message, dict) and is_message(message):
        yield [message]
    if depth and value.get("role") == "assistant" and isinstance(value.get("content"), list):
        yield [value]


def _flat(given: list[Any]) -> list[Any]:
    """Unpack a list of lists of messages, as a model run's inputs are written, or of pairs."""
    if given and all(isinstance(inner, list) and inner for inner in given):
        if all(not isinstance(one[0], dict | list) and is_message(one[-1]) for one in given):
            return [one[-1] for one in given]
        return list(given[0])
    return given


def _all_messages(value: Any) -> list[Any]:
    """Return the messages of a list that holds nothing else, or of an object around one."""
    messages = messages_in(value)
    if isinstance(value, list):
        return messages if all(is_message(one) for one in messages[:_LOOKED_AT]) else []
    return messages if any(is_message(one) for one in messages[:_LOOKED_AT]) else []


def _format(dialect: Dialect) -> Format:
    def matches(value: Any) -> bool:
        messages = _all_messages(value)
        return bool(messages) and dialect_of(messages) is dialect

    def read(run: Events, values: list[Any]) -> None:
        messages = messages_in(values[0])
        if not messages:
            raise ConversationError("holds no messages")
        run.name = first_text(values[0], *_IDS)
        run.events = dialect.events_of(messages)
        run.outcome = dialect.outcome_of(as_dict(values[0]))

    return Format(dialect.name, matches, one_run(read))


def _read_messages(run: Events, values: list[Any]) -> None:
    run.events = events_of(values)


MESSAGES = Format("chat messages", is_message, one_run(_read_messages), group=lambda _: "")
"""Messages, one a value; their dialect is found when the run is whole."""

CHATS: tuple[Format, ...] = tuple(_format(dialect) for dialect in DIALECTS)
"""One run a value: a list of messages, or an object around one; a format for each dialect."""

_BY_DIALECT = dict(zip((dialect.name for dialect in DIALECTS), CHATS, strict=True))


def format_of(value: Any) -> Format | None:
    """Find which of these formats a value is of; as asking each of them, but once."""
    if is_message(value):
        return MESSAGES
    messages = _all_messages(value)
    return _BY_DIALECT[dialect_of(messages).name] if messages else None
