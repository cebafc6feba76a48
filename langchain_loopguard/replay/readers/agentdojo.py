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
    from collections.abc import Callable

    from langchain_loopguard.replay.conversation import Outcome


def dialect(
    name: str, arguments: str, outcome_of: Callable[[dict[str, Any]], Outcome] = lambda _: "unknown"
) -> Dialect:
    """Describe messages whose calls have the tool's name under `function`.

    Args:
        name: The dialect's name.
        arguments: The key of a call's arguments.
        outcome_of: As in `Dialect`.
    """

    def knows(message: Any) -> bool:
        calls = message.get("tool_calls")
        return isinstance(calls, list) and any(
            isinstance(one["function"], str) and arguments in one for one in calls
        )

    def add(events: Events, message: dict[str, Any]) -> None:
        role = message.get("role")
        if role == "user":
            events.user()
        elif role == "assistant":
            given = dicts_of(message.get("tool_calls"), "tool_calls")
            events.step([call(c.get("id"), c.get("function"), c.get(arguments)) for c in given])
        elif role == "tool":
            error = message.get("error")
            told = error.get("message") if isinstance(error, dict) else error
            content = message.get("content") or told
            events.result(message.get("tool_call_id"), content, failed=error is not None)

    return Dialect(name, knows, events_by_message(add), outcome_of)


def _outcome(run: dict[str, Any]) -> Outcome:
    if "suite_name" in run and isinstance(run.get("utility"), bool):
        return "success" if run["utility"] else "fail"
    return "unknown"


AGENTDOJO = dialect("AgentDojo run", "args", _outcome)
