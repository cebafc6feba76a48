"""Does the middleware work beside other ones, in either order?"""

from __future__ import annotations

import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.middleware.tool_call_limit import ToolCallLimitExceededError
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.types import Command
from pydantic import BaseModel

from langchain_loopguard import LoopDetectedError, LoopGuardMiddleware, LoopGuardPolicy
from tests.adapters.agents import ORDERS, ToolAwareModel, guarded_agent, obedient
from tests.adapters.guarded import SEED, assert_complete, assert_requests_complete
from tests.hosts import (
    MODES,
    Counter,
    ScriptedChatModel,
    ai_calls,
    ask,
    counting_tool,
    drive,
    listed_model,
    marks_a_persons_answer,
    repeating_model,
    thread,
)

NOTICE_MARK = "[Warning"
SEARCH = ("search", {"q": "a"})
BATCH = [SEARCH, ("open", {"q": "b"})]
either_order = pytest.mark.parametrize("order", ORDERS)
every_mode = pytest.mark.parametrize("mode", MODES)


def looping(others, order, *, model=None, **options):
    counter = Counter()
    model = model or repeating_model(*BATCH)
    tools = [counting_tool(counter, name, native_async=True) for name in ("search", "open")]
    graph = guarded_agent(model, tools, others=others, order=order, **options)
    return graph, counter, model


def resume(graph, value):
    return graph.invoke(Command(resume=value), thread("t"))


def kinds(result):
    return [asked.value.get("type", "approval") for asked in result.get("__interrupt__", ())]


APPROVE = {"decisions": [{"type": "approve"}]}
REJECT = {"decisions": [{"type": "reject", "message": "not now"}]}


class TestHumanInTheLoop:
    """Every `open` needs an approval."""

    def start(self, order, **options):
        graph, counter, model = looping(
            [HumanInTheLoopMiddleware({"open": True})], order, **options
        )
        result = graph.invoke(ask(), thread("t"))
        for _ in range(2):
            assert kinds(result) == ["approval"]
            result = resume(graph, APPROVE)
        assert counter.total == 4
        return graph, counter, model, result

    def test_behind_it_the_loop_is_asked_about_before_the_approval(self):
        graph, counter, model, result = self.start("guard-last")
        assert kinds(result) == ["loop_detected"]
        assert kinds(resume(graph, "continue")) == ["approval"]
        resume(graph, APPROVE)
        assert counter.total == 6
        assert_requests_complete(model)

    def test_before_it_the_loop_is_asked_about_after_the_approval(self):
        graph, counter, model, result = self.start("guard-first")
        assert kinds(result) == ["approval"]
        assert kinds(resume(graph, APPROVE)) == ["loop_detected"]
        assert counter.total == 4
        resume(graph, "continue")
        assert counter.total == 6
        assert_requests_complete(model)

    @either_order
    @pytest.mark.parametrize("value", ["stop", "use the cache"])
    def test_a_refused_batch_needs_no_approval(self, order, value):
        graph, counter, model, result = self.start(order)
        while kinds(result) != ["loop_detected"]:
            result = resume(graph, APPROVE)
        result = resume(graph, value)
        assert counter.total == 4
        assert_requests_complete(model)
        if value == "stop":
            assert_complete(result["messages"])

    @marks_a_persons_answer
    @either_order
    def test_a_call_that_a_person_rejected_is_not_asked_about_nor_run(self, order):
        graph, counter, model, result = self.start(order)
        questions = []
        for _ in range(2):
            if kinds(result) == ["loop_detected"]:
                asked = result["__interrupt__"][0].value["action_requests"]
                questions.append([item["name"] for item in asked])
                result = resume(graph, "continue")
            else:
                result = resume(graph, REJECT)
        # Without the call that was rejected it is another batch.
        assert questions == ([] if order == "guard-first" else [["search", "open"]])
        assert counter.of("search") == (4 if order == "guard-first" else 3)
        assert counter.of("open") == 2
        assert_requests_complete(model)

    @marks_a_persons_answer
    @either_order
    def test_batches_that_are_rejected_whole_count_for_nothing(self, order):
        graph, counter, model = looping(
            [HumanInTheLoopMiddleware({"open": True})],
            order,
            model=repeating_model(("open", {"q": "b"}), times=2),
        )
        result = graph.invoke(ask(), thread("t"))
        while kinds(result) == ["approval"]:
            result = resume(graph, REJECT)
        assert counter.total == 0
        assert result["messages"][-1].content == "done"
        counts = graph.get_state(thread("t")).values.get("loop_guard")
        assert counts is None or "ledger" not in counts["guard"]
        assert_requests_complete(model)

    @pytest.mark.parametrize("then", [APPROVE, REJECT], ids=["approve", "reject"])
    def test_a_call_that_both_persons_answer_is_answered_once(self, then):
        graph, counter, model, result = self.start("guard-last")
        decisions = [{"type": "approve"}, {"type": "reject", "message": "no more"}]
        result = resume(graph, {"decisions": decisions})
        assert kinds(result) == ["approval"]
        resume(graph, then)
        assert (counter.of("search"), counter.of("open")) == (3, 2)
        assert_requests_complete(model)

    @either_order
    async def test_works_asynchronously_too(self, order):
        graph, counter, _ = looping([HumanInTheLoopMiddleware({"open": True})], order)
        outcome = await drive(graph, "ainvoke", ask(), thread("t"))
        for _ in range(3):
            loop = outcome.interrupts[0].value.get("type") == "loop_detected"
            value = Command(resume="stop" if loop else APPROVE)
            outcome = await drive(graph, "ainvoke", value, thread("t"))
        while outcome.interrupts:
            outcome = await drive(graph, "ainvoke", Command(resume="stop"), thread("t"))
        assert counter.total == 4
        assert_complete(outcome.messages)


def numbered(calls):
    """Repeat a batch with ids that stay unique when the history is shortened."""

    def respond(messages):
        if messages[-1].content and "summar" in str(messages[-1].content).lower():
            return AIMessage(content="a summary")
        return ai_calls(calls, str(messages[-1].id))

    return ScriptedChatModel(respond=respond)


class TestSummarization:
    @either_order
    @every_mode
    async def test_hides_no_loop(self, order, mode):
        model = numbered(BATCH)
        shorten = SummarizationMiddleware(model, trigger=("messages", 4), keep=("messages", 3))
        graph, counter, _ = looping([shorten], order, model=model)
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert len(outcome.interrupts) == 1
        assert counter.total == 4
        first = outcome.messages[0]
        assert first.additional_kwargs["lc_source"] == "summarization"
        outcome = await drive(graph, mode, Command(resume="stop"), thread("t"))
        assert_complete(outcome.messages)

    @either_order
    def test_leaves_a_warning_with_its_answer(self, order):
        model = numbered(BATCH)
        shorten = SummarizationMiddleware(model, trigger=("messages", 4), keep=("messages", 3))
        graph, _, _ = looping([shorten], order, model=model, policy=None)
        graph.invoke(ask(), thread("t"))
        assert any(NOTICE_MARK in str(request[-1].content) for request in model.requests)

    @either_order
    def test_keeps_an_error_and_a_last_answer_in_place(self, order):
        for on_detected in ("raise", "wrap_up"):
            model = numbered(BATCH)
            shorten = SummarizationMiddleware(model, trigger=("messages", 4), keep=("messages", 3))
            graph, counter, _ = looping([shorten], order, model=model, on_detected=on_detected)
            try:
                graph.invoke(ask(), thread("t"))
            except LoopDetectedError:
                assert on_detected == "raise"
            messages = graph.get_state(thread("t")).values["messages"]
            assert_complete(messages)
            assert (messages[-1].type == "tool") == (on_detected == "raise")
            assert counter.total == 4


class TestToolRetry:
    @either_order
    @every_mode
    async def test_attempts_are_not_counted_as_calls(self, order, mode):
        def fails(number):
            raise ConnectionError("down")

        counter = Counter()
        tools = [counting_tool(counter, "search", fails, native_async=True)]
        retry = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
        graph = guarded_agent(repeating_model(), tools, others=[retry], order=order)
        outcome = await drive(graph, mode, ask(), thread("t"))
        assert len(outcome.interrupts) == 1
        assert counter.total == 6
        outcome = await drive(graph, mode, Command(resume="stop"), thread("t"))
        assert counter.total == 6
        assert_complete(outcome.messages)


class TestToolCallLimit:
    @either_order
    @every_mode
    async def test_a_loop_within_the_limit_is_asked_about(self, order, mode):
        limit = ToolCallLimitMiddleware(run_limit=50)
        graph, counter, model = looping([limit], order)
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
        graph, counter, model = looping([limit], order, on_detected=on_detected)
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
        graph, counter, model = looping([limit], order)
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
        graph, counter, model = looping([limit], "guard-first")
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
        graph, counter, _ = looping([limit], order, on_detected="raise")
        with pytest.raises(LoopDetectedError):
            graph.invoke(ask(), thread("t", recursion_limit=200))
        assert counter.total == 1
        assert_complete(graph.get_state(thread("t")).values["messages"])

    @either_order
    def test_that_ends_the_run_still_does(self, order):
        # LangChain allows this exit for a limit on all tools or for single calls only.
        limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior="end")
        graph, counter, _ = looping([limit], order, model=repeating_model())
        result = graph.invoke(ask(), thread("t"))
        assert counter.total == 1
        assert "limit" in result["messages"][-1].content
        assert_complete(result["messages"])

    @either_order
    def test_that_raises_still_does(self, order):
        limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior="error")
        graph, counter, _ = looping([limit], order, model=repeating_model())
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

    def test_is_what_a_last_answer_may_be(self):
        def respond(messages):
            if "not run" in str(messages[-1].content):
                return ai_calls([("Report", {"lines": 0})], "last")
            return ai_calls([SEARCH], sum(isinstance(m, AIMessage) for m in messages))

        model = ToolAwareModel(respond=respond)
        graph = guarded_agent(
            model,
            [counting_tool(Counter())],
            response_format=ToolStrategy(Report),
            on_detected="wrap_up",
        )
        result = graph.invoke(ask(), thread("t"))
        assert result["structured_response"] == Report(lines=0)
        assert model.bound[-1] == ["Report"]
        assert result["messages"][-1].content == "Returning structured response: lines=0"
        assert_complete(result["messages"])

    def test_that_fails_as_a_last_answer_ends_the_run(self):
        def respond(messages):
            if "not run" in str(messages[-1].content):
                return ai_calls([("Report", {"lines": "many"})], "last")
            return ai_calls([SEARCH], sum(isinstance(m, AIMessage) for m in messages))

        model = ScriptedChatModel(respond=respond)
        graph = guarded_agent(
            model,
            [counting_tool(Counter())],
            response_format=ToolStrategy(Report),
            on_detected="wrap_up",
        )
        result = graph.invoke(ask(), thread("t"))
        assert result["messages"][-1].content.startswith("Stopped.")
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


class TestOtherHooks:
    def test_a_human_message_that_a_framework_adds_hides_no_last_answer(self):
        class Adds(AgentMiddleware):
            def before_model(self, state, runtime):
                if isinstance(state["messages"][-1], ToolMessage):
                    image = HumanMessage("image", additional_kwargs={"lc_source": "media"})
                    return {"messages": [image]}
                return None

        def respond(messages):
            told = any("not run" in str(m.content) for m in messages[-4:])
            calls = ai_calls(BATCH, sum(isinstance(m, AIMessage) for m in messages))
            return AIMessage(content="found it") if told else calls

        model = ToolAwareModel(respond=respond)
        graph, _, _ = looping([Adds()], "guard-first", model=model, on_detected="wrap_up")
        result = graph.invoke(ask(), thread("t"))
        assert result["messages"][-1].content == "found it"
        assert model.bound[-1] == []

    @either_order
    @pytest.mark.parametrize(
        "note",
        [
            HumanMessage("step noted", additional_kwargs={"lc_source": "notes"}),
            SystemMessage("step noted"),
        ],
        ids=["human", "system"],
    )
    def test_a_note_behind_the_calls_hides_no_loop_and_stands_behind_the_answers(self, order, note):
        class Notes(AgentMiddleware):
            def after_model(self, state, runtime):
                return {"messages": [note.model_copy()]}

        graph, counter, model = looping([Notes()], order)
        assert kinds(graph.invoke(ask(), thread("t"))) == ["loop_detected"]
        assert counter.total == 4
        assert_requests_complete(model)
        resume(graph, "stop")
        assert counter.total == 4
        graph.invoke(ask("and now?"), thread("t"))
        assert_requests_complete(model)

    @either_order
    def test_a_model_that_is_called_again_by_another_one_is_counted_once(self, order):
        class Twice(AgentMiddleware):
            def wrap_model_call(self, request, handler):
                handler(request)
                return handler(request)

        graph, counter, _ = looping([Twice()], order)
        assert kinds(graph.invoke(ask(), thread("t"))) == ["loop_detected"]
        assert counter.total == 4

    def test_settings_for_tools_are_left_out_of_a_last_answer(self):
        class Sets(AgentMiddleware):
            def wrap_model_call(self, request, handler):
                settings = {"parallel_tool_calls": False, "temperature": 0}
                return handler(request.override(model_settings=settings))

        model = ToolAwareModel(respond=obedient(BATCH))
        graph, _, _ = looping([Sets()], "guard-last", model=model, on_detected="wrap_up")
        assert graph.invoke(ask(), thread("t"))["messages"][-1].content == "This is what I found."
        assert model.settings[0] == {"parallel_tool_calls": False, "temperature": 0}
        assert (model.bound[-1], model.settings[-1]) == ([], {"temperature": 0})


def test_a_model_of_many_turns_is_called_with_valid_histories_only():
    model = listed_model(*[BATCH] * 4, [SEARCH], [("open", {"q": "c"})])
    graph, _, _ = looping([HumanInTheLoopMiddleware({"open": True})], "guard-last", model=model)
    for value in (ask(), APPROVE, ask("other"), APPROVE, "use b", ask("last"), APPROVE, "stop"):
        new = isinstance(value, dict) and "messages" in value
        try:
            graph.invoke(value if new else Command(resume=value), thread("t"))
        except (ValueError, KeyError, TypeError):
            # A word of ours is no answer to an approval; the approval stays open.
            continue
    assert_requests_complete(model)
