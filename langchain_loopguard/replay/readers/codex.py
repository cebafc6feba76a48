"""Reads the rollout files of OpenAI Codex's sessions (`~/.codex/sessions/**/rollout-*.jsonl`).

A rollout has lines of a `type` and a `payload`: items of the Responses API under `response_item`,
what the user typed as an `event_msg` of the type `user_message` or `item_completed` (an item of the
role `user` may be the harness's own), the end of a command as `exec_command_end`. A forked session
repeats its parent's head and lines after its own head.

A result's failure is the exit code that Codex writes with it, as JSON or in the text's head. What
else stands there differs each time (an id, the time it took) and is left out.

Facts: Codex CLI 0.171, read 2026-11.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation
from langchain_loopguard.replay.readers.base import (
    Events,
    Format,
    Place,
    Values,
    as_dict,
    first_text,
    located,
    parsed_arguments,
)
from langchain_loopguard.replay.readers.openai_responses import Items

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINES = frozenset("session_meta response_item event_msg turn_context compacted".split())
_EXIT = re.compile(r"(?:Exit code|Process exited with code):? (-?\d+)")
_ADDED = re.compile(r"(?m)^(?:Chunk ID|Wall time|Original token count): .*\n")
"""Lines that Codex puts before what a command printed, and that differ each time."""
_HEAD = 400
"""Characters that these lines and the exit code may take."""
_HARNESS = re.compile(r"\A\s*(?:<[a-z_]+[ >]|# AGENTS\.md instructions)")


def _is_rollout(value: Any) -> bool:
    if not isinstance(value["payload"], dict) or "timestamp" not in value:
        return False
    # Newer versions number their lines, and have kinds of lines that no reader needs.
    return value["type"] in _LINES or (isinstance(value["type"], str) and "ordinal" in value)


def _read_rollout(values: Values, place: Place) -> Iterator[Conversation]:
    sessions: list[tuple[set[str], list[dict[str, Any]]]] = []
    for value in values:
        payload = value["payload"]
        if value["type"] == "session_meta":
            own = first_text(payload, "id", "session_id")
            if not sessions or own not in sessions[-1][0]:
                sessions.append((set(), []))
            sessions[-1][0].update({own, first_text(payload, "forked_from_id")})
        elif not sessions:
            sessions.append((set(), []))
        sessions[-1][1].append(value)
    for _, lines in sessions:
        meta = as_dict(lines[0]["payload"]) if lines[0]["type"] == "session_meta" else {}
        name = first_text(meta, "id", "session_id") or place.name
        yield Conversation(place.source, name, tuple(_rollout(lines).events))


def _rollout(lines: list[dict[str, Any]]) -> Events:
    events = Events()
    items = Items(events)
    typed = max((_typed(line) for line in lines), default=0)
    ended = {
        first_text(line["payload"], "call_id"): bool(line["payload"].get("exit_code"))
        for line in lines
        if line["payload"].get("type") == "exec_command_end"
    }
    for number, line in enumerate(lines, 1):
        payload = line["payload"]
        if typed and _typed(line) == typed:
            items.flush()
            events.user()
        if line["type"] != "response_item":
            continue
        if payload.get("role") == "user" and (typed or _is_harness(payload)):
            continue
        if "output" in payload:
            content, failed = _result(payload["output"])
            failed = ended.get(first_text(payload, "call_id"), failed)
            payload = {**payload, "output": content}
        else:
            failed = None
        with located(f"line {number} of the session"):
            items.add(payload, failed=failed)
    items.flush()
    return events


def _typed(line: dict[str, Any]) -> int:
    """Rank the events that tell what the user typed; a session that has both has one of each."""
    payload = line["payload"]
    if line["type"] != "event_msg":
        return 0
    if payload.get("type") == "item_completed":
        return int(as_dict(payload.get("item")).get("type") == "UserMessage")
    return 2 if payload.get("type") == "user_message" else 0


def _is_harness(message: dict[str, Any]) -> bool:
    content = message.get("content")
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, dict) else first
    return isinstance(text, str) and _HARNESS.match(text) is not None


def _result(output: Any) -> tuple[Any, bool | None]:
    """Return what a call gave back, without what Codex adds, and whether it failed."""
    if isinstance(output, dict) and isinstance(output.get("success"), bool):
        return output.get("content"), not output["success"]
    if not isinstance(output, str):
        return output, None
    if output.startswith("{"):
        told = as_dict(parsed_arguments(output))
        code = as_dict(told.get("metadata")).get("exit_code")
        if type(code) is int and "output" in told:
            return told["output"], code != 0
        return output, None
    head, sign, rest = output.partition("Output:\n")
    if not sign or len(head) > _HEAD:
        return output, None
    found = _EXIT.search(head)
    return _ADDED.sub("", head) + sign + rest, found[1] != "0" if found else None


CODEX = Format("Codex session", _is_rollout, _read_rollout, group=lambda _: None, exact=True)
