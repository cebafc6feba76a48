"""How does LangSmith export runs, and which of them tells the whole conversation?

Every step of a trace is a run: the graph, the model calls, the tools. The root of a LangGraph
trace ends with the whole message list. Without it the model call that was sent the longest
history tells most. Without messages the tool runs are left, each a batch of its own.

A thread of several traces makes one conversation a trace, each with what the thread remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation, ConversationError
from langchain_loopguard.replay.readers import chat
from langchain_loopguard.replay.readers.base import Events, Format, Place, Values, call, first_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_loopguard.replay.conversation import Event


def _matches(value: Any) -> bool:
    return isinstance(value, dict) and "run_type" in value and ("id" in value or "inputs" in value)


def _trace(value: dict[str, Any]) -> str | None:
    return first_text(value, "trace_id", "id")


def _read(values: Values, place: Place) -> Iterator[Conversation]:
    runs = _with_children(values)
    name = first_text(values[0], "trace_id", "id") or place.name
    yield Conversation(place.source, name, tuple(_best(runs)))


def _with_children(runs: list[Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    waiting = list(reversed(runs))
    while waiting:
        run = waiting.pop()
        if isinstance(run, dict):
            found.append(run)
            children = run.get("child_runs")
            waiting.extend(reversed(children) if isinstance(children, list) else [])
    return found


def _best(runs: list[dict[str, Any]]) -> list[Event]:
    for run in runs:
        if not run.get("parent_run_id") and run.get("run_type") != "llm":
            messages = chat.messages_in(run.get("outputs"))
            events = chat.events_of(messages)
            if any(event["type"] == "batch" for event in events):
                return events
    longest: list[Any] = []
    for run in runs:
        if run.get("run_type") == "llm":
            both = [*chat.messages_in(run.get("inputs")), *chat.messages_in(run.get("outputs"))]
            if len(both) >= len(longest):
                longest = both
    if longest:
        return chat.events_of(longest)
    tools = [run for run in runs if run.get("run_type") == "tool"]
    if tools:
        return _tool_events(tools)
    if any(isinstance(run.get(key), dict) for run in runs for key in ("inputs", "outputs")):
        return []
    raise ConversationError("the runs have neither messages nor tool runs")


def _tool_events(runs: list[dict[str, Any]]) -> list[Event]:
    events = Events()
    events.human()
    for run in sorted(runs, key=lambda run: (str(run.get("start_time")), str(run.get("id")))):
        call_id = first_text(run, "id")
        events.batch([call(call_id, run.get("name"), run.get("inputs"))])
        outputs, error = run.get("outputs"), run.get("error")
        if isinstance(outputs, dict) and len(outputs) == 1:
            outputs = next(iter(outputs.values()))
        if error:
            events.answer(call_id, error, failed=True)
        elif outputs is not None:
            events.answer(call_id, outputs)
    return events.events


LANGSMITH = Format("LangSmith runs", _matches, _read, group=_trace)
"""LangSmith's run exports, one run a value."""
