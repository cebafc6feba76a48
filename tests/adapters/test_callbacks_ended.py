"""What does a handler keep of agents that have ended while the call around them goes on?

Little enough that such a call may last for ever, and enough that nobody is blamed for what
another agent has done.
"""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send

from langchain_loopguard import LoopGuardCallbackHandler, LoopGuardPolicy
from langchain_loopguard.callbacks import conversations, runs
from tests.hosts import (
    Counter,
    ScriptedChatModel,
    agent_graph,
    ai_calls,
    ask,
    counting_tool,
    repeating_model,
    thread,
)

SEED = LoopGuardPolicy.seed()


def handler(policy: LoopGuardPolicy | None = SEED, **options: Any) -> LoopGuardCallbackHandler:
    """Make a handler that hides none of its own faults."""
    return LoopGuardCallbackHandler(policy, **{"fail_open": False, **options})


def counts(told) -> list[int]:
    return [decision.findings[0].count for decision in told]


def calling(work: Callable[[], object], jobs: int) -> Any:
    """Build a graph that does one job after the other, in one session."""
    done = [0]

    def node(state: MessagesState):
        work()
        done[0] += 1
        return {}

    builder = StateGraph(MessagesState)
    builder.add_node("work", node)
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", lambda _: "work" if done[0] < jobs else END)
    return builder.compile()


# --- How much is kept -------------------------------------------------------------------------


def test_agents_that_have_ended_make_room_while_their_session_goes_on(monkeypatch):
    ran, kept, spoken, told = Counter(), [], [], []
    guard = handler(on_detected="warn", max_conversations=3, notify=told.append)
    hear = conversations.Session.hear

    def heard(session, *args):
        hear(session, *args)
        spoken.append(len(session.spoken))

    monkeypatch.setattr(conversations.Session, "hear", heard)
    worker = agent_graph(repeating_model(times=4), [counting_tool(ran)])

    def job():
        worker.invoke(ask())
        kept.append(len(guard._reading.conversations))

    calling(job, 12).invoke(ask(), {"callbacks": [guard]})
    assert ran.total == 12 * 4
    # The latest message is known by two names.
    assert (max(kept), max(spoken)) == (3, 2)
    # Each of them was found looping, and none was told of the others' calls.
    assert counts(told) == [3, 4] * 12


def test_nothing_is_left_of_what_outlives_the_call_around_it():
    # A thread that is busy with a model cannot be cancelled, so its agent ends after the call.
    def respond(messages):
        time.sleep(0.05)
        return AIMessage("done")

    guard = handler(on_detected="warn")
    worker = agent_graph(ScriptedChatModel(respond=respond), [counting_tool(Counter())])
    graph = calling(partial(worker.invoke, ask()), 1)

    async def calls():
        for _ in range(10):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(graph.ainvoke(ask(), {"callbacks": [guard]}), 0.03)
        await asyncio.sleep(0.3)

    asyncio.run(calls())
    assert len(guard._runs) == 0
    assert len(guard._reading.conversations._sessions) == 0


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
    assert len(guard._runs) <= 2 * 8


# --- Who is blamed ----------------------------------------------------------------------------


def test_an_agent_at_work_is_kept_while_others_of_its_session_end():
    told = []
    guard = handler(on_detected="warn", max_conversations=1, notify=told.append)
    short = agent_graph(repeating_model(times=1), [counting_tool(Counter())])

    def answer(number: int) -> str:
        short.invoke(ask())
        return "the same"

    lead = agent_graph(repeating_model(times=4), [counting_tool(Counter(), answer=answer)])
    lead.invoke(ask(), {"callbacks": [guard]})
    assert counts(told) == [3, 4]


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
    model = ScriptedChatModel(respond=once)
    tool = counting_tool(ran, native_async=True)

    async def work(state: dict[str, int]):
        messages = [HumanMessage(f"job {state['job']}")]
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


@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_a_batch_that_a_dropped_agent_has_run_is_none_of_a_missing_tool(limit):
    # A lead has a worker do one job after the other and reads what it did. Other agents in between
    # have the worker's conversation dropped.
    ran = Counter()

    def note(q: str) -> str:
        ran.add("search", {"q": q})
        return "done"

    tool = StructuredTool.from_function(
        note, name="search", description="Notes.", return_direct=True
    )
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
    config = thread("t", guard)
    result = builder.compile(checkpointer=InMemorySaver()).invoke(ask(), config)
    assert "__interrupt__" not in result
    assert ran.total == guard.stats()["checked"] == 8


@task
def speak(model: Any, messages: Any) -> Any:
    return model.invoke(messages)


@task
def act(tool: Any, call: Any) -> Any:
    return tool.invoke(call)


def plain(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return run


def in_a_run(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return RunnableLambda(run).invoke


@pytest.mark.parametrize("host", ["entrypoint", "node"])
@pytest.mark.parametrize("acts", [plain, in_a_run])
@pytest.mark.parametrize("speaks", [plain, in_a_run])
def test_tasks_that_a_task_calls_are_one_agents(speaks, acts, host):
    # Whatever run stands between a task and those that it calls.
    ran, told = Counter(), []
    model, tool = repeating_model(times=5), counting_tool(ran)
    says = speaks(lambda messages: speak(model, messages).result())
    does = acts(lambda said: [act(tool, call).result() for call in said.tool_calls])

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
    assert counts(told) == [3, 4, 5]


def test_a_question_on_the_side_does_not_part_a_model_from_its_loop():
    ran, told = Counter(), []
    model, tool = repeating_model(times=5), counting_tool(ran)
    side = ScriptedChatModel(respond=lambda _: AIMessage("fine"))

    @task
    def is_fine():
        return side.invoke([HumanMessage("is it fine?")]).content

    @task
    def think(messages):
        is_fine().result()
        return model.invoke(messages)

    @entrypoint()
    def agent(messages):
        while True:
            messages = [*messages, think(messages).result()]
            if not messages[-1].tool_calls:
                return messages
            messages += [act(tool, call).result() for call in messages[-1].tool_calls]

    guard = handler(None, on_detected="warn", notify=told.append)
    agent.invoke([HumanMessage("go")], {"callbacks": [guard]})
    assert ran.total == guard.stats()["checked"] == 5
    # What the answers of the last batch reveal is told as well.
    assert counts(told) == [3, 4, 5]


def test_equal_calls_of_one_batch_are_one_batch_in_tasks_too():
    model = ScriptedChatModel(
        respond=lambda messages: (
            ai_calls([("search", {"q": "a"})] * 3, 0) if len(messages) == 1 else AIMessage("done")
        )
    )
    tool, guard = counting_tool(Counter()), handler(on_detected="raise")
    says = in_a_run(lambda messages: speak(model, messages).result())

    @entrypoint()
    def agent(messages):
        said = says(messages)
        answers = [act(tool, call).result() for call in said.tool_calls]
        return says([*messages, said, *answers])

    agent.invoke([HumanMessage("go")], {"callbacks": [guard]})
    assert guard.stats()["checked"] == 1
