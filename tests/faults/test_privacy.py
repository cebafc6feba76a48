"""Does anything of a call or of an answer get where nobody asked for it?

Each tool call carries a secret in its arguments and each answer another one, and so does what a
person says; a guarded run is asked about, continued, refused, stopped and failed, and everything
that the guard leaves behind is searched for them. The messages hold them by nature, and so does
the question: a person has to see what is to run.
"""

from __future__ import annotations

import functools
import json
import logging
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.tools import ToolException
from langchain_core.tracers.base import BaseTracer
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from langchain_loopguard import (
    LoopDetectedError,
    LoopGuard,
    LoopGuardCallbackHandler,
    LoopGuardPolicy,
)
from langchain_loopguard.langchain.history import Reader
from langchain_loopguard.langchain.messages import last_step
from langchain_loopguard.langchain.options import Options
from langchain_loopguard.langchain.question import Asked, make_question
from tests.adapters.guarded import by_hand, owned
from tests.faults.scenarios import POLICIES
from tests.faults.stores import opened
from tests.faults.worker import adapters
from tests.hosts import (
    Counter,
    agent_graph,
    ai_calls,
    ask,
    counting_tool,
    repeating_model,
    thread,
    tool_node_graph,
)

ARGUMENT = "xq-argument-7f3a"
ANSWER = "xq-answer-91bc"
SAID = "xq-said-52de"
SECRETS = (ARGUMENT, ANSWER, SAID)
every_adapter = pytest.mark.parametrize("adapter", adapters())
every_policy = pytest.mark.parametrize("policy", POLICIES)
every_mode = pytest.mark.parametrize("mode", ["interrupt", "raise", "refuse", "warn"])
STATEFUL = [name for name in adapters() if not name.startswith("handler")]


def secrets_in(text: Any) -> list[str]:
    """List the secrets that a text, or the bytes of one, holds."""
    if isinstance(text, bytes):
        return [secret for secret in SECRETS if secret.encode() in text]
    return [secret for secret in SECRETS if secret in str(text)]


def guarded(adapter: str, saver: Any, policy: LoopGuardPolicy, mode: str) -> tuple[Any, list[Any]]:
    """Build an agent that repeats a call with a secret, and fails with one now and then."""

    def answer(number: int) -> str:
        if number % 5 == 4:
            raise ToolException(f"error: {ANSWER}")
        return f"{ANSWER} " * 3

    tools = [counting_tool(Counter(), answer=answer, handle_tool_error=True)]
    call = ("search", {"q": f"password={ARGUMENT}"})
    # One call that exists and one that doesn't.
    model = repeating_model(call, ("nowhere", {"q": ARGUMENT}), times=6)
    options: dict[str, Any] = {"policy": policy, "on_detected": mode}
    if adapter.startswith("node"):
        build = by_hand if adapter == "node-folding" else owned
        return build(model, tools, saver=saver, **options), []
    if adapter == "middleware":
        from langchain_loopguard.middleware import LoopGuardMiddleware

        guard = LoopGuardMiddleware(**options)
        return agent_graph(model, tools, checkpointer=saver, middleware=[guard]), []
    host = agent_graph if adapter == "handler-agent" else tool_node_graph
    return host(model, tools, checkpointer=saver), [LoopGuardCallbackHandler(**options)]


class Lines(logging.Handler):
    """Keeps every line that is logged, by whomever, tracebacks included."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name}: {self.format(record)}")


class Traces(BaseTracer):
    """Keeps what a tracer would send away of the guard's own runs, and its events."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Any] = []
        self.events: list[Any] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.events.append((name, data))

    def _persist_run(self, run: Any) -> None:
        left = [run]
        while left:
            one = left.pop()
            left += one.child_runs
            if "guard" in one.name.lower():
                self.runs.append(one)


@dataclass
class Played:
    """What a run left behind."""

    lines: list[str]
    errors: list[Exception]
    traces: list[Any]
    told: dict[str, list[Any]]
    """Events and counts, by where they were told."""


@functools.cache
def played(adapter: str, policy: str, mode: str) -> Played:
    """Have a run go through all that can happen to it."""
    logs, traces = Lines(), Traces()
    root = logging.getLogger()
    level = root.level
    root.addHandler(logs)
    root.setLevel(logging.DEBUG)
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    graph, handlers = guarded(adapter, InMemorySaver(), POLICIES[policy], mode)
    config = thread("t", *handlers, traces)
    errors: list[Exception] = []
    stream: list[Any] = []
    feedback = {"type": "feedback", "message": f"My password is {SAID}."}
    stop = {"type": "stop", "message": f"My password is {SAID}."}
    answers = iter(("continue", {"type": "perhaps"}, f"Use {SAID}.", feedback, stop))
    value: Any = ask()
    try:
        for _ in range(7):
            with provider.get_tracer("app").start_as_current_span("run"):
                try:
                    stream += graph.stream(value, config, stream_mode="custom")
                except (LoopDetectedError, ValueError) as error:
                    errors.append(error)
            asked = graph.get_state(config).interrupts
            value = Command(resume=next(answers, "stop")) if asked else ask("again")
    finally:
        root.removeHandler(logs)
        root.setLevel(level)
    told = {
        "stream": stream,
        "custom events": traces.events,
        "spans": [
            (dict(span.attributes or {}), [(e.name, dict(e.attributes or {})) for e in span.events])
            for span in exporter.get_finished_spans()
        ],
        "stats": [dict(handler.stats()) for handler in handlers],
    }
    return Played(logs.lines, errors, traces.runs, told)


@every_adapter
@every_policy
@every_mode
def test_events_and_counts_hold_nothing_of_calls_and_answers(adapter, policy, mode):
    told = played(adapter, policy, mode).told
    assert told["stream"]
    assert told["spans"]
    # An error that leaves a span is the application's to record; its text is looked at above.
    assert {where: secrets_in(what) for where, what in told.items() if secrets_in(what)} == {}


@every_adapter
@every_policy
@every_mode
def test_the_logs_hold_nothing_of_calls_and_answers(adapter, policy, mode):
    lines = played(adapter, policy, mode).lines
    assert [line for line in lines if secrets_in(line)] == []


@every_adapter
@every_policy
@every_mode
def test_the_errors_hold_nothing_of_calls_and_answers(adapter, policy, mode):
    errors = played(adapter, policy, mode).errors
    if mode == "raise":
        assert any(isinstance(error, LoopDetectedError) for error in errors)
    for error in errors:
        for text in (str(error), repr(error), repr(error.__cause__), repr(vars(error))):
            assert secrets_in(text) == []


# A node that is wired by hand is traced as its builder says.
@pytest.mark.parametrize("adapter", [a for a in STATEFUL if a != "node-folding"])
@pytest.mark.parametrize("mode", ["interrupt", "refuse", "wrap_up"])
def test_the_guards_own_traces_hold_nothing_of_calls_and_answers(adapter, mode):
    traces = played(adapter, "seed", mode).traces
    assert traces or adapter in {"node", "node-schema"}  # no node of its own
    # What its node was given and what it gave; the question is the host's to show.
    assert [run.name for run in traces if secrets_in((run.inputs, run.outputs))] == []


@every_policy
@pytest.mark.parametrize("adapter", [name for name in adapters() if name != "node-folding"])
def test_the_counts_in_the_store_hold_nothing_of_calls_and_answers(
    adapter, policy, postgres_uri, request
):
    # PostgreSQL keeps each channel by itself, so the bytes can be told apart.
    with opened("postgres", postgres_uri) as saver:
        name = request.node.name
        graph, handlers = guarded(adapter, saver, POLICIES[policy], "interrupt")
        config = thread(name, *handlers)
        graph.invoke(ask(), config)
        for answer in ("continue", "Use the archive.", "stop"):
            if graph.get_state(config).interrupts:
                graph.invoke(Command(resume=answer), config)
        with saver._cursor() as cursor:
            cursor.execute(
                "SELECT channel, blob FROM checkpoint_blobs WHERE thread_id = %s "
                "UNION ALL SELECT channel, blob FROM checkpoint_writes WHERE thread_id = %s",
                (name, name),
            )
            rows = [(row["channel"], row["blob"] or b"") for row in cursor]
    found = {channel for channel, blob in rows if secrets_in(blob)}
    # The messages, what the host hands from the agent to the tools, and the question.
    assert found <= {"messages", "__start__", "__interrupt__", "__pregel_tasks"}
    if not adapter.startswith("handler"):
        assert "loop_guard" in {channel for channel, _ in rows}


@every_policy
def test_the_state_and_what_can_be_printed_hold_nothing_of_calls_and_answers(policy):
    reader = Reader(Options(policy=POLICIES[policy]))
    guard = reader.guard
    seen: list[Any] = [guard, reader]
    for turn in range(8):
        message = ai_calls([("search", {"q": ARGUMENT, ARGUMENT: {"deep": [ARGUMENT]}})], turn)
        step = last_step([message])
        decision = reader.check(step)
        call = message.tool_calls[0]
        result = {"tool_call_id": call["id"], "content": ANSWER, "status": "success"}
        after = guard.record_results(decision.record, [result])
        seen += [decision, decision.record, after, *decision.findings]
        seen += [decision.to_model, decision.refusal, decision.to_person]
        seen += [finding.as_dict() for finding in decision.findings]
        assert secrets_in(json.dumps(reader.to_state())) == []
    assert [repr(item) for item in seen if secrets_in(repr(item))] == []


def test_a_question_shows_the_arguments_and_no_answer():
    guard = LoopGuard(LoopGuardPolicy.seed())
    calls = [{"name": "search", "args": {"q": ARGUMENT}, "id": "c", "type": "tool_call"}]
    for _ in range(3):
        decision = guard.check(calls)
        result = {"tool_call_id": "c", "content": ANSWER, "status": "success"}
        guard.record_results(decision.record, [result])
    message = ai_calls([("search", {"q": ARGUMENT})], 1)
    payload = make_question(
        decision, last_step([message]), [message], asked=Asked(), options=Options()
    )
    assert secrets_in(payload) == [ARGUMENT]
    told = {key: payload[key] for key in ("message", "findings", "choices")}
    assert secrets_in(told) == []
