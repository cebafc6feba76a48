"""Does one handler keep many conversations apart, blame nobody for others, and keep little?

A session may last for ever, so what is over with an agent is let go of with its agent.
"""

from __future__ import annotations

import asyncio
import gc
import operator
import threading
import time
from collections import Counter as CountOf
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition
from langgraph.types import Command, Send

from langchain_loopguard import LoopDetectedError, LoopGuardCallbackHandler, LoopGuardPolicy
from langchain_loopguard.adapters import runs
from langchain_loopguard.adapters.conversations import Conversation
from langchain_loopguard.adapters.runs import Run, Session
from tests.hosts import (
    GRAPHS,
    Counter,
    ScriptedChatModel,
    agent_graph,
    ai_calls,
    ask,
    counting_tool,
    lcel_chain,
    repeating_model,
    thread,
    tool_node_graph,
)

SEED = LoopGuardPolicy.seed()


def handler(policy: LoopGuardPolicy | None = SEED, **options: Any) -> LoopGuardCallbackHandler:
    """Make a handler that hides none of its own faults."""
    return LoopGuardCallbackHandler(policy, **{"fail_open": False, **options})


@pytest.fixture(autouse=True)
def nothing_left_of_other_tests():
    """Let go of the handlers of other tests, so that only this test's memory is counted."""
    gc.collect()


_BEFORE: set[int] = set()
"""What other tests of the process left behind, an error with its frames for one."""


@pytest.fixture(autouse=True)
def others():
    gc.collect()
    kinds = (Run, Session, Conversation)
    _BEFORE.clear()
    _BEFORE.update(id(one) for one in gc.get_objects() if any(type(one) is kind for kind in kinds))


def left(kind: type) -> int:
    """Count what is in memory of a kind."""
    gc.collect()
    return sum(type(one) is kind and id(one) not in _BEFORE for one in gc.get_objects())


# --- Apart ------------------------------------------------------------------------------------


def paired_graph(turns: int, ran: Counter):
    """Build a lean agent that makes each call twice in a row.

    One count that leaks in from elsewhere makes that a loop.
    """

    def respond(messages):
        turn = len(messages) // 2
        return (
            AIMessage("done") if turn >= turns else ai_calls([("search", {"q": turn // 2})], turn)
        )

    model, tool = ScriptedChatModel(respond=respond), counting_tool(ran)
    builder = StateGraph(MessagesState)

    def tools(state: MessagesState):
        calls = state["messages"][-1].tool_calls
        return {
            "messages": [
                tool.invoke({**one, "args": {"q": str(one["args"]["q"])}}) for one in calls
            ]
        }

    builder.add_node("agent", lambda state: {"messages": model.invoke(state["messages"])})
    builder.add_node("tools", tools)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile()


def test_fifty_users_with_fifty_steps_each_share_a_graph_and_a_handler():
    ran, guard = Counter(), handler(on_detected="raise")
    graph = paired_graph(50, ran)

    def user(number: int) -> str:
        config = thread(f"user {number}", guard, recursion_limit=150)
        return graph.invoke(ask(), config)["messages"][-1].content

    # Fewer workers than users, since so many threads mostly wait for each other.
    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(user, range(50))) == ["done"] * 50
    assert ran.total == 50 * 50
    assert left(Run) == 0


async def test_many_async_runs_without_a_thread_id_leave_nothing():
    ran, guard = Counter(), handler(on_detected="raise")
    graph = paired_graph(10, ran)

    async def user() -> str:
        return (await graph.ainvoke(ask(), {"callbacks": [guard]}))["messages"][-1].content

    assert await asyncio.gather(*(user() for _ in range(20))) == ["done"] * 20
    assert [left(kind) for kind in (Run, Session, Conversation)] == [0, 0, 0]


def test_users_who_ask_the_same_again_and_again_are_no_loop():
    ran, guard = Counter(), handler(on_detected="raise")
    chain = lcel_chain(repeating_model(), [counting_tool(ran)])

    def user(number: int) -> None:
        config = {"callbacks": [guard], "configurable": {"thread_id": f"user {number}"}}
        messages: list = []
        for _ in range(10):
            messages = [*messages[-3:], AIMessage("Rain."), HumanMessage("the weather?")]
            messages += chain.invoke(messages, config)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(user, range(50)))
    assert ran.total == 500


@pytest.mark.parametrize("host", GRAPHS)
def test_each_of_many_looping_threads_is_asked_about_itself(host):
    ran, guard = Counter(), handler()
    model = repeating_model(("search", {"q": "a"}), ("search", {"q": "b"}))
    graph = GRAPHS[host](model, [counting_tool(ran)], checkpointer=InMemorySaver())

    def user(number: int) -> int:
        config = thread(f"user {number}", guard)
        first = len(graph.invoke(ask(), config)["__interrupt__"])
        again = graph.invoke(Command(resume="stop" if number % 2 else "continue"), config)
        return 10 * first + len(again.get("__interrupt__", ()))

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(user, range(16))) == [11, 10] * 8
    assert ran.total == 16 * 4 + 8 * 6


def once(messages):
    """Make one call, by an id that no other has."""
    if any(isinstance(message, AIMessage) for message in messages):
        return AIMessage("done")
    call = {"name": "search", "args": {"q": "a"}, "id": uuid4().hex, "type": "tool_call"}
    return AIMessage("", id=uuid4().hex, tool_calls=[call])


class Done(TypedDict):
    done: Annotated[list[int], operator.add]


def test_many_workers_at_once_are_not_counted_together():
    # All their models have answered before the first tool starts.
    workers, ran, waiting, answered = 300, Counter(), set(range(300)), asyncio.Event()
    model, tool = ScriptedChatModel(respond=once), counting_tool(ran, native_async=True)

    async def work(state: dict[str, int]):
        messages: list = [HumanMessage(f"job {state['job']}")]
        messages.append(await model.ainvoke(messages))
        waiting.discard(state["job"])
        if not waiting:
            answered.set()
        await answered.wait()
        await tool.ainvoke(messages[-1].tool_calls[0])
        return {"done": [state["job"]]}

    builder = StateGraph(Done)
    builder.add_node("work", work)
    jobs = [Send("work", {"job": job}) for job in range(workers)]
    builder.add_conditional_edges(START, lambda _: jobs, ["work"])
    guard = handler(on_detected="raise")
    result = asyncio.run(builder.compile().ainvoke({"done": []}, {"callbacks": [guard]}))
    assert len(result["done"]) == ran.total == guard.stats()["checked"] == workers


@task
def speak(model: Any, messages: Any) -> Any:
    return model.invoke(messages)


@task
def act(tool: Any, call: Any) -> Any:
    return tool.invoke(call)


@pytest.mark.parametrize("host", ["entrypoint", "node"])
@pytest.mark.parametrize("inside", [lambda run: run, lambda run: RunnableLambda(run).invoke])
@pytest.mark.parametrize("aside", [True, False])
def test_tasks_that_a_task_calls_are_one_agents(inside, host, aside):
    # Whatever run stands between a task and those that it calls, and whatever is asked aside.
    ran, told = Counter(), []
    model, tool = repeating_model(times=5), counting_tool(ran)
    side = ScriptedChatModel(respond=lambda _: AIMessage("fine"))

    def think(messages):
        if aside:
            speak(side, [HumanMessage("is it fine?")]).result()
        return speak(model, messages).result()

    says = inside(think)
    does = inside(lambda said: [act(tool, call).result() for call in said.tool_calls])

    def body(messages):
        while True:
            said = says(messages)
            messages = [*messages, said]
            if not said.tool_calls:
                return messages
            messages += does(said)

    guard = handler(on_detected="warn", notify=told.append)
    if host == "entrypoint":
        entrypoint()(body).invoke([HumanMessage("go")], {"callbacks": [guard]})
    else:
        builder = StateGraph(MessagesState)
        builder.add_node("loop", lambda state: {"messages": body(state["messages"])})
        builder.add_edge(START, "loop")
        builder.compile().invoke(ask(), {"callbacks": [guard]})
    assert ran.total == guard.stats()["checked"] == 5
    assert [decision.findings[0].count for decision in told] == [3]


# --- Small ------------------------------------------------------------------------------------


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
        await asyncio.sleep(0.3)

    asyncio.run(calls())
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
