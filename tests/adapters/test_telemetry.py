"""Who hears of what the guard finds, on each host?"""

from __future__ import annotations

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.tracers.langchain import LangChainTracer
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command
from langsmith.run_helpers import tracing_context
from langsmith.run_trees import RunTree

from langchain_loopguard import LoopDetectedError, LoopGuardCallbackHandler
from langchain_loopguard.telemetry import EVENT, Telemetry
from tests.adapters.agents import guarded_agent
from tests.adapters.guarded import SEED, builder_for
from tests.hosts import (
    MODES,
    Counter,
    agent_graph,
    ask,
    counting_tool,
    drive,
    lcel_chain,
    repeating_model,
    thread,
)

SECRET_ARGUMENT = "sk-argument"
SECRET_ANSWER = "sk-answer: 503"


def looping(**options):
    """Make a model that repeats one call, and its tool."""
    model = repeating_model(("search", {"q": SECRET_ARGUMENT}))
    return model, [counting_tool(Counter(), answer=SECRET_ANSWER, **options)]


def with_callback(on_detected):
    handler = LoopGuardCallbackHandler(SEED, on_detected=on_detected)
    graph = agent_graph(*looping(), checkpointer=InMemorySaver())
    return SimpleNamespace(graph=graph, handlers=[handler], stats=handler.stats)


def with_middleware(on_detected):
    from langchain_loopguard import LoopGuardMiddleware

    guard = LoopGuardMiddleware(SEED, on_detected=on_detected)
    graph = agent_graph(*looping(), middleware=[guard], checkpointer=InMemorySaver())
    return SimpleNamespace(graph=graph, handlers=[], stats=guard.stats)


def with_node(on_detected):
    from langchain_loopguard import LoopGuardNode, LoopGuardState

    builder = builder_for(*looping(), schema=LoopGuardState)
    guard = LoopGuardNode(SEED, on_detected=on_detected)
    builder.add_node("guard", guard)
    builder.add_edge("agent", "guard")
    builder.add_edge("tools", "guard")
    graph = builder.compile(checkpointer=InMemorySaver())
    return SimpleNamespace(graph=graph, handlers=[], stats=guard.stats)


ADAPTERS = {"callback": with_callback, "middleware": with_middleware, "node": with_node}

adapters = pytest.mark.parametrize("adapter", ADAPTERS)


class Ears(BaseCallbackHandler):
    """Notes the custom events."""

    def __init__(self):
        self.heard = []

    def on_custom_event(self, name, data, **kwargs):
        self.heard.append((name, data))


class AsyncEars(AsyncCallbackHandler):
    """Notes the custom events, in async code."""

    def __init__(self):
        self.heard = []

    async def on_custom_event(self, name, data, **kwargs):
        self.heard.append((name, data))


class Deaf(BaseCallbackHandler):
    """Fails on every custom event, and wants the run to end for it."""

    raise_error = True

    def on_custom_event(self, name, data, **kwargs):
        raise ValueError("a listener's own fault")


# --- The stream -------------------------------------------------------------------------------


@adapters
def test_a_question_is_told_once_on_the_custom_stream(adapter):
    host = ADAPTERS[adapter]("interrupt")

    events = list(host.graph.stream(ask(), thread("t", *host.handlers), stream_mode="custom"))

    asked = [event for event in events if event["action"] == "ask"]
    assert len(asked) == 1
    assert asked[0]["type"] == EVENT
    assert asked[0]["adapter"] == adapter
    assert asked[0]["findings"][0]["tools"] == ["search"]


@adapters
async def test_a_question_is_told_once_on_the_custom_stream_in_async_code(adapter):
    host = ADAPTERS[adapter]("interrupt")
    config = thread("t", *host.handlers)

    events = [item async for item in host.graph.astream(ask(), config, stream_mode="custom")]

    assert [event["action"] for event in events].count("ask") == 1


@adapters
def test_a_resume_does_not_tell_the_question_again(adapter):
    host = ADAPTERS[adapter]("interrupt")
    config = thread("t", *host.handlers)
    host.graph.invoke(ask(), config)

    events = list(host.graph.stream(Command(resume="stop"), config, stream_mode="custom"))

    assert events == []


@adapters
def test_an_event_is_json_without_arguments_and_answers(adapter):
    host = ADAPTERS[adapter]("interrupt")

    events = list(host.graph.stream(ask(), thread("t", *host.handlers), stream_mode="custom"))

    told = json.dumps(events)
    assert SECRET_ARGUMENT not in told
    assert SECRET_ANSWER not in told


# --- Custom events ----------------------------------------------------------------------------


@adapters
@pytest.mark.parametrize("mode", MODES)
async def test_handlers_hear_a_question_as_a_custom_event(adapter, mode):
    host = ADAPTERS[adapter]("interrupt")
    ears = Ears()

    await drive(host.graph, mode, ask(), thread("t", ears, *host.handlers))

    assert [name for name, _ in ears.heard] == [EVENT] * len(ears.heard)
    assert [data["action"] for _, data in ears.heard].count("ask") == 1


@adapters
async def test_async_handlers_hear_it_too(adapter):
    host = ADAPTERS[adapter]("interrupt")
    ears = AsyncEars()

    await host.graph.ainvoke(ask(), thread("t", ears, *host.handlers))

    assert [data["action"] for _, data in ears.heard].count("ask") == 1


@adapters
async def test_astream_events_shows_it(adapter):
    host = ADAPTERS[adapter]("interrupt")

    events = [
        event
        async for event in host.graph.astream_events(
            ask(), thread("t", *host.handlers), version="v2"
        )
        if event["event"] == "on_custom_event"
    ]

    assert [event["data"]["action"] for event in events].count("ask") == 1


@adapters
def test_a_listener_that_fails_does_not_disturb_the_agent(adapter):
    host = ADAPTERS[adapter]("interrupt")

    result = host.graph.invoke(ask(), thread("t", Deaf(), *host.handlers))

    assert len(result["__interrupt__"]) == 1


def test_the_handler_does_not_hear_itself():
    handler = LoopGuardCallbackHandler(SEED)

    assert handler.ignore_custom_event


def test_in_a_chain_without_a_graph_handlers_hear_it():
    ears = Ears()
    handler = LoopGuardCallbackHandler(SEED, on_detected="raise", scope="handler")
    chain = lcel_chain(*looping())

    def rounds():
        messages = ask()["messages"]
        for _ in range(10):
            messages = [*messages, *chain.invoke(messages, {"callbacks": [ears, handler]})]

    with pytest.raises(LoopDetectedError):
        rounds()

    assert [data["action"] for _, data in ears.heard].count("ask") == 1


def test_outside_of_any_run_nothing_is_told_and_nothing_fails():
    handler = LoopGuardCallbackHandler(SEED, on_detected="raise", scope="handler")
    tool = looping()[1][0]

    def calls():
        for _ in range(10):
            tool.invoke({"q": "a"}, {"callbacks": [handler]})

    with pytest.raises(LoopDetectedError):
        calls()

    assert handler.stats()["faults"] == 0


# --- LangSmith --------------------------------------------------------------------------------


@pytest.fixture
def langsmith():
    """Give a tracer, and what it sends to a LangSmith on this machine."""
    from langsmith import Client

    sent = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sent.append(json.loads(body))
            self.send_response(202)
            self.end_headers()
            self.wfile.write(b"{}")

        do_PATCH = do_POST  # noqa: N815 - the host's name

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    client = Client(
        api_url=f"http://127.0.0.1:{server.server_port}",
        api_key="none",
        auto_batch_tracing=False,
        info={},
    )
    yield SimpleNamespace(tracer=LangChainTracer(client=client), client=client, sent=sent)
    client.close()
    server.shutdown()
    serving.join()
    server.server_close()


@adapters
def test_one_langsmith_run_is_sent_with_the_metadata_and_the_tag(adapter, langsmith):
    host = ADAPTERS[adapter]("interrupt")

    host.graph.invoke(ask(), thread("t", langsmith.tracer, *host.handlers))

    langsmith.tracer.wait_for_futures()
    marked = [run for run in langsmith.sent if f"{EVENT}:ask" in (run.get("tags") or ())]
    assert len(marked) == 1
    metadata = marked[0]["extra"]["metadata"]
    assert metadata["loop_guard_action"] == "ask"
    assert metadata["loop_guard_tools"] == ["search"]


@adapters
def test_a_langsmith_run_around_the_agent_is_marked_and_not_sent(adapter, langsmith):
    host = ADAPTERS[adapter]("interrupt")
    run = RunTree(name="turn", run_type="chain", ls_client=langsmith.client)

    with tracing_context(parent=run, enabled=False):
        host.graph.invoke(ask(), thread("t", *host.handlers))

    assert f"{EVENT}:ask" in run.tags
    assert langsmith.sent == []


# --- OpenTelemetry ----------------------------------------------------------------------------


@pytest.fixture
def spans():
    """Give a tracer and the spans that it has ended."""
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    yield SimpleNamespace(tracer=provider.get_tracer("test"), ended=exporter.get_finished_spans)
    provider.shutdown()


@adapters
@pytest.mark.parametrize("mode", MODES)
async def test_the_current_span_gets_one_event_for_a_question(adapter, mode, spans):
    host = ADAPTERS[adapter]("interrupt")

    with spans.tracer.start_as_current_span("turn"):
        await drive(host.graph, mode, ask(), thread("t-1", *host.handlers))

    events = [e for e in spans.ended()[0].events if e.attributes["loop_guard.action"] == "ask"]
    assert [event.name for event in events] == [EVENT]
    assert events[0].attributes["gen_ai.tool.name"] == "search"
    assert events[0].attributes["gen_ai.conversation.id"] == "t-1"
    assert events[0].attributes["loop_guard.tools"] == ("search",)


def test_the_span_event_names_the_agent(spans):
    model, tools = looping()
    agent = guarded_agent(model, tools, saver=False, on_detected="refuse").with_config(
        metadata={"lc_agent_name": "researcher"}
    )

    with spans.tracer.start_as_current_span("turn"):
        agent.invoke(ask())

    assert {e.attributes["gen_ai.agent.name"] for e in spans.ended()[0].events} == {"researcher"}


def test_a_batch_of_several_tools_names_no_single_one(spans):
    model = repeating_model(("search", {"q": "a"}), ("fetch", {"q": "b"}))
    tools = [counting_tool(Counter(), name) for name in ("search", "fetch")]

    with spans.tracer.start_as_current_span("turn"):
        guarded_agent(model, tools).invoke(ask(), thread("t"))

    attributes = spans.ended()[0].events[0].attributes
    assert "gen_ai.tool.name" not in attributes
    assert attributes["loop_guard.tools"] == ("search", "fetch")


# --- The logger -------------------------------------------------------------------------------


@adapters
def test_what_no_person_hears_of_is_logged_by_the_package(adapter, caplog):
    host = ADAPTERS[adapter]("refuse")

    with caplog.at_level(logging.WARNING, "langchain_loopguard"):
        _to_its_end(host)

    ours = [item for item in caplog.records if item.name.startswith("langchain_loopguard")]
    assert ours
    assert not any(SECRET_ARGUMENT in item.getMessage() for item in ours)


# --- Counts -----------------------------------------------------------------------------------


def _to_its_end(host):
    try:
        return host.graph.invoke(ask(), thread("t", *host.handlers))
    except LoopDetectedError:
        return None


def _told(stats):
    return {name: count for name, count in stats.items() if count and name != "warned"}


@adapters
def test_a_question_and_its_answer_are_counted_once(adapter):
    host = ADAPTERS[adapter]("interrupt")
    config = thread("t", *host.handlers)
    host.graph.invoke(ask(), config)
    asked = _told(host.stats())

    host.graph.invoke(Command(resume="stop"), config)

    assert asked["asked"] == 1
    assert _told(host.stats()) == {**asked, "stopped": 1}


@adapters
def test_every_batch_is_counted_once(adapter):
    host = ADAPTERS[adapter]("interrupt")
    config = thread("t", *host.handlers)
    result = host.graph.invoke(ask(), config)
    batches = sum(bool(getattr(message, "tool_calls", ())) for message in result["messages"])

    host.graph.invoke(Command(resume="stop"), config)

    assert host.stats()["checked"] == batches


@adapters
def test_an_approval_is_counted(adapter):
    host = ADAPTERS[adapter]("interrupt")
    config = thread("t", *host.handlers)
    host.graph.invoke(ask(), config)

    host.graph.invoke(Command(resume="continue"), config)

    assert host.stats()["approved"] == 1
    assert host.stats()["asked"] == 2


@adapters
def test_a_refusal_by_a_person_is_counted(adapter):
    host = ADAPTERS[adapter]("interrupt")
    config = thread("t", *host.handlers)
    host.graph.invoke(ask(), config)

    host.graph.invoke(Command(resume="look elsewhere"), config)

    assert host.stats()["refused"] == 1


@adapters
def test_refusals_until_the_end_are_counted(adapter):
    host = ADAPTERS[adapter]("refuse")

    _to_its_end(host)

    assert host.stats()["refused"] == SEED.max_refusals
    assert host.stats()["stopped"] == 1


@adapters
def test_an_error_that_ends_the_run_is_counted_once(adapter):
    host = ADAPTERS[adapter]("raise")

    _to_its_end(host)

    assert _told(host.stats())["stopped"] == 1


@adapters
def test_a_fault_is_counted(adapter, monkeypatch):
    from langchain_loopguard.messages import MessageReader

    def broken(*_):
        raise RuntimeError("broken")

    monkeypatch.setattr(MessageReader, "check", broken)
    host = ADAPTERS[adapter]("interrupt")
    config = thread("t", *host.handlers, recursion_limit=12)

    with pytest.raises(GraphRecursionError):
        host.graph.invoke(ask(), config)

    assert host.stats()["faults"] > 0


def test_counts_cannot_be_changed_from_outside():
    stats = LoopGuardCallbackHandler().stats()

    with pytest.raises(TypeError):
        stats["checked"] = 1  # type: ignore[index]


def test_counts_of_many_threads_add_up():
    telemetry = Telemetry("node", logging.getLogger("langchain_loopguard"))

    def work():
        for _ in range(1000):
            telemetry.count("checked")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert telemetry.stats()["checked"] == 8000
