"""Reads the runs of AgentDojo.

A file a run: the suite and the task, `messages`, and `utility`, which says whether the user's task
was solved (what `security` says of the attack is no outcome of the task). A call is
`{"function": name, "args", "id"}`; a result has its text in `content` and an `error`.

Facts: `agentdojo.logging` and `agentdojo.types` of the package agentdojo 0.1.35, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers.base import (
    Dialect,
    Events,
    call,
    dicts_of,
    events_by_message,
)

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Outcome


def _knows(message: Any) -> bool:
    calls = message.get("tool_calls")
    return isinstance(calls, list) and any(
        isinstance(one["function"], str) and "args" in one for one in calls
    )


def _add(events: Events, message: dict[str, Any]) -> None:
    role = message.get("role")
    if role == "user":
        events.user()
    elif role == "assistant":
        given = dicts_of(message.get("tool_calls"), "tool_calls")
        events.step([call(one.get("id"), one.get("function"), one.get("args")) for one in given])
    elif role == "tool":
        error = message.get("error")
        content = message.get("content") or error
        events.result(message.get("tool_call_id"), content, failed=error is not None)


def _outcome(run: dict[str, Any]) -> Outcome:
    if "suite_name" in run and isinstance(run.get("utility"), bool):
        return "success" if run["utility"] else "fail"
    return "unknown"


AGENTDOJO = Dialect("AgentDojo run", _knows, events_by_message(_add), _outcome)
"""AgentDojo's runs."""
