"""Reads the sessions that Gemini CLI records.

A session file is one object with `messages`, in newer versions lines: a head, messages, `$set`
lines that change the head or the messages, and `$rewindTo` lines, after which the session went on
from before that message. A message is written again as it grows; its last form counts.

`toolCalls` of a message of the type `gemini` are one step, each with its result and its `status`.

Facts: `chatRecordingTypes` and its service in @google/gemini-cli-core 0.61, read 2026-11.
"""

from __future__ import annotations

from typing import Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.base import (
    Events,
    Format,
    as_dict,
    blocks_of,
    call,
    dicts_of,
    first_text,
    one_run,
)
from langchain_loopguard.replay.readers.gemini import part_of, response_of

_ENDED = {"success": False, "error": True, "cancelled": None}
_KINDS = frozenset({"user", "gemini", "info", "error", "warning"})
_RECORD = frozenset({"id", "timestamp", "content"})


def _matches(value: Any) -> bool:
    if "$set" in value or "$rewindTo" in value:
        return len(value) == 1
    if "projectHash" in value and "sessionId" in value:
        return True
    is_record = value["type"] in _KINDS and value.keys() >= _RECORD
    return is_record and not value.keys() & {"sessionId", "role"}


def _session(value: dict[str, Any]) -> str | None:
    return first_text(value, "sessionId") or None


def _read(run: Events, values: list[Any]) -> None:
    messages: dict[str, dict[str, Any]] = {}
    for number, value in enumerate(values, 1):
        run.name = run.name or first_text(value, "sessionId")
        if "$rewindTo" in value:
            ids = list(messages)
            target = value["$rewindTo"]
            kept = ids.index(target) if target in ids else len(ids)
            messages = {one: messages[one] for one in ids[:kept]}
            continue
        given = as_dict(value.get("$set")) or value
        told = dicts_of(given.get("messages"), f"line {number}, messages")
        if "$set" in value and "messages" in given:
            messages = {}
        for message in [*told, *([value] if value.get("type") in _KINDS else [])]:
            messages[first_text(message, "id") or str(len(messages))] = message
    for message in messages.values():
        _add_record(run, message)


def _add_record(events: Events, message: dict[str, Any]) -> None:
    if message.get("type") == "user":
        content = message.get("content")
        # What a tool gave back is recorded as a message of the user too.
        if isinstance(content, str) or any("text" in part for part in blocks_of(content)):
            events.user()
        return
    told = dicts_of(message.get("toolCalls"), "toolCalls")
    calls = [call(one.get("id"), one.get("name"), one.get("args")) for one in told]
    events.step(calls, usage=message.get("tokens"), at=message.get("timestamp"))
    for one in told:
        status = one.get("status")
        if not isinstance(status, str):
            raise ConversationError("toolCalls: a call without a status")
        if status in _ENDED:
            events.result(one.get("id"), _output(one), failed=_ENDED[status])


def _output(record: dict[str, Any]) -> Any:
    """Return what the model was sent of a call's result."""
    result = record.get("result")
    parts = blocks_of(result if isinstance(result, list) else [result])
    told = [response_of(part_of(part)) for part in parts if "response" in part_of(part)]
    return (told[0] if len(told) == 1 else told) or result or record.get("resultDisplay")


GEMINI_CLI = Format("Gemini CLI session", _matches, one_run(_read), group=_session, exact=True)
