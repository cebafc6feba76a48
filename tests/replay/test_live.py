"""Are the verdicts on a live run those of every form in which it was stored?

One agent runs once. A callback handler of the guard emits; LangGraph saves the thread; LangSmith's
tracer records the runs, which are written as a bulk export of Parquet and as OTLP spans.
"""

from __future__ import annotations

import base64
import json

import pyarrow as pa
import pytest
from google.protobuf.json_format import MessageToDict
from langchain_core.load import dumpd
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langgraph.checkpoint.sqlite import SqliteSaver
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode, set_span_in_context
from pyarrow import parquet

from langchain_loopguard.replay import Conversation, read_runs, replay
from tests.replay.live import SCRIPTS, emitted_live, live_run


def nested(run):
    """The run and those inside it, as a store lists them."""
    return [run, *(one for child in run.child_runs for one in nested(child))]


def save_bulk_export(runs, path):
    """Write LangSmith's runs as its bulk export does: a row each, JSON in texts."""
    rows = [
        {
            "id": str(run.id),
            "trace_id": str(run.trace_id),
            "parent_run_id": str(run.parent_run_id) if run.parent_run_id else None,
            "run_type": run.run_type,
            "name": run.name,
            "start_time": run.start_time,
            "end_time": run.end_time,
            "inputs": json.dumps(dumpd(run.inputs)),
            "outputs": json.dumps(dumpd(run.outputs)),
            "error": run.error,
        }
        for run in runs
    ]
    parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=4)


def parts_of(messages):
    """LangChain's messages in the form of the conventions for generative AI."""
    made = []
    for message in messages:
        parts = [{"type": "text", "content": message.text}] if message.text else []
        for call in getattr(message, "tool_calls", ()):
            named = {"id": call["id"], "name": call["name"], "arguments": call["args"]}
            parts.append({"type": "tool_call", **named})
        role = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
        if message.type == "tool":
            answer = {"id": message.tool_call_id, "response": message.content}
            parts = [{"type": "tool_call_response", **answer}]
        made.append({"role": role, "parts": parts})
    return json.dumps(made)


def nanoseconds(time):
    return int(time.timestamp() * 1_000_000) * 1_000


def save_spans(runs, messages, path):
    """Write the model and tool runs as spans, which the SDK's own exporter encodes."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("made")
    root = tracer.start_span("agent", start_time=nanoseconds(runs[0].start_time))
    models = 0
    for run in runs:
        attributes = {}
        if run.run_type == "tool":
            output = run.outputs["output"]
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": run.name,
                "gen_ai.tool.call.id": output.tool_call_id,
                "gen_ai.tool.call.arguments": json.dumps(run.inputs),
                "gen_ai.tool.call.result": output.content,
            }
        elif run.run_type in {"llm", "chat_model"}:
            at = [at for at, one in enumerate(messages) if one.type == "ai"][models]
            models += 1
            attributes = {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": parts_of(messages[:at]),
                "gen_ai.output.messages": parts_of(messages[at : at + 1]),
            }
        if attributes:
            span = tracer.start_span(
                run.name, set_span_in_context(root), attributes=attributes,
                start_time=nanoseconds(run.start_time),
            )  # fmt: skip
            span.set_status(Status(StatusCode.OK))
            span.end(nanoseconds(run.end_time))
    root.end(nanoseconds(runs[0].end_time))
    encoded = MessageToDict(encode_spans(exporter.get_finished_spans()))
    path.write_text(json.dumps(hexed(encoded)))


def hexed(value):
    """Ids are hex in OTLP JSON, and base64 in JSON of protobuf."""
    if isinstance(value, dict):
        ids = {"traceId", "spanId", "parentSpanId"}
        return {
            key: base64.b64decode(item).hex() if key in ids else hexed(item)
            for key, item in value.items()
        }
    return [hexed(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module", params=SCRIPTS)
def stored(request, tmp_path_factory):
    """A live run's verdicts, and where it was stored."""
    folder = tmp_path_factory.mktemp("live")
    collector = RunCollectorCallbackHandler()
    with SqliteSaver.from_conn_string(str(folder / "thread.db")) as saver:
        live = live_run(SCRIPTS[request.param], saver, collector)
    [root] = collector.traced_runs
    runs = nested(root)
    save_bulk_export(runs, folder / "runs.parquet")
    save_spans(runs, root.outputs["messages"], folder / "spans.json")
    return folder, live, len(SCRIPTS[request.param])


@pytest.mark.parametrize("name", ["thread.db", "runs.parquet", "spans.json"])
def test_what_was_stored_replays_to_the_live_verdicts(stored, name):
    folder, live, steps = stored
    [run] = read_runs([str(folder / name)])
    assert isinstance(run, Conversation), run
    report = replay(run)
    assert (report.step_count, emitted_live(report)) == (steps, live)
