"""Does one handler keep many conversations apart, and its memory small?"""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition
from langgraph.types import Command

from langchain_loopguard import LoopDetectedError, LoopGuardCallbackHandler, LoopGuardPolicy
from tests.hosts import (
    GRAPHS,
    Counter,
    ScriptedChatModel,
    ai_calls,
    ask,
    counting_tool,
    lcel_chain,
    repeating_model,
    thread,
    tool_node_graph,
)

SEED = LoopGuardPolicy.seed()
USERS = 100
TURNS = 100


def handler(**options) -> LoopGuardCallbackHandler:
    """Make a handler that hides none of its own faults."""
    return LoopGuardCallbackHandler(SEED, **{"fail_open": False, **options})


def paired_graph(turns: int, ran: Counter):
    """Build a lean agent that makes each call twice in a row.

    One count that leaks in from elsewhere makes that a loop.
    """

    def respond(messages):
        turn = len(messages) // 2
        if turn >= turns:
            return AIMessage("done")
        return ai_calls([("search", {"q": str(turn // 2)})], turn)

    model = ScriptedChatModel(respond=respond)
    tool = counting_tool(ran)

    def agent(state: MessagesState):
        return {"messages": model.invoke(state["messages"])}

    builder = StateGraph(MessagesState)

    def tools(state: MessagesState):
        return {"messages": [tool.invoke(call) for call in state["messages"][-1].tool_calls]}

    builder.add_node("agent", agent)
    builder.add_node("tools", tools)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile()


@pytest.mark.timeout(400)
def test_a_hundred_users_with_a_hundred_turns_each_share_a_graph_and_a_handler():
    ran = Counter()
    guard = handler(on_detected="raise")
    graph = paired_graph(TURNS, ran)

    def user(number: int) -> str:
        config = thread(f"user {number}", guard, recursion_limit=3 * TURNS)
        return graph.invoke(ask(), config)["messages"][-1].content

    # Fewer workers than users, since a hundred threads mostly wait for each other.
    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(user, range(USERS))) == ["done"] * USERS
    assert ran.total == USERS * TURNS
    assert len(guard._runs) == 0


def test_users_who_ask_the_same_again_and_again_are_no_loop():
    ran = Counter()
    guard = handler(on_detected="raise")
    chain = lcel_chain(repeating_model(), [counting_tool(ran)])

    def user(number: int) -> None:
        config = {"callbacks": [guard], "metadata": {"thread_id": f"user {number}"}}
        messages = []
        for _ in range(10):
            messages = [*messages[-3:], HumanMessage("the weather?")]
            messages += chain.invoke(messages, config)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(user, range(USERS)))
    assert ran.total == USERS * 10


async def test_many_async_runs_without_a_thread_id_are_counted_apart():
    ran = Counter()
    guard = handler(on_detected="raise")
    graph = paired_graph(10, ran)

    async def user() -> str:
        return (await graph.ainvoke(ask(), {"callbacks": [guard]}))["messages"][-1].content

    assert await asyncio.gather(*(user() for _ in range(20))) == ["done"] * 20
    assert len(guard._runs) == 0
    assert len(guard._reading.conversations) == 0


@pytest.mark.parametrize("host", GRAPHS)
def test_each_of_many_looping_threads_is_asked_about_itself(host):
    ran = Counter()
    guard = handler()
    graph = GRAPHS[host](
        repeating_model(("search", {"q": "a"}), ("search", {"q": "b"})),
        [counting_tool(ran)],
        checkpointer=InMemorySaver(),
    )

    def user(number: int) -> int:
        config = thread(f"user {number}", guard)
        first = len(graph.invoke(ask(), config)["__interrupt__"])
        answer = "stop" if number % 2 else "continue"
        again = graph.invoke(Command(resume=answer), config)
        return 10 * first + len(again.get("__interrupt__", ()))

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(user, range(16))) == [11, 10] * 8
    assert ran.total == 16 * 4 + 8 * 6


def test_memory_is_bounded_and_an_idle_thread_is_read_again():
    ran = Counter()
    guard = handler(max_conversations=3)
    graph = tool_node_graph(
        repeating_model(times=2), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    for number in range(20):
        graph.invoke(ask(), thread(f"user {number}", guard))
    assert len(guard._reading.conversations) == 3
    # The first one was dropped; its next user turn begins with what its history says.
    result = graph.invoke(ask(), thread("user 0", guard))
    assert "__interrupt__" not in result


def test_a_thread_that_is_running_is_never_dropped():
    # All of them are in the middle of a run, with room for one.
    users = 8
    ready = threading.Barrier(users, timeout=30)
    guard = handler(max_conversations=1, on_detected="raise")

    def answer(number: int) -> str:
        ready.wait()
        return "the same"

    tool = counting_tool(Counter(), answer=answer)
    chain = lcel_chain(repeating_model(), [tool])

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
    ran = Counter()
    guard = handler(max_conversations=1)
    graph = GRAPHS["create_agent"](
        repeating_model(("search", {"q": "a"}), ("search", {"q": "b"})),
        [counting_tool(ran)],
        checkpointer=InMemorySaver(),
    )
    graph.invoke(ask(), thread("first", guard))
    graph.invoke(ask(), thread("second", guard))
    graph.invoke(Command(resume="stop"), thread("first", guard))
    assert ran.total == 8
    assert graph.get_state(thread("first")).next == ()


def test_a_handler_on_a_tool_alone_keeps_little():
    guard = handler(scope="handler", on_detected="warn", max_conversations=5)
    tool = counting_tool(Counter())
    tool.callbacks = [guard]
    for _ in range(600):
        tool.invoke({"q": "a"})
    assert len(guard._runs) == 0
    assert len(guard._reading.conversations._sessions) <= 257


def test_nothing_is_left_of_a_stream_that_was_given_up():
    guard = handler()
    graph = tool_node_graph(repeating_model(times=2), [counting_tool(Counter())])
    stream = graph.stream(ask(), {"callbacks": [guard]})
    next(stream)
    stream.close()
    del stream
    gc.collect()
    assert len(guard._runs) == 0
