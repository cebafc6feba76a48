"""Reads ATIF, the trajectories of Harbor and of the agents that it runs (Terminus 2 among them).

One object: `schema_version` (`ATIF-v1.0` to `1.8`), `agent`, `steps`. A step of the source `agent`
may have `tool_calls` and an `observation` with their `results`; a result names its call in
`source_call_id`, or belongs to the whole step. Sub-agents that are embedded are runs of their own.
Steps that were copied from an earlier trajectory (`is_copied_context`) are no steps of this one.

An agent that doesn't call tools has its actions in the text of its steps, which is not read: such a
trajectory is an error. An observation without a call among steps with calls is the harness's, which
could not read the model's answer. A result says nothing of failure. The outcome of a trial stands
in Harbor's `result.json`, not here.

Facts: Harbor's RFC 0001 and `harbor.models.trajectories` 0.26, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation, ConversationError
from langchain_loopguard.replay.readers.base import (
    Events,
    Format,
    Place,
    Values,
    as_dict,
    call,
    dicts_of,
    first_text,
    located,
    sign_of_calls,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def _matches(value: Any) -> bool:
    return str(value["schema_version"]).startswith("ATIF") and isinstance(value["steps"], list)


def _read(values: Values, place: Place) -> Iterator[Conversation]:
    for value in values:
        name = first_text(value, "session_id", "trajectory_id") or place.name
        yield from _trajectory(value, name, place.source)


def _trajectory(value: dict[str, Any], name: str, source: str) -> Iterator[Conversation]:
    events = Events()
    for number, step in enumerate(dicts_of(value.get("steps"), "steps"), 1):
        if step.get("is_copied_context") is True:
            continue
        if step.get("source") == "user":
            events.user()
            continue
        with located(f"step {number}"):
            _add_step(events, step)
    if not events.calls and any(step.get("observation") for step in value["steps"]):
        raise ConversationError("its actions are no tool calls, and only those are read")
    yield Conversation(source, name, tuple(events.events))
    for at, inner in enumerate(dicts_of(value.get("subagent_trajectories"), "subagents"), 1):
        own = first_text(inner, "trajectory_id", "session_id") or f"agent-{at}"
        yield from _trajectory(inner, f"{name}/{own}", source)


def _add_step(events: Events, step: dict[str, Any]) -> None:
    calls = [
        call(one.get("tool_call_id"), one.get("function_name"), one.get("arguments"))
        for one in dicts_of(step.get("tool_calls"), "tool_calls")
    ]
    if not calls:
        sign = sign_of_calls({key: step[key] for key in step.keys() - {"observation", "message"}})
        if sign is not None:
            raise ConversationError(f"calls of an unknown form at {sign}")
        return
    events.step(calls, usage=step.get("metrics"), at=step.get("timestamp"))
    for result in dicts_of(as_dict(step.get("observation")).get("results"), "results"):
        call_id = result.get("source_call_id")
        if call_id is None and len(calls) == 1:
            call_id = calls[0]["id"]
        events.result(call_id, result.get("content"))


ATIF = Format("ATIF trajectory", _matches, _read, exact=True)
