"""Reads OpenAI Codex: the rollout files of its sessions, and `codex exec --json`.

A rollout (`~/.codex/sessions/**/rollout-*.jsonl`) has lines of a `type` and a `payload`: items of
the Responses API under `response_item`, what the user typed as an `event_msg` of the type
`user_message` or `item_completed` (an item of the role `user` may be the harness's own), the end of
a command as `exec_command_end`. A forked session repeats its parent's head and lines
after its own head.

`codex exec --json` prints a line an event: a call is an item that was started and completed, of the
kinds below. Its `todo_list` mirrors a plan and is no call. A prompt is a `turn.started`.

A result's failure is the exit code that Codex writes with it, as JSON or in the text's head.

Facts: Codex CLI 0.171 and its documentation of exec's events, read 2026-11.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation, ConversationError
from langchain_loopguard.replay.readers.base import (
    Events,
    Format,
    Place,
    Values,
    as_dict,
    call,
    first_text,
    parsed_arguments,
)
from langchain_loopguard.replay.readers.openai_responses import Items

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVENTS = frozenset(
    "thread.started turn.started turn.completed turn.failed item.started item.updated "
    "item.completed error".split()
)
_NO_CALLS = frozenset("agent_message reasoning todo_list error user_message plan".split())
_CALLS = {
    "command_execution": ("command",),
    "mcp_tool_call": ("arguments",),
    "file_change": ("changes",),
    "web_search": ("query", "action"),
    "collab_tool_call": ("prompt", "receiver_thread_ids", "sender_thread_id"),
}
"""Kind of item -> the keys of its arguments."""
_EXIT = re.compile(r"(?:Exit code|Process exited with code):? (-?\d+)")
_HEAD = 400
_HARNESS = re.compile(r"\s*(?:<[a-z_]+[ >]|# AGENTS\.md instructions)")


# --- Rollouts -----------------------------------------------------------------------------------


def _is_rollout(value: Any) -> bool:
    told = isinstance(value["type"], str) and isinstance(value["payload"], dict)
    return told and "timestamp" in value


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
        failed = ended.get(first_text(payload, "call_id"), _exited(payload.get("output")))
        try:
            items.add(payload, failed=failed)
        except ConversationError as error:
            raise ConversationError(f"line {number} of the session: {error}") from None
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


def _exited(output: Any) -> bool | None:
    """Read from a command's result whether it failed; `None` when it doesn't say."""
    if isinstance(output, dict) and isinstance(output.get("success"), bool):
        return not output["success"]
    if not isinstance(output, str):
        return None
    if output.startswith("{"):
        code = as_dict(as_dict(parsed_arguments(output)).get("metadata")).get("exit_code")
        return bool(code) if type(code) is int else None
    found = _EXIT.search(output[:_HEAD])
    return found[1] != "0" if found else None


CODEX = Format("Codex session", _is_rollout, _read_rollout, group=lambda _: None, exact=True)
"""Codex's rollout files."""


# --- codex exec --json --------------------------------------------------------------------------


def _is_event(value: Any) -> bool:
    kind = value["type"]
    if kind == "error":
        return bool(value.keys() == {"type", "message"})
    return kind in _EVENTS and (not kind.startswith("item.") or isinstance(value["item"], dict))


def _thread(value: dict[str, Any]) -> str | None:
    return first_text(value, "thread_id") or None


def _read_exec(values: Values, place: Place) -> Iterator[Conversation]:
    name, events, begun = "", Events(), set()
    for number, value in enumerate(values, 1):
        name = name or first_text(value, "thread_id")
        if value["type"] == "turn.started":
            events.user()
        item = as_dict(value.get("item"))
        kind = item.get("type")
        if not item or kind in _NO_CALLS:
            continue
        if kind not in _CALLS:
            raise ConversationError(f"event {number}: an item of an unknown kind")
        # Item ids start again with every turn of a resumed thread.
        item_id = f"{sum(e['type'] == 'human' for e in events.events)}.{first_text(item, 'id')}"
        if item_id not in begun:
            begun.add(item_id)
            given = {key: item[key] for key in _CALLS[kind] if item.get(key) is not None}
            args = given.get("arguments", given) if kind == "mcp_tool_call" else given
            events.begin(call(item_id, first_text(item, "tool") or kind, args))
        if value["type"] == "item.completed":
            events.result(item_id, _output(item), failed=_failed(item))
    yield Conversation(place.source, name or place.name, tuple(events.events))


def _output(item: dict[str, Any]) -> Any:
    found = (item.get(key) for key in ("error", "aggregated_output", "result", "agents_states"))
    return next((one for one in found if one), item.get("aggregated_output", ""))


def _failed(item: dict[str, Any]) -> bool | None:
    code, status = item.get("exit_code"), item.get("status")
    if type(code) is int:
        return code != 0
    if isinstance(status, str):
        return status in {"failed", "declined"}
    return None


CODEX_EXEC = Format("Codex exec events", _is_event, _read_exec, group=_thread, exact=True)
"""What `codex exec --json` prints."""
