"""Do the node and the middleware do the same with a batch, and with what comes of it?"""

from __future__ import annotations

import json

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.base import BaseTracer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from langchain_loopguard import LoopDetectedError, LoopGuardNode, LoopGuardPolicy
from langchain_loopguard.graph.endings import is_wrapping_up, marked, wraps_up
from langchain_loopguard.graph.tracing import TRACE_POLICY
from langchain_loopguard.messages import NOTICE_MARK, with_notice, without_notice
from tests.adapters.agents import ToolAwareModel, guarded_agent, obedient
from tests.adapters.guarded import (
    SEED,
    assert_complete,
    assert_requests_complete,
    by_hand,
    by_hand_with_channel,
    owned,
)
from tests.hosts import (
    MODES,
    Counter,
    ScriptedChatModel,
    ai_calls,
    ask,
    counting_tool,
    drive,
    listed_model,
    repeating_model,
    thread,
)

SEARCH = ("search", {"q": "a"})
BATCH = [SEARCH, ("open", {"q": "b"})]
HOSTS = {
    "node": owned,
    "node-by-hand": by_hand_with_channel,
    "node-folding": by_hand,
    "middleware": guarded_agent,
}
every_host = pytest.mark.parametrize("build", HOSTS.values(), ids=HOSTS)
both = pytest.mark.parametrize("build", [owned, guarded_agent], ids=["node", "middleware"])
every_mode = pytest.mark.parametrize("mode", MODES)


def looping(build, *, model=None, **options):
    """Build a graph that repeats two failing calls for ever; gives graph, counter and model."""
    counter = Counter()
    model = model or repeating_model(*BATCH)
    tools = [counting_tool(counter, name, native_async=True) for name in ("search", "open")]
    return build(model, tools, **options), counter, model


def saved(graph, config):
    return graph.get_state(config).values["messages"]


class TestAnError:
    @every_host
    @every_mode
    async def test_comes_when_the_calls_are_answered(self, build, mode):
        graph, counter, _ = looping(build, on_detected="raise")
        with pytest.raises(LoopDetectedError, match="search") as error:
            await drive(graph, mode, ask(), thread("t"))
        assert isinstance(error.value, GraphBubbleUp)
        assert error.value.tools == ("search", "open")
        assert (error.value.count, error.value.threshold) == (3, 2)
        assert counter.total == 4
        assert_complete(saved(graph, thread("t")))

    @every_host
    def test_comes_again_when_the_run_is_taken_up_without_an_input(self, build):
        graph, counter, _ = looping(build, on_detected="raise")
        for value in (ask(), None, None):
            with pytest.raises(LoopDetectedError, match="2 are allowed"):
                graph.invoke(value, thread("t"))
        assert counter.total == 4

    @every_host
    def test_comes_again_in_another_process(self, build, tmp_path):
        path = str(tmp_path / "saved.db")
        with SqliteSaver.from_conn_string(path) as saver:
            graph, _, _ = looping(build, on_detected="raise", saver=saver)
            with pytest.raises(LoopDetectedError):
                graph.invoke(ask(), thread("t"))
        with SqliteSaver.from_conn_string(path) as saver:
            graph, counter, model = looping(build, on_detected="raise", saver=saver)
            with pytest.raises(LoopDetectedError, match="open 3 times"):
                graph.invoke(None, thread("t"))
        assert counter.total == 0
        assert model.requests == []

    @every_host
    def test_is_followed_by_a_user_turn_that_works(self, build):
        graph, counter, model = looping(
            build, on_detected="raise", model=repeating_model(*BATCH, times=3)
        )
        for total in (4, 8):
            with pytest.raises(LoopDetectedError):
                graph.invoke(ask(), thread("t"))
            assert counter.total == total
        assert_requests_complete(model)

    @every_host
    def test_comes_at_once_where_nothing_is_saved(self, build):
        graph, counter, model = looping(build, on_detected="raise", saver=False)
        with pytest.raises(LoopDetectedError):
            graph.invoke(ask())
        assert counter.total == 4
        assert len(model.requests) == 3

    def test_comes_at_once_outside_a_graph(self):
        answers = [ToolMessage("error", tool_call_id=f"call_{turn}_0") for turn in range(3)]
        messages = [HumanMessage("go")]
        for turn in range(3):
            messages += [ai_calls([SEARCH], turn), answers[turn]]
        with pytest.raises(LoopDetectedError):
            LoopGuardNode(SEED, on_detected="raise")({"messages": messages[:-1]})


class TestWrappingUp:
    @every_host
    @every_mode
    async def test_ends_with_what_the_model_says_when_told(self, build, mode):
        model = ScriptedChatModel(respond=obedient(BATCH))
        graph, counter, model = looping(build, on_detected="wrap_up", model=model)
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert outcome.messages[-1].content == "This is what I found."
        assert counter.total == 4
        assert len(model.requests) == 4
        assert_complete(outcome.messages)
        assert_requests_complete(model)

    @every_host
    @every_mode
    async def test_ends_with_a_message_when_the_model_goes_on_calling(self, build, mode):
        graph, counter, model = looping(build, on_detected="wrap_up")
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert outcome.messages[-1].content.startswith("Stopped. The agent called search")
        assert counter.total == 4
        assert len(model.requests) == 4
        assert_complete(outcome.messages)

    @every_host
    def test_keeps_what_the_model_says_beside_its_calls(self, build):
        def respond(messages):
            calls = ai_calls(BATCH, sum(isinstance(m, AIMessage) for m in messages)).tool_calls
            blocks = [
                {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}
                for call in calls
            ]
            text = {"type": "text", "text": "So far I found nothing."}
            raw = {"tool_calls": [{"id": call["id"]} for call in calls]}
            return AIMessage(content=[text, *blocks], tool_calls=calls, additional_kwargs=raw)

        graph, counter, _ = looping(
            build, on_detected="wrap_up", model=ScriptedChatModel(respond=respond)
        )
        result = graph.invoke(ask(), thread("t"))
        last = result["messages"][-1]
        assert last.content == [{"type": "text", "text": "So far I found nothing."}]
        assert last.tool_calls == []
        assert last.additional_kwargs == {}
        assert counter.total == 4
        assert_complete(result["messages"])

    @every_host
    def test_is_followed_by_a_user_turn_that_works(self, build):
        model = ScriptedChatModel(respond=obedient(BATCH))
        graph, counter, model = looping(build, on_detected="wrap_up", model=model)
        for total in (4, 8):
            result = graph.invoke(ask(), thread("t"))
            assert result["messages"][-1].content == "This is what I found."
            assert counter.total == total
        assert_requests_complete(model)

    @every_host
    def test_says_in_the_log_what_was_found(self, build, caplog):
        graph, _, _ = looping(build, on_detected="wrap_up")
        graph.invoke(ask(), thread("t"))
        assert "search, open 3 times" in caplog.text

    @every_mode
    async def test_is_one_model_call_without_tools_in_an_agent(self, mode):
        model = ToolAwareModel(respond=obedient(BATCH))
        graph, _, model = looping(guarded_agent, on_detected="wrap_up", model=model)
        await drive(graph, mode, ask(), thread("t"))
        assert model.bound == [["search", "open"]] * 3 + [[]]
        await drive(graph, mode, ask(), thread("t"))
        assert model.bound[4] == ["search", "open"]

    @pytest.mark.parametrize("build", [owned, by_hand], ids=["node", "node-folding"])
    @every_mode
    async def test_calls_the_model_that_the_node_was_given(self, build, mode):
        last = ScriptedChatModel(respond=lambda messages: AIMessage(content="summing up"))
        graph, counter, model = looping(build, on_detected="wrap_up", wrap_up_model=last)
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert outcome.messages[-1].content == "summing up"
        assert (counter.total, len(model.requests), len(last.requests)) == (4, 3, 1)
        assert_complete(last.requests[0])
        assert "what is missing" in last.requests[0][-1].content
        assert_complete(outcome.messages)

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            pytest.param("as text", "as text", id="text"),
            pytest.param(AIMessage(""), "Stopped. The agent", id="nothing"),
            pytest.param(ai_calls([SEARCH], "x"), "Stopped. The agent", id="a-call"),
            pytest.param(None, "Stopped. The agent", id="none"),
            pytest.param(
                AIMessage("with a call", tool_calls=ai_calls([SEARCH], "x").tool_calls),
                "with a call",
                id="text-and-a-call",
            ),
        ],
    )
    def test_takes_whatever_that_model_gives(self, answer, said):
        model = RunnableLambda(lambda messages: answer)
        graph, _, _ = looping(owned, on_detected="wrap_up", wrap_up_model=model)
        result = graph.invoke(ask(), thread("t"))
        assert result["messages"][-1].content.startswith(said)
        assert_complete(result["messages"])

    def test_refuses_a_model_that_is_none(self):
        with pytest.raises(ValueError, match="wrap_up_model: must be a chat model"):
            LoopGuardNode(wrap_up_model="gpt")


def notices(messages):
    """Give what the model was told in the last answer."""
    content = messages[-1].content
    return [
        block["text"]
        for block in (content if isinstance(content, list) else [])
        if NOTICE_MARK in block["text"]
    ]


class TestTellingTheModel:
    @both
    @pytest.mark.parametrize("on_detected", ["interrupt", "raise", "refuse", "warn", "wrap_up"])
    def test_a_warning_stands_behind_the_last_answer_in_every_mode(self, build, on_detected):
        graph, _, model = looping(
            build, policy=None, on_detected=on_detected, model=repeating_model(*BATCH, times=4)
        )
        graph.invoke(ask(), thread("t"))
        told = [notices(request) for request in model.requests]
        assert told[:3] == [[], [], []]
        assert len(told[3]) == 1
        assert_requests_complete(model)

    @both
    def test_the_answer_itself_stays_the_same(self, build):
        graph, _, model = looping(build, policy=None, model=repeating_model(*BATCH, times=4))
        graph.invoke(ask(), thread("t"))
        answer = model.requests[3][-1]
        assert answer.content[0] == {"type": "text", "text": "error: 503 service unavailable"}
        assert answer.status == "success"
        assert [m.id for m in saved(graph, thread("t"))].count(answer.id) == 1

    @both
    def test_a_loop_that_may_go_on_is_told_of_after_it_ran(self, build):
        graph, counter, model = looping(
            build, on_detected="warn", model=repeating_model(*BATCH, times=4)
        )
        graph.invoke(ask(), thread("t"))
        assert counter.total == 8
        assert [len(notices(request)) for request in model.requests] == [0, 0, 0, 1, 1]

    @both
    def test_a_loop_that_a_person_let_run_is_not_told_of(self, build):
        graph, _, model = looping(build, model=repeating_model(*BATCH, times=4))
        graph.invoke(ask(), thread("t"))
        graph.invoke(Command(resume="continue"), thread("t"))
        assert [notices(request) for request in model.requests] == [[]] * 5

    def test_the_words_of_several_guards_are_all_left_out_of_the_count(self):
        for content in ("error", [{"type": "text", "text": "error"}], []):
            answer = ToolMessage(content, tool_call_id="call_1_0", id="m1")
            told = with_notice(with_notice(answer, "Stop it."), "Try another way.")
            assert len(told.content) == len(answer.content_blocks) + 2
            assert without_notice(told).content == content

    def test_what_is_still_to_happen_is_marked_beside_what_was_told(self):
        answer = ToolMessage("error", tool_call_id="call_1_0", id="m1")
        (both,) = marked([with_notice(answer, "Stop it.")], wraps_up("Stopped."))
        assert without_notice(both).content == "error"
        assert is_wrapping_up([both])


class TestWhatToolsDeclare:
    def poller(self, counter, name="watch", **traits):
        metadata = {"loop_guard": {"poller": True, **traits}}
        return counting_tool(counter, name, "running", metadata=metadata)

    @both
    def test_a_poller_is_left_alone(self, build):
        counter = Counter()
        model = repeating_model(("watch", {"q": "a"}), times=12)
        graph = build(model, [self.poller(counter)], policy=None)
        assert "__interrupt__" not in graph.invoke(ask(), thread("t"))
        assert counter.total == 12

    @both
    def test_a_tool_that_declares_nothing_is_not(self, build):
        counter = Counter()
        model = repeating_model(("watch", {"q": "a"}), times=12)
        graph = build(model, [counting_tool(counter, "watch", "running")], policy=None)
        assert "__interrupt__" in graph.invoke(ask(), thread("t"))

    @both
    def test_a_hint_of_an_mcp_server_is_read(self, build):
        counter = Counter()
        # By its name it changes something, and such calls may not go on for ever.
        tool = counting_tool(
            counter,
            "send",
            lambda n: f"Answer {n}\n{'-' * n}",
            metadata={"annotations": {"readOnlyHint": True}},
        )
        graph = build(repeating_model(("send", {"q": "a"}), times=14), [tool], policy=None)
        assert "__interrupt__" not in graph.invoke(ask(), thread("t"))
        assert counter.total == 14

    @both
    def test_the_verdict_is_the_same_in_another_process(self, build, tmp_path):
        # `search` declares that it changes something: asked about earlier than by its name.
        def tools(counter):
            answer = lambda n: f"Answer {n}\nLine {n}"  # noqa: E731
            metadata = {"loop_guard": {"read_only": False}}
            return [counting_tool(counter, "search", answer, metadata=metadata)]

        path = str(tmp_path / "saved.db")
        counter = Counter()
        with SqliteSaver.from_conn_string(path) as saver:
            graph = build(repeating_model(), tools(counter), policy=None, saver=saver)
            assert "__interrupt__" in graph.invoke(ask(), thread("t"))
        runs = counter.total
        with SqliteSaver.from_conn_string(path) as saver:
            graph = build(repeating_model(), tools(counter), policy=None, saver=saver)
            result = graph.invoke(Command(resume="stop"), thread("t"))
        assert counter.total == runs == 9
        assert_complete(result["messages"])

    def test_reach_a_node_that_is_wired_by_hand(self):
        counter = Counter()
        tool = self.poller(counter)
        model = repeating_model(("watch", {"q": "a"}), times=12)
        graph = by_hand(model, [tool], policy=None, tool_list=[tool])
        assert "__interrupt__" not in graph.invoke(ask(), thread("t"))
        assert counter.total == 12

    def test_are_kept_in_few_bytes(self):
        counter = Counter()
        # What `search` declares is what its name says.
        hint = {"readOnlyHint": True}
        graph = guarded_agent(
            repeating_model(("watch", {"q": "a"}), times=2),
            [self.poller(counter), counting_tool(counter, "search", metadata=hint)],
        )
        graph.invoke(ask(), thread("t"))
        counts = graph.get_state(thread("t")).values["loop_guard"]
        assert counts["tools"] == {"watch": "poller"}

    def test_are_kept_when_the_model_sees_other_tools_later(self):
        class OneByOne(AgentMiddleware):
            def wrap_model_call(self, request, handler):
                at = sum(isinstance(message, AIMessage) for message in request.messages) % 2
                return handler(request.override(tools=request.tools[at : at + 1]))

        counter = Counter()
        graph = guarded_agent(
            repeating_model(("watch", {"q": "a"}), times=2),
            [self.poller(counter), self.poller(counter, "send", read_only=True)],
            others=[OneByOne()],
        )
        graph.invoke(ask(), thread("t"))
        counts = graph.get_state(thread("t")).values["loop_guard"]
        assert counts["tools"] == {"watch": "poller", "send": "read_only poller"}


class TestTheQuestion:
    @both
    def test_is_a_request_of_human_in_the_loop_with_further_keys(self, build):
        graph, _, _ = looping(build)
        question = graph.invoke(ask(), thread("t"))["__interrupt__"][0].value
        assert [item["name"] for item in question["action_requests"]] == ["search", "open"]
        assert question["type"] == "loop_detected"
        assert not question.keys() & {"action_request", "config"}

    @both
    def test_carries_the_older_form_when_asked_for(self, build):
        graph, _, _ = looping(build, agent_inbox=True)
        question = graph.invoke(ask(), thread("t"))["__interrupt__"][0].value
        assert question["action_request"]["action"] == "search"
        assert question["config"]["allow_ignore"] is True
        assert len(question["action_requests"]) == 2

    @both
    def test_says_what_may_be_answered_as_a_schema(self, build):
        graph, _, _ = looping(build)
        asked = graph.invoke(ask(), thread("t"))["__interrupt__"][0]
        schema = getattr(asked, "response_schema", None)
        if schema is None:
            pytest.skip("this LangGraph has no response_schema")
        assert json.loads(json.dumps(schema)) == schema
        decisions = schema["anyOf"][-1]["properties"]["decisions"]
        assert (decisions["minItems"], decisions["maxItems"]) == (2, 2)

    @every_host
    def test_can_be_replayed_and_answered_differently(self, build):
        graph, counter, _ = looping(build)
        graph.invoke(ask(), thread("t"))
        asking = graph.get_state(thread("t")).config
        graph.invoke(Command(resume="continue"), asking)
        assert counter.total == 10
        graph.invoke(None, asking)
        result = graph.invoke(Command(resume="stop"), thread("t"))
        assert counter.total == 10
        assert_complete(result["messages"])


@both
def test_a_run_without_a_loop_is_the_same_as_without_a_guard(build):
    batches = [[SEARCH], [("open", {"q": "b"}), ("search", {"q": "c"})], []]
    graph, counter, model = looping(build, model=listed_model(*batches))
    result = graph.invoke(ask(), thread("t"))
    assert counter.total == 3
    assert [m.type for m in result["messages"]] == [
        "human",
        "ai",
        "tool",
        "ai",
        *["tool"] * 2,
        "ai",
    ]
    assert len(model.requests) == 3


@both
def test_refusing_none_at_all_ends_the_run_at_the_first_detection(build):
    policy = LoopGuardPolicy.seed(max_refusals=0)
    graph, counter, model = looping(build, policy=policy, on_detected="refuse")
    result = graph.invoke(ask(), thread("t"))
    assert counter.total == 4
    assert len(model.requests) == 3
    assert result["messages"][-1].content.startswith("Stopped.")


class Spans(BaseTracer):
    """Keeps what a trace would hold of every step."""

    def __init__(self):
        super().__init__()
        self.seen = {}

    def _persist_run(self, run):
        """Nothing is sent."""

    def _end_trace(self, run):
        super()._end_trace(run)
        self.seen.setdefault(run.name, []).append(f"{run.inputs} {run.outputs}")


@pytest.mark.skipif(TRACE_POLICY is None, reason="this LangGraph has no trace policies")
@both
def test_traces_hold_no_message_under_the_guards_name(build):
    spans = Spans()
    graph, _, _ = looping(build, policy=None)
    graph.invoke(ask("a secret"), thread("t", spans))
    graph.invoke(ask("another secret"), thread("t", spans))
    own = {name: texts for name, texts in spans.seen.items() if "guard" in name.lower()}
    assert len(own) >= 2
    assert not any("secret" in text for texts in own.values() for text in texts)
