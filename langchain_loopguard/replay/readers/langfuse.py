"""Reads Langfuse: traces of its API, and the observations of its exports.

A trace of the API has its `observations`. An export (blob storage, the user interface) has an
observation a row: in camel case (`traceId`) as the API, or in snake case (`trace_id`) as the blob
storage's `observations` and `observations_v2`; `input` and `output` may be JSON text. Rows of one
trace may stand anywhere in a file.

An observation of the type `TOOL` is a call, a `GENERATION` a model call with its messages. Older
SDKs and integrations write tools as `SPAN`, which is read as a call only if its metadata name a
tool. An observation of the `level` `ERROR` failed.

Facts: Langfuse's API reference and its list of exported fields, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers import chat
from langchain_loopguard.replay.readers.base import (
    Format,
    Place,
    Values,
    as_dict,
    dicts_of,
    first_text,
    parsed_arguments,
)
from langchain_loopguard.replay.readers.spans import Span, conversations, tool_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_loopguard.replay.conversation import Conversation

_TYPES = frozenset(
    "SPAN EVENT GENERATION AGENT TOOL CHAIN RETRIEVER EVALUATOR EMBEDDING GUARDRAIL".split()
)


def _is_row(value: Any) -> bool:
    timed = "startTime" in value or "start_time" in value
    return value["type"] in _TYPES and timed and ("traceId" in value or "trace_id" in value)


def _is_trace(value: Any) -> bool:
    observations = value["observations"]
    return isinstance(observations, list) and all(
        one["type"] in _TYPES for one in observations[:50]
    )


def _read_rows(values: Values, place: Place) -> Iterator[Conversation]:
    spans = (_span(value, first_text(value, "traceId", "trace_id")) for value in values)
    yield from conversations(spans, place)


def _read_traces(values: Values, place: Place) -> Iterator[Conversation]:
    for value in values:
        trace = first_text(value, "id") or place.name
        told = dicts_of(value.get("observations"), "observations")
        root = Span(trace, "root", messages=_messages(value.get("output")))
        spans = [_span(one, trace) for one in told]
        yield from conversations([root, *spans], place)


def _span(row: dict[str, Any], trace: str) -> Span:
    start = row.get("startTime", row.get("start_time"))
    end = row.get("endTime", row.get("end_time"))
    kind = row.get("type")
    metadata = as_dict(parsed_arguments(row.get("metadata")))
    attributes = as_dict(metadata.get("attributes")) or metadata
    named = attributes.get("gen_ai.tool.name") or attributes.get("tool_name")
    if kind == "TOOL" or (kind == "SPAN" and isinstance(named, str)):
        output, failed = tool_message(parsed_arguments(row.get("output")))
        if not isinstance(output, dict | list) and failed is None:
            output = row.get("output")
        if row.get("level") == "ERROR":
            failed = True
            status = row.get("statusMessage", row.get("status_message"))
            output = status if output is None else output
        call_id = attributes.get("gen_ai.tool.call.id") or as_dict(
            parsed_arguments(row.get("output"))
        ).get("tool_call_id")
        return Span(
            trace, "tool", named or row.get("name"), start, end,
            call_id=call_id if isinstance(call_id, str) else first_text(row, "id"),
            args=parsed_arguments(row.get("input")), output=output, failed=failed,
        )  # fmt: skip
    if kind == "GENERATION":
        messages = [*_messages(row.get("input")), *_messages(row.get("output"))]
        return Span(trace, "model", row.get("name"), start, end, messages=messages)
    return Span(trace, "")


def _messages(given: Any) -> list[Any]:
    told = parsed_arguments(given)
    if chat.is_message(told):
        return [told]
    return [one for one in chat.messages_in(told) if chat.is_message(one)]


LANGFUSE_TRACE = Format("Langfuse trace", _is_trace, _read_traces)

LANGFUSE_ROWS = Format("Langfuse observations", _is_row, _read_rows, group=lambda _: "")
"""Observations of Langfuse, one a value."""
