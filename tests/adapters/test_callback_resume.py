"""Is a person's answer carried out, whichever process takes it and whatever else is asked?"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command, interrupt

from langchain_loopguard import InvalidResumeError, LoopDetectedError
from tests.adapters.handled import THREE, Looping, ending, handler
from tests.hosts import (
    GRAPHS,
    Counter,
    assert_valid_history,
    counting_tool,
    every_graph,
    every_graph_and_mode,
    functional_agent,
    repeating_model,
    thread,
)

ROOT = Path(__file__).parents[2]


# --- Another process --------------------------------------------------------------------------

PROCESS_A = """
import os, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from langchain_loopguard import LoopGuardCallbackHandler, LoopGuardPolicy
from tests.hosts import GRAPHS, Counter, ask, counting_tool, repeating_model, thread

host, path = sys.argv[1:]
with SqliteSaver.from_conn_string(path) as saver:
    model = repeating_model(("search", {"q": "a"}), ("search", {"q": "b"}))
    ran = Counter()
    graph = GRAPHS[host](model, [counting_tool(ran)], checkpointer=saver)
    guard = LoopGuardCallbackHandler(LoopGuardPolicy.seed())
    result = graph.invoke(ask(), thread("t", guard))
    assert len(result["__interrupt__"]) == 1
    print(ran.total, flush=True)
    os._exit(9)
"""


@pytest.fixture(scope="module", params=list(GRAPHS))
def interrupted(request, tmp_path_factory):
    """Have another process interrupt on SQLite and die; give the host and the file."""
    path = tmp_path_factory.mktemp(request.param) / "threads.sqlite"
    process = subprocess.run(
        [sys.executable, "-c", PROCESS_A, request.param, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stdout.strip()) == (9, "4"), process.stderr
    return request.param, path


@pytest.mark.parametrize("answer", ["continue", "stop", "Try the archive."])
def test_another_process_takes_the_answer_after_the_first_was_killed(interrupted, tmp_path, answer):
    host, saved = interrupted
    path = str(shutil.copytree(saved.parent, tmp_path / "copy") / saved.name)
    ran = Counter()
    config = thread("t", handler())
    with SqliteSaver.from_conn_string(path) as saver:
        # The model has one more repeat to send, and then it is done.
        model = repeating_model(("search", {"q": "a"}), ("search", {"q": "b"}), times=4)
        graph = GRAPHS[host](model, [counting_tool(ran)], checkpointer=saver)
        result = graph.invoke(Command(resume=answer), config)
        messages = graph.get_state(config).values["messages"]
    if answer == "continue":
        # The batch itself and one repeat: were anything counted twice, this one were asked about.
        assert ran.total == 4
        assert messages[-1].content == "done"
    elif answer == "stop":
        assert ran.total == 0
        assert messages[-1].content.startswith("Stopped.")
    else:
        # Advice begins a turn: the last repeat runs.
        assert ran.total == 2
        assert "__interrupt__" not in result
    assert_valid_history(messages)


@every_graph_and_mode
@pytest.mark.parametrize("answer", ["continue", "stop", "Try the archive."])
async def test_a_fresh_handler_carries_out_an_answer_by_interrupt_id(host, mode, answer):
    agent = ending(host)
    (asked,) = (await agent.play(mode)).interrupts
    agent.take_over()
    assert (await agent.resume(mode, {asked.id: answer})).interrupts == ()
    assert agent.ran.total == (9 if answer == "continue" else 6)
    assert_valid_history(agent.messages)
    last = agent.messages[-1].content
    assert last.startswith("Stopped.") if answer == "stop" else last == "done"


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("answer", ["continue", "stop"])
@every_graph
async def test_an_async_saver_is_served_too(tmp_path, host, answer, fresh):
    # It can't be read from the event loop, so the history has to do.
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        agent = ending(host, saver=saver, native_async=True)
        assert len((await agent.play("ainvoke")).interrupts) == 1
        agent.take_over(fresh)
        outcome = await agent.resume("ainvoke", answer)
    assert_valid_history(outcome.messages)
    assert agent.ran.total == (9 if answer == "continue" else 6)


@every_graph
async def test_a_stop_is_not_lost_when_the_run_dies_before_it_has_ended(host):
    # The calls were answered, and the process died before the model node that ends the run.
    agent = Looping(host)
    await agent.play("invoke")
    asked = len(agent.model.requests)
    node = "model" if host == "create_agent" else "agent"
    agent.graph.invoke(Command(resume="stop"), agent.config, interrupt_before=[node])
    agent.take_over()
    agent.graph.invoke(None, agent.config)
    assert agent.messages[-1].content.startswith("Stopped.")
    assert len(agent.model.requests) == asked


@every_graph
async def test_what_a_person_let_run_is_known_from_the_history(host):
    agent = Looping(host)
    await agent.play("invoke")
    for _ in range(3):
        # Each time a new handler: three more runs a question, as with one handler.
        agent.take_over()
        await agent.resume("invoke", "continue")
    assert agent.ran.total == 2 + 3 * 3


@every_graph
async def test_refusals_are_known_from_the_history(host):
    # They are marked, so a new handler counts them as refusals and not as results.
    agent = Looping(host)
    await agent.play("invoke")
    agent.take_over()
    await agent.resume("invoke", "Use the archive.")
    refused = [m for m in agent.messages if m.additional_kwargs.get("lc_source") == "loop_guard"]
    assert [m.content for m in refused] == ["Use the archive."]


async def test_in_the_functional_api_a_fresh_handler_does_not_lose_the_stop():
    # There is no state to read: that the question was about this call is in the checkpoint.
    ran = Counter()
    agent = functional_agent(repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver())
    agent.invoke([HumanMessage("go")], thread("t", handler()))
    assert ran.total == 2
    with pytest.raises(LoopDetectedError):
        agent.invoke(Command(resume="stop"), thread("t", handler()))
    assert ran.total == 2


# --- Which answer belongs to which question ---------------------------------------------------


@every_graph
async def test_running_again_without_an_answer_asks_again(host):
    agent = Looping(host, *THREE)
    first = (await agent.play("invoke")).interrupts
    again = agent.graph.invoke(None, agent.config)["__interrupt__"]
    assert [item.id for item in again] == [item.id for item in first]
    assert agent.ran.total == 6


@pytest.mark.parametrize(
    ("host", "mode"), [(host, mode) for host in GRAPHS for mode in ("invoke", "astream")]
)
@pytest.mark.parametrize("bad", [{"type": "perhaps"}, 7, "", {"decisions": []}])
async def test_a_value_that_is_no_answer_is_an_error_and_the_question_stays(host, mode, bad):
    # A sync tool's thread outlives the run that fails; the next answer is not for it.
    agent = ending(host)
    await agent.play(mode)
    with pytest.raises(InvalidResumeError, match="continue"):
        await agent.resume(mode, bad)
    assert agent.ran.total == 6
    assert len(agent.graph.get_state(agent.config).interrupts) == 1
    await agent.resume(mode, "continue")
    assert agent.ran.total == 9
    assert_valid_history(agent.messages)


@every_graph
async def test_an_edited_call_is_refused_as_an_answer(host):
    # A callback can't change what runs; running the old call instead would be worse.
    agent = Looping(host)
    (asked,) = (await agent.play("invoke")).interrupts
    assert "edit" not in asked.value["review_configs"][0]["allowed_decisions"]
    edit = {"type": "edit", "edited_action": {"name": "search", "args": {"q": "b"}}}
    with pytest.raises(InvalidResumeError, match="can't carry out"):
        await agent.resume("invoke", {"decisions": [edit]})
    assert agent.ran.total == 2
    assert len(agent.graph.get_state(agent.config).interrupts) == 1


def asking_tool():
    """Make a tool that asks a person itself, each time it runs."""
    return counting_tool(Counter(), answer=lambda number: str(interrupt({"question": number})))


@pytest.mark.parametrize("fresh", [False, True])
@every_graph
async def test_a_tools_own_question_gets_its_own_answer(host, fresh):
    agent = Looping(host, model=repeating_model(times=3), tool=asking_tool())
    outcome = await agent.play("invoke")
    asked = []
    for answer in ("blue", "blue", "continue", "green"):
        asked.append(outcome.interrupts[0].value.get("type", "the tool's"))
        agent.take_over(fresh)
        outcome = await agent.resume("invoke", answer)
    assert asked == ["the tool's", "the tool's", "loop_detected", "the tool's"]
    assert [one.content for one in agent.results(9)] == ["blue", "blue", "green"]
    assert agent.messages[-1].content == "done"


@every_graph
async def test_a_tools_first_question_is_not_taken_for_the_guards(host):
    # No loop was found, so the answer is the tool's, also for a handler that knows nothing yet.
    agent = Looping(host, model=repeating_model(times=1), tool=asking_tool())
    await agent.play("invoke")
    agent.take_over()
    await agent.resume("invoke", "stop")
    assert [one.content for one in agent.results(9)] == ["stop"]


# --- Going back -------------------------------------------------------------------------------


@every_graph
async def test_a_fork_counts_its_own_history(host):
    # Back to where the call had come once: its second time is no loop.
    agent = Looping(host)
    await agent.play("invoke")
    states = list(agent.graph.get_state_history(agent.config))
    early = next(s for s in states if len(s.values["messages"]) == 3)
    assert agent.ran.total == 2
    fork = {**agent.config, "configurable": early.config["configurable"]}
    assert len(agent.graph.invoke(None, fork)["__interrupt__"]) == 1
    assert agent.ran.total == 3


@every_graph
@pytest.mark.parametrize("fresh", [False, True])
async def test_a_replay_of_an_answered_question_asks_again(host, fresh):
    agent = ending(host)
    await agent.play("invoke")
    asked = agent.graph.get_state(agent.config).config["configurable"]
    await agent.resume("invoke", "continue")
    assert agent.ran.total == 9
    agent.take_over(fresh)
    result = agent.graph.invoke(None, {**agent.config, "configurable": asked})
    assert len(result["__interrupt__"]) == 1
    assert agent.ran.total == 9


class LateFirstCall(AgentMiddleware):
    """Lets the first call of a step start last, whenever `on`."""

    on = False

    def wrap_tool_call(self, request, handler):
        if self.on and request.tool_call["id"].endswith("_0"):
            time.sleep(0.05)
        return handler(request)

    async def awrap_tool_call(self, request, handler):
        if self.on and request.tool_call["id"].endswith("_0"):
            await asyncio.sleep(0.05)
        return await handler(request)


def late_ending(**options):
    """Make such an agent, and what makes it late."""
    late = LateFirstCall()
    agent = ending("create_agent", build={"middleware": [late]}, native_async=True, **options)
    return agent, late


@pytest.mark.parametrize("mode", ["invoke", "astream"])
@pytest.mark.parametrize("answer", ["continue", "stop", "Use the archive."])
@pytest.mark.parametrize("fresh", [False, True], ids=["same handler", "fresh handler"])
@pytest.mark.parametrize("by_id", [False, True], ids=["plain", "by id"])
async def test_the_call_that_did_not_ask_may_start_first_at_the_resume(mode, answer, fresh, by_id):
    # The host gives the answer to the task that asked; the others must find it all the same.
    agent, late = late_ending()
    (asked,) = (await agent.play(mode)).interrupts
    late.on = True
    agent.take_over(fresh)
    outcome = await agent.resume(mode, {asked.id: answer} if by_id else answer)
    assert outcome.interrupts == ()
    assert agent.ran.total == (9 if answer == "continue" else 6)
    assert agent.graph.get_state(agent.config).next == ()
    assert_valid_history(agent.messages)
    if answer == "Use the archive.":
        assert sum(m.content == answer for m in agent.messages) == 3


@pytest.mark.parametrize("answer", ["continue", "stop"])
@pytest.mark.parametrize("by_id", [False, True], ids=["plain", "by id"])
async def test_where_an_answer_cannot_be_traced_it_is_asked_for_again(tmp_path, answer, by_id):
    # A fresh handler, a saver that can't be read here, and the call that asked starts last.
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        agent, late = late_ending(saver=saver)
        asked = (await agent.play("ainvoke")).interrupts
        late.on = True
        given = {asked[0].id: answer} if by_id else answer
        for _ in range(3):
            agent.take_over()
            outcome = await agent.resume("ainvoke", given)
            if not outcome.interrupts:
                break
            assert agent.ran.total <= (9 if answer == "continue" else 6)
            given = {item.id: answer for item in outcome.interrupts}
    assert_valid_history(outcome.messages)
    assert agent.ran.total == (9 if answer == "continue" else 6)
