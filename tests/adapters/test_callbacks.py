"""Does the callback handler stop an agent that repeats itself, on the hosts with a graph?"""

from __future__ import annotations

import contextlib
import logging

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from langchain_loopguard import (
    Action,
    LoopDetectedError,
    LoopGuardCallbackHandler,
    LoopGuardPolicy,
)
from langchain_loopguard.errors import InvalidResumeError
from tests.hosts import (
    GRAPHS,
    MODES,
    Counter,
    ask,
    assert_valid_history,
    counting_tool,
    drive,
    listed_model,
    open_calls,
    repeating_model,
    thread,
)

SEED = LoopGuardPolicy.seed()
every_graph = pytest.mark.parametrize("host", GRAPHS)
every_mode = pytest.mark.parametrize("mode", MODES)
THREE = (("search", {"q": "a"}), ("search", {"q": "b"}), ("search", {"q": "c"}))


def handler(**options) -> LoopGuardCallbackHandler:
    """Make a handler that hides none of its own faults."""
    return LoopGuardCallbackHandler(SEED, **{"fail_open": False, **options})


# --- Options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "named"),
    [
        pytest.param(
            {"on_detected": "explode"},
            ["on_detected", "'interrupt'", "'raise'", "'refuse'", "'warn'", "explode"],
            id="on_detected",
        ),
        pytest.param({"on_detected": None}, ["on_detected", "'interrupt'"], id="none"),
        pytest.param({"scope": "world"}, ["scope", "'thread'", "'handler'"], id="scope"),
        pytest.param({"policy": "strict"}, ["policy", "LoopGuardPolicy"], id="policy"),
        pytest.param({"messages_key": ""}, ["messages_key"], id="messages_key"),
        pytest.param({"notify": "me"}, ["notify"], id="notify"),
        pytest.param({"agent_inbox": "yes"}, ["agent_inbox", "True or False", "'yes'"], id="inbox"),
        pytest.param({"fail_open": "no"}, ["fail_open", "True or False", "'no'"], id="open"),
        pytest.param({"fail_open": None}, ["fail_open", "True or False"], id="open none"),
        pytest.param({"max_conversations": 0}, ["max_conversations", "1 or more"], id="limit"),
        pytest.param({"max_conversations": True}, ["max_conversations"], id="a bool is no limit"),
    ],
)
def test_an_option_that_cannot_be_is_an_error_that_names_it(options, named):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is checked below
        LoopGuardCallbackHandler(**options)
    assert all(part in str(error.value) for part in named)


def test_the_host_may_rely_on_errors_leaving_the_handler_in_order():
    # Without `raise_error` a veto is only logged; without `run_inline` it comes too late in async.
    made = LoopGuardCallbackHandler()
    assert made.raise_error
    assert made.run_inline


# --- A person is asked ------------------------------------------------------------------------


@every_mode
@every_graph
async def test_a_repeated_failing_call_runs_twice_and_then_a_person_is_asked(host, mode):
    ran = Counter()
    graph = GRAPHS[host](repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver())
    outcome = await drive(graph, mode, ask(), thread("t", handler()))
    assert ran.total == 2
    (interrupt,) = outcome.interrupts
    assert interrupt.value["type"] == "loop_detected"
    assert interrupt.value["action_requests"][0]["name"] == "search"
    assert interrupt.value["action_requests"][0]["args"] == {"q": "a"}


async def test_the_interrupt_is_in_the_result_of_invoke():
    graph = GRAPHS["create_agent"](
        repeating_model(), [counting_tool(Counter())], checkpointer=InMemorySaver()
    )
    result = graph.invoke(ask(), thread("t", handler()))
    assert len(result["__interrupt__"]) == 1


@every_mode
@every_graph
async def test_stop_answers_every_call_and_ends_with_a_message(host, mode):
    ran = Counter()
    graph = GRAPHS[host](
        repeating_model(*THREE), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler())
    await drive(graph, mode, ask(), config)
    outcome = await drive(graph, mode, Command(resume="stop"), config)
    state = graph.get_state(config)
    messages = state.values["messages"]
    assert_valid_history(messages)
    assert ran.total == 6
    assert state.next == ()
    assert outcome.interrupts == ()
    assert isinstance(messages[-1], AIMessage)
    assert messages[-1].content.startswith("Stopped. The agent called search 3 times")
    assert [m.status for m in messages if isinstance(m, ToolMessage)][-3:] == ["error"] * 3


async def test_a_thread_goes_on_after_a_stop():
    ran = Counter()
    graph = GRAPHS["create_agent"](
        repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler())
    graph.invoke(ask(), config)
    graph.invoke(Command(resume="stop"), config)
    result = graph.invoke(ask("something else"), config)
    # The user turn clears the counts that the stop left behind.
    assert ran.total > 2
    assert "__interrupt__" in result
    assert open_calls(result["messages"]) == [result["messages"][-1].tool_calls[0]["id"]]


@every_mode
@every_graph
async def test_continue_runs_the_batch_once_and_counts_anew(host, mode):
    ran = Counter()
    graph = GRAPHS[host](
        repeating_model(*THREE), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler())
    await drive(graph, mode, ask(), config)
    outcome = await drive(graph, mode, Command(resume="continue"), config)
    # The batch that was let run, and two more before the next question.
    assert ran.total == 6 + 3 + 6
    assert len(outcome.interrupts) == 1
    assert len(open_calls(graph.get_state(config).values["messages"])) == 3


@every_mode
@every_graph
async def test_a_persons_text_is_the_answer_of_the_refused_calls(host, mode):
    ran = Counter()
    batch = [("search", {"q": "a"}), ("search", {"q": "b"})]
    graph = GRAPHS[host](
        listed_model(batch, batch, batch, []), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler())
    await drive(graph, mode, ask(), config)
    await drive(graph, mode, Command(resume="Use the archive instead."), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert ran.total == 4
    answers = [m for m in messages if isinstance(m, ToolMessage)][-2:]
    assert {m.content for m in answers} == {"Use the archive instead."}
    assert messages[-1].content == "done"


@every_graph
async def test_a_person_may_decide_about_each_call(host):
    ran = Counter()
    graph = GRAPHS[host](
        listed_model(THREE, THREE, THREE, []), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler())
    graph.invoke(ask(), config)
    decisions = [
        {"type": "approve"},
        {"type": "reject", "message": "Not this one."},
        {"type": "approve"},
    ]
    graph.invoke(Command(resume={"decisions": decisions}), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    answers = {m.tool_call_id: m.content for m in messages[-4:] if isinstance(m, ToolMessage)}
    assert min(answers.values()) == "Not this one."
    assert ran.total == 6 + 2


@every_mode
@every_graph
async def test_parallel_calls_are_asked_about_once_and_none_runs_before_the_answer(host, mode):
    ran = Counter()
    graph = GRAPHS[host](
        repeating_model(*THREE), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler())
    outcome = await drive(graph, mode, ask(), config)
    assert len(outcome.interrupts) == 1
    assert ran.total == 6
    assert len(outcome.interrupts[0].value["action_requests"]) == 3


@pytest.mark.parametrize("answer", ["continue", "stop"])
@every_mode
@every_graph
async def test_a_batch_that_begins_with_an_unknown_tool_is_asked_about_once(host, mode, answer):
    ran = Counter()
    batch = [("no_such_tool", {}), ("search", {"q": "a"}), ("search", {"q": "b"})]
    graph = GRAPHS[host](
        listed_model(batch, batch, batch, []), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler())
    outcome = await drive(graph, mode, ask(), config)
    assert len(outcome.interrupts) == 1
    assert ran.total == 4
    outcome = await drive(graph, mode, Command(resume=answer), config)
    assert outcome.interrupts == ()
    assert ran.total == (6 if answer == "continue" else 4)
    assert_valid_history(graph.get_state(config).values["messages"])


@every_graph
async def test_one_call_at_a_time_is_asked_about_once_too(host):
    # With one worker the calls start and end one after the other.
    ran = Counter()
    graph = GRAPHS[host](
        listed_model(THREE, THREE, THREE, []), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler(), max_concurrency=1)
    assert len(graph.invoke(ask(), config)["__interrupt__"]) == 1
    assert ran.total == 6
    graph.invoke(Command(resume="continue"), config)
    assert ran.total == 9


# --- Tools that do not exist ------------------------------------------------------------------


@every_mode
@every_graph
async def test_a_loop_on_a_tool_that_does_not_exist_is_asked_about(host, mode):
    graph = GRAPHS[host](
        repeating_model(("no_such_tool", {})),
        [counting_tool(Counter())],
        checkpointer=InMemorySaver(),
    )
    config = thread("t", handler())
    outcome = await drive(graph, mode, ask(), config)
    assert len(outcome.interrupts) == 1
    outcome = await drive(graph, mode, Command(resume="stop"), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert messages[-1].content.startswith("Stopped.")
    assert sum(isinstance(m, AIMessage) for m in messages) == 4


@every_graph
async def test_continue_after_a_tool_that_does_not_exist_calls_the_model_again(host):
    model = repeating_model(("no_such_tool", {}))
    graph = GRAPHS[host](model, [counting_tool(Counter())], checkpointer=InMemorySaver())
    config = thread("t", handler())
    graph.invoke(ask(), config)
    before = len(model.requests)
    outcome = graph.invoke(Command(resume="continue"), config)
    assert len(model.requests) == before + 3
    assert "__interrupt__" in outcome


@every_mode
@every_graph
async def test_the_model_reads_a_persons_text_about_a_tool_that_does_not_exist(host, mode):
    model = listed_model(*[[("no_such_tool", {})]] * 3, [])
    graph = GRAPHS[host](model, [counting_tool(Counter())], checkpointer=InMemorySaver())
    config = thread("t", handler())
    await drive(graph, mode, ask(), config)
    await drive(graph, mode, Command(resume="There is only `search`."), config)
    read = model.requests[-1][-1]
    assert read.content.endswith("There is only `search`.")
    saved = graph.get_state(config).values["messages"]
    assert saved[-2].content == read.content
    assert_valid_history(saved)


@pytest.mark.parametrize("same", [True, False], ids=["same handler", "new handler"])
@every_graph
async def test_a_run_that_ended_in_an_error_over_such_a_tool_ends_again_without_a_model(host, same):
    model = repeating_model(("no_such_tool", {}))
    graph = GRAPHS[host](model, [counting_tool(Counter())], checkpointer=InMemorySaver())
    one = handler(on_detected="raise")
    with pytest.raises(LoopDetectedError):
        graph.invoke(ask(), thread("t", one))
    called = len(model.requests)
    for _ in range(3):
        with pytest.raises(LoopDetectedError, match="no_such_tool"):
            graph.invoke(None, thread("t", one if same else handler(on_detected="raise")))
    assert len(model.requests) == called
    if same:
        assert one.stats()["stopped"] == 1


# --- Nobody is asked --------------------------------------------------------------------------


@every_mode
@every_graph
async def test_raise_ends_the_run_and_leaves_a_history_that_can_go_on(host, mode):
    ran = Counter()
    graph = GRAPHS[host](
        repeating_model(*THREE), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler(on_detected="raise"))
    with pytest.raises(LoopDetectedError) as error:
        await drive(graph, mode, ask(), config)
    assert isinstance(error.value, GraphBubbleUp)
    assert error.value.tools == ("search",)
    assert error.value.count == 3
    assert ran.total == 6
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert isinstance(messages[-1], ToolMessage)


@pytest.mark.parametrize("on_detected", ["interrupt", "raise"])
@every_mode
@every_graph
async def test_without_a_checkpointer_the_run_ends_in_an_error(host, mode, on_detected):
    ran = Counter()
    graph = GRAPHS[host](repeating_model(*THREE), [counting_tool(ran)])
    with pytest.raises(LoopDetectedError):
        await drive(graph, mode, ask(), {"callbacks": [handler(on_detected=on_detected)]})
    assert ran.total == 6


@every_graph
async def test_an_interrupt_without_a_checkpointer_names_the_cure(host):
    graph = GRAPHS[host](repeating_model(), [counting_tool(Counter())])
    with pytest.raises(LoopDetectedError, match=r"create_agent.*'refuse', 'warn' or.*'wrap_up'"):
        graph.invoke(ask(), thread("a thread id is no checkpointer", handler()))


@every_mode
@every_graph
async def test_refuse_tells_the_model_and_lets_it_go_on(host, mode):
    ran = Counter()
    graph = GRAPHS[host](
        listed_model(THREE, THREE, THREE, []), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler(on_detected="refuse"))
    await drive(graph, mode, ask(), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert ran.total == 6
    assert messages[-1].content == "done"
    refused = [m for m in messages if isinstance(m, ToolMessage)][-3:]
    assert all(m.content.startswith("This call was not run.") for m in refused)
    assert {m.status for m in refused} == {"error"}


@every_graph
async def test_refuse_works_without_a_checkpointer(host):
    ran = Counter()
    graph = GRAPHS[host](listed_model(THREE, THREE, THREE, []), [counting_tool(ran)])
    result = graph.invoke(ask(), {"callbacks": [handler(on_detected="refuse")]})
    assert_valid_history(result["messages"])
    assert ran.total == 6


@every_mode
@every_graph
async def test_a_loop_that_is_refused_too_often_ends_the_run(host, mode):
    ran = Counter()
    graph = GRAPHS[host](
        repeating_model(*THREE), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler(on_detected="refuse"))
    with pytest.raises(LoopDetectedError, match="max_refusals") as raised:
        await drive(graph, mode, ask(), config)
    assert "on_detected" not in str(raised.value)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert ran.total == 6
    # Two batches ran, three were refused, the last one ended the run.
    assert sum(isinstance(m, AIMessage) for m in messages) == 6


@every_graph
async def test_a_loop_on_a_missing_tool_that_is_refused_too_often_ends_the_run(host):
    model = repeating_model(("no_such_tool", {}))
    graph = GRAPHS[host](model, [counting_tool(Counter())], checkpointer=InMemorySaver())
    config = thread("t", handler(on_detected="refuse"))
    with pytest.raises(LoopDetectedError):
        graph.invoke(ask(), config)
    assert len(model.requests) == 6
    assert "try a different approach" in model.requests[-1][-1].content


@every_mode
@every_graph
async def test_warn_tells_and_stops_nothing(host, mode):
    ran, told = Counter(), []
    graph = GRAPHS[host](
        repeating_model(*THREE, times=4), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler(on_detected="warn", notify=told.append))
    await drive(graph, mode, ask(), config)
    assert ran.total == 12
    assert [decision.action for decision in told] == [Action.ASK, Action.ASK]


@every_graph
@pytest.mark.parametrize("on_detected", ["interrupt", "raise", "refuse", "warn"])
@pytest.mark.parametrize("policy", [SEED, LoopGuardPolicy()], ids=["seed", "default"])
@pytest.mark.parametrize(
    "calls",
    [[("search", {"q": "a"})], [("search", {"q": "a"}), ("nowhere", {})], [("nowhere", {})]],
    ids=["tool", "both", "no-tool"],
)
def test_a_batch_is_told_of_once(host, on_detected, policy, calls):
    # By what its calls show, or else by what its answers reveal.
    told: list = []
    guard = LoopGuardCallbackHandler(
        policy, on_detected=on_detected, notify=told.append, fail_open=False
    )
    tool = counting_tool(Counter(), answer=lambda number: "same" if number % 3 else "other")
    model = repeating_model(*calls, times=9)
    graph = GRAPHS[host](model, [tool], checkpointer=InMemorySaver())
    value: object = ask()
    with contextlib.suppress(LoopDetectedError):
        for answer in ["continue", "Use the archive."] * 4:
            if "__interrupt__" not in graph.invoke(value, thread("t", guard)):
                break
            value = Command(resume=answer)
    numbers = [decision.record.number for decision in told]
    assert numbers
    assert len(numbers) == len(set(numbers))


@every_graph
@pytest.mark.parametrize("agent_inbox", [False, True])
def test_a_question_carries_the_form_of_agent_inbox_if_that_is_asked_for(host, agent_inbox):
    guard = handler(agent_inbox=agent_inbox)
    graph = GRAPHS[host](
        repeating_model(), [counting_tool(Counter())], checkpointer=InMemorySaver()
    )
    question = graph.invoke(ask(), thread("t", guard))["__interrupt__"][0].value
    assert ("action_request" in question) is agent_inbox
    if agent_inbox:
        assert question["config"]["allow_edit"] is False


@every_graph
def test_a_value_that_is_no_answer_is_not_logged(host, caplog):
    graph = GRAPHS[host](
        repeating_model(), [counting_tool(Counter())], checkpointer=InMemorySaver()
    )
    config = thread("t", handler())
    graph.invoke(ask(), config)
    with pytest.raises(InvalidResumeError, match="xq-secret"):
        graph.invoke(Command(resume={"type": "perhaps", "note": "xq-secret"}), config)
    assert "InvalidResumeError" in caplog.text
    assert "xq-secret" not in caplog.text


async def test_warn_is_logged_without_anybody_to_notify(caplog):
    graph = GRAPHS["create_agent"](repeating_model(times=3), [counting_tool(Counter())])
    with caplog.at_level(logging.WARNING, logger="langchain_loopguard"):
        graph.invoke(ask(), {"callbacks": [handler(on_detected="warn")]})
    assert [r.getMessage() for r in caplog.records if r.name.startswith("langchain_loop")] == [
        "The agent called search 3 times in a row with the same arguments (2 are allowed)."
    ]


@every_graph
async def test_a_person_who_refuses_too_often_has_ended_the_run(host):
    ran = Counter()
    graph = GRAPHS[host](repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver())
    config = thread("t", handler())
    graph.invoke(ask(), config)
    for _ in range(2):
        result = graph.invoke(Command(resume="Use the archive."), config)
        assert "__interrupt__" in result
    with pytest.raises(LoopDetectedError, match="nobody is asked any more"):
        graph.invoke(Command(resume="Use the archive!"), config)
    assert ran.total == 2
    assert_valid_history(graph.get_state(config).values["messages"])


# --- Faults -----------------------------------------------------------------------------------


@every_graph
async def test_a_fault_of_the_guard_is_logged_once_and_the_agent_goes_on(host, caplog, monkeypatch):
    def fails(*args, **kwargs):
        raise ZeroDivisionError("a fault")

    ran = Counter()
    guard = handler(fail_open=True)
    monkeypatch.setattr(guard._reading, "tool_starts", fails)
    monkeypatch.setattr(guard._reading, "model_starts", fails)
    graph = GRAPHS[host](repeating_model(times=4), [counting_tool(ran)])
    result = graph.invoke(ask(), {"callbacks": [guard]})
    assert ran.total == 4
    assert result["messages"][-1].content == "done"
    faults = [r for r in caplog.records if r.exc_info and "unguarded" in r.getMessage()]
    assert len(faults) == 1


@every_graph
async def test_a_fault_of_the_guard_is_raised_if_that_was_chosen(host, monkeypatch):
    def fails(*args, **kwargs):
        raise ZeroDivisionError("a fault")

    guard = handler(fail_open=False)
    monkeypatch.setattr(guard._reading, "tool_starts", fails)
    graph = GRAPHS[host](repeating_model(times=4), [counting_tool(Counter())])
    with pytest.raises(ZeroDivisionError):
        graph.invoke(ask(), {"callbacks": [guard]})


async def test_a_fault_of_whoever_is_notified_stops_nothing():
    def fails(decision):
        raise ZeroDivisionError("a fault")

    ran = Counter()
    graph = GRAPHS["create_agent"](repeating_model(times=3), [counting_tool(ran)])
    guard = handler(on_detected="warn", notify=fails, fail_open=True)
    graph.invoke(ask(), {"callbacks": [guard]})
    assert ran.total == 3
