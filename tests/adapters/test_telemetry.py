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
from langgraph.types import Command
from langsmith import Client
from langsmith.run_helpers import tracing_context
from langsmith.run_trees import RunTree

from langchain_loopguard import (
    LoopDetectedError,
    LoopGuardCallbackHandler,
    LoopGuardMiddleware,
    LoopGuardNode,
    LoopGuardPolicy,
    LoopGuardState,
)
from langchain_loopguard.langchain.telemetry import EVENT
from tests.adapters.guarded import builder_for
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

SEED = LoopGuardPolicy.seed()
SECRETS = ("sk-argument", "sk-answer: 503")


def looping():
    """Make a model that repeats one call, and its tool."""
    model = repeating_model(("search", {"q": SECRETS[0]}))
    return model, [counting_tool(Counter(), answer=SECRETS[1])]


def with_callback(**options):
    handler = LoopGuardCallbackHandler(SEED, **options)
    graph = agent_graph(*looping(), checkpointer=InMemorySaver())
    return SimpleNamespace(graph=graph, handlers=[handler], stats=handler.stats)


def with_middleware(**options):
    guard = LoopGuardMiddleware(SEED, **options)
    graph = agent_graph(*looping(), middleware=[guard], checkpointer=InMemorySaver())
    return SimpleNamespace(graph=graph, handlers=[], stats=guard.stats)


def with_node(**options):
    builder = builder_for(*looping(), schema=LoopGuardState)
    guard = LoopGuardNode(SEED, **options)
    builder.add_node("guard", guard)
    builder.add_edge("agent", "guard")
    builder.add_edge("tools", "guard")
    graph = builder.compile(checkpointer=InMemorySaver())
    return SimpleNamespace(graph=graph, handlers=[], stats=guard.stats)


ADAPTERS = {"callback": with_callback, "middleware": with_middleware, "node": with_node}


@pytest.fixture(params=ADAPTERS)
def adapter(request):
    """Give the name of each adapter."""
    return request.param


@pytest.fixture
def host(adapter):
    """Give an agent under each adapter."""
    return ADAPTERS[adapter]()


class Ears(BaseCallbackHandler):
    """Notes the custom events."""

    def __init__(self):
        self.heard = []

    def on_custom_event(self, name, data, **kwargs):
        self.heard.append((name, data["action"]))


class AsyncEars(AsyncCallbackHandler):
    """Notes the custom events, in async code."""

    def __init__(self):
        self.heard = []

    async def on_custom_event(self, name, data, **kwargs):
        self.heard.append((name, data["action"]))


class Deaf(BaseCallbackHandler):
    """Fails on every custom event, and wants the run to end for it."""

    raise_error = True

    def on_custom_event(self, name, data, **kwargs):
        raise ValueError("a listener's own fault")


# --- The stream and custom events -------------------------------------------------------------


@pytest.mark.parametrize("mode", ["stream", "astream"])
async def test_a_question_is_emitted_once_without_arguments_and_results(adapter, host, mode):
    config = thread("t", *host.handlers)
    if mode == "stream":
        events = list(host.graph.stream(ask(), config, stream_mode="custom"))
    else:
        events = [one async for one in host.graph.astream(ask(), config, stream_mode="custom")]
    (asked,) = [event for event in events if event["done"] == "asked"]
    assert (asked["type"], asked["adapter"], asked["thread"]) == (EVENT, adapter, "t")
    assert asked["findings"][0]["tools"] == ["search"]
    assert not any(secret in json.dumps(events) for secret in SECRETS)


def test_a_resume_emits_the_answer_and_not_the_question(host):
    config = thread("t", *host.handlers)
    host.graph.invoke(ask(), config)
    events = list(host.graph.stream(Command(resume="stop"), config, stream_mode="custom"))
    assert [event["done"] for event in events] == ["stopped"]


HEARING = [(Ears, mode) for mode in MODES] + [(AsyncEars, "ainvoke"), (AsyncEars, "astream")]


@pytest.mark.parametrize(("ears", "mode"), HEARING)
async def test_handlers_hear_a_question_as_a_custom_event(host, mode, ears):
    listener = ears()
    await drive(host.graph, mode, ask(), thread("t", listener, *host.handlers))
    assert listener.heard.count((EVENT, "ask")) == 1


async def test_astream_events_shows_it(host):
    stream = host.graph.astream_events(ask(), thread("t", *host.handlers), version="v2")
    events = [event async for event in stream if event["event"] == "on_custom_event"]
    assert [event["data"]["action"] for event in events].count("ask") == 1


def test_a_listener_that_fails_does_not_disturb_the_agent(host):
    result = host.graph.invoke(ask(), thread("t", Deaf(), *host.handlers))
    assert len(result["__interrupt__"]) == 1


def test_without_a_graph_handlers_hear_it_and_outside_of_any_run_nothing_fails():
    ears = Ears()
    handler = LoopGuardCallbackHandler(SEED, on_detected="raise", scope="handler")
    chain, tool = lcel_chain(*looping()), looping()[1][0]

    def by_chain():
        messages = ask()["messages"]
        for _ in range(10):
            messages = [*messages, *chain.invoke(messages, {"callbacks": [ears, handler]})]

    def by_tool():
        for _ in range(10):
            tool.invoke({"q": "a"}, {"callbacks": [handler]})

    with pytest.raises(LoopDetectedError):
        by_chain()
    assert ears.heard.count((EVENT, "ask")) == 1
    with pytest.raises(LoopDetectedError):
        by_tool()
    assert handler.stats()["faults"] == 0


# --- LangSmith and the log --------------------------------------------------------------------


@pytest.fixture
def langsmith():
    """Give a tracer, and what it sends to a LangSmith on this machine."""
    sent = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(202)
            self.end_headers()
            self.wfile.write(b"{}")

        do_PATCH = do_POST  # noqa: N815 - the host's name

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    url = f"http://127.0.0.1:{server.server_port}"
    client = Client(api_url=url, api_key="none", auto_batch_tracing=False, info={})
    yield SimpleNamespace(tracer=LangChainTracer(client=client), client=client, sent=sent)
    client.close()
    server.shutdown()
    serving.join()
    server.server_close()


def test_one_langsmith_run_is_sent_with_the_metadata_and_the_tag(host, langsmith):
    host.graph.invoke(ask(), thread("t", langsmith.tracer, *host.handlers))
    langsmith.tracer.wait_for_futures()
    (run,) = [run for run in langsmith.sent if f"{EVENT}:ask" in (run.get("tags") or ())]
    metadata = run["extra"]["metadata"]
    assert (metadata["loop_guard_action"], metadata["loop_guard_tools"]) == ("ask", ["search"])


def test_a_langsmith_run_around_the_agent_is_marked_and_not_sent(host, langsmith):
    run = RunTree(name="turn", run_type="chain", ls_client=langsmith.client)
    with tracing_context(parent=run, enabled=False):
        host.graph.invoke(ask(), thread("t", *host.handlers))
    assert f"{EVENT}:ask" in run.tags
    assert langsmith.sent == []


def test_what_no_person_hears_of_is_logged_by_the_package(adapter, caplog):
    host = ADAPTERS[adapter](on_detected="refuse")
    with caplog.at_level(logging.WARNING, "langchain_loopguard"):
        host.graph.invoke(ask(), thread("t", *host.handlers))
    ours = [item for item in caplog.records if item.name == "langchain_loopguard"]
    assert ours
    assert not any(SECRETS[0] in item.getMessage() for item in ours)


# --- Counts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_detected", "answer", "counted"),
    [
        ("interrupt", None, {"checked": 3, "asked": 1}),
        ("interrupt", "stop", {"asked": 1, "stopped": 1}),
        ("interrupt", "continue", {"asked": 2, "approved": 1}),
        ("interrupt", "Look elsewhere.", {"asked": 2, "refused": 1}),
        ("refuse", None, {"checked": 6, "refused": SEED.max_refusals, "stopped": 1}),
        ("raise", None, {"stopped": 1}),
    ],
)
def test_what_was_done_is_counted(adapter, on_detected, answer, counted):
    host = ADAPTERS[adapter](on_detected=on_detected)
    config = thread("t", *host.handlers)
    if on_detected == "raise":
        with pytest.raises(LoopDetectedError):
            host.graph.invoke(ask(), config)
    else:
        host.graph.invoke(ask(), config)
    if answer:
        host.graph.invoke(Command(resume=answer), config)
    done = dict(host.stats())
    names = {"asked", "approved", "refused", "stopped", "lost", "faults"}
    assert {name: done[name] for name in names} == {name: counted.get(name, 0) for name in names}
    assert done["checked"] == counted.get("checked", done["checked"])


def test_counts_cannot_be_changed_from_outside(host):
    with pytest.raises(TypeError):
        host.stats()["checked"] = 1
