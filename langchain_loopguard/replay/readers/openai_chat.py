"""Reads the messages of OpenAI's chat completions API, which many others write too.

An assistant message holds calls in `tool_calls` (once in `function_call`); each result is a
message of the role `tool` with the call's id. A `user` message is the user's. tau2 writes a
result's id as `id`, and whether the call failed as `error`.

Facts: OpenAI's API reference for chat completions, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.base import (
    Dialect,
    Events,
    call,
    dicts_of,
    events_by_message,
    parsed_arguments,
)

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Event


def add_message(events: Events, message: dict[str, Any]) -> None:
    """Add one message's events."""
    role = message.get("role")
    if role == "user":
        events.user()
    elif role == "assistant":
        events.step(calls_of(message))
    elif role in {"tool", "function"}:
        call_id = message.get("tool_call_id") or message.get("id")
        events.result(call_id, message.get("content"), failed=message.get("error"))


def calls_of(message: dict[str, Any]) -> list[Event]:
    """List the calls of an assistant message.

    Raises:
        ConversationError: If one is of an unknown form.
    """
    calls = []
    for given in dicts_of(message.get("tool_calls"), "tool_calls"):
        function = given.get("function") or given.get("custom") or given
        if not isinstance(function, dict):
            raise ConversationError("tool_calls: a function that is no object")
        arguments = function.get("arguments", function.get("input"))
        calls.append(call(given.get("id"), function.get("name"), parsed_arguments(arguments)))
    legacy = message.get("function_call")
    if not calls and isinstance(legacy, dict):
        calls.append(call(None, legacy.get("name"), parsed_arguments(legacy.get("arguments"))))
    return calls


events_of = events_by_message(add_message)
"""Reads a list of messages."""

OPENAI_CHAT = Dialect("OpenAI chat", lambda _: False, events_of)
"""OpenAI's chat messages, and all that no other dialect knows."""
