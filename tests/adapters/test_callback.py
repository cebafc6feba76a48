"""Does the callback handler stop an agent that repeats itself, on the hosts with a graph?"""

from __future__ import annotations

import logging

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from langchain_loopguard import InvalidResumeError, LoopDetectedError, LoopGuardCallbackHandler
from tests.adapters.handled import THREE, Looping, ending, handler
from tests.hosts import (
    ask,
    assert_valid_history,
    every_graph,
    every_graph_and_mode,
    listed_model,
    repeating_model,
    thread,
)

MISSING = ("no_such_tool", {})


# --- Options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("on_detected", "explode", ["'interrupt'", "'raise'", "'refuse'", "'warn'", "explode"]),
        ("on_detected", "wrap_up", ["'observe'"]),
        ("on_detected", None, ["'interrupt'"]),
        ("scope", "world", ["'thread'", "'handler'"]),
        ("policy", "strict", ["LoopGuardPolicy"]),
        ("messages_key", "", ["not empty"]),
        ("notify", "me", ["callable"]),
        ("agent_inbox", "yes", ["True or False", "'yes'"]),
        ("fail_open", None, ["True or False"]),
        ("show_content", "some", ["'masked'"]),
        ("wording", {"bye": "x"}, ["bye"]),
        ("max_conversations", 0, ["1 or more"]),
        ("max_conversations", True, ["1 or more"]),
    ],
)
def test_an_option_that_cannot_be_is_an_error_that_names_it(option, value, named):
    with pytest.raises(ValueError, match=option) as error:
        LoopGuardCallbackHandler(**{option: value})
    assert all(part in str(error.value) for part in named)


def test_the_host_may_rely_on_errors_leaving_the_handler_in_order():
    # Without `raise_error` a veto is only logged; without `run_inline` it comes too late in async.
    made = LoopGuardCallbackHandler()
    assert made.raise_error
    assert made.run_inline


# --- A person is asked ------------------------------------------------------------------------


@every_graph_and_mode
async def test_parallel_calls_are_asked_about_once_and_none_runs_before_the_answer(host, mode):
    agent = Looping(host, *THREE)
    (interrupt,) = (await agent.play(mode)).interrupts
    assert agent.ran.total == 6
    assert interrupt.value["type"] == "loop_detected"
    assert [one["args"]["q"] for one in interrupt.value["action_requests"]] == ["a", "b", "c"]
    assert "edit" not in str(interrupt.value["review_configs"])


@every_graph_and_mode
async def test_stop_gives_every_call_a_result_and_ends_with_a_message(host, mode):
    agent = Looping(host, *THREE)
    outcome = await agent.play(mode, "stop")
    assert (agent.ran.total, outcome.interrupts) == (6, ())
    assert agent.graph.get_state(agent.config).next == ()
    assert_valid_history(agent.messages)
    assert agent.messages[-1].content.startswith("Stopped. The agent called search 3 times")
    assert [one.status for one in agent.results(3)] == ["error"] * 3
    # And the thread goes on.
    assert len((await agent.play(mode)).interrupts) == 1


@every_graph_and_mode
async def test_continue_runs_the_step_and_counts_anew(host, mode):
    agent = Looping(host, *THREE)
    outcome = await agent.play(mode, "continue")
    assert agent.ran.total == 6 + 3 * 3
    assert len(outcome.interrupts) == 1


@every_graph_and_mode
async def test_a_persons_text_is_the_result_of_the_refused_calls(host, mode):
    agent = ending(host)
    await agent.play(mode, "Use the archive instead.")
    assert_valid_history(agent.messages)
    assert agent.ran.total == 6
    assert {one.content for one in agent.results(3)} == {"Use the archive instead."}
    assert agent.messages[-1].content == "done"


@every_graph
async def test_texts_of_a_person_never_end_a_run(host):
    outcome = await Looping(host).play("invoke", *["Use the archive."] * 5)
    assert len(outcome.interrupts) == 1


@every_graph
async def test_a_person_may_decide_about_each_call(host):
    agent = ending(host)
    said = [{"type": "approve"}, {"type": "reject", "message": "Not this."}, {"type": "approve"}]
    await agent.play("invoke", {"decisions": said})
    assert_valid_history(agent.messages)
    assert [one.content for one in agent.results(3)].count("Not this.") == 1
    assert agent.ran.total == 6 + 2


@pytest.mark.parametrize(("answer", "more"), [("continue", 2), ("stop", 0)])
@every_graph_and_mode
async def test_a_step_that_begins_with_an_unknown_tool_is_asked_about_once(
    host, mode, answer, more
):
    step = [MISSING, *THREE[:2]]
    agent = Looping(host, model=listed_model(step, step, step, []))
    assert len((await agent.play(mode)).interrupts) == 1
    outcome = await agent.resume(mode, answer)
    assert (outcome.interrupts, agent.ran.total) == ((), 4 + more)
    assert_valid_history(agent.messages)


@every_graph
async def test_one_call_at_a_time_is_asked_about_once_too(host):
    agent = ending(host)
    agent.config["max_concurrency"] = 1  # The calls start and end one after the other.
    assert len((await agent.play("invoke")).interrupts) == 1
    agent.graph.invoke(Command(resume="continue"), agent.config)
    assert agent.ran.total == 9


# --- Steps that nobody could hold back --------------------------------------------------------


@every_graph_and_mode
async def test_a_loop_on_a_tool_that_does_not_exist_is_asked_about_at_the_model(host, mode):
    agent = Looping(host, MISSING)
    assert len((await agent.play(mode)).interrupts) == 1
    await agent.resume(mode, "stop")
    assert_valid_history(agent.messages)
    assert agent.messages[-1].content.startswith("Stopped.")
    assert len(agent.model.requests) == 3


@every_graph_and_mode
async def test_the_model_reads_a_persons_text_about_such_a_tool_and_it_is_not_saved(host, mode):
    agent = Looping(host, model=listed_model(*[[MISSING]] * 3, []))
    await agent.play(mode, "There is only `search`.")
    assert agent.model.requests[-1][-1].content.endswith("There is only `search`.")
    assert "There is only" not in str(agent.messages)
    assert agent.messages[-1].content == "done"


@pytest.mark.parametrize("same", [True, False], ids=["same handler", "new handler"])
@every_graph
async def test_a_run_that_ended_in_an_error_over_such_a_tool_ends_again(host, same):
    agent = Looping(host, MISSING, on_detected="raise")
    with pytest.raises(LoopDetectedError):
        await agent.play("invoke")
    called = len(agent.model.requests)
    for _ in range(3):
        config = agent.config if same else thread("t", handler(on_detected="raise"))
        with pytest.raises(LoopDetectedError, match="no_such_tool"):
            agent.graph.invoke(None, config)
    assert len(agent.model.requests) == called


def test_an_unparsed_call_beside_a_valid_one_hides_no_loop():
    def respond(messages):
        said = repeating_model().respond(messages)
        bad = {"name": "search", "args": "{", "id": f"bad_{len(messages)}", "error": "no JSON"}
        said.invalid_tool_calls = [{**bad, "type": "invalid_tool_call"}]
        return said

    agent = Looping("create_agent")
    agent.model.respond = respond
    assert "__interrupt__" in agent.graph.invoke(ask(), agent.config)
    assert agent.ran.total == 2


# --- Nobody is asked --------------------------------------------------------------------------


@every_graph_and_mode
async def test_raise_ends_the_run_and_leaves_a_history_that_can_go_on(host, mode):
    agent = Looping(host, *THREE, on_detected="raise")
    with pytest.raises(LoopDetectedError) as error:
        await agent.play(mode)
    assert isinstance(error.value, GraphBubbleUp)
    assert (error.value.tools, error.value.count, agent.ran.total) == (("search",), 3, 6)
    assert_valid_history(agent.messages)


@every_graph_and_mode
async def test_without_a_checkpointer_the_run_ends_with_a_message(host, mode, caplog):
    agent = Looping(host, *THREE, saved=False)
    outcome = await agent.play(mode)
    assert outcome.messages[-1].content.endswith("Nobody could be asked how to go on.")
    assert_valid_history(outcome.messages)
    assert agent.ran.total == 6
    assert "compile the graph with a checkpointer" in caplog.text


@every_graph
async def test_raise_without_a_checkpointer_raises_at_once(host):
    agent = Looping(host, on_detected="raise", saved=False)
    with pytest.raises(LoopDetectedError):
        await agent.play("invoke")
    assert len(agent.model.requests) == 3


@pytest.mark.parametrize("saved", [True, False])
@every_graph_and_mode
async def test_refuse_lets_the_model_go_on(host, mode, saved):
    agent = ending(host, on_detected="refuse", saved=saved)
    outcome = await agent.play(mode)
    assert agent.ran.total == 6
    assert_valid_history(outcome.messages)
    refused = [m for m in outcome.messages if isinstance(m, ToolMessage)][-3:]
    assert all(m.content.startswith("This call was not run.") for m in refused)
    assert outcome.messages[-1].content == "done"


@pytest.mark.parametrize("call", [THREE[0], MISSING], ids=["a tool", "no tool"])
@every_graph
async def test_a_loop_that_is_refused_too_often_ends_the_run(host, call):
    agent = Looping(host, call, on_detected="refuse")
    outcome = await agent.play("invoke")
    assert outcome.messages[-1].content.startswith("Stopped.")
    assert_valid_history(outcome.messages)
    assert len(agent.model.requests) == 6


@every_graph_and_mode
async def test_warnings_reach_the_model_once_and_are_not_saved(host, mode):
    agent = Looping(host, model=repeating_model(times=5), on_detected="warn")
    await agent.play(mode)
    warned = [sum("[Warning" in str(m.content) for m in sent) for sent in agent.model.requests]
    assert warned == [0, 0, 0, 1, 1, 1]
    assert "[Warning" in str(agent.model.requests[-1][6].content)  # The same place each time.
    assert {one.content for one in agent.results(5)} == {"error: 503 service unavailable"}
    assert agent.ran.total == 5


@every_graph_and_mode
async def test_observe_changes_no_prompt_and_nothing_that_is_saved(host, mode):
    def trace(agent):
        states = list(agent.graph.get_state_history(thread("t")))
        saved = [[one.model_dump(exclude={"id"}) for one in s.values["messages"]] for s in states]
        sent = [[one.model_dump(exclude={"id"}) for one in r] for r in agent.model.requests]
        return saved, sent, [(s.next, s.metadata) for s in states]

    calls = (*THREE[:2], MISSING)
    plain = Looping(host, model=repeating_model(*calls, times=6))
    plain.config = thread("t")
    observed = Looping(host, model=repeating_model(*calls, times=6), on_detected="observe")
    await plain.play(mode)
    await observed.play(mode)
    assert len(trace(plain)[0]) > 6
    assert trace(plain) == trace(observed)
    assert observed.guard.stats()["observed"] == 4


# --- What is logged, and faults ---------------------------------------------------------------


@every_graph
async def test_signals_are_logged_as_information_without_what_they_hold(host, caplog):
    agent = Looping(host)
    with caplog.at_level(logging.INFO):
        await agent.play("invoke")
        with pytest.raises(InvalidResumeError, match="xq-secret"):
            agent.graph.invoke(
                Command(resume={"type": "perhaps", "note": "xq-secret"}), agent.config
            )
        agent.graph.invoke(Command(resume={"type": "stop", "message": "xq-secret"}), agent.config)
    lines = [r for r in caplog.records if r.name == "langchain_core.callbacks.manager"]
    assert {r.levelname for r in lines} == {"INFO"}
    told = " ".join(r.getMessage() for r in lines)
    for part in ("asks a person", "no answer", "holds a call back", "ends the run"):
        assert part in told
    assert "xq-secret" not in told


async def test_who_is_notified_takes_the_place_of_the_log(caplog):
    told: list = []
    agent = Looping(
        "create_agent", model=repeating_model(times=4), on_detected="warn", notify=told.append
    )
    await agent.play("invoke")
    assert [one.findings[0].count for one in told] == [3]  # Once a loop, threshold and turn.
    assert not [r for r in caplog.records if r.name.startswith("langchain_loopguard")]


def fails(*args):
    raise ZeroDivisionError("a fault")


@pytest.mark.parametrize(
    "options", [{"is_user_message": fails}, {"notify": fails}], ids=["its own", "a listener's"]
)
@every_graph
async def test_a_fault_is_logged_and_the_agent_goes_on(host, options, caplog):
    options = {**options, "on_detected": "warn", "fail_open": True}
    agent = Looping(host, model=repeating_model(times=4), **options)
    for _ in range(2):
        outcome = await agent.play("invoke")
    assert outcome.messages[-1].content == "done"
    assert len([r for r in caplog.records if r.exc_info and "unguarded" in r.getMessage()]) == 1


@every_graph
async def test_a_fault_is_raised_if_that_was_chosen(host):
    with pytest.raises(ZeroDivisionError):
        await Looping(host, is_user_message=fails).play("invoke")


def test_a_final_message_is_streamed_and_saved_under_one_id():
    agent = Looping("tool_node")
    agent.graph.invoke(ask(), agent.config)
    parts = agent.graph.stream(Command(resume="stop"), agent.config, stream_mode="messages")
    ids = [one.id for one, _ in parts if isinstance(one, AIMessage)]
    assert ids == [agent.messages[-1].id]
