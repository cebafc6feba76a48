"""Does a handler keep little, and let go of an agent when the agent has ended?

A session may last for ever, so what is over with an agent is let go of with its agent.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter as CountOf
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command

from langchain_loopguard import LoopDetectedError
from langchain_loopguard.adapters import runs
from langchain_loopguard.adapters.conversations import Conversation
from langchain_loopguard.adapters.runs import Run, Session
from tests.adapters.handled import handler, left, once
from tests.hosts import (
    Counter,
    ScriptedChatModel,
    agent_graph,
    ask,
    counting_tool,
    lcel_chain,
    repeating_model,
    thread,
    tool_node_graph,
)

pytestmark = pytest.mark.usefixtures("alone")


def test_memory_is_bounded_and_an_idle_thread_is_read_again():
    ran, guard = Counter(), handler(max_conversations=3)
    model = repeating_model(times=2)
    graph = tool_node_graph(model, [counting_tool(ran)], checkpointer=InMemorySaver())
    for number in range(20):
        graph.invoke(ask(), thread(f"user {number}", guard))
    assert left(Conversation) == 3
    # The first one was dropped; its next user turn begins with what its history says.
    assert "__interrupt__" not in graph.invoke(ask(), thread("user 0", guard))


def test_a_thread_that_is_running_is_never_dropped():
    # All of them are in the middle of a run, with room for one.
    users = 8
    ready = threading.Barrier(users, timeout=30)
    guard = handler(max_conversations=1, on_detected="raise")

    def answer(number: int) -> str:
        ready.wait()
        return "the same"

    chain = lcel_chain(repeating_model(), [counting_tool(Counter(), answer=answer)])

    def steps(_: object) -> int:
        for count in range(9):
            try:
                chain.invoke([HumanMessage("go")])
            except LoopDetectedError:
                return count
        return 9

    def user(number: int) -> int:
        return RunnableLambda(steps).invoke(number, {"callbacks": [guard]})

    with ThreadPoolExecutor(users) as pool:
        assert list(pool.map(user, range(users))) == [2] * users


def test_a_waiting_question_outlives_being_dropped():
    ran, guard = Counter(), handler(max_conversations=1)
    model = repeating_model(("search", {"q": "a"}), ("search", {"q": "b"}))
    graph = agent_graph(model, [counting_tool(ran)], checkpointer=InMemorySaver())
    graph.invoke(ask(), thread("first", guard))
    graph.invoke(ask(), thread("second", guard))
    graph.invoke(Command(resume="stop"), thread("first", guard))
    assert (ran.total, graph.get_state(thread("first")).next) == (8, ())


def calling(work, jobs: int) -> Any:
    """Build a graph that does one job after the other, in one session."""
    done = CountOf()

    def node(state: MessagesState):
        work()
        done["jobs"] += 1
        return {}

    builder = StateGraph(MessagesState)
    builder.add_node("work", node)
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", lambda _: "work" if done["jobs"] < jobs else END)
    return builder.compile()


def test_agents_that_have_ended_make_room_while_their_session_goes_on():
    ran, kept, told = Counter(), [], []
    guard = handler(on_detected="warn", max_conversations=3, notify=told.append)
    worker = agent_graph(repeating_model(times=4), [counting_tool(ran)])

    def job():
        worker.invoke(ask())
        kept.append(left(Conversation))

    calling(job, 12).invoke(ask(), {"callbacks": [guard]})
    assert (ran.total, max(kept)) == (12 * 4, 1)
    # Each of them was found looping, and none was told of the others' calls.
    assert [decision.findings[0].count for decision in told] == [3] * 12


def test_an_agent_at_work_is_kept_while_others_of_its_session_end():
    told: list = []
    guard = handler(on_detected="warn", max_conversations=1, notify=told.append)
    short = agent_graph(repeating_model(times=1), [counting_tool(Counter())])

    def answer(number: int) -> str:
        short.invoke(ask())
        return "the same"

    lead = agent_graph(repeating_model(times=4), [counting_tool(Counter(), answer=answer)])
    lead.invoke(ask(), {"callbacks": [guard]})
    assert [decision.findings[0].count for decision in told] == [3]


@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_a_step_that_a_dropped_agent_has_run_is_none_of_a_missing_tool(limit):
    # A lead has a worker do one job after the other and reads what it did. Other agents in between
    # have the worker's conversation dropped.
    ran = Counter()

    def note(q: str) -> str:
        ran.add("search", {"q": q})
        return "done"

    tool = StructuredTool.from_function(note, name="search", description="N.", return_direct=True)
    worker = agent_graph(ScriptedChatModel(respond=once), [tool])
    grader = agent_graph(ScriptedChatModel(respond=lambda _: AIMessage("good")), [])
    lead = ScriptedChatModel(respond=lambda _: AIMessage("next" if ran.total < 8 else "over"))

    def work(state: MessagesState):
        return {"messages": worker.invoke({"messages": [HumanMessage("job")]})["messages"][1:]}

    def grade(state: MessagesState):
        grader.invoke({"messages": [HumanMessage("grade it")]})
        return {}

    builder = StateGraph(MessagesState)
    builder.add_node("lead", lambda state: {"messages": [lead.invoke(state["messages"])]})
    builder.add_node("work", work)
    builder.add_node("grade", grade)
    builder.add_edge(START, "lead")
    builder.add_edge("work", "grade")
    builder.add_edge("grade", "lead")
    builder.add_conditional_edges(
        "lead", lambda state: "work" if state["messages"][-1].content == "next" else END
    )
    guard = handler(None, max_conversations=limit)
    graph = builder.compile(checkpointer=InMemorySaver())
    assert "__interrupt__" not in graph.invoke(ask(), thread("t", guard))
    assert ran.total == guard.stats()["checked"] == 8


def test_on_a_tool_alone_it_keeps_little():
    guard = handler(scope="handler", on_detected="warn", max_conversations=5)
    tool = counting_tool(Counter())
    tool.callbacks = [guard]
    for _ in range(600):
        tool.invoke({"q": "a"})
    assert left(Run) <= 1  # The last one, of which the agent may not have ended.
    assert left(Session) <= 257


def test_nothing_is_left_of_a_stream_that_was_given_up():
    graph = tool_node_graph(repeating_model(times=2), [counting_tool(Counter())])
    guard = handler()
    stream = graph.stream(ask(), {"callbacks": [guard]})
    next(stream)
    stream.close()
    del stream
    assert left(Run) == 0


def test_nothing_is_left_of_what_outlives_the_call_around_it():
    # A thread that is busy with a model cannot be cancelled, so its agent ends after the call.
    def respond(messages):
        time.sleep(0.05)
        return AIMessage("done")

    guard = handler(on_detected="warn")
    worker = agent_graph(ScriptedChatModel(respond=respond), [counting_tool(Counter())])
    graph = calling(lambda: worker.invoke(ask()), 1)

    async def calls():
        for _ in range(10):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(graph.ainvoke(ask(), {"callbacks": [guard]}), 0.03)

    asyncio.run(calls())
    end = time.monotonic() + 30
    while left(Run) and time.monotonic() < end:
        time.sleep(0.1)
    assert (left(Run), left(Session)) == (0, 0)


def test_runs_whose_end_is_never_told_are_forgotten(monkeypatch):
    # LangChain tells nothing of the end of a model's run that is cancelled.
    monkeypatch.setattr(runs, "_MANY", 8)
    guard = handler(on_detected="warn")

    class Slow(ScriptedChatModel):
        async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
            await asyncio.sleep(60)

    agent = agent_graph(Slow(respond=lambda _: AIMessage("never")), [counting_tool(Counter())])

    async def calls():
        for _ in range(40):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(agent.ainvoke(ask(), {"callbacks": [guard]}), 0.03)

    asyncio.run(calls())
    assert left(Run) <= 2 * 8
