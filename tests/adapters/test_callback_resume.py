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
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command, interrupt

from langchain_loopguard import (
    InvalidResumeError,
    LoopDetectedError,
    LoopGuardCallbackHandler,
    LoopGuardPolicy,
)
from tests.hosts import (
    GRAPHS,
    MODES,
    Counter,
    ask,
    assert_valid_history,
    counting_tool,
    drive,
    functional_agent,
    listed_model,
    repeating_model,
    thread,
)

SEED = LoopGuardPolicy.seed()
ROOT = Path(__file__).parents[2]
every_graph = pytest.mark.parametrize("host", GRAPHS)
every_mode = pytest.mark.parametrize("mode", MODES)
THREE = (("search", {"q": "a"}), ("search", {"q": "b"}), ("search", {"q": "c"}))


def handler(**options) -> LoopGuardCallbackHandler:
    """Make a handler that hides none of its own faults."""
    return LoopGuardCallbackHandler(SEED, **{"fail_open": False, **options})


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


@every_mode
@every_graph
@pytest.mark.parametrize("answer", ["continue", "stop", "Try the archive."])
async def test_a_fresh_handler_carries_out_an_answer_by_interrupt_id(host, mode, answer):
    ran = Counter()
    graph = GRAPHS[host](
        listed_model(THREE, THREE, THREE, []), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    outcome = await drive(graph, mode, ask(), thread("t", handler()))
    resume = {outcome.interrupts[0].id: answer}
    outcome = await drive(graph, mode, Command(resume=resume), thread("t", handler()))
    assert outcome.interrupts == ()
    assert ran.total == (9 if answer == "continue" else 6)
    messages = graph.get_state(thread("t")).values["messages"]
    assert_valid_history(messages)
    last = messages[-1].content
    assert last.startswith("Stopped.") if answer == "stop" else last == "done"


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("answer", ["continue", "stop"])
@every_graph
async def test_an_async_saver_is_served_too(tmp_path, host, answer, fresh):
    # It can't be read from the event loop, so the history has to do.
    ran = Counter()
    guard = handler()
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        graph = GRAPHS[host](
            listed_model(THREE, THREE, THREE, []),
            [counting_tool(ran, native_async=True)],
            checkpointer=saver,
        )
        result = await graph.ainvoke(ask(), thread("t", guard))
        assert len(result["__interrupt__"]) == 1
        config = thread("t", handler() if fresh else guard)
        result = await graph.ainvoke(Command(resume=answer), config)
    assert_valid_history(result["messages"])
    assert ran.total == (9 if answer == "continue" else 6)


@every_graph
async def test_a_stop_is_not_lost_when_the_run_dies_before_it_has_ended(host):
    # The calls were answered, and the process died before the model node that ends the run.
    model = repeating_model()
    graph = GRAPHS[host](model, [counting_tool(Counter())], checkpointer=InMemorySaver())
    config = thread("t", handler())
    graph.invoke(ask(), config)
    asked = len(model.requests)
    node = "model" if host == "create_agent" else "agent"
    graph.invoke(Command(resume="stop"), config, interrupt_before=[node])
    graph.invoke(None, thread("t", handler()))
    messages = graph.get_state(config).values["messages"]
    assert messages[-1].content.startswith("Stopped.")
    assert len(model.requests) == asked


@every_graph
async def test_what_a_person_let_run_is_known_from_the_history(host):
    ran = Counter()
    graph = GRAPHS[host](repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver())
    graph.invoke(ask(), thread("t", handler()))
    for _ in range(3):
        # Each time a new handler: three more runs a question, as with one handler.
        graph.invoke(Command(resume="continue"), thread("t", handler()))
    assert ran.total == 2 + 3 * 3


@every_graph
async def test_refusals_are_known_from_the_history(host):
    # They are marked, so a new handler counts them as refusals and not as answers.
    graph = GRAPHS[host](
        repeating_model(), [counting_tool(Counter())], checkpointer=InMemorySaver()
    )
    graph.invoke(ask(), thread("t", handler()))
    graph.invoke(Command(resume="Use the archive."), thread("t", handler()))
    messages = graph.get_state(thread("t")).values["messages"]
    refused = [m for m in messages if m.additional_kwargs.get("lc_source") == "loop_guard"]
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
    ran = Counter()
    graph = GRAPHS[host](
        repeating_model(*THREE), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler())
    first = graph.invoke(ask(), config)["__interrupt__"]
    again = graph.invoke(None, config)["__interrupt__"]
    assert [item.id for item in again] == [item.id for item in first]
    assert ran.total == 6


@every_mode
@every_graph
@pytest.mark.parametrize("bad", [{"type": "perhaps"}, 7, "", {"decisions": []}])
async def test_a_value_that_is_no_answer_is_an_error_and_the_question_stays(host, mode, bad):
    ran = Counter()
    graph = GRAPHS[host](
        listed_model(THREE, THREE, THREE, []), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler())
    await drive(graph, mode, ask(), config)
    with pytest.raises(InvalidResumeError, match="continue"):
        await drive(graph, mode, Command(resume=bad), config)
    assert ran.total == 6
    assert len(graph.get_state(config).interrupts) == 1
    await drive(graph, mode, Command(resume="continue"), config)
    assert ran.total == 9
    assert_valid_history(graph.get_state(config).values["messages"])


@every_graph
async def test_an_edited_call_is_refused_as_an_answer(host):
    # A callback can't change what runs; running the old call instead would be worse.
    ran = Counter()
    graph = GRAPHS[host](repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver())
    config = thread("t", handler())
    asked = graph.invoke(ask(), config)["__interrupt__"][0].value
    assert "edit" not in asked["review_configs"][0]["allowed_decisions"]
    edit = {"type": "edit", "edited_action": {"name": "search", "args": {"q": "b"}}}
    with pytest.raises(InvalidResumeError, match="can't carry out"):
        graph.invoke(Command(resume={"decisions": [edit]}), config)
    assert ran.total == 2
    assert len(graph.get_state(config).interrupts) == 1


def asking_tool(ran: Counter):
    """Make a tool that asks a person itself, each time it runs."""

    def body(number: int) -> str:
        return str(interrupt({"question": number}))

    return counting_tool(ran, answer=body)


@pytest.mark.parametrize("fresh", [False, True])
@every_graph
async def test_a_tools_own_question_gets_its_own_answer(host, fresh):
    ran = Counter()
    graph = GRAPHS[host](repeating_model(times=3), [asking_tool(ran)], checkpointer=InMemorySaver())

    def config(guard=handler()):  # noqa: B008 - one handler for all calls unless `fresh`
        return thread("t", handler() if fresh else guard)

    graph.invoke(ask(), config())
    for answer in ("blue", "blue"):
        result = graph.invoke(Command(resume=answer), config())
    assert result["__interrupt__"][0].value["type"] == "loop_detected"
    result = graph.invoke(Command(resume="continue"), config())
    assert "question" in result["__interrupt__"][0].value
    result = graph.invoke(Command(resume="green"), config())
    answers = [m.content for m in result["messages"] if isinstance(m, ToolMessage)]
    assert answers == ["blue", "blue", "green"]
    assert result["messages"][-1].content == "done"


@every_graph
async def test_a_tools_first_question_is_not_taken_for_the_guards(host):
    # No loop was found, so the answer is the tool's, also for a handler that knows nothing yet.
    graph = GRAPHS[host](
        repeating_model(times=1), [asking_tool(Counter())], checkpointer=InMemorySaver()
    )
    graph.invoke(ask(), thread("t", handler()))
    result = graph.invoke(Command(resume="stop"), thread("t", handler()))
    answers = [m.content for m in result["messages"] if isinstance(m, ToolMessage)]
    assert answers == ["stop"]


# --- Going back -------------------------------------------------------------------------------


@every_graph
async def test_a_fork_counts_its_own_history(host):
    # Back to where the call had come once: its second time is no loop.
    ran = Counter()
    graph = GRAPHS[host](repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver())
    guard = handler()
    config = thread("t", guard)
    graph.invoke(ask(), config)
    states = list(graph.get_state_history(config))
    early = next(s for s in states if len(s.values["messages"]) == 3)
    assert ran.total == 2
    fork = {**config, "configurable": early.config["configurable"]}
    result = graph.invoke(None, fork)
    assert len(result["__interrupt__"]) == 1
    assert ran.total == 3


@every_graph
@pytest.mark.parametrize("fresh", [False, True])
async def test_a_replay_of_an_answered_question_asks_again(host, fresh):
    ran = Counter()
    graph = GRAPHS[host](
        listed_model(THREE, THREE, THREE, []), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler())
    graph.invoke(ask(), config)
    asked = graph.get_state(config).config["configurable"]
    graph.invoke(Command(resume="continue"), config)
    assert ran.total == 9
    if fresh:
        config = thread("t", handler())
    result = graph.invoke(None, {**config, "configurable": asked})
    assert len(result["__interrupt__"]) == 1
    assert ran.total == 9


class LateFirstCall(AgentMiddleware):
    """Lets the first call of a batch start last, whenever `on`."""

    on = False

    def wrap_tool_call(self, request, handler):
        if self.on and request.tool_call["id"].endswith("_0"):
            time.sleep(0.05)
        return handler(request)

    async def awrap_tool_call(self, request, handler):
        if self.on and request.tool_call["id"].endswith("_0"):
            await asyncio.sleep(0.05)
        return await handler(request)


@every_mode
@pytest.mark.parametrize("answer", ["continue", "stop", "Use the archive."])
@pytest.mark.parametrize("fresh", [False, True], ids=["same handler", "fresh handler"])
@pytest.mark.parametrize("by_id", [False, True], ids=["plain", "by id"])
async def test_the_call_that_did_not_ask_may_start_first_at_the_resume(mode, answer, fresh, by_id):
    # The host gives the answer to the task that asked; the others must find it all the same.
    ran = Counter()
    late = LateFirstCall()
    graph = GRAPHS["create_agent"](
        listed_model(THREE, THREE, THREE, []),
        [counting_tool(ran, native_async=True)],
        checkpointer=InMemorySaver(),
        middleware=[late],
    )
    guard = handler()
    outcome = await drive(graph, mode, ask(), thread("t", guard))
    late.on = True
    resume = {outcome.interrupts[0].id: answer} if by_id else answer
    config = thread("t", handler() if fresh else guard)
    outcome = await drive(graph, mode, Command(resume=resume), config)
    assert outcome.interrupts == ()
    assert ran.total == (9 if answer == "continue" else 6)
    state = graph.get_state(config)
    assert state.next == ()
    assert_valid_history(state.values["messages"])
    if answer == "Use the archive.":
        assert sum(m.content == answer for m in state.values["messages"]) == 3


@pytest.mark.parametrize("answer", ["continue", "stop"])
@pytest.mark.parametrize("by_id", [False, True], ids=["plain", "by id"])
async def test_where_an_answer_cannot_be_traced_it_is_asked_for_again(tmp_path, answer, by_id):
    # A fresh handler, a saver that can't be read here, and the call that asked starts last.
    ran = Counter()
    late = LateFirstCall()
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        graph = GRAPHS["create_agent"](
            listed_model(THREE, THREE, THREE, []),
            [counting_tool(ran, native_async=True)],
            checkpointer=saver,
            middleware=[late],
        )
        asked = (await graph.ainvoke(ask(), thread("t", handler())))["__interrupt__"]
        late.on = True
        resume = {asked[0].id: answer} if by_id else answer
        for _ in range(3):
            result = await graph.ainvoke(Command(resume=resume), thread("t", handler()))
            if "__interrupt__" not in result:
                break
            assert ran.total <= (9 if answer == "continue" else 6)
            resume = {item.id: answer for item in result["__interrupt__"]}
    assert_valid_history(result["messages"])
    assert ran.total == (9 if answer == "continue" else 6)
