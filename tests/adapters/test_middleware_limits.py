"""Does the middleware work beside a limit on calls, a structured answer and a second guard?"""

from __future__ import annotations

import pytest
from langchain.agents.middleware import (
    ToolCallLimitMiddleware,
)
from langchain.agents.middleware.tool_call_limit import ToolCallLimitExceededError
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage
from langgraph.types import Command
from pydantic import BaseModel

from langchain_loopguard import LoopDetectedError, LoopGuardMiddleware, LoopGuardPolicy
from tests.adapters.agents import (
    BATCH,
    NOTICE_MARK,
    SEARCH,
    ToolAwareModel,
    beside,
    either_order,
    guarded_agent,
    kinds,
    resume,
)
from tests.adapters.guarded import SEED, assert_complete, assert_requests_complete
from tests.hosts import (
    Counter,
    ai_calls,
    ask,
    counting_tool,
    drive,
    every_mode,
    repeating_model,
    thread,
)


class TestToolCallLimit:
    @either_order
    @every_mode
    async def test_a_loop_within_the_limit_is_asked_about(self, order, mode):
        limit = ToolCallLimitMiddleware(run_limit=50)
        graph, counter, model = beside([limit], order)
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert len(outcome.interrupts) == 1
        assert counter.total == 4
        outcome = await drive(graph, mode, Command(resume="stop"), thread("t"))
        assert_complete(outcome.messages)
        assert_requests_complete(model)

    @either_order
    @pytest.mark.parametrize("on_detected", ["refuse", "wrap_up"])
    def test_a_model_that_goes_on_beyond_the_limit_is_ended(self, order, on_detected):
        limit = ToolCallLimitMiddleware(run_limit=1)
        graph, counter, model = beside([limit], order, on_detected=on_detected)
        result = graph.invoke(ask(), thread("t", recursion_limit=200))
        assert counter.total == 1
        assert result["messages"][-1].content.startswith("Stopped.")
        assert len(model.requests) < 10
        assert_complete(result["messages"])
        assert_requests_complete(model)

    @either_order
    @pytest.mark.parametrize(
        ("value", "ends"), [("stop", True), ("continue", False), ("use b", False)]
    )
    def test_a_person_is_asked_about_calls_beyond_the_limit(self, order, value, ends):
        # A limit on the run would count anew after a resume, by LangChain's own rules.
        limit = ToolCallLimitMiddleware(thread_limit=1)
        graph, counter, model = beside([limit], order)
        result = graph.invoke(ask(), thread("t", recursion_limit=200))
        assert kinds(result) == ["loop_detected"]
        before = len(model.requests)
        result = resume(graph, value)
        assert counter.total == 1
        assert_requests_complete(model)
        if ends:
            assert_complete(result["messages"])
        elif value == "continue":
            assert len(model.requests) > before
        else:
            assert any("use b" in str(message.content) for message in model.requests[before])

    @pytest.mark.parametrize(
        ("decisions", "told"),
        [
            pytest.param(
                [{"type": "approve"}, {"type": "reject", "message": "no more"}], 1, id="one"
            ),
            pytest.param(
                [{"type": "respond", "message": "no"}, {"type": "reject", "message": "more"}],
                1,
                id="none",
            ),
        ],
    )
    def test_single_decisions_about_calls_beyond_the_limit_reach_the_model(self, decisions, told):
        limit = ToolCallLimitMiddleware(thread_limit=1)
        graph, counter, model = beside([limit], "guard-first")
        assert kinds(graph.invoke(ask(), thread("t", recursion_limit=200))) == ["loop_detected"]
        before = len(model.requests)
        resume(graph, {"decisions": decisions})
        content = model.requests[before][-1].text
        words = " ".join(d["message"] for d in decisions if "message" in d)
        assert content.endswith(f"{NOTICE_MARK}, not part of the tool's result] {words}")
        assert counter.total == told
        assert_requests_complete(model)

    @either_order
    def test_an_error_is_raised_about_calls_beyond_the_limit(self, order):
        limit = ToolCallLimitMiddleware(run_limit=1)
        graph, counter, _ = beside([limit], order, on_detected="raise")
        with pytest.raises(LoopDetectedError):
            graph.invoke(ask(), thread("t", recursion_limit=200))
        assert counter.total == 1
        assert_complete(graph.get_state(thread("t")).values["messages"])

    @either_order
    def test_that_ends_the_run_still_does(self, order):
        # LangChain allows this exit for a limit on all tools or for single calls only.
        limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior="end")
        graph, counter, _ = beside([limit], order, model=repeating_model())
        result = graph.invoke(ask(), thread("t"))
        assert counter.total == 1
        assert "limit" in result["messages"][-1].content
        assert_complete(result["messages"])

    @either_order
    def test_that_raises_still_does(self, order):
        limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior="error")
        graph, counter, _ = beside([limit], order, model=repeating_model())
        with pytest.raises(ToolCallLimitExceededError):
            graph.invoke(ask(), thread("t"))
        assert counter.total == 1


class Report(BaseModel):
    """What the agent is to return."""

    lines: int


def reporting(args_of):
    """Make a model that searches twice with the same result and then reports."""

    def respond(messages):
        turn = sum(isinstance(m, AIMessage) for m in messages)
        if turn < 2:
            return ai_calls([SEARCH], turn)
        return ai_calls([("Report", args_of(turn))], turn)

    return respond


class TestStructuredOutput:
    def agent(self, args_of, **options):
        model = ToolAwareModel(respond=reporting(args_of))
        tools = [counting_tool(Counter())]
        schema = ToolStrategy(Report)
        return guarded_agent(model, tools, response_format=schema, **options), model

    @pytest.mark.parametrize("on_detected", ["refuse", "raise", "interrupt", "wrap_up"])
    def test_that_never_fits_its_schema_is_a_loop(self, on_detected):
        graph, model = self.agent(
            lambda turn: {"lines": "many"}, on_detected=on_detected, policy=None
        )
        config = thread("t", recursion_limit=300)
        try:
            result = graph.invoke(ask(), config)
            while "__interrupt__" in result:
                result = graph.invoke(Command(resume="stop"), config)
            assert result["messages"][-1].content.startswith("Stopped.")
        except LoopDetectedError:
            assert on_detected == "raise"
        assert len(model.requests) < 20
        assert_complete(graph.get_state(config).values["messages"])

    def test_that_fits_ends_the_run_as_ever(self):
        graph, _ = self.agent(lambda turn: {"lines": 3})
        for turn in range(5):
            result = graph.invoke(ask(str(turn)), thread("t", recursion_limit=300))
            assert result["structured_response"] == Report(lines=3)

    @pytest.mark.parametrize(
        ("lines", "last"),
        [
            pytest.param(0, "Returning structured response: lines=0", id="fits"),
            pytest.param("many", "Stopped.", id="does not fit"),
        ],
    )
    def test_is_what_a_last_answer_may_be(self, lines, last):
        def respond(messages):
            if "not run" in str(messages[-1].content):
                return ai_calls([("Report", {"lines": lines})], "last")
            return ai_calls([SEARCH], sum(isinstance(m, AIMessage) for m in messages))

        graph, model = self.agent(None, on_detected="wrap_up")
        model.respond = respond
        result = graph.invoke(ask(), thread("t"))
        assert result["messages"][-1].content.startswith(last)
        assert result.get("structured_response") == (Report(lines=0) if lines == 0 else None)
        assert model.bound[-1] == ["Report"]
        assert len(model.requests) == 4
        assert_complete(result["messages"])


class TestASecondGuard:
    def agent(self, first, second, **options):
        counter = Counter()
        model = options.pop("model", None) or repeating_model(*BATCH)
        tools = [counting_tool(counter, name) for name in ("search", "open")]
        others = [LoopGuardMiddleware(name="second", **second)]
        graph = guarded_agent(model, tools, others=others, **{**first, **options})
        return graph, counter, model

    @either_order
    def test_keeps_its_own_counts(self, order):
        graph, counter, _ = self.agent({"policy": SEED}, {"policy": LoopGuardPolicy()}, order=order)
        assert kinds(graph.invoke(ask(), thread("t"))) == ["loop_detected"]
        values = graph.get_state(thread("t")).values
        rules = [set(values[key]["guard"]["rules"]) for key in ("loop_guard", "loop_guard_second")]
        assert rules[0] != rules[1]
        assert counter.total == 4
        assert_complete(resume(graph, "stop")["messages"])

    @either_order
    def test_sees_what_the_other_one_refused_as_refused(self, order):
        graph, counter, model = self.agent(
            {"policy": SEED, "on_detected": "refuse"},
            {"policy": SEED, "on_detected": "refuse"},
            order=order,
        )
        result = graph.invoke(ask(), thread("t"))
        assert counter.total == 4
        assert result["messages"][-1].content.startswith("Stopped.")
        assert_complete(result["messages"])
        assert_requests_complete(model)

    @either_order
    def test_adds_its_own_warning_and_counts_neither(self, order):
        graph, counter, model = self.agent(
            {"policy": None, "on_detected": "warn"},
            {"policy": SEED, "on_detected": "warn"},
            order=order,
            model=repeating_model(*BATCH, times=8),
        )
        graph.invoke(ask(), thread("t"))
        assert counter.total == 16
        assert model.requests[-1][-1].text.count(NOTICE_MARK) <= 2
        saved = graph.get_state(thread("t")).values["messages"]
        assert not any(NOTICE_MARK in message.text for message in saved)

    @either_order
    def test_says_the_same_only_once(self, order):
        graph, _, model = self.agent({"policy": None}, {"policy": LoopGuardPolicy()}, order=order)
        graph.invoke(ask(), thread("t"))
        assert all(m.text.count(NOTICE_MARK) <= 1 for m in model.requests[3])
