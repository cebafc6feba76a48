"""Does each mode do what it says, whatever the way the guard was added?"""

import itertools
import json
import logging
from typing import Annotated

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from langchain_loopguard import (
    LoopDetectedError,
    LoopGuardCallbackHandler,
    LoopGuardMiddleware,
    LoopGuardPolicy,
    add_loop_guard,
    guard_stats,
)
from tests.adapters.agents import (
    WAYS,
    ToolAwareModel,
    every_way,
    every_way_and_mode,
    looping,
    obedient,
)
from tests.adapters.guarded import SEED, assert_complete, assert_requests_complete, owned
from tests.hosts import (
    Counter,
    ScriptedChatModel,
    agent_graph,
    ai_calls,
    ask,
    counting_tool,
    drive,
    every_mode,
    listed_model,
    repeating_model,
    thread,
    tool_node_graph,
)

SEARCH = ("search", {"q": "a"})
BATCH = [SEARCH, ("open", {"q": "b"})]
NAMES = ("search", "open")
FAST = {"node": owned, "middleware": WAYS["middleware"]}
both = pytest.mark.parametrize("build", FAST.values(), ids=FAST)


def saved(graph, name="t"):
    return graph.get_state(thread(name)).values["messages"]


class TestNobodyToAsk:
    @every_way_and_mode
    async def test_the_run_ends_with_a_message_and_a_log_line_that_names_the_cure(
        self, build, mode, caplog
    ):
        graph, counter, model = looping(build, saver=False)
        outcome = await drive(graph, mode, ask(), {"recursion_limit": 60})
        assert counter.total == 2
        assert outcome.interrupts == ()
        assert outcome.messages[-1].text.startswith("Stopped.")
        assert "Nobody could be asked" in outcome.messages[-1].text
        assert caplog.text.count("checkpointer") >= 1
        assert_complete(outcome.messages)
        assert_requests_complete(model)


class TestRefuse:
    @every_way_and_mode
    async def test_lets_the_model_go_on_and_ends_after_three_refusals(self, build, mode):
        graph, counter, model = looping(build, on_detected="refuse")
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert counter.total == 2
        assert len(model.requests) == 3 + SEED.max_refusals
        assert outcome.messages[-1].text.startswith("Stopped.")
        assert_complete(outcome.messages)
        assert_requests_complete(model)

    @every_way
    def test_quotes_no_call(self, build):
        graph, _, model = looping(build, on_detected="refuse", saver=False)
        graph.invoke(ask())
        refusal = model.requests[-1][-1]
        assert refusal.status == "error"
        assert '"a"' not in refusal.text
        assert "not run" in refusal.text

    @every_way
    def test_none_at_all_ends_the_run_at_the_first_detection(self, build):
        policy = LoopGuardPolicy.seed(max_refusals=0)
        graph, counter, model = looping(build, policy=policy, on_detected="refuse")
        assert graph.invoke(ask(), thread("t"))["messages"][-1].text.startswith("Stopped.")
        assert (counter.total, len(model.requests)) == (2, 3)


class TestRaise:
    @every_way_and_mode
    async def test_comes_when_the_calls_have_results_and_again_without_an_input(self, build, mode):
        graph, counter, _ = looping(build, on_detected="raise", names=NAMES)
        for value in (ask(), None):
            with pytest.raises(LoopDetectedError) as error:
                await drive(graph, mode, value, thread("t"))
            assert error.value.tools == ("search",)
        assert counter.total == 2
        assert_complete(saved(graph))

    @every_way
    def test_is_followed_by_a_user_turn_that_works(self, build):
        graph, _, model = looping(build, model=repeating_model(times=3), on_detected="raise")
        for text in ("go", "again"):
            with pytest.raises(LoopDetectedError):
                graph.invoke(ask(text), thread("t"))
        assert_requests_complete(model)

    @every_way
    def test_comes_at_once_where_nothing_is_saved(self, build):
        graph, counter, model = looping(build, on_detected="raise", saver=False)
        with pytest.raises(LoopDetectedError):
            graph.invoke(ask())
        assert (counter.total, len(model.requests)) == (2, 3)


class TestWrapUp:
    @every_way_and_mode
    async def test_ends_with_what_the_model_says_when_told(self, build, mode):
        model = ScriptedChatModel(respond=obedient(BATCH))
        graph, counter, model = looping(build, model=model, names=NAMES, on_detected="wrap_up")
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert outcome.messages[-1].text == "This is what I found."
        assert counter.total == 4
        assert_complete(outcome.messages)
        assert_requests_complete(model)

    @every_way
    def test_ends_with_a_message_when_the_model_goes_on_calling(self, build):
        graph, counter, model = looping(build, on_detected="wrap_up")
        result = graph.invoke(ask(), thread("t"))
        assert result["messages"][-1].text.startswith("Stopped.")
        assert (counter.total, len(model.requests)) == (2, 4)
        assert_complete(result["messages"])

    @every_way
    def test_keeps_what_the_model_says_beside_its_calls(self, build):
        def respond(messages):
            called = ai_calls([SEARCH], len(messages))
            return called.model_copy(update={"content": "It rains."})

        graph, _, _ = looping(
            build, model=ScriptedChatModel(respond=respond), on_detected="wrap_up"
        )
        result = graph.invoke(ask(), thread("t"))
        assert result["messages"][-1].text == "It rains."
        assert_complete(result["messages"])

    @every_mode
    async def test_is_one_model_call_without_tools_in_an_agent(self, mode):
        model = ToolAwareModel(respond=obedient(BATCH))
        graph, _, _ = looping(WAYS["middleware"], model=model, names=NAMES, on_detected="wrap_up")
        await drive(graph, mode, ask(), thread("t"))
        assert [len(names) for names in model.bound] == [2, 2, 2, 0]

    @pytest.mark.parametrize("build", [owned, WAYS["by-hand-schema"]], ids=["owned", "by-hand"])
    @every_mode
    async def test_asks_the_model_that_the_node_was_given(self, build, mode):
        last = ScriptedChatModel(respond=lambda _: AIMessage("In short: rain."))
        graph, _, model = looping(build, on_detected="wrap_up", wrap_up_model=last)
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert outcome.messages[-1].text == "In short: rain."
        assert (len(model.requests), len(last.requests)) == (3, 1)
        assert_complete([*last.requests[0], AIMessage("")])
        assert_complete(outcome.messages)


class TestWarn:
    @every_way_and_mode
    async def test_holds_nothing_back(self, build, mode):
        graph, counter, _ = looping(build, model=repeating_model(times=9), on_detected="warn")
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert counter.total == 9
        assert outcome.messages[-1].text == "done"

    @both
    def test_leaves_the_saved_thread_as_the_tools_wrote_it(self, build):
        counter = Counter()
        answer = json.dumps({"status": "open"})
        graph = build(
            repeating_model(times=20), [counting_tool(counter, answer=answer)], on_detected="warn"
        )
        graph.invoke(ask(), thread("t", recursion_limit=100))
        results = [m.content for m in saved(graph) if isinstance(m, ToolMessage)]
        assert results == [answer] * 20

    @both
    def test_a_warning_stands_at_the_same_place_in_every_further_request(self, build):
        graph, _, model = looping(build, model=repeating_model(times=12), on_detected="warn")
        graph.invoke(ask(), thread("t"))
        warned = [
            [at for at, m in enumerate(request) if "[Warning" in m.text]
            for request in model.requests
        ]
        assert warned[-1]
        assert len(warned[-1]) <= 4
        for earlier, later in itertools.pairwise(warned):
            assert later[: len(earlier)] == earlier


class TestACallable:
    @both
    @pytest.mark.parametrize(
        ("gives", "runs", "last"),
        [
            pytest.param("refuse", 2, "Stopped.", id="a-mode"),
            pytest.param("stop", 2, "Stopped.", id="an-answer"),
            pytest.param(None, 9, "done", id="nothing-is-a-warning"),
            pytest.param("always", 9, "done", id="always"),
        ],
    )
    def test_decides(self, build, gives, runs, last):
        seen = []

        def choose(detected):
            seen.append([call["name"] for call in detected.calls])
            return gives

        graph, counter, _ = looping(build, model=repeating_model(times=9), on_detected=choose)
        result = graph.invoke(ask(), thread("t"))
        assert result["messages"][-1].text.startswith(last)
        assert counter.total == runs
        assert seen[0] == ["search"]


# --- Observing changes nothing --------------------------------------------------------------------


def as_agent(model, tools, saver, guarded):
    middleware = [LoopGuardMiddleware(SEED, on_detected="observe")] if guarded else []
    graph = agent_graph(model, tools, middleware=middleware, checkpointer=saver)
    return graph, (middleware[0].stats if guarded else None)


def as_graph(model, tools, saver, guarded):
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition, ["tools", END])
    builder.add_edge("tools", "agent")
    if guarded:
        add_loop_guard(builder, policy=SEED, on_detected="observe")
    return builder.compile(checkpointer=saver), lambda: guard_stats(builder)


def with_handler(model, tools, saver, guarded):
    graph, handler = tool_node_graph(model, tools, checkpointer=saver), None
    if guarded:
        handler = LoopGuardCallbackHandler(SEED, on_detected="observe")
        graph = graph.with_config(callbacks=[handler])
    return graph, handler and handler.stats


class Recorder(InMemorySaver):
    """Keeps the bytes of everything that is saved; only checkpoints' own ids and times differ."""

    def __init__(self):
        super().__init__()
        self.stream = []

    def put(self, config, checkpoint, metadata, new_versions):
        values = {k: checkpoint["channel_values"].get(k) for k in sorted(new_versions)}
        self.stream.append(self.serde.dumps_typed((values, metadata)))
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config, writes, task_id, task_path=""):
        self.stream.append(self.serde.dumps_typed([list(one) for one in writes]))
        return super().put_writes(config, writes, task_id, task_path)


def search(q: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
    """Search; the result has an id of its own, so that none is random."""
    return ToolMessage(f"no hits for {q}", tool_call_id=tool_call_id, id=f"result-{tool_call_id}")


@pytest.mark.parametrize("make", [as_agent, as_graph, with_handler])
def test_observe_changes_no_byte_and_counts_what_it_would_have_done(make):
    class Named(ScriptedChatModel):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            made = super()._generate(messages)
            made.generations[0].message.id = f"ai-{len(self.requests)}"
            return made

    seen = []
    for guarded in (False, True):
        model, saver = Named(respond=repeating_model(times=9).respond), Recorder()
        graph, stats = make(model, [tool(search)], saver, guarded)
        result = graph.invoke({"messages": [HumanMessage("go", id="h")]}, thread("t"))
        assert len(result["messages"]) == 20
        prompts = [[m.model_dump_json() for m in request] for request in model.requests]
        # LangGraph saves in threads, in no fixed order.
        seen.append((prompts, sorted(saver.stream)))
    assert seen[0] == seen[1]
    assert stats()["observed"] == 7
    assert stats()["stopped"] == stats()["asked"] == 0


@both
def test_faults_are_logged_once_and_the_agent_goes_on(build, monkeypatch, caplog):
    def broken(*_):
        raise OSError("no such rule")

    monkeypatch.setattr("langchain_loopguard.core.guard.LoopGuard.check", broken)
    with caplog.at_level(logging.ERROR):
        graph, counter, _ = looping(build, model=repeating_model(times=5))
        assert graph.invoke(ask(), thread("t"))["messages"][-1].text == "done"
    assert counter.total == 5
    assert caplog.text.count("The loop guard failed") == 1
    graph, _, _ = looping(build, fail_open=False)
    with pytest.raises(OSError, match="no such rule"):
        graph.invoke(ask(), thread("t"))


@both
def test_a_fault_after_the_answer_does_not_lose_a_stop(build, monkeypatch):
    graph, counter, _ = looping(build)
    graph.invoke(ask(), thread("t"))

    def broken(*_):
        raise OSError

    monkeypatch.setattr("langchain_loopguard.core.guard.LoopGuard.refuse", broken)
    result = graph.invoke(Command(resume="stop"), thread("t"))
    assert counter.total == 2
    assert result["messages"][-1].text.startswith("Stopped.")


@both
def test_what_tools_declare_is_heeded(build):
    for metadata, asked in (({"loop_guard": {"poller": True}}, False), (None, True)):
        counter = Counter()
        tool = counting_tool(counter, "watch", "same page", metadata=metadata)
        graph = build(repeating_model(("watch", {"q": "a"}), times=12), [tool], policy=None)
        assert ("__interrupt__" in graph.invoke(ask(), thread("t"))) is asked


def test_a_run_without_a_loop_is_the_same_as_without_a_guard():
    for build in WAYS.values():
        model = listed_model([SEARCH], [BATCH[1], ("search", {"q": "c"})])
        graph, counter, model = looping(build, model=model, names=NAMES)
        result = graph.invoke(ask(), thread("t"))
        kinds = ["human", "ai", "tool", "ai", "tool", "tool", "ai"]
        assert [message.type for message in result["messages"]] == kinds
        assert (counter.total, len(model.requests)) == (3, 3)
