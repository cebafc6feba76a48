"""Do the spans of a trace tell the run, whatever of it a store recorded?"""

from __future__ import annotations

import json

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode, set_span_in_context

from langchain_loopguard.replay.conversation import Problem
from langchain_loopguard.replay.readers import read_values
from langchain_loopguard.replay.readers.spans import Span, events_of
from tests.replay.readers.handmade import langfuse_rows, langsmith_bulk
from tests.replay.stories import STEPS, langsmith, story, told

GENAI = {
    "kind": "gen_ai.operation.name", "tool": "execute_tool", "model": "chat",
    "name": "gen_ai.tool.name", "id": "gen_ai.tool.call.id",
    "args": "gen_ai.tool.call.arguments", "output": "gen_ai.tool.call.result",
}  # fmt: skip
OPENINFERENCE = {
    "kind": "openinference.span.kind", "tool": "TOOL", "model": "LLM",
    "name": "tool.name", "id": "tool_call.id", "args": "input.value", "output": "output.value",
}  # fmt: skip


MS = 10**6
"""Nanoseconds; JSON lines keep microseconds of a time."""


def recorded(words, *, models=True, content=True, status=True):
    """The story in spans that the SDK wrote, as JSON lines; without its second turn."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("made")
    root = tracer.start_span("agent", start_time=MS)
    context = set_span_in_context(root)
    now = 10 * MS
    messages = []
    for step in STEPS:
        if isinstance(step, str):
            messages.append({"role": "user", "parts": [{"type": "text", "content": step}]})
            continue
        calls = [
            {"type": "tool_call", "id": i, "name": n, "arguments": a} for i, n, a, _, _ in step
        ]
        answer = {"role": "assistant", "parts": calls}
        if models:
            given = {words["kind"]: words["model"]}
            if content:
                given["gen_ai.input.messages"] = json.dumps(messages)
                given["gen_ai.output.messages"] = json.dumps([answer])
            tracer.start_span("chat", context, attributes=given, start_time=now).end(now + MS)
        messages.append(answer)
        now += 2 * MS
        spans = []
        for i, name, args, text, bad in step:
            attributes = {words["kind"]: words["tool"], words["name"]: name, words["id"]: i,
                          words["args"]: json.dumps(args), words["output"]: text}  # fmt: skip
            span = tracer.start_span(name, context, attributes=attributes, start_time=now)
            if status:
                span.set_status(Status(StatusCode.ERROR if bad else StatusCode.OK))
            spans.append(span)
            response = {"type": "tool_call_response", "id": i, "response": text}
            messages.append({"role": "tool", "parts": [response]})
        for span in spans:
            span.end(now + 5 * MS)
        now += 10 * MS
    root.end(now)
    return [json.loads(span.to_json()) for span in exporter.get_finished_spans()]


def run_of(values):
    [run] = read_values(list(enumerate(values, 1)), "f")
    return run


def one_turn(events):
    """The story without the user's second word, which only messages tell."""
    first, *rest = events
    return [first, *(event for event in rest if event != ("human",))]


@pytest.mark.parametrize("words", [GENAI, OPENINFERENCE], ids=["GenAI", "OpenInference"])
@pytest.mark.parametrize("models", [True, False], ids=["model calls", "tools alone"])
def test_spans_without_content_tell_the_steps(words, models):
    spans = recorded(words, models=models, content=False)
    assert told(run_of(spans)) == one_turn(story())


@pytest.mark.parametrize("words", [GENAI, OPENINFERENCE], ids=["GenAI", "OpenInference"])
def test_messages_tell_turns_and_spans_fill_in_the_last_results(words):
    assert told(run_of(recorded(words))) == story()


def test_a_span_without_a_status_says_nothing_of_failure():
    run = run_of(recorded(GENAI, content=False, status=False))
    assert all("status" not in result for step in run.steps for result in step["results"])


def test_the_order_of_spans_in_a_file_does_not_matter():
    spans = recorded(GENAI)
    assert told(run_of(spans[::-1])) == told(run_of(spans))


def test_traces_that_a_file_mixes_are_runs_of_their_own():
    first, second = recorded(GENAI), recorded(GENAI)
    mixed = [span for pair in zip(first, second, strict=True) for span in pair]
    runs = list(read_values(list(enumerate(mixed, 1)), "f"))
    assert [told(run) for run in runs] == [story(), story()]
    assert len({run.id for run in runs}) == 2


def test_rows_of_a_phoenix_table_are_spans():
    rows = []
    for span in recorded(OPENINFERENCE):
        row = {key: span[key] for key in ("name", "start_time", "end_time", "parent_id")}
        row["status_code"] = span["status"]["status_code"]
        row |= {f"context.{key}": value for key, value in span["context"].items()}
        row |= {f"attributes.{key}": value for key, value in span["attributes"].items()}
        rows.append(row)
    assert told(run_of(rows)) == story()


def test_messages_of_one_agent_do_not_hide_the_calls_of_another():
    """The lead's messages hold one call, whose agent made two more."""
    call = {"id": "c", "function": {"name": "ask", "arguments": "{}"}}
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}]
    spans = [
        Span("t", "model", start=1, messages=messages),
        *(Span("t", "tool", f"tool{at}", at, at + 0.5, f"i{at}", {}, "x") for at in (2, 3, 4)),
    ]
    names = [c["name"] for event in events_of(spans)[1:] for c in event["calls"]]
    assert names == ["tool2", "tool3", "tool4"]


def test_a_bulk_export_tells_what_the_api_tells():
    assert told(run_of(langsmith_bulk())) == told(run_of(langsmith())) == story()


def test_a_trace_of_langsmith_that_comes_back_is_a_problem():
    first = langsmith_bulk()
    second = [{**row, "trace_id": "t2"} for row in first]
    found = list(read_values(list(enumerate([*first, *second, first[0]], 1)), "f"))
    [problem] = [str(one) for one in found if isinstance(one, Problem)]
    assert problem.startswith("f, line 5: LangSmith runs: the runs of a trace do not stand")


def test_rows_of_two_langfuse_traces_may_be_mixed():
    first = langfuse_rows()
    second = [{**row, "trace_id": "t2"} for row in first]
    mixed = [row for pair in zip(first, second, strict=True) for row in pair]
    runs = list(read_values(list(enumerate(mixed, 1)), "f"))
    assert [(run.id, told(run)) for run in runs] == [("t1", story()), ("t2", story())]


def test_a_langfuse_span_is_a_call_only_if_it_names_a_tool():
    row = {"type": "SPAN", "traceId": "t", "startTime": "1", "name": "search", "id": "o",
           "input": {"q": 1}, "output": "none"}  # fmt: skip
    tool = {**row, "metadata": {"attributes": {"gen_ai.tool.name": "search"}}}
    run = run_of([tool, {**row, "id": "o2", "startTime": "2"}])
    assert run.calls == 1
