"""Reads the messages of Vercel's AI SDK: model messages and UI messages.

Model messages (`ModelMessage`, 5 and later; `CoreMessage` in 4) have parts of the types
`tool-call`, `tool-result` and `tool-error`. UI messages have `parts` of the type `tool-<name>` or
`dynamic-tool` whose `state` says what came of the call; `step-start` parts part the steps. In 4
they are `tool-invocation` parts, before that a message's `toolInvocations`, with the number of
their `step`. Where nothing tells the steps, each call is one.

Facts: the types of the npm packages `ai` 6 and `@ai-sdk/provider-utils`, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.base import (
    Dialect,
    Events,
    as_dict,
    blocks_of,
    call,
    dicts_of,
    events_by_message,
)

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Event

_MODEL_PARTS = frozenset({"tool-call", "tool-result", "tool-error"})
_FAILED = frozenset({"error-text", "error-json", "execution-denied"})
_ENDED = frozenset({"output-available", "output-error", "output-denied", "result"})


def _knows(message: Any) -> bool:
    if "toolInvocations" in message:
        return True
    parts = [*blocks_of(message.get("content")), *blocks_of(message.get("parts"))]
    return any(
        "toolCallId" in part or "toolInvocation" in part or part.get("type") == "step-start"
        for part in parts
    ) and not any("callID" in part for part in parts)


def _add(events: Events, message: dict[str, Any]) -> None:
    if message.get("role") == "user":
        events.user()
        return
    content = blocks_of(message.get("content"))
    if any(part.get("type") in _MODEL_PARTS for part in content):
        _add_model_parts(events, content)
        return
    parts = blocks_of(message.get("parts"))
    parts = parts or dicts_of(message.get("toolInvocations"), "toolInvocations")
    marked = any(part.get("type") == "step-start" for part in parts)
    step: list[dict[str, Any]] = []
    number: Any = None
    for part in parts:
        is_call = "toolCallId" in part or "toolInvocation" in part
        told = as_dict(part.get("toolInvocation")) or part
        ends = not marked and is_call and (told.get("step") is None or told["step"] != number)
        if part.get("type") == "step-start" or ends:
            _add_step(events, step)
            step = []
        if is_call:
            step.append(part)
            number = told.get("step")
        elif str(part.get("type")).startswith(("tool-", "dynamic-tool")):
            raise ConversationError("a tool part without a call's id")
    _add_step(events, step)


def _add_model_parts(events: Events, parts: list[dict[str, Any]]) -> None:
    calls = [part for part in parts if part.get("type") == "tool-call"]
    events.step([_call(part, part.get("toolName")) for part in calls])
    for part in parts:
        if part.get("type") == "tool-error":
            events.result(part.get("toolCallId"), part.get("error"), failed=True)
        elif part.get("type") == "tool-result":
            output = part.get("output", part.get("result"))
            kind = as_dict(output).get("type")
            failed = part.get("isError")
            if isinstance(kind, str) and "output" in part:
                failed = kind in _FAILED
                output = as_dict(output).get("value", as_dict(output).get("reason"))
            events.result(part.get("toolCallId"), output, failed=failed)


def _add_step(events: Events, parts: list[dict[str, Any]]) -> None:
    """Add the tool parts of one step of a UI message."""
    told = [part.get("toolInvocation", part) for part in parts]
    events.step(
        [
            _call(one, one.get("toolName") or str(part.get("type")).removeprefix("tool-"))
            for one, part in zip(told, parts, strict=True)
        ]
    )
    for one in told:
        state = one.get("state")
        if state in _ENDED:
            failed = None if state == "result" else state != "output-available"
            key = {"output-error": "errorText", "result": "result"}.get(state, "output")
            events.result(one.get("toolCallId"), one.get(key), failed=failed)


def _call(part: dict[str, Any], name: Any) -> Event:
    return call(part.get("toolCallId"), name, part.get("input", part.get("args")))


VERCEL = Dialect("Vercel AI messages", _knows, events_by_message(_add))
