"""Does the guard node stop a loop on a real graph, and does it leave a history that is valid?"""

import asyncio
import json
import logging
import operator
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy
from pydantic import BaseModel

from langchain_loopguard import LoopDetectedError, LoopGuard, LoopGuardPolicy
from langchain_loopguard.errors import InvalidResumeError
from langchain_loopguard.node import LoopGuardNode, LoopGuardState, add_loop_guard
from tests.adapters.guarded import (
    SEED,
    WIRINGS,
    assert_complete,
    assert_requests_complete,
    builder_for,
    by_hand,
    by_hand_with_channel,
    owned,
    with_channel,
)
from tests.adapters.resumes import RESUMES, check_answer_beside_remark, with_remark
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
every_wiring = pytest.mark.parametrize("build", WIRINGS.values(), ids=WIRINGS)
every_mode = pytest.mark.parametrize("mode", MODES)


def looping(build=owned, *, model=None, names=("search",), **options):
    """Build a graph that repeats one failing call for ever; gives graph, counter and model."""
    counter = Counter()
    model = model or repeating_model()
    tools = [counting_tool(counter, name, native_async=True) for name in names]
    return build(model, tools, **options), counter, model


def resume(graph, value, config):
    return graph.invoke(Command(resume=value), config)


class TestAsking:
    @every_wiring
    @every_mode
    async def test_comes_before_the_third_run_of_a_repeated_call(self, build, mode):
        graph, counter, _ = looping(build)
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert counter.total == 2
        assert len(outcome.interrupts) == 1
        assert outcome.interrupts[0].value["type"] == "loop_detected"

    @every_wiring
    @every_mode
    async def test_answered_with_stop_ends_with_every_call_answered(self, build, mode):
        graph, counter, _ = looping(
            build, model=repeating_model(SEARCH, ("open", {"q": "b"})), names=("search", "open")
        )
        await drive(graph, mode, ask(), thread("t"))
        outcome = await drive(graph, mode, Command(resume="stop"), thread("t"))
        assert outcome.interrupts == ()
        assert counter.of("search") == counter.of("open") == 2
        assert_complete(outcome.messages)
        assert isinstance(outcome.messages[-1], AIMessage)
        assert "search" in outcome.messages[-1].content
        assert "3 times" in outcome.messages[-1].content

    def test_answered_with_stop_and_a_reason_says_the_reason(self):
        graph, _, _ = looping()
        graph.invoke(ask(), thread("t"))
        result = resume(graph, {"type": "stop", "message": "too dear"}, thread("t"))
        assert result["messages"][-1].content.endswith("Reason: too dear")

    @every_wiring
    @every_mode
    async def test_answered_with_continue_runs_the_batch_and_counts_anew(self, build, mode):
        graph, counter, _ = looping(build)
        await drive(graph, mode, ask(), thread("t"))
        outcome = await drive(graph, mode, Command(resume="continue"), thread("t"))
        # One run that was approved, then two more that a fresh count allows.
        assert counter.total == 5
        assert len(outcome.interrupts) == 1

    @every_wiring
    @every_mode
    async def test_answered_with_text_tells_the_model(self, build, mode):
        graph, counter, model = looping(build)
        await drive(graph, mode, ask(), thread("t"))
        outcome = await drive(graph, mode, Command(resume="use the cache"), thread("t"))
        assert counter.total == 2
        assert model.requests[-1][-1].content == "use the cache"
        assert model.requests[-1][-1].status == "error"
        # The model repeats itself all the same, so the person is asked again.
        assert len(outcome.interrupts) == 1
        assert_requests_complete(model)

    @every_wiring
    @pytest.mark.parametrize("value", ["stop", "continue", "use the cache"])
    def test_is_followed_by_a_user_turn_that_works(self, build, value):
        graph, counter, model = looping(build, model=repeating_model(times=3))
        graph.invoke(ask(), thread("t"))
        resume(graph, value, thread("t"))
        before = counter.total
        result = graph.invoke(ask("again"), thread("t"))
        assert counter.total == before + 2
        assert "__interrupt__" in result
        assert_requests_complete(model)

    def test_is_in_the_output_of_version_2(self):
        graph, counter, _ = looping()
        output = graph.invoke(ask(), thread("t"), version="v2")
        assert output.interrupts[0].value["type"] == "loop_detected"
        done = graph.invoke(Command(resume="stop"), thread("t"), version="v2")
        assert_complete(done.value["messages"])
        assert counter.total == 2

    def test_happens_once_for_a_batch_of_several_calls(self):
        graph, counter, _ = looping(
            model=repeating_model(SEARCH, ("open", {"q": "b"})), names=("search", "open")
        )
        result = graph.invoke(ask(), thread("t"))
        assert len(result["__interrupt__"]) == 1
        assert len(result["__interrupt__"][0].value["action_requests"]) == 2
        assert counter.total == 4

    @every_wiring
    def test_counts_calls_of_a_tool_that_does_not_exist(self, build):
        graph, counter, model = looping(build, model=repeating_model(("nothing", {})))
        result = graph.invoke(ask(), thread("t"))
        assert "__interrupt__" in result
        assert len(model.requests) == 3
        assert counter.total == 0

    def test_comes_after_a_warning_with_the_default_policy(self, caplog):
        graph, counter, _ = looping(policy=None)
        assert "__interrupt__" in graph.invoke(ask(), thread("t"))
        assert "search" in caplog.text
        assert 2 < counter.total < 10

    @every_wiring
    def test_leaves_changing_answers_alone(self, build):
        counter = Counter()
        tool = counting_tool(counter, answer=str)
        graph = build(repeating_model(times=9), [tool])
        result = graph.invoke(ask(), thread("t"))
        assert "__interrupt__" not in result
        assert counter.total == 9

    @every_wiring
    def test_does_not_happen_for_the_same_question_in_nine_user_turns(self, build):
        graph, counter, _ = looping(build, model=repeating_model(times=1))
        for turn in range(9):
            assert "__interrupt__" not in graph.invoke(ask(str(turn)), thread("t"))
        assert counter.total == 9

    def test_in_a_graph_without_checkpointer_is_an_error_that_names_the_cure(self):
        graph, counter, _ = looping(saver=False)
        with pytest.raises(LoopDetectedError, match="checkpointer") as error:
            graph.invoke(ask())
        assert counter.total == 2
        assert error.value.tools == ("search",)
        with pytest.raises(LoopDetectedError, match="checkpointer"):
            graph.invoke(ask(), thread("t"))

    async def test_without_checkpointer_is_an_error_when_async_too(self):
        graph, _, _ = looping(saver=False)
        with pytest.raises(LoopDetectedError, match="checkpointer"):
            await graph.ainvoke(ask())

    def test_is_not_swallowed_by_a_retry_or_by_failing_open(self):
        counter = Counter()
        builder = builder_for(repeating_model(), [counting_tool(counter)])
        builder.add_node(
            "guard",
            LoopGuardNode(SEED, on_detected="raise", fail_open=True),
            retry_policy=RetryPolicy(initial_interval=0.01, retry_on=Exception),
        )
        builder.add_edge("agent", "guard")
        builder.add_edge("tools", "agent")
        with pytest.raises(LoopDetectedError):
            builder.compile().invoke(ask())
        assert counter.total == 2


class TestResuming:
    @pytest.mark.parametrize("build", [owned, by_hand], ids=["owned", "by-hand-folding"])
    @pytest.mark.parametrize(("value", "runs"), RESUMES)
    def test_accepts_every_form_of_an_answer(self, build, value, runs):
        graph, counter, model = looping(build)
        graph.invoke(ask(), thread("t"))
        result = resume(graph, value, thread("t"))
        assert counter.total == runs
        assert_requests_complete(model)
        if "__interrupt__" not in result:
            assert_complete(result["messages"])

    @every_wiring
    @pytest.mark.parametrize("value", ["", 3, {"decisions": []}, {"type": "explode"}, [1, 2]])
    def test_with_a_malformed_value_is_an_error_and_leaves_the_question_open(self, build, value):
        graph, counter, _ = looping(build)
        question = graph.invoke(ask(), thread("t"))["__interrupt__"]
        for _ in range(2):
            with pytest.raises(InvalidResumeError, match='Accepted are "continue"'):
                resume(graph, value, thread("t"))
            state = graph.get_state(thread("t"))
            assert state.interrupts == tuple(question)
            assert counter.total == 2
        resume(graph, "continue", thread("t"))
        assert counter.total == 5

    async def test_with_a_malformed_value_is_an_error_when_async_and_by_id_too(self):
        graph, counter, _ = looping()
        result = await graph.ainvoke(ask(), thread("t"))
        key = result["__interrupt__"][0].id
        with pytest.raises(InvalidResumeError):
            await graph.ainvoke(Command(resume={key: 3}), thread("t"))
        done = await graph.ainvoke(Command(resume={key: "stop"}), thread("t"))
        assert_complete(done["messages"])
        assert counter.total == 2

    @every_wiring
    def test_with_an_edit_runs_the_edited_call_and_counts_it(self, build):
        graph, counter, model = looping(build, model=repeating_model(times=4))
        graph.invoke(ask(), thread("t"))
        edit = {"type": "edit", "edited_action": {"name": "search", "args": {"q": "b"}}}
        result = resume(graph, {"decisions": [edit]}, thread("t"))
        assert [args["q"] for _, args in counter.runs] == ["a", "a", "b", "a"]
        edited = [m for m in result["messages"] if isinstance(m, AIMessage)][2]
        assert edited.tool_calls[0]["args"] == {"q": "b"}
        assert_requests_complete(model)

    @every_wiring
    def test_with_an_edit_into_a_loop_of_its_own_is_asked_about_in_time(self, build):
        model = listed_model(*[[SEARCH]] * 3, *[[("search", {"q": "b"})]] * 5)
        graph, counter, _ = looping(build, model=model)
        graph.invoke(ask(), thread("t"))
        edit = {"type": "edit", "edited_action": {"name": "search", "args": {"q": "b"}}}
        result = resume(graph, {"decisions": [edit]}, thread("t"))
        assert "__interrupt__" in result
        # The edited call is the first of the new loop, one more may follow it.
        assert [args["q"] for _, args in counter.runs] == ["a", "a", "b", "b"]

    @every_wiring
    def test_with_a_decision_for_each_call_runs_the_approved_ones_only(self, build):
        batch = [SEARCH, ("open", {"q": "b"}), ("list", {"q": "c"})]
        graph, counter, model = looping(
            build, model=listed_model(*[batch] * 3), names=("search", "open", "list")
        )
        graph.invoke(ask(), thread("t"))
        decisions = [
            {"type": "reject", "message": "no more searching"},
            {"type": "approve"},
            {"type": "respond", "message": "c.txt"},
        ]
        result = resume(graph, {"decisions": decisions}, thread("t"))
        assert [counter.of(name) for name in ("search", "open", "list")] == [2, 3, 2]
        assert_complete(result["messages"])
        answers = {m.name: m for m in result["messages"][-4:-1]}
        assert answers["search"].content == "no more searching"
        assert answers["search"].status == "error"
        assert answers["list"].content == "c.txt"
        assert answers["list"].status == "success"
        assert_requests_complete(model)

    def test_with_an_edit_keeps_the_call_in_the_content_the_same(self):
        def respond(messages):
            call = ai_calls([SEARCH], sum(isinstance(m, AIMessage) for m in messages))
            block = {"type": "tool_use", "id": call.tool_calls[0]["id"], "name": "search"}
            raw = {"tool_calls": [{"id": block["id"], "function": {"name": "search"}}]}
            return AIMessage(
                content=[{"type": "text", "text": "hm"}, {**block, "input": {"q": "a"}}],
                tool_calls=call.tool_calls,
                additional_kwargs=raw,
            )

        graph, _, _ = looping(model=ScriptedChatModel(respond=respond))
        graph.invoke(ask(), thread("t"))
        edit = {"type": "edit", "edited_action": {"name": "search", "args": {"q": "b"}}}
        result = resume(graph, {"decisions": [edit]}, thread("t"))
        edited = [m for m in result["messages"] if isinstance(m, AIMessage)][2]
        assert edited.content[1]["input"] == {"q": "b"}
        assert "tool_calls" not in edited.additional_kwargs

    @every_wiring
    def test_cannot_tell_calls_apart_that_share_an_id(self, build):
        def respond(messages):
            asked = ai_calls([SEARCH, ("search", {"q": "b"})], len(messages))
            for call in asked.tool_calls:
                call["id"] = f"c{len(messages)}"
            return asked

        graph, counter, model = looping(build, model=ScriptedChatModel(respond=respond))
        graph.invoke(ask(), thread("t"))
        decisions = [{"type": "approve"}, {"type": "reject", "message": "not b"}]
        with pytest.raises(InvalidResumeError, match="share an id"):
            resume(graph, {"decisions": decisions}, thread("t"))
        assert counter.total == 4
        result = resume(graph, "stop", thread("t"))
        assert counter.total == 4
        assert_complete(result["messages"])
        assert_requests_complete(model)

    @every_wiring
    def test_with_text_too_often_ends_the_run(self, build):
        graph, counter, model = looping(build)
        graph.invoke(ask(), thread("t"))
        for _ in range(SEED.max_refusals):
            result = resume(graph, "try something else", thread("t"))
        assert "__interrupt__" not in result
        assert result["messages"][-1].content.startswith("Stopped.")
        assert counter.total == 2
        assert_complete(result["messages"])
        assert_requests_complete(model)


class TestAUserWhoDoesNotAnswer:
    @pytest.mark.parametrize("build", [owned, with_channel], ids=["owned", "owned-schema"])
    async def test_but_writes_something_new_gets_a_valid_history(self, build):
        def respond(messages):
            if messages[-1].content == "never mind":
                return AIMessage(content="fine")
            batch = [SEARCH, ("open", {"q": "b"})]
            return ai_calls(batch, sum(isinstance(m, AIMessage) for m in messages))

        model = ScriptedChatModel(respond=respond)
        graph, _, _ = looping(build, model=model, names=("search", "open"))
        for mode in MODES:
            config = thread(mode)
            await drive(graph, mode, ask(), config)
            outcome = await drive(graph, mode, ask("never mind"), config)
            assert outcome.messages[-1].content == "fine"
            assert_complete(graph.get_state(config).values["messages"])
            assert [m.content for m in outcome.messages if m.type == "human"] == [
                "go",
                "never mind",
            ]
        assert_requests_complete(model)

    def test_after_an_error_gets_a_valid_history_too(self):
        graph, counter, model = looping(model=repeating_model(times=3), on_detected="raise")
        with pytest.raises(LoopDetectedError):
            graph.invoke(ask(), thread("t"))
        with pytest.raises(LoopDetectedError):
            graph.invoke(ask("again"), thread("t"))
        assert counter.total == 4
        assert_requests_complete(model)


class TestARemarkBesidesTheAnswer:
    @every_wiring
    @pytest.mark.parametrize("how", ["with it", "before it"])
    @pytest.mark.parametrize(("value", "runs"), [("stop", 2), ("use b", 2), ("continue", 3)])
    def test_leaves_the_answer_what_it_is(self, build, value, runs, how):
        check_answer_beside_remark(partial(looping, build), value, how, runs)

    @every_wiring
    def test_that_a_framework_makes_hides_no_answer_either(self, build):
        graph, counter, _ = looping(build)
        graph.invoke(ask(), thread("t"))
        note = {"messages": [SystemMessage("step noted")]}
        result = graph.invoke(Command(resume="stop", update=note), thread("t"))
        assert counter.total == 2
        assert result["messages"][-1].content.startswith("Stopped.")
        assert_complete(result["messages"])

    @pytest.mark.parametrize("build", [owned, with_channel], ids=["owned", "owned-schema"])
    def test_that_the_agent_makes_hides_no_loop(self, build):
        def agent(state):
            turn = sum(isinstance(message, AIMessage) for message in state["messages"])
            return {"messages": [ai_calls([SEARCH], turn), SystemMessage("step noted")]}

        graph, counter, _ = looping(build, agent_node=agent)
        result = graph.invoke(ask(), thread("t"))
        assert "__interrupt__" in result
        assert counter.total == 2
        assert_complete(graph.invoke(Command(resume="stop"), thread("t"))["messages"])

    @every_wiring
    def test_is_all_that_some_tools_answer_with(self, build):
        def tools(state):
            runs.append(1)
            return {"messages": [HumanMessage("image", additional_kwargs={"lc_source": "media"})]}

        def respond(messages):
            turn = sum(isinstance(message, AIMessage) for message in messages)
            asked = ai_calls([("search", {"q": str(turn)})], turn)
            return asked if turn < 3 else AIMessage(content="done")

        runs = []
        model = ScriptedChatModel(respond=respond)
        graph, _, _ = looping(build, model=model, tools_node=tools)
        assert graph.invoke(ask(), thread("t"))["messages"][-1].content == "done"
        assert len(runs) == 3

    @every_wiring
    def test_alone_is_no_answer(self, build):
        graph, counter, _ = looping(build)
        graph.invoke(ask(), thread("t"))
        graph.update_state(thread("t"), {"messages": [HumanMessage("be brief")]})
        assert "__interrupt__" in graph.invoke(None, thread("t"))
        assert counter.total == 2

    @every_wiring
    def test_leaves_single_decisions_what_they_are(self, build):
        calls = [SEARCH, ("open", {"q": "b"})]
        model = repeating_model(*calls, times=3)
        graph, counter, _ = looping(build, model=model, names=("search", "open"))
        graph.invoke(ask(), thread("t"))
        decisions = [{"type": "approve"}, {"type": "reject", "message": "not that"}]
        with_remark(graph, {"decisions": decisions}, "with it")
        assert counter.runs[4] == ("search", {"q": "a"})
        assert ("not that", "error") in [
            (m.content, getattr(m, "status", "")) for m in model.requests[3]
        ]
        assert_requests_complete(model)


class TestOtherModes:
    @every_wiring
    def test_raise_ends_in_an_error_that_says_which_tool(self, build):
        graph, counter, _ = looping(build, on_detected="raise")
        with pytest.raises(LoopDetectedError, match="search 3 times") as error:
            graph.invoke(ask(), thread("t"))
        assert isinstance(error.value, GraphBubbleUp)
        assert (error.value.count, error.value.threshold) == (3, 2)
        assert counter.total == 2

    @every_wiring
    @every_mode
    async def test_refuse_lets_the_model_go_on_and_ends_after_three_refusals(self, build, mode):
        graph, counter, model = looping(build, on_detected="refuse")
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert outcome.interrupts == ()
        assert counter.total == 2
        # Two runs, three refusals, and the call that ended the run.
        assert len(model.requests) == 6
        assert isinstance(outcome.messages[-1], AIMessage)
        assert "search" in outcome.messages[-1].content
        assert_complete(outcome.messages)
        assert_requests_complete(model)

    def test_refuse_answers_without_quoting_the_call(self):
        model = listed_model(*[[("search", {"q": "needle"})]] * 3)
        graph, _, _ = looping(model=model, on_detected="refuse")
        graph.invoke(ask(), thread("t"))
        answer = model.requests[-1][-1]
        assert isinstance(answer, ToolMessage)
        assert answer.status == "error"
        assert answer.content
        assert "needle" not in answer.content

    def test_refuse_needs_no_checkpointer(self):
        graph, counter, _ = looping(on_detected="refuse", saver=False)
        assert_complete(graph.invoke(ask())["messages"])
        assert counter.total == 2

    @every_wiring
    def test_warn_holds_nothing_back(self, build, caplog):
        graph, counter, _ = looping(build, model=repeating_model(times=8), on_detected="warn")
        with caplog.at_level(logging.WARNING, "langchain_loopguard"):
            result = graph.invoke(ask(), thread("t"))
        assert counter.total == 8
        assert result["messages"][-1].content == "done"
        assert "search 3 times" in caplog.text


class TestOddBatches:
    @pytest.mark.parametrize("build", [owned, with_channel, by_hand_with_channel])
    def test_calls_that_were_answered_before_are_not_asked_about_nor_run(self, build):
        # A review node in front of the guard rejects every `open`, as human-in-the-loop does.
        batch = [SEARCH, ("open", {"q": "b"})]
        counter = Counter()
        model = listed_model(*[batch] * 4)
        tools = [counting_tool(counter, "search"), counting_tool(counter, "open")]
        graph = review_graph(build, model, tools)
        result = graph.invoke(ask(), thread("t"))
        requests = result["__interrupt__"][0].value["action_requests"]
        assert [request["name"] for request in requests] == ["search"]
        assert (counter.of("search"), counter.of("open")) == (2, 0)
        done = resume(graph, "stop", thread("t"))
        assert_complete(done["messages"])
        assert_requests_complete(model)

    def test_a_batch_of_rejected_calls_only_goes_back_to_the_model(self):
        counter = Counter()
        model = listed_model(*[[("open", {"q": "b"})]] * 5)
        graph = review_graph(owned, model, [counting_tool(counter, "open")])
        result = graph.invoke(ask(), thread("t"))
        assert "__interrupt__" not in result
        assert counter.total == 0
        assert_requests_complete(model)

    @every_wiring
    def test_calls_that_cannot_be_parsed_are_answered_and_count(self, build):
        def respond(messages):
            turn = sum(isinstance(m, AIMessage) for m in messages)
            broken = {
                "name": "search",
                "args": '{"q": ',
                "id": f"bad_{turn}",
                "error": "unexpected end",
                "type": "invalid_tool_call",
            }
            return AIMessage(content="", invalid_tool_calls=[broken])

        graph, counter, model = looping(build, model=ScriptedChatModel(respond=respond))
        result = graph.invoke(ask(), thread("t"))
        assert "__interrupt__" in result
        assert len(model.requests) == 3
        assert_requests_complete(model)
        assert_complete(resume(graph, "stop", thread("t"))["messages"])
        assert counter.total == 0

    @every_wiring
    def test_a_call_that_cannot_be_parsed_beside_one_that_can(self, build):
        def respond(messages):
            turn = sum(isinstance(m, AIMessage) for m in messages)
            message = ai_calls([SEARCH], turn)
            broken = {"name": "open", "args": "{", "id": f"bad_{turn}", "error": None}
            return AIMessage(
                content="",
                tool_calls=message.tool_calls,
                invalid_tool_calls=[{**broken, "type": "invalid_tool_call"}],
            )

        graph, counter, model = looping(build, model=ScriptedChatModel(respond=respond))
        graph.invoke(ask(), thread("t"))
        assert counter.total == 2
        assert_requests_complete(model)
        resume(graph, "continue", thread("t"))
        assert counter.total == 5
        assert_requests_complete(model)

    def test_calls_that_the_tools_left_out_are_answered(self):
        def only_the_first(state):
            call = state["messages"][-1].tool_calls[0]
            return {"messages": [ToolMessage("x", tool_call_id=call["id"])]}

        batch = [SEARCH, ("open", {"q": "b"})]
        graph, _, model = looping(model=listed_model(batch), tools_node=only_the_first)
        assert_complete(graph.invoke(ask(), thread("t"))["messages"])
        assert_requests_complete(model)

    def test_tools_written_by_hand_see_an_ai_message_last(self):
        seen = []

        def tools(state):
            last = state["messages"][-1]
            seen.append([call["name"] for call in last.tool_calls])
            return {
                "messages": [ToolMessage("x", tool_call_id=call["id"]) for call in last.tool_calls]
            }

        batch = [SEARCH, ("open", {"q": "b"})]
        graph, _, _ = looping(model=listed_model(*[batch] * 3), tools_node=tools)
        graph.invoke(ask(), thread("t"))
        decisions = [{"type": "reject", "message": "no"}, {"type": "approve"}]
        result = resume(graph, {"decisions": decisions}, thread("t"))
        assert seen == [["search", "open"], ["search", "open"], ["open"]]
        assert_complete(result["messages"])

    def test_an_agent_that_says_nothing_ends_the_run(self):
        graph, _, _ = looping(agent_node=lambda state: {})
        result = graph.invoke(ask(), thread("t"))
        assert [m.type for m in result["messages"]] == ["human"]

    def test_tools_may_add_a_human_message_to_their_answers(self):
        def tools(state):
            call = state["messages"][-1].tool_calls[0]
            image = HumanMessage("the image", additional_kwargs={"lc_source": "media"})
            return {"messages": [ToolMessage("see below", tool_call_id=call["id"]), image]}

        model = ScriptedChatModel(
            respond=lambda messages: ai_calls(
                [SEARCH], sum(isinstance(m, AIMessage) for m in messages)
            )
        )
        graph, _, _ = looping(model=model, tools_node=tools)
        assert "__interrupt__" in graph.invoke(ask(), thread("t"))
        assert len(model.requests) == 3


def review_graph(build, model, tools):
    """Put a node that rejects every `open` between the agent and the guard."""

    def review(state):
        return {
            "messages": [
                ToolMessage(
                    "rejected",
                    tool_call_id=call["id"],
                    status="error",
                    additional_kwargs={"lc_source": "hitl_interrupt_decision"},
                )
                for call in state["messages"][-1].tool_calls
                if call["name"] == "open"
            ]
        }

    schema = LoopGuardState if build is not owned else MessagesState
    builder = builder_for(model, tools, schema)
    builder.add_node("guard", LoopGuardNode(SEED))
    builder.add_node("review", review)
    builder.add_edge("agent", "review")
    builder.add_edge("review", "guard")
    builder.add_edge("tools", "agent" if build is by_hand_with_channel else "guard")
    from langgraph.checkpoint.memory import InMemorySaver

    return builder.compile(checkpointer=InMemorySaver())


class TestFaults:
    def broken_policy(self, monkeypatch):
        def check(self, calls):
            raise RuntimeError("boom")

        monkeypatch.setattr(LoopGuard, "check", check)

    @every_wiring
    def test_of_the_guard_are_logged_once_and_the_agent_goes_on(self, build, monkeypatch, caplog):
        self.broken_policy(monkeypatch)
        graph, counter, _ = looping(build, model=repeating_model(times=5))
        result = graph.invoke(ask(), thread("t"))
        assert counter.total == 5
        assert result["messages"][-1].content == "done"
        assert len([r for r in caplog.records if r.name.startswith("langchain_loopguard")]) == 1

    def test_leave_calls_that_cannot_be_parsed_to_the_host_which_ends_the_run(self, monkeypatch):
        self.broken_policy(monkeypatch)
        broken = {"name": "t", "args": "{", "id": "b", "error": None, "type": "invalid_tool_call"}
        model = ScriptedChatModel(respond=lambda _: AIMessage("", invalid_tool_calls=[broken]))
        graph, _, _ = looping(model=model)
        graph.invoke(ask(), thread("t"))
        assert len(model.requests) == 1

    def test_messages_of_no_known_kind_are_passed_over(self, caplog):
        node = LoopGuardNode(SEED)
        command = node({"messages": [*ask()["messages"], object(), ai_calls([SEARCH], 1)]})
        assert command.goto == "tools"
        assert "unguarded" in caplog.text
        with pytest.raises(NotImplementedError):
            LoopGuardNode(SEED, fail_open=False)({"messages": [object()]})

    def test_of_the_guard_are_raised_when_asked_for(self, monkeypatch):
        self.broken_policy(monkeypatch)
        graph, counter, _ = looping(fail_open=False)
        with pytest.raises(RuntimeError, match="boom"):
            graph.invoke(ask(), thread("t"))
        assert counter.total == 0

    def test_do_not_lose_the_stop_of_a_person(self, monkeypatch):
        graph, counter, _ = looping()
        graph.invoke(ask(), thread("t"))

        def refuse(self, decision):
            raise RuntimeError("boom")

        monkeypatch.setattr(LoopGuard, "refuse", refuse)
        result = resume(graph, "stop", thread("t"))
        assert counter.total == 2
        assert_complete(result["messages"])

    def test_counts_of_a_newer_release_switch_the_guard_off_and_stay(self, caplog):
        graph, counter, _ = looping(model=repeating_model(times=5), build=with_channel)
        newer = {"v": 99, "anything": [1]}
        graph.invoke({**ask(), "loop_guard": newer}, thread("t"))
        assert counter.total == 5
        assert graph.get_state(thread("t")).values["loop_guard"] == newer
        lines = [r for r in caplog.records if r.name.startswith("langchain_loopguard")]
        assert len(lines) == 1
        assert "99" in lines[0].getMessage()
        assert lines[0].exc_info is None

    def test_counts_of_a_newer_core_switch_the_guard_off_too(self):
        graph, counter, _ = looping(model=repeating_model(times=5), build=with_channel)
        newer = {"v": 1, "guard": {"v": 99}}
        graph.invoke({**ask(), "loop_guard": newer}, thread("t"))
        assert counter.total == 5

    def test_counts_of_a_newer_release_are_an_error_when_asked_for(self):
        graph, _, _ = looping(build=with_channel, fail_open=False)
        with pytest.raises(ValueError, match="99"):
            graph.invoke({**ask(), "loop_guard": {"v": 99}}, thread("t"))

    @pytest.mark.parametrize(
        "odd", [[], "x", {}, {"v": 1}, {"v": 1, "guard": 3}, {"v": 1, "guard": {}}, {"v": "1"}]
    )
    def test_odd_counts_are_counted_anew(self, odd):
        graph, counter, _ = looping(build=with_channel)
        result = graph.invoke({**ask(), "loop_guard": odd}, thread("t"))
        assert "__interrupt__" in result
        assert counter.total == 2

    def test_an_empty_mapping_is_no_count_yet(self, caplog):
        class Started(MessagesState):
            loop_guard: Annotated[dict, operator.or_]

        graph, counter, _ = looping(schema=Started, fail_open=False)
        result = graph.invoke(ask(), thread("t"))
        assert "__interrupt__" in result
        assert counter.total == 2
        assert not caplog.records

    def test_a_state_without_messages_names_the_option(self):
        node = LoopGuardNode(messages_key="chat")
        with pytest.raises(ValueError, match=r"messages_key.*'chat'"):
            node({"messages": []})


class TestTheState:
    @every_wiring
    def test_holds_json_types_only_and_stays_small(self, build):
        graph, _, _ = looping(build)
        graph.invoke(ask(), thread("t"))
        values = graph.get_state(thread("t")).values
        counts = values.get("loop_guard")
        assert json.loads(json.dumps(counts)) == counts
        assert len(json.dumps(counts)) < 8_192
        assert (counts is None) == (build is by_hand)

    def test_is_no_part_of_the_output_when_the_schema_does_not_list_it(self):
        graph, _, _ = looping(owned)
        assert set(graph.invoke(ask(), thread("t"))) == {"messages", "__interrupt__"}
        assert set(graph.get_output_jsonschema()["properties"]) == {"messages"}

    def test_may_have_other_keys(self):
        class State(MessagesState):
            chat: str
            counts: dict

        counter = Counter()
        builder = builder_for(repeating_model(), [counting_tool(counter)], State)
        add_loop_guard(builder, policy=SEED, state_key="counts")
        from langgraph.checkpoint.memory import InMemorySaver

        graph = builder.compile(checkpointer=InMemorySaver())
        result = graph.invoke({**ask(), "chat": "x"}, thread("t"))
        assert result["counts"]["v"] == 1
        assert counter.total == 2

    def test_reaches_tools_whole_when_a_part_of_a_batch_runs(self):
        class State(MessagesState):
            user: str

        seen = []

        def tools(state):
            seen.append(state.get("user"))
            return {
                "messages": [
                    ToolMessage("x", tool_call_id=call["id"])
                    for call in state["messages"][-1].tool_calls
                ]
            }

        batch = [SEARCH, ("open", {"q": "b"})]
        graph, _, _ = looping(model=listed_model(*[batch] * 3), tools_node=tools, schema=State)
        graph.invoke({**ask(), "user": "u1"}, thread("t"))
        decisions = [{"type": "reject", "message": "no"}, {"type": "approve"}]
        resume(graph, {"decisions": decisions}, thread("t"))
        assert seen == ["u1", "u1", "u1"]

    def test_may_be_a_pydantic_model_or_a_dataclass(self):
        class Model(BaseModel):
            messages: Annotated[list[AnyMessage], add_messages]
            user: str = "u"

        @dataclass
        class Data:
            messages: Annotated[list[AnyMessage], add_messages]
            user: str = "u"

        batch = [SEARCH, ("open", {"q": "b"})]
        decisions = [{"type": "reject", "message": "no"}, {"type": "approve"}]
        for schema in (Model, Data):
            for build in (owned, by_hand):
                model = listed_model(*[batch] * 3)
                graph, counter, _ = looping(
                    build,
                    model=model,
                    names=("search", "open"),
                    schema=schema,
                    agent_node=lambda state, model=model: {
                        "messages": [model.invoke(state.messages)]
                    },
                )
                graph.invoke(ask(), thread("t"))
                result = resume(graph, {"decisions": decisions}, thread("t"))
                assert (counter.of("search"), counter.of("open")) == (2, 3)
                assert_complete(result["messages"])


class TestSubgraphs:
    def nested(self, **options):
        from langgraph.checkpoint.memory import InMemorySaver

        counter = Counter()
        model = repeating_model()
        inner = builder_for(model, [counting_tool(counter)])
        add_loop_guard(inner, policy=SEED)
        outer = StateGraph(MessagesState)
        outer.add_node("inner", inner.compile(**options))
        outer.add_edge(START, "inner")
        return outer.compile(checkpointer=InMemorySaver()), counter, model

    async def test_ask_at_the_root_and_resume_inside(self):
        graph, counter, model = self.nested()
        for mode in MODES:
            counter.runs.clear()
            outcome = await drive(graph, mode, ask(), thread(mode))
            assert len(outcome.interrupts) == 1
            assert counter.total == 2
            with pytest.raises(InvalidResumeError):
                graph.invoke(Command(resume=3), thread(mode))
            done = await drive(graph, mode, Command(resume="stop"), thread(mode))
            assert counter.total == 2
            assert_complete(done.messages)
        assert_requests_complete(model)

    def test_without_any_checkpointer_end_in_an_error(self):
        counter = Counter()
        inner = builder_for(repeating_model(), [counting_tool(counter)])
        add_loop_guard(inner, policy=SEED)
        outer = StateGraph(MessagesState)
        outer.add_node("inner", inner.compile())
        outer.add_edge(START, "inner")
        with pytest.raises(LoopDetectedError, match="checkpointer"):
            outer.compile().invoke(ask(), thread("t"))
        assert counter.total == 2

    def test_inside_a_tool_ask_at_the_root(self):
        from langchain_core.tools import tool
        from langgraph.checkpoint.memory import InMemorySaver

        counter = Counter()
        inner = builder_for(repeating_model(), [counting_tool(counter)])
        add_loop_guard(inner, policy=SEED)
        agent = inner.compile()

        @tool
        def task(q: str) -> str:
            """Hand work on."""
            result = agent.invoke({"messages": [HumanMessage(q)]})
            return str(result["messages"][-1].content)

        # `handle_tool_errors` would turn an ordinary error into an answer.
        outer = builder_for(
            listed_model([("task", {"q": "x"})]),
            [task],
            tools_node=ToolNode([task], handle_tool_errors=True),
        )
        add_loop_guard(outer, policy=SEED)
        graph = outer.compile(checkpointer=InMemorySaver())
        assert "__interrupt__" in graph.invoke(ask(), thread("t"))
        with pytest.raises(InvalidResumeError):
            resume(graph, 3, thread("t"))
        result = resume(graph, "stop", thread("t"))
        assert counter.total == 2
        assert "Stopped" in result["messages"][-2].content


async def test_stopping_many_runs_of_one_graph_at_once_keeps_them_apart():
    graph, counter, _ = looping()
    outcomes = await asyncio.gather(
        *(graph.ainvoke(ask(), thread(str(number))) for number in range(10))
    )
    assert all("__interrupt__" in outcome for outcome in outcomes)
    assert counter.total == 20


def test_the_policy_is_the_default_one_without_any():
    assert LoopGuardNode().policy == LoopGuardPolicy()
