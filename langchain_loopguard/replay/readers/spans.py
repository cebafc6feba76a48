"""Turns the spans of a trace into one run, whatever store they come from.

The calls of a run stand twice in a good trace: in the messages of its model calls, which say which
calls were one step and what the user said, and in its tool spans. The messages are used where they
hold at least as many calls as there are tool spans, which then fill in the results that came after
the last model call. Else (no content recorded, a trimmed history, several agents) the tool spans
are used alone.

Tool spans are one step if no model call began between them; in a trace without model calls, if they
overlap in time.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation
from langchain_loopguard.replay.readers import chat
from langchain_loopguard.replay.readers.base import (
    Events,
    Place,
    as_dict,
    call,
    located,
)
from langchain_loopguard.replay.readers.costs import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from langchain_loopguard.replay.conversation import Event


_DIGITS = 30
"""Digits of a time, nanoseconds since 1970 have 19."""


@dataclass(slots=True)
class Span:
    """One span, as far as a run needs it.

    Attributes:
        trace: The trace's id.
        kind: `tool`, `model`, `root` for the whole run, or empty for another.
        name: The tool's name.
        start: When it began, as a text or number that sorts.
        end: When it ended, alike; `None` when that is not known.
        call_id: The call's id, the span's own where the call has none.
        args: The call's arguments.
        output: What the tool gave back; `None` for nothing yet.
        failed: Whether it failed; `None` when the span doesn't say.
        messages: The messages that a model call was sent and answered.
    """

    trace: str
    kind: str
    name: Any = ""
    start: Any = ""
    end: Any = None
    call_id: str = ""
    args: Any = None
    output: Any = None
    failed: bool | None = None
    messages: list[Any] = field(default_factory=list)


def conversations(spans: Iterable[Span], place: Place) -> Iterator[Conversation]:
    """Yield one run for each trace, in the order in which the traces first appear."""
    traces: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        traces[span.trace].append(span)
    for trace, found in traces.items():
        if any(span.kind for span in found):
            name = trace or place.name
            with located(f"trace {name}"):
                events = events_of(found)
            yield Conversation(place.source, name, tuple(events))


def events_of(spans: list[Span]) -> list[Event]:
    """Read the run that the spans of one trace tell."""
    tools = sorted((one for one in spans if one.kind == "tool"), key=_moment)
    roots = [one.messages for one in spans if one.kind == "root" and one.messages]
    models = sorted((one for one in spans if one.kind == "model"), key=_moment)
    for messages in [*roots, max((one.messages for one in reversed(models)), key=len, default=[])]:
        events = chat.events_of(messages) if messages else []
        calls = sum(len(event["calls"]) for event in events if event["type"] == "batch")
        if calls and (calls >= len(tools) or messages in roots):
            _fill_in(events, tools)
            return events
    if not tools and models:
        return chat.events_of(max((one.messages for one in models), key=len))
    return _tool_events(tools, models)


def _fill_in(events: list[Event], tools: list[Span]) -> None:
    """Add the results that came after the last model call, and what spans say of failure."""
    made_calls = [
        (event, one) for event in events if event["type"] == "batch" for one in event["calls"]
    ]
    for (step, made), span in _paired(made_calls, tools):
        result = next((one for one in step["results"] if one["id"] == made["id"]), None)
        if result is None and span.output is not None:
            result = {"id": made["id"], "content": span.output}
            step["results"].append(result)
        if result is not None and "status" not in result and span.failed is not None:
            result["status"] = "error" if span.failed else "success"


def _paired(
    made_calls: list[tuple[Event, Event]], tools: list[Span]
) -> Iterator[tuple[tuple[Event, Event], Span]]:
    """Pair calls with their spans: by id, the rest by name in their order if none is missing."""
    by_id = {span.call_id: span for span in tools}
    calls: dict[Any, list[tuple[Event, Event]]] = defaultdict(list)
    spans: dict[Any, list[Span]] = defaultdict(list)
    taken = set()
    for pair in made_calls:
        span = by_id.get(pair[1]["id"])
        if span is not None:
            taken.add(span.call_id)
            yield pair, span
        else:
            calls[pair[1]["name"]].append(pair)
    for span in tools:
        if span.call_id not in taken:
            spans[span.name].append(span)
    for name, found in calls.items():
        if len(found) == len(spans.get(name, ())):
            yield from zip(found, spans[name], strict=True)


def _tool_events(tools: list[Span], models: list[Span]) -> list[Event]:
    events = Events()
    events.user()
    starts = [_moment(one) for one in models]
    step: list[Span] = []
    for span in [*tools, None]:
        if span is not None and step and _same_step(step, span, starts):
            step.append(span)
            continue
        at = step[0].start if step else None
        events.step([call(one.call_id, one.name, one.args) for one in step], at=at)
        for one in step:
            if one.output is not None:
                events.result(one.call_id or None, one.output, failed=one.failed)
        step = [span] if span is not None else []
    return events.events


def _same_step(step: list[Span], span: Span, models: list[tuple[int, Any]]) -> bool:
    first, this = _moment(step[0]), _moment(span)
    if models:
        return not any(first < model <= this for model in models)
    return all(one.end is not None and _moment(span) < _order(one.end) for one in step)


def _moment(span: Span) -> tuple[int, Any]:
    return _order(span.start)


def _order(time: Any) -> tuple[int, Any]:
    """Make times sort: numbers, texts of digits, ISO 8601, and the times of a table."""
    if isinstance(time, str) and time.isdecimal():
        return 0, int(time[:_DIGITS])
    if isinstance(time, datetime):
        return 0, time.timestamp()
    if isinstance(time, int | float):
        return 0, time
    seconds = seconds_of(time)
    return (1, str(time)) if seconds is None else (0, seconds)


def tool_message(output: Any) -> tuple[Any, bool | None]:
    """Unwrap a LangChain tool message, which tracers record as a tool's output."""
    told = as_dict(output)
    told = as_dict(told.get("kwargs") or told.get("data")) or told
    if "tool_call_id" in told and "content" in told:
        failed = {"success": False, "error": True}.get(str(told.get("status")))
        return told["content"], failed
    return output, None
