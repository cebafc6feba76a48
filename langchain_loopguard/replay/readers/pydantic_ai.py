"""Reads the message history of pydantic-ai (`all_messages_json`).

A `response` holds the calls of one step among its `parts`, a `request` the results and what the
user said. A `retry-prompt` with a tool's name (1.x) is the result of a failed call. A tool that the
provider runs itself has both parts in the response. A `tool-return` of newer versions has an
`outcome`; what was denied or interrupted is no failure of the tool.

Facts: `pydantic_ai.messages` of pydantic-ai-slim 2.68, read 2026-11.
"""

from __future__ import annotations

from typing import Any

from langchain_loopguard.replay.readers.base import (
    Dialect,
    Events,
    call,
    dicts_of,
    events_by_message,
    parsed_arguments,
)

_OUTCOMES = {"success": False, "failed": True, "retried": True}


def _knows(message: Any) -> bool:
    parts = message["parts"]
    return message["kind"] in {"request", "response"} and isinstance(parts, list)


def _add(events: Events, message: dict[str, Any]) -> None:
    parts = dicts_of(message.get("parts"), "parts")
    kinds = [str(part.get("part_kind")) for part in parts]
    told = list(zip(kinds, parts, strict=True))
    events.step(
        [
            call(
                part.get("tool_call_id"), part.get("tool_name"), parsed_arguments(part.get("args"))
            )
            for kind, part in told
            if kind.endswith("tool-call")
        ],
        usage=message.get("usage"),
        at=message.get("timestamp"),
    )
    for kind, part in told:
        if kind.endswith("tool-return"):
            failed = _OUTCOMES.get(str(part.get("outcome")))
            events.result(part.get("tool_call_id"), part.get("content"), failed=failed)
        elif kind == "retry-prompt" and part.get("tool_name"):
            events.result(part.get("tool_call_id"), part.get("content"), failed=True)
    if "user-prompt" in kinds:
        events.user()


PYDANTIC_AI = Dialect("pydantic-ai messages", _knows, events_by_message(_add))
