"""Does the middleware work beside other ones, in either order?"""

from __future__ import annotations

import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.types import Command

from langchain_loopguard import LoopDetectedError
from tests.adapters.agents import (
    BATCH,
    NOTICE_MARK,
    SEARCH,
    ToolAwareModel,
    beside,
    either_order,
    guarded_agent,
    kinds,
    obedient,
    resume,
)
from tests.adapters.guarded import assert_complete, assert_requests_complete
from tests.adapters.handled import marks_a_persons_answer
from tests.hosts import (
    Counter,
    ScriptedChatModel,
    ai_calls,
    ask,
    counting_tool,
    drive,
    every_mode,
    listed_model,
    repeating_model,
    thread,
)

APPROVE = {"decisions": [{"type": "approve"}]}
REJECT = {"decisions": [{"type": "reject", "message": "not now"}]}


class TestHumanInTheLoop:
    """Every `open` needs an approval."""

    def start(self, order, **options):
        graph, counter, model = beside([HumanInTheLoopMiddleware({"open": True})], order, **options)
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
        graph, counter, model = beside(
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
        graph, counter, _ = beside([HumanInTheLoopMiddleware({"open": True})], order)
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
        graph, counter, _ = beside([shorten], order, model=model)
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
        graph, _, _ = beside([shorten], order, model=model, policy=None)
        graph.invoke(ask(), thread("t"))
        assert any(NOTICE_MARK in str(request[-1].content) for request in model.requests)

    @either_order
    def test_keeps_an_error_and_a_last_answer_in_place(self, order):
        for on_detected in ("raise", "wrap_up"):
            model = numbered(BATCH)
            shorten = SummarizationMiddleware(model, trigger=("messages", 4), keep=("messages", 3))
            graph, counter, _ = beside([shorten], order, model=model, on_detected=on_detected)
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
        graph, _, _ = beside([Adds()], "guard-first", model=model, on_detected="wrap_up")
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

        graph, counter, model = beside([Notes()], order)
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

        graph, counter, _ = beside([Twice()], order)
        assert kinds(graph.invoke(ask(), thread("t"))) == ["loop_detected"]
        assert counter.total == 4

    def test_settings_for_tools_are_left_out_of_a_last_answer(self):
        class Sets(AgentMiddleware):
            def wrap_model_call(self, request, handler):
                settings = {"parallel_tool_calls": False, "temperature": 0}
                return handler(request.override(model_settings=settings))

        model = ToolAwareModel(respond=obedient(BATCH))
        graph, _, _ = beside([Sets()], "guard-last", model=model, on_detected="wrap_up")
        assert graph.invoke(ask(), thread("t"))["messages"][-1].content == "This is what I found."
        assert model.settings[0] == {"parallel_tool_calls": False, "temperature": 0}
        assert (model.bound[-1], model.settings[-1]) == ([], {"temperature": 0})


def test_a_model_of_many_turns_is_called_with_valid_histories_only():
    model = listed_model(*[BATCH] * 4, [SEARCH], [("open", {"q": "c"})])
    graph, _, _ = beside([HumanInTheLoopMiddleware({"open": True})], "guard-last", model=model)
    for value in (ask(), APPROVE, ask("other"), APPROVE, "use b", ask("last"), APPROVE, "stop"):
        new = isinstance(value, dict) and "messages" in value
        try:
            graph.invoke(value if new else Command(resume=value), thread("t"))
        except (ValueError, KeyError, TypeError):
            # A word of ours is no answer to an approval; the approval stays open.
            continue
    assert_requests_complete(model)
