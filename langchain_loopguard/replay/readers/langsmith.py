"""Reads LangSmith's runs, as its API, its `langsmith` command and its bulk export write them.

Every step of a trace is a run: the graph, the model calls, the tools. The root of a LangGraph trace
ends with the whole message list. Without it the model call that was sent the longest history tells
most; see `spans`. A bulk export has `inputs`, `outputs` and `extra` as JSON text.

A thread of several traces makes one conversation a trace, each with what the thread remembered. The
runs of one trace must stand together.

Facts: LangSmith's run data format and its pages on bulk exports, read 2026-11.
"""

from __future__ import annotations

from typing import Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers import chat
from langchain_loopguard.replay.readers.base import (
    Events,
    Format,
    as_dict,
    blocks_of,
    first_text,
    one_run,
    parsed_arguments,
)
from langchain_loopguard.replay.readers.spans import Span, events_of, tool_message


def _matches(value: Any) -> bool:
    return "run_type" in value and ("id" in value or "inputs" in value)


def _trace(value: dict[str, Any]) -> str | None:
    return first_text(value, "trace_id", "id")


def _read(run: Events, values: list[Any]) -> None:
    runs = _with_children(values)
    spans = [_span(one) for one in runs]
    told = any(isinstance(one.get(key), dict) for one in runs for key in ("inputs", "outputs"))
    if not told and not any(span.kind == "tool" or span.messages for span in spans):
        raise ConversationError("the runs have neither messages nor tool runs")
    run.name = first_text(values[0], "trace_id", "id")
    run.events = events_of(spans)


def _with_children(runs: list[Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    waiting = list(reversed(runs))
    while waiting:
        run = waiting.pop()
        if isinstance(run, dict):
            for key in ("inputs", "outputs", "extra"):
                if isinstance(run.get(key), str):
                    run = {**run, key: parsed_arguments(run[key])}
            found.append(run)
            waiting.extend(reversed(blocks_of(run.get("child_runs"))))
    return found


def _span(run: dict[str, Any]) -> Span:
    trace, kind = first_text(run, "trace_id", "id"), run.get("run_type")
    start, end, outputs = run.get("start_time"), run.get("end_time"), run.get("outputs")
    if kind == "llm":
        sent, received = chat.messages_in(run.get("inputs")), chat.messages_in(outputs)
        return Span(trace, "model", "", start, end, messages=[*sent, *received])
    if kind == "tool":
        inner = outputs
        if isinstance(inner, dict) and len(inner) == 1:
            inner = next(iter(inner.values()))
        content, failed = tool_message(inner)
        call_id = as_dict(as_dict(inner).get("kwargs") or inner).get("tool_call_id")
        if run.get("error"):
            content, failed = run["error"], True
        return Span(
            trace, "tool", run.get("name"), start, end,
            call_id=call_id if isinstance(call_id, str) else first_text(run, "id"),
            args=run.get("inputs"), output=content, failed=failed,
        )  # fmt: skip
    if not run.get("parent_run_id"):
        return Span(trace, "root", "", start, end, messages=chat.messages_in(outputs))
    return Span(trace, "")


LANGSMITH = Format(
    "LangSmith runs",
    _matches,
    one_run(_read),
    group=_trace,
    torn="the runs of a trace do not stand together: sort them by trace_id",
)
