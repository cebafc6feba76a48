"""Reads OpenTelemetry spans: by the conventions for generative AI, and by OpenInference.

Spans come as OTLP JSON (the collector's file exporter, an object of `resourceSpans` a line or a
document), as the SDK's `to_json` writes them, or as the rows of a Phoenix table, whose columns are
the flattened keys (`context.trace_id`, `attributes.openinference.span.kind`, …). A trace is a run,
whose spans may stand anywhere in the file.

A tool call is a span with `gen_ai.operation.name` `execute_tool`, with `openinference.span.kind`
`TOOL`, or with `traceloop.span.kind` `tool`. Messages stand in `gen_ai.input.messages` and
`gen_ai.output.messages`, in `pydantic_ai.all_messages`, or flattened in `llm.input_messages.…`. It
failed if its status is an error.

Facts: the conventions for generative AI 1.38 and 0.1 of their own repository, OTLP 1.9, and
openinference-semantic-conventions 0.1.30, read 2026-11.
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

_MODEL = frozenset({"chat", "text_completion", "generate_content", "LLM", "completion"})
_TOOL = frozenset({"execute_tool", "TOOL", "tool"})
_KIND = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
_NAME = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")
_CALL_ID = ("gen_ai.tool.call.id", "tool_call.id", "tool.id")
_ARGS = ("gen_ai.tool.call.arguments", "input.value", "traceloop.entity.input", "tool_arguments")
_OUTPUT = ("gen_ai.tool.call.result", "output.value", "traceloop.entity.output", "tool_response")
_MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages", "pydantic_ai.all_messages")
_FLAT = ("llm.input_messages", "llm.output_messages")
_ERROR = frozenset({2, "2", "ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR"})
_OK = frozenset({1, "1", "OK", "STATUS_CODE_OK", "StatusCode.OK"})


def _is_otlp(value: Any) -> bool:
    return isinstance(value.get("resourceSpans", value.get("resource_spans")), list)


def _is_span(value: Any) -> bool:
    if "context.trace_id" in value:
        return True
    return "trace_id" in value["context"] and isinstance(value["attributes"], dict)


def _read_otlp(values: Values, place: Place) -> Iterator[Conversation]:
    yield from conversations(_otlp_spans(values), place)


def _otlp_spans(values: Values) -> Iterator[Span]:
    for value in values:
        for resource in dicts_of(value.get("resourceSpans", value.get("resource_spans"))):
            for scope in dicts_of(resource.get("scopeSpans", resource.get("scope_spans"))):
                for span in dicts_of(scope.get("spans")):
                    attributes = _attributes(span.get("attributes"))
                    for event in dicts_of(span.get("events")):
                        told = _attributes(event.get("attributes"))
                        attributes |= {key: told[key] for key in _MESSAGES if key in told}
                    status = as_dict(span.get("status")).get("code")
                    times = (
                        first_text(span, "startTimeUnixNano", "start_time_unix_nano"),
                        first_text(span, "endTimeUnixNano", "end_time_unix_nano") or None,
                    )
                    yield _span(
                        first_text(span, "traceId", "trace_id"),
                        first_text(span, "spanId", "span_id"),
                        attributes, status, times, span.get("name"),
                        is_root=not span.get("parentSpanId", span.get("parent_span_id")),
                    )  # fmt: skip


def _attributes(given: Any) -> dict[str, Any]:
    return {str(one.get("key")): _value(one.get("value")) for one in dicts_of(given, "attributes")}


def _value(given: Any) -> Any:
    kind, value = next(iter(as_dict(given).items()), ("", None))
    if kind == "arrayValue":
        return [_value(one) for one in as_dict(value).get("values", [])]
    if kind == "kvlistValue":
        return _attributes(as_dict(value).get("values"))
    return value


def _read_spans(values: Values, place: Place) -> Iterator[Conversation]:
    yield from conversations((_row(value) for value in values), place)


def _row(value: dict[str, Any]) -> Span:
    context = as_dict(value.get("context"))
    attributes = dict(as_dict(value.get("attributes")))
    for key, item in value.items():
        if key.startswith("attributes.") and item is not None:
            attributes[key.removeprefix("attributes.")] = item
    status = value.get("status_code", as_dict(value.get("status")).get("status_code"))
    return _span(
        first_text(context, "trace_id") or first_text(value, "context.trace_id"),
        first_text(context, "span_id") or first_text(value, "context.span_id"),
        attributes, status, (value.get("start_time"), value.get("end_time")), value.get("name"),
        is_root=not value.get("parent_id", context.get("parent_id")),
    )  # fmt: skip


def _span(
    trace: str, span_id: str, attributes: dict[str, Any], status: Any, times: tuple[Any, Any],
    name: Any, *, is_root: bool,
) -> Span:  # fmt: skip
    kinds = {_attribute(attributes, key) for key in _KIND}
    if kinds & _TOOL:
        output, failed = tool_message(parsed_arguments(_first(attributes, _OUTPUT)))
        # An output that is no text stays as it was written, so that equal ones compare equal.
        given = _first(attributes, _OUTPUT)
        if output is not None and failed is None and not isinstance(output, dict | list):
            output = given
        if status in _ERROR or "error.type" in attributes:
            failed = True
            told = _first(attributes, ("exception.message", "error.message", "error.type"))
            output = told if output is None else output
        elif failed is None and status in _OK:
            failed = False
        return Span(
            trace, "tool", _first(attributes, _NAME) or name, times[0], times[1],
            call_id=str(_first(attributes, _CALL_ID) or span_id),
            args=parsed_arguments(_first(attributes, _ARGS)), output=output, failed=failed,
        )  # fmt: skip
    messages: list[Any] = []
    for key in _MESSAGES:
        given = parsed_arguments(attributes.get(key))
        messages.extend(given if isinstance(given, list) else [])
    for prefix in _FLAT:
        messages.extend(_flat_messages(attributes, prefix))
    if is_root and not messages:
        given = parsed_arguments(attributes.get("output.value"))
        messages = [one for one in chat.messages_in(given) if chat.is_message(one)]
        return Span(trace, "root", name, times[0], times[1], messages=messages)
    if kinds & _MODEL or messages:
        return Span(trace, "model", name, times[0], times[1], messages=messages)
    return Span(trace, "")


def _attribute(attributes: dict[str, Any], key: str) -> str:
    value = attributes.get(key)
    return value if isinstance(value, str) else ""


def _first(attributes: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((attributes[key] for key in keys if attributes.get(key) is not None), None)


def _flat_messages(attributes: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Read OpenInference's messages, a key for each part of each, as OpenAI would write them."""
    given = attributes.get(prefix)
    if not isinstance(given, list):
        given = _nested({k: v for k, v in attributes.items() if k.startswith(f"{prefix}.")}, prefix)
    messages = []
    for one in given:
        told = as_dict(as_dict(one).get("message") or _inner(one, "message"))
        calls = []
        for item in told.get("tool_calls") or []:
            inner = as_dict(as_dict(item).get("tool_call") or _inner(item, "tool_call"))
            function = as_dict(inner.get("function") or _inner(inner, "function"))
            calls.append({"id": inner.get("id"), "function": function})
        message = {key: told.get(key) for key in ("role", "content", "tool_call_id")}
        messages.append({**message, "tool_calls": calls} if calls else message)
    return messages


def _inner(value: Any, key: str) -> dict[str, Any]:
    """Collect the keys of an object that begin with a name and a dot, without it."""
    told = as_dict(value).items()
    return {name.removeprefix(f"{key}."): v for name, v in told if name.startswith(f"{key}.")}


def _nested(flat: dict[str, Any], prefix: str) -> list[Any]:
    """Turn keys such as `prefix.0.message.role` into a list of objects."""
    root: dict[str, Any] = {}
    for key, value in flat.items():
        at = root
        *path, last = key.removeprefix(f"{prefix}.").split(".")
        for name in path:
            found = at.setdefault(name, {})
            if not isinstance(found, dict):
                break
            at = found
        else:
            at[last] = value
    listed = _listed(root)
    return listed if isinstance(listed, list) else []


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    items = {key: _listed(inner) for key, inner in value.items()}
    if items and all(key.isdecimal() for key in items):
        return [items[key] for key in sorted(items, key=int)]
    return items


OTLP = Format("OTLP spans", _is_otlp, _read_otlp, group=lambda _: "")

SPANS = Format("OpenTelemetry spans", _is_span, _read_spans, group=lambda _: "")
"""OpenTelemetry's spans, one a value, as the SDK or Phoenix writes them."""
