"""Which events do messages of OpenAI's chat API make?

An assistant message asks for calls in `tool_calls` (once in `function_call`); each answer is a
message of the role `tool` with the call's id. A `user` message is a person's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers.base import Events, call, parsed_arguments

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Event


def events_of(messages: list[dict[str, Any]]) -> list[Event]:
    """Turn chat messages into events."""
    events = Events()
    for message in messages:
        role = message.get("role")
        if role == "user":
            events.human()
        elif role == "assistant":
            events.batch(calls_of(message))
        elif role in {"tool", "function"}:
            # tau2 writes the call's id as `id`, and whether the call failed as `error`.
            failed = message.get("error")
            events.answer(
                message.get("tool_call_id") or message.get("id"),
                message.get("content"),
                failed=failed if isinstance(failed, bool) else None,
            )
    return events.events


def calls_of(message: dict[str, Any]) -> list[Event]:
    """List the calls of an assistant message."""
    calls = []
    for given in message.get("tool_calls") or []:
        if not isinstance(given, dict):
            continue
        function = given.get("function") or given.get("custom") or given
        if isinstance(function, dict):
            arguments = function.get("arguments", function.get("input"))
            calls.append(call(given.get("id"), function.get("name"), parsed_arguments(arguments)))
    legacy = message.get("function_call")
    if not calls and isinstance(legacy, dict):
        arguments = parsed_arguments(legacy.get("arguments"))
        calls.append(call(None, legacy.get("name"), arguments))
    return calls
