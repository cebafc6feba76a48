"""Reads the sessions that opencode exports.

One object: `info` of the session and `messages`, each with `info` and `parts`. A part of the type
`tool` is a call and its result in one; `step-start` and `step-finish` part the steps.

Facts: `opencode export` of opencode 1.x.
"""

from __future__ import annotations

from typing import Any

from langchain_loopguard.replay.readers.base import (
    Events,
    Format,
    as_dict,
    blocks_of,
    call,
    first_text,
    one_run,
)

_SPOKEN = frozenset({"text", "file", "agent", "subtask"})


def _matches(value: Any) -> bool:
    messages = value["messages"]
    if not isinstance(messages, list):
        return False
    if not messages:
        return isinstance(value.get("info"), dict)
    first = messages[0]
    if not isinstance(first["parts"], list):
        return False
    return "info" in first or any(
        part.get("type") == "tool" for message in messages for part in blocks_of(message["parts"])
    )


def _read(run: Events, values: list[Any]) -> None:
    session = values[0]
    info = session.get("info") if isinstance(session.get("info"), dict) else session
    run.name = first_text(info, "id", "sessionID", "title")
    for message in session["messages"]:
        head = as_dict(message.get("info")) or message
        parts = blocks_of(message.get("parts"))
        if head.get("role") == "user":
            if any(part.get("type") in _SPOKEN and not part.get("synthetic") for part in parts):
                run.user()
        else:
            _add_parts(run, parts)


def _add_parts(events: Events, parts: list[dict[str, Any]]) -> None:
    step: list[dict[str, Any]] = []
    for part in parts:
        if part.get("type") == "tool":
            step.append(part)
        elif part.get("type") in {"step-start", "step-finish"}:
            _add_step(events, step)
            step = []
    _add_step(events, step)


def _add_step(events: Events, parts: list[dict[str, Any]]) -> None:
    states = [as_dict(part.get("state")) for part in parts]
    events.step(
        [
            call(part.get("callID"), part.get("tool"), state.get("input"))
            for part, state in zip(parts, states, strict=True)
        ]
    )
    for part, state in zip(parts, states, strict=True):
        failed = state.get("status") == "error"
        content = state.get("error" if failed else "output")
        if content is not None:
            events.result(part.get("callID"), content, failed=failed)


OPENCODE = Format("opencode session", _matches, one_run(_read))
