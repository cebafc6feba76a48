"""Does the middleware stop a loop on a real agent, and does it leave a history that is valid?"""

from __future__ import annotations

import asyncio
import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from langchain_loopguard import LoopDetectedError, LoopGuard, LoopGuardMiddleware, LoopGuardPolicy
from langchain_loopguard.errors import InvalidResumeError
from langchain_loopguard.messages import NOTICE_MARK
from tests.adapters.agents import guarded_agent
from tests.adapters.guarded import SEED, assert_complete, assert_requests_complete
from tests.adapters.resumes import RESUMES, check_answer_beside_remark, with_remark
from tests.hosts import (
    MODES,
    Counter,
    ScriptedChatModel,
    agent_graph,
    ai_calls,
    ask,
    assert_valid_history,
    counting_tool,
    drive,
    listed_model,
    repeating_model,
    thread,
)

SEARCH = ("search", {"q": "a"})
BEFORE = "LoopGuardMiddleware.before_model"
every_mode = pytest.mark.parametrize("mode", MODES)


def looping(*, model=None, names=("search",), **options):
    """Build an agent that repeats one failing call for ever; gives agent, counter and model."""
    counter = Counter()
    model = model or repeating_model()
    tools = [counting_tool(counter, name, native_async=True) for name in names]
    return guarded_agent(model, tools, **options), counter, model


def resume(graph, value, config=None):
    return graph.invoke(Command(resume=value), config or thread("t"))


class TestAsking:
    @every_mode
    async def test_comes_before_the_third_run_of_a_repeated_call(self, mode):
        graph, counter, _ = looping()
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert counter.total == 2
        assert len(outcome.interrupts) == 1
        assert outcome.interrupts[0].value["type"] == "loop_detected"

    @every_mode
    async def test_happens_once_for_a_batch_and_runs_none_of_it(self, mode):
        model = repeating_model(SEARCH, ("open", {"q": "b"}), ("search", {"q": "c"}))
        graph, counter, _ = looping(model=model, names=("search", "open"))
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert len(outcome.interrupts) == 1
        assert len(outcome.interrupts[0].value["action_requests"]) == 3
        assert counter.total == 6

    @every_mode
    async def test_answered_with_stop_ends_with_every_call_answered(self, mode):
        model = repeating_model(SEARCH, ("open", {"q": "b"}))
        graph, counter, _ = looping(model=model, names=("search", "open"))
        await drive(graph, mode, ask(), thread("t"))
        outcome = await drive(graph, mode, Command(resume="stop"), thread("t"))
        assert outcome.interrupts == ()
        assert counter.total == 4
        assert_complete(outcome.messages)
        assert outcome.messages[-1].content.startswith("Stopped. The agent called search")

    @every_mode
    async def test_answered_with_continue_runs_the_batch_and_counts_anew(self, mode):
        graph, counter, _ = looping()
        await drive(graph, mode, ask(), thread("t"))
        outcome = await drive(graph, mode, Command(resume="continue"), thread("t"))
        # One run that was approved, then two more that a fresh count allows.
        assert counter.total == 5
        assert len(outcome.interrupts) == 1

    @every_mode
    async def test_answered_with_text_tells_the_model(self, mode):
        graph, counter, model = looping()
        await drive(graph, mode, ask(), thread("t"))
        outcome = await drive(graph, mode, Command(resume="use the cache"), thread("t"))
        assert counter.total == 2
        assert model.requests[-1][-1].content == "use the cache"
        assert model.requests[-1][-1].status == "error"
        # The model repeats itself all the same, so the person is asked again.
        assert len(outcome.interrupts) == 1
        assert_requests_complete(model)

    @pytest.mark.parametrize("value", ["stop", "continue", "use the cache"])
    def test_is_followed_by_a_user_turn_that_works(self, value):
        graph, counter, model = looping(model=repeating_model(times=3))
        graph.invoke(ask(), thread("t"))
        resume(graph, value)
        before = counter.total
        result = graph.invoke(ask("again"), thread("t"))
        assert counter.total == before + 2
        assert "__interrupt__" in result
        assert_requests_complete(model)

    def test_counts_calls_of_a_tool_that_does_not_exist(self):
        graph, counter, model = looping(model=repeating_model(("nothing", {})))
        assert "__interrupt__" in graph.invoke(ask(), thread("t"))
        assert len(model.requests) == 3
        assert counter.total == 0

    def test_does_not_happen_for_the_same_question_in_nine_user_turns(self):
        graph, counter, _ = looping(model=repeating_model(times=1))
        for turn in range(9):
            assert "__interrupt__" not in graph.invoke(ask(str(turn)), thread("t"))
        assert counter.total == 9

    def test_leaves_changing_answers_alone(self):
        counter = Counter()
        graph = guarded_agent(repeating_model(times=9), [counting_tool(counter, answer=str)])
        assert "__interrupt__" not in graph.invoke(ask(), thread("t"))
        assert counter.total == 9

    @pytest.mark.parametrize("config", [{}, thread("t")], ids=["no-thread", "thread"])
    def test_without_a_checkpointer_is_an_error_that_names_the_cure(self, config):
        graph, counter, _ = looping(saver=False)
        with pytest.raises(LoopDetectedError, match="checkpointer") as error:
            graph.invoke(ask(), config)
        assert counter.total == 2
        assert error.value.tools == ("search",)

    async def test_of_many_runs_at_once_keeps_them_apart(self):
        graph, counter, _ = looping()
        outcomes = await asyncio.gather(
            *(graph.ainvoke(ask(), thread(str(number))) for number in range(10))
        )
        assert all("__interrupt__" in outcome for outcome in outcomes)
        assert counter.total == 20


class TestResuming:
    @pytest.mark.parametrize(("value", "runs"), RESUMES)
    @pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
    async def test_accepts_every_form_of_an_answer(self, value, runs, mode):
        graph, counter, model = looping()
        await drive(graph, mode, ask(), thread("t"))
        outcome = await drive(graph, mode, Command(resume=value), thread("t"))
        assert counter.total == runs
        assert_requests_complete(model)
        if not outcome.interrupts:
            assert_complete(outcome.messages)

    @pytest.mark.parametrize("value", ["", 3, {"decisions": []}, {"type": "explode"}, [1, 2]])
    def test_with_a_malformed_value_is_an_error_and_leaves_the_question_open(self, value):
        graph, counter, _ = looping()
        question = graph.invoke(ask(), thread("t"))["__interrupt__"]
        for _ in range(2):
            with pytest.raises(InvalidResumeError, match='Accepted are "continue"'):
                resume(graph, value)
            assert graph.get_state(thread("t")).interrupts == tuple(question)
            assert counter.total == 2
        resume(graph, "continue")
        assert counter.total == 5

    def test_with_an_edit_runs_the_edited_call(self):
        graph, counter, model = looping(model=repeating_model(times=4))
        graph.invoke(ask(), thread("t"))
        edit = {"type": "edit", "edited_action": {"name": "search", "args": {"q": "b"}}}
        result = resume(graph, {"decisions": [edit]})
        assert [args["q"] for _, args in counter.runs] == ["a", "a", "b", "a"]
        edited = [m for m in result["messages"] if isinstance(m, AIMessage)][2]
        assert edited.tool_calls[0]["args"] == {"q": "b"}
        assert_requests_complete(model)

    @every_mode
    async def test_with_a_decision_for_each_call_runs_the_approved_ones_only(self, mode):
        batch = [SEARCH, ("open", {"q": "b"}), ("list", {"q": "c"})]
        graph, counter, model = looping(
            model=listed_model(*[batch] * 3), names=("search", "open", "list")
        )
        await drive(graph, mode, ask(), thread("t"))
        decisions = [
            {"type": "reject", "message": "no more searching"},
            {"type": "approve"},
            {"type": "respond", "message": "c.txt"},
        ]
        value = Command(resume={"decisions": decisions})
        outcome = await drive(graph, mode, value, thread("t"))
        assert [counter.of(name) for name in ("search", "open", "list")] == [2, 3, 2]
        answers = {m.name: m for m in outcome.messages[-4:-1]}
        assert (answers["search"].content, answers["search"].status) == (
            "no more searching",
            "error",
        )
        assert (answers["list"].content, answers["list"].status) == ("c.txt", "success")
        assert_complete(outcome.messages)
        assert_requests_complete(model)

    def test_with_text_too_often_ends_the_run(self):
        graph, counter, model = looping()
        graph.invoke(ask(), thread("t"))
        for _ in range(SEED.max_refusals):
            result = resume(graph, "try something else")
        assert "__interrupt__" not in result
        assert result["messages"][-1].content.startswith("Stopped.")
        assert counter.total == 2
        assert_requests_complete(model)


class TestTheOtherModes:
    @every_mode
    async def test_refuse_lets_the_model_go_on_and_ends_after_three_refusals(self, mode):
        graph, counter, model = looping(on_detected="refuse")
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert outcome.interrupts == ()
        assert counter.total == 2
        # Two runs, three refusals, and the call that ended the run.
        assert len(model.requests) == 6
        assert outcome.messages[-1].content.startswith("Stopped.")
        assert_complete(outcome.messages)
        assert_requests_complete(model)

    def test_refuse_answers_without_quoting_the_call(self):
        model = listed_model(*[[("search", {"q": "needle"})]] * 3)
        graph, _, _ = looping(model=model, on_detected="refuse")
        graph.invoke(ask(), thread("t"))
        answer = model.requests[-1][-1]
        assert answer.status == "error"
        assert answer.content.startswith("This call was not run.")
        assert "needle" not in answer.content

    def test_refuse_needs_no_checkpointer(self):
        graph, counter, _ = looping(on_detected="refuse", saver=False)
        assert_complete(graph.invoke(ask())["messages"])
        assert counter.total == 2

    @every_mode
    async def test_warn_holds_nothing_back(self, mode, caplog):
        graph, counter, _ = looping(model=repeating_model(times=8), on_detected="warn")
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert counter.total == 8
        assert outcome.messages[-1].content == "done"
        assert "search 3 times" in caplog.text


class TestAUserWhoDoesNotAnswer:
    @every_mode
    async def test_but_writes_something_new_gets_a_valid_history(self, mode):
        def respond(messages):
            if messages[-1].content == "never mind":
                return AIMessage(content="fine")
            batch = [SEARCH, ("open", {"q": "b"})]
            return ai_calls(batch, sum(isinstance(m, AIMessage) for m in messages))

        model = ScriptedChatModel(respond=respond)
        graph, _, _ = looping(model=model, names=("search", "open"))
        await drive(graph, mode, ask(), thread("t"))
        outcome = await drive(graph, mode, ask("never mind"), thread("t"))
        assert outcome.messages[-1].content == "fine"
        assert [m.content for m in outcome.messages if m.type == "human"] == ["go", "never mind"]
        assert_complete(graph.get_state(thread("t")).values["messages"])
        assert_requests_complete(model)


class TestARemarkBesidesTheAnswer:
    @pytest.mark.parametrize("how", ["with it", "before it"])
    @pytest.mark.parametrize(("value", "runs"), [("stop", 2), ("use b", 2), ("continue", 3)])
    def test_leaves_the_answer_what_it_is(self, value, runs, how):
        check_answer_beside_remark(looping, value, how, runs)

    def test_alone_is_no_answer(self):
        graph, counter, _ = looping()
        graph.invoke(ask(), thread("t"))
        graph.update_state(thread("t"), {"messages": [HumanMessage("be brief")]})
        assert "__interrupt__" in graph.invoke(None, thread("t"))
        assert counter.total == 2

    def test_leaves_single_decisions_what_they_are(self):
        calls = [SEARCH, ("open", {"q": "b"})]
        model = repeating_model(*calls, times=3)
        graph, counter, _ = looping(model=model, names=("search", "open"))
        graph.invoke(ask(), thread("t"))
        decisions = [{"type": "approve"}, {"type": "reject", "message": "not that"}]
        with_remark(graph, {"decisions": decisions}, "with it")
        assert counter.runs[4] == ("search", {"q": "a"})
        assert ("not that", "error") in [
            (m.content, getattr(m, "status", "")) for m in model.requests[3]
        ]
        assert_requests_complete(model)


class TestTheState:
    def counts(self, graph, key="loop_guard"):
        return graph.get_state(thread("t")).values[key]

    def test_is_saved_and_no_part_of_input_and_output(self):
        graph, counter, _ = looping()
        result = graph.invoke({**ask(), "loop_guard": {"v": 99}}, thread("t"))
        assert set(result) == {"messages", "__interrupt__"}
        assert self.counts(graph)["v"] == 1
        assert counter.total == 2
        for schema in (graph.get_input_jsonschema(), graph.get_output_jsonschema()):
            assert "loop_guard" not in schema["properties"]

    def test_is_json_and_small(self):
        graph, _, _ = looping(policy=None, model=repeating_model(times=4))
        graph.invoke(ask(), thread("t"))
        counts = self.counts(graph)
        assert json.loads(json.dumps(counts)) == counts
        assert len(json.dumps(counts)) < 8_192
        assert '"a"' not in json.dumps(counts)

    def test_may_have_another_key(self):
        graph, counter, _ = looping(state_key="counts")
        graph.invoke(ask(), thread("t"))
        assert self.counts(graph, "counts")["v"] == 1
        assert counter.total == 2

    def test_of_a_newer_release_switches_the_guard_off_and_stays(self, caplog):
        graph, counter, _ = looping(model=repeating_model(times=5))
        graph.update_state(thread("t"), {"loop_guard": {"v": 99}}, as_node=BEFORE)
        graph.invoke(ask(), thread("t"))
        assert counter.total == 5
        assert self.counts(graph) == {"v": 99}
        lines = [r for r in caplog.records if r.name == "langchain_loopguard"]
        assert len(lines) == 1
        assert "99" in lines[0].getMessage()

    def test_may_begin_as_an_empty_mapping(self, caplog):
        graph, counter, _ = looping(fail_open=False)
        graph.update_state(thread("t"), {"loop_guard": {}}, as_node=BEFORE)
        assert "__interrupt__" in graph.invoke(ask(), thread("t"))
        assert counter.total == 2
        assert not caplog.records

    @pytest.mark.parametrize("odd", [{}, {"v": 1}, {"v": 1, "guard": 3}, {"v": 1, "tools": 3}])
    def test_that_is_odd_is_counted_anew(self, odd):
        graph, counter, _ = looping()
        graph.update_state(thread("t"), {"loop_guard": odd}, as_node=BEFORE)
        assert "__interrupt__" in graph.invoke(ask(), thread("t"))
        assert counter.total == 2

    def test_is_forked_with_the_thread(self):
        graph, counter, _ = looping()
        graph.invoke(ask(), thread("t"))
        early = next(
            state
            for state in reversed(list(graph.get_state_history(thread("t"))))
            if [m.type for m in state.values.get("messages", ())] == ["human", "ai"]
        )
        counter.runs.clear()
        assert "__interrupt__" in graph.invoke(None, early.config)
        assert counter.total == 2


class TestFaults:
    @pytest.fixture
    def broken(self, monkeypatch):
        def check(self, calls):
            raise RuntimeError("boom")

        monkeypatch.setattr(LoopGuard, "check", check)

    @every_mode
    async def test_of_the_guard_are_logged_once_and_the_agent_goes_on(self, broken, mode, caplog):
        graph, counter, _ = looping(model=repeating_model(times=5))
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert counter.total == 5
        assert outcome.messages[-1].content == "done"
        assert len([r for r in caplog.records if r.name == "langchain_loopguard"]) == 1

    def test_of_the_guard_are_raised_when_asked_for(self, broken):
        graph, counter, _ = looping(fail_open=False)
        with pytest.raises(RuntimeError, match="boom"):
            graph.invoke(ask(), thread("t"))
        assert counter.total == 0

    def test_in_reading_what_tools_declare_are_no_exception(self, monkeypatch, caplog):
        def to_state(self):
            raise RuntimeError("boom")

        monkeypatch.setattr(LoopGuard, "to_state", to_state)
        counter = Counter()
        tool = counting_tool(counter, metadata={"loop_guard": {"poller": True}})
        guarded_agent(repeating_model(times=2), [tool]).invoke(ask(), thread("t"))
        assert counter.total == 2
        assert "unguarded" in caplog.text

    def test_do_not_lose_the_stop_of_a_person(self, monkeypatch):
        graph, counter, _ = looping()
        graph.invoke(ask(), thread("t"))

        def refuse(self, decision):
            raise RuntimeError("boom")

        monkeypatch.setattr(LoopGuard, "refuse", refuse)
        assert_complete(resume(graph, "stop")["messages"])
        assert counter.total == 2


class TestOddBatches:
    def broken(self, turn, name="search"):
        return {
            "name": name,
            "args": '{"q": ',
            "id": f"bad_{turn}",
            "error": None,
            "type": "invalid_tool_call",
        }

    @pytest.mark.parametrize("call_id", ["c", ""])
    def test_calls_that_share_an_id_keep_an_answer_each(self, call_id):
        def respond(messages):
            turn = sum(isinstance(message, AIMessage) for message in messages)
            asked = ai_calls([("search", {"q": f"a{turn}"}), ("search", {"q": f"b{turn}"})], turn)
            for call in asked.tool_calls:
                call["id"] = call_id
            return asked if turn < 2 else AIMessage(content="done")

        model, counter = ScriptedChatModel(respond=respond), Counter()
        tool = counting_tool(counter, answer=lambda number: f"page {number}")
        guarded_agent(model, [tool]).invoke(ask(), thread("t"))
        answers = [m.content for m in model.requests[-1] if isinstance(m, ToolMessage)]
        assert sorted(answers) == ["page 1", "page 2", "page 3", "page 4"]

    def test_calls_that_cannot_be_parsed_beside_others_count_and_are_answered(self):
        def respond(messages):
            turn = sum(isinstance(m, AIMessage) for m in messages)
            calls = ai_calls([SEARCH], turn).tool_calls
            return AIMessage("", tool_calls=calls, invalid_tool_calls=[self.broken(turn, "open")])

        model = ScriptedChatModel(respond=respond)
        graph, counter, _ = looping(model=model)
        graph.invoke(ask(), thread("t"))
        assert counter.total == 2
        assert_requests_complete(model)
        result = resume(graph, "stop")
        assert_complete(result["messages"])

    def test_calls_that_cannot_be_parsed_delay_no_warning(self):
        def respond(messages):
            turn = sum(isinstance(m, AIMessage) for m in messages)
            calls = ai_calls([SEARCH], turn).tool_calls
            return AIMessage("", tool_calls=calls, invalid_tool_calls=[self.broken(turn, "open")])

        model = ScriptedChatModel(respond=respond)
        graph, _, _ = looping(model=model, policy=None)
        graph.invoke(ask(), thread("t"))
        told = [NOTICE_MARK in str([m.content for m in request]) for request in model.requests]
        assert told[:4] == [False, False, False, True]

    def test_calls_that_cannot_be_parsed_alone_are_left_to_the_host(self):
        def respond(messages):
            return AIMessage("", invalid_tool_calls=[self.broken(len(messages))])

        plain, guarded = ScriptedChatModel(respond=respond), ScriptedChatModel(respond=respond)
        tools = [counting_tool(Counter())]
        agent_graph(plain, tools).invoke(ask())
        guarded_agent(guarded, tools).invoke(ask(), thread("t"))
        assert len(plain.requests) == len(guarded.requests) == 1

    def test_open_calls_in_the_input_are_answered(self):
        model = listed_model()
        graph, _, _ = looping(model=model)
        batch = ai_calls([SEARCH, ("search", {"q": "b"})], 1)
        first = ToolMessage("x", tool_call_id="call_1_0")
        graph.invoke({"messages": [*ask()["messages"], batch, first]}, thread("t"))
        graph.invoke(
            {"messages": [*ask()["messages"], batch, *ask("next")["messages"]]}, thread("u")
        )
        assert_requests_complete(model)

    def test_a_history_that_comes_along_is_counted(self):
        given = [*ask()["messages"]]
        for turn in range(2):
            answer = ToolMessage("error", tool_call_id=f"call_{turn}_0")
            given += [ai_calls([SEARCH], turn), answer]
        graph, counter, _ = looping(
            model=ScriptedChatModel(respond=lambda m: ai_calls([SEARCH], len(m)))
        )
        assert "__interrupt__" in graph.invoke({"messages": given}, thread("t"))
        assert counter.total == 0

    def test_an_agent_without_tools_is_left_alone(self):
        model = listed_model()
        result = guarded_agent(model, []).invoke(ask(), thread("t"))
        assert result["messages"][-1].content == "done"

    def test_a_tool_whose_answer_is_the_end_ends_the_run(self):
        counter = Counter()
        tool = counting_tool(counter, return_direct=True)
        result = guarded_agent(repeating_model(), [tool]).invoke(ask(), thread("t"))
        assert counter.total == 1
        assert_valid_history(result["messages"])


class TestConstruction:
    @pytest.mark.parametrize(
        ("options", "text"),
        [
            pytest.param(
                {"on_detected": "shout"}, "on_detected: .*'wrap_up', not 'shout'", id="on_detected"
            ),
            pytest.param({"policy": "seed"}, "policy: must be a LoopGuardPolicy", id="policy"),
            pytest.param({"name": ""}, "name: must be a name", id="name"),
            pytest.param({"state_key": ""}, "state_key: must be a name", id="state_key"),
            pytest.param(
                {"agent_inbox": "yes"}, "agent_inbox: .*True or False, not 'yes'", id="inbox"
            ),
            pytest.param(
                {"fail_open": "no"}, "fail_open: must be True or False, not 'no'", id="open"
            ),
            pytest.param({"fail_open": None}, "fail_open: must be True or False", id="open-none"),
            pytest.param({"state_key": "messages"}, "state_key: .*'messages'", id="own-key"),
        ],
    )
    def test_refuses_what_is_wrong_and_names_the_field(self, options, text):
        with pytest.raises(ValueError, match=text):
            LoopGuardMiddleware(**options)

    def test_takes_the_default_policy(self):
        assert LoopGuardMiddleware().policy == LoopGuardPolicy()

    def test_is_named_for_its_class(self):
        class Mine(LoopGuardMiddleware):
            pass

        assert (LoopGuardMiddleware().name, Mine().name) == ("LoopGuardMiddleware", "Mine")
        keys = [guard.state_key for guard in (LoopGuardMiddleware(), Mine())]
        assert keys == ["loop_guard", "loop_guard_Mine"]

    def test_twice_in_one_agent_needs_two_names(self):
        with pytest.raises(AssertionError, match="duplicate"):
            guarded_agent(repeating_model(), [], others=[LoopGuardMiddleware()])
