"""Reads the messages of OpenTelemetry's conventions for generative AI.

`gen_ai.input.messages` and `gen_ai.output.messages` hold messages of a `role` and `parts`: a call
is a part `{"type": "tool_call", "id", "name", "arguments"}`, its result one of the type
`tool_call_response` with a `response` (once `result`). Tools that the provider runs have
`server_tool_call` parts. A result says nothing of failure.

Facts: gen-ai-input-messages.json of the semantic conventions 1.38 and of semantic-conventions-genai
0.1, read 2026-11.
"""

from __future__ import annotations

from typing import Any

from langchain_loopguard.replay.readers.base import (
    Dialect,
    Events,
    as_dict,
    call,
    dicts_of,
    events_by_message,
    parsed_arguments,
)

_CALLS = frozenset({"tool_call", "server_tool_call"})
_RESULTS = frozenset({"tool_call_response", "server_tool_call_response"})
_PARTS = _CALLS | _RESULTS


def _knows(message: Any) -> bool:
    return any(part["type"] in _PARTS for part in message["parts"])


def _add(events: Events, message: dict[str, Any]) -> None:
    parts = dicts_of(message.get("parts"), "parts")
    calls = []
    for part in parts:
        if part.get("type") in _CALLS:
            server = as_dict(part.get("server_tool_call"))
            args = parsed_arguments(part.get("arguments", server or None))
            calls.append(call(part.get("id"), part.get("name"), args))
    events.step(calls)
    for part in parts:
        if part.get("type") in _RESULTS:
            found = (part.get(key) for key in ("response", "result", "server_tool_call_response"))
            content = next((one for one in found if one is not None), None)
            events.result(part.get("id"), content)
    if message.get("role") == "user" and any(part.get("type") not in _PARTS for part in parts):
        events.user()


OTEL_MESSAGES = Dialect("OpenTelemetry messages", _knows, events_by_message(_add))
