"""Reads what `codex exec --json` prints, a line an event.

A call is an item that was started and completed, of the kinds below; a prompt is a `turn.started`.
The `todo_list` mirrors a plan and is no call. The events tell when calls ran, not which of them the
model asked for together: calls that ran at the same time are one step.

Facts: Codex CLI 0.171 and its documentation of these events, read 2026-11.
"""

from __future__ import annotations

from typing import Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.base import (
    Events,
    Format,
    as_dict,
    call,
    first_text,
    one_run,
)

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


def _is_event(value: Any) -> bool:
    kind = value["type"]
    if kind == "error":
        return bool(value.keys() == {"type", "message"})
    return kind in _EVENTS and (not kind.startswith("item.") or isinstance(value["item"], dict))


def _thread(value: dict[str, Any]) -> str | None:
    return first_text(value, "thread_id") or None


def _read_exec(run: Events, values: list[Any]) -> None:
    begun = set()
    for number, value in enumerate(values, 1):
        run.name = run.name or first_text(value, "thread_id")
        if value["type"] == "turn.started":
            run.user()
        item = as_dict(value.get("item"))
        kind = item.get("type")
        if not item or kind in _NO_CALLS:
            continue
        if kind not in _CALLS:
            raise ConversationError(f"event {number}: an item of an unknown kind")
        # Item ids start again with every turn of a resumed thread.
        item_id = f"{sum(e['type'] == 'human' for e in run.events)}.{first_text(item, 'id')}"
        if item_id not in begun:
            begun.add(item_id)
            given = {key: item[key] for key in _CALLS[kind] if item.get(key) is not None}
            args = given.get("arguments", given) if kind == "mcp_tool_call" else given
            run.begin(call(item_id, first_text(item, "tool") or kind, args))
        if value["type"] == "item.completed":
            run.result(item_id, _output(item), failed=_failed(item))


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


CODEX_EXEC = Format("Codex exec events", _is_event, one_run(_read_exec), group=_thread, exact=True)
