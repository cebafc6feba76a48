"""Does one handler keep many conversations apart, and blame nobody for others?"""

from __future__ import annotations

import asyncio
import operator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition
from langgraph.types import Command, Send

from langchain_loopguard.adapters.conversations import Conversation
from langchain_loopguard.adapters.runs import Run, Session
from tests.adapters.handled import handler, left, once
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
)

pytestmark = pytest.mark.usefixtures("alone")


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


def test_twenty_users_with_twenty_steps_each_share_a_graph_and_a_handler():
    ran, guard = Counter(), handler(on_detected="raise")
    graph = paired_graph(20, ran)

    def user(number: int) -> str:
        config = thread(f"user {number}", guard, recursion_limit=150)
        return graph.invoke(ask(), config)["messages"][-1].content

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(user, range(20))) == ["done"] * 20
    assert ran.total == 20 * 20
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
