"""Reads the messages of Amazon Bedrock's Converse API, which Strands Agents keeps too.

Content blocks have one key each, their kind: a call is a `toolUse` of an assistant message, its
result a `toolResult` of the next user message, with a `status` of `success` or `error`.

Facts: the API reference of Bedrock's `Converse` (botocore 1.43), read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers.base import (
    Dialect,
    Events,
    blocks_of,
    call,
    events_by_message,
)

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Event

_SPOKEN = frozenset({"text", "image", "document", "video", "audio"})


def _knows(message: Any) -> bool:
    return any("toolUse" in one or "toolResult" in one for one in blocks_of(message["content"]))


def _add(events: Events, message: dict[str, Any]) -> None:
    blocks = blocks_of(message.get("content"))
    events.step([_call(block["toolUse"]) for block in blocks if "toolUse" in block])
    for block in blocks:
        result = block.get("toolResult")
        if isinstance(result, dict):
            # A status is optional; the API takes a result without one for a success.
            status = result.get("status", "success")
            failed = {"success": False, "error": True}.get(str(status))
            events.result(result.get("toolUseId"), result.get("content"), failed=failed)
    if message.get("role") == "user" and (
        isinstance(message.get("content"), str)
        or any(key in block for key in _SPOKEN for block in blocks)
    ):
        events.user()


def _call(use: Any) -> Event:
    use = use if isinstance(use, dict) else {}
    return call(use.get("toolUseId"), use.get("name"), use.get("input"))


BEDROCK = Dialect("Bedrock Converse", _knows, events_by_message(_add))
