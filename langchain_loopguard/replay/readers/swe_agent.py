"""Reads the trajectories of SWE-agent and mini-swe-agent.

A `.traj` file has a `trajectory`: a list of steps, each with an `action` and its `observation`. An
action is text; its first word is taken as the tool, as SWE-agent's own commands are written, and
more than one line is a shell's. A demonstration has its `history` alone: messages with an `action`,
and with the calls that it was made of where the model calls tools. mini-swe-agent writes chat
messages whose `extra` has the actions.

Facts: SWE-agent 1.1 and mini-swe-agent 1.x.
"""

from __future__ import annotations

import re
from typing import Any

from langchain_loopguard.replay.readers import openai_chat
from langchain_loopguard.replay.readers.base import Events, Format, call, first_text, one_run

_WORD = re.compile(r"[A-Za-z_][\w.-]*")
_SHELL_SIGNS = re.compile(r"&&|\|\||[|;<>]")
_BLOCK_COMMANDS = ("edit", "create", "insert", "str_replace_editor")


def _matches(value: Any) -> bool:
    if isinstance(value.get("trajectory"), list):
        return all(isinstance(s, dict) and "action" in s for s in value["trajectory"][:3])
    if isinstance(value.get("history"), list):
        return any("action" in m and "role" in m for m in value["history"][:10])
    return isinstance(value.get("messages"), list) and any(
        _actions(message) for message in value["messages"][:10]
    )


def _read(run: Events, values: list[Any]) -> None:
    value = values[0]
    run.name = first_text(value, "instance_id", "id")
    if isinstance(value.get("trajectory"), list):
        run.user()
        for number, step in enumerate(value["trajectory"]):
            _add_step(run, step, number)
    elif isinstance(value.get("history"), list):
        _add_history(run, value["history"])
    else:
        _add_messages(run, value["messages"])


def _add_step(events: Events, step: dict[str, Any], number: int) -> None:
    action = step.get("action")
    if isinstance(action, str) and action.strip():
        call_id = f"step_{number}"
        events.step([call(call_id, tool_of(action), {"action": action})])
        if step.get("observation") is not None:
            events.result(call_id, step["observation"])


def _add_history(events: Events, messages: list[Any]) -> None:
    waiting: list[Any] = []
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("is_demo"):
            continue
        role, action = message.get("role"), message.get("action")
        if role == "assistant":
            calls = openai_chat.calls_of(message)
            if not calls and isinstance(action, str) and action.strip():
                calls = [call(f"step_{number}", tool_of(action), {"action": action})]
            events.step(calls)
            waiting = [made["id"] for made in calls]
        elif waiting and role in {"user", "tool"}:
            named = message.get("tool_call_ids")
            answered = named if isinstance(named, list) and named else waiting[:1]
            for call_id in answered:
                events.result(call_id, message.get("content"))
            waiting = [call_id for call_id in waiting if call_id not in answered]
        elif role == "user":
            events.user()


def _add_messages(events: Events, messages: list[Any]) -> None:
    open_ids: list[str] = []
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            continue
        role = message.get("role")
        if role == "assistant":
            actions = _actions(message)
            open_ids = [f"{number}_{at}" for at in range(len(actions))]
            events.step(
                [call(i, "bash", {"command": a}) for i, a in zip(open_ids, actions, strict=True)]
            )
        elif role in {"user", "tool"} and open_ids:
            events.result(open_ids.pop(0), message.get("content"))
        elif role == "user":
            events.user()


def _actions(message: Any) -> list[str]:
    extra = message.get("extra") if isinstance(message, dict) else None
    actions = extra.get("actions") if isinstance(extra, dict) else None
    if not isinstance(actions, list):
        return []
    texts = [a.get("command", a.get("action")) if isinstance(a, dict) else a for a in actions]
    return [text for text in texts if isinstance(text, str)]


def tool_of(action: str) -> str:
    """Name the tool of an action: its first word, `bash` for what only a shell can run."""
    lines = [line for line in action.strip().splitlines() if not line.lstrip().startswith("#")]
    word = _WORD.match(lines[0].strip()) if lines else None
    if word is None:
        return "bash"
    if word[0] in _BLOCK_COMMANDS:
        return word[0]
    if len(lines) > 1 or _SHELL_SIGNS.search(lines[0]):
        return "bash"
    return word[0]


SWE_AGENT = Format("SWE-agent trajectory", _matches, one_run(_read))
