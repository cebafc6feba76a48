"""Does the handler stop agents inside agents and nodes, and models that it does not see?"""

from __future__ import annotations

import pytest
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send
from pydantic import BaseModel

from langchain_loopguard import LoopDetectedError
from tests.adapters.handled import handler
from tests.hosts import (
    GRAPHS,
    Counter,
    ScriptedChatModel,
    agent_as_tool,
    agent_executor,
    agent_graph,
    ai_calls,
    ask,
    assert_valid_history,
    counting_tool,
    drive,
    every_graph,
    every_graph_and_mode,
    listed_model,
    repeating_model,
    thread,
    tool_node_graph,
)

TWO = [("search", {"q": "a"}), ("search", {"q": "b"})]


class Report(BaseModel):
    """A structured answer."""

    text: str


def nested(inner, outer_model, host="create_agent"):
    """Make an agent that has another agent as its tool `task`."""
    return GRAPHS[host](outer_model, [agent_as_tool(inner)], checkpointer=InMemorySaver())


def as_node(ran):
    """Make a graph that has an agent as a node."""
    builder = StateGraph(MessagesState)
    builder.add_node("worker", tool_node_graph(repeating_model(), [counting_tool(ran)]))
    builder.add_edge(START, "worker")
    return builder.compile(checkpointer=InMemorySaver())


def as_executor(ran):
    """Make an agent with one of another kind in its tool."""
    executor = agent_executor(repeating_model(), [counting_tool(ran)])
    outer = counting_tool(Counter(), "task", lambda _: executor.invoke({"input": "x"})["output"])
    return agent_graph(repeating_model(("task", {})), [outer], checkpointer=InMemorySaver())


def as_deep_agent(ran):
    """Make a deep agent that gives all work to a sub-agent."""
    from deepagents import create_deep_agent

    looping = repeating_model()

    def respond(messages):
        if any("work hard" in str(m.content) for m in messages if isinstance(m, HumanMessage)):
            return looping.respond(messages)
        if any(isinstance(m, ToolMessage) for m in messages):
            return AIMessage("done")
        task = {"description": "work hard", "subagent_type": "general-purpose"}
        return ai_calls([("task", task)], 0)

    return create_deep_agent(
        model=ScriptedChatModel(respond=respond),
        tools=[counting_tool(ran)],
        checkpointer=InMemorySaver(),
    )


def as_tool(ran):
    """Make an agent that has another one as a tool."""
    return nested(
        agent_graph(repeating_model(), [counting_tool(ran)]), repeating_model(("task", {"q": "x"}))
    )


INSIDE = [(as_executor, "invoke")]  # Its tool is written for sync calls.
INSIDE += [(b, m) for b in (as_tool, as_node, as_deep_agent) for m in ("invoke", "ainvoke")]


@pytest.mark.parametrize(("build", "mode"), INSIDE)
async def test_a_loop_inside_is_asked_about_at_the_top_and_stop_ends_it_all(build, mode):
    if build is as_deep_agent:
        pytest.importorskip("deepagents")
    ran = Counter()
    graph = build(ran)
    config = thread("t", handler())
    outcome = await drive(graph, mode, ask(), config)
    assert [one.value["action_requests"][0]["name"] for one in outcome.interrupts] == ["search"]
    await drive(graph, mode, Command(resume="stop"), config)
    state = graph.get_state(config)
    assert (state.next, ran.total) == ((), 2)
    assert_valid_history(state.values["messages"])
    assert state.values["messages"][-1].content.startswith("Stopped.")


async def test_raise_inside_leaves_the_outer_history_valid():
    ran = Counter()
    graph, config = as_tool(ran), thread("t", handler(on_detected="raise"))
    with pytest.raises(LoopDetectedError):
        graph.invoke(ask(), config)
    assert_valid_history(graph.get_state(config).values["messages"])


@every_graph_and_mode
async def test_parallel_sub_agents_that_make_the_same_calls_are_counted_apart(mode, host):
    ran = Counter()
    inner = agent_graph(repeating_model(times=2), [counting_tool(ran)])
    tasks = [("task", {"q": name}) for name in "xyz"]
    graph = nested(inner, repeating_model(*tasks, times=1), host)
    assert (await drive(graph, mode, ask(), thread("t", handler()))).interrupts == ()
    assert ran.total == 6


async def test_parallel_sub_agents_that_both_loop_are_asked_about_one_by_one():
    ran = Counter()
    inner = agent_graph(repeating_model(times=3), [counting_tool(ran)])
    graph = nested(inner, repeating_model(("task", {"q": "x"}), ("task", {"q": "y"}), times=1))
    config = thread("t", handler())
    asked = graph.invoke(ask(), config)["__interrupt__"]
    assert (len(asked), ran.total) == (2, 4)
    result = graph.invoke(Command(resume={asked[0].id: "continue"}), config)
    assert [item.id for item in result["__interrupt__"]] == [asked[1].id]
    result = graph.invoke(Command(resume={asked[1].id: "continue"}), config)
    assert ran.total == 6
    assert_valid_history(result["messages"])


async def test_an_agent_that_hands_out_the_same_task_again_and_again_is_stopped():
    inner = repeating_model(times=0)
    graph = nested(agent_graph(inner, [counting_tool(Counter())]), repeating_model(("task", {})))
    question = graph.invoke(ask(), thread("t", handler()))["__interrupt__"][0].value
    assert question["action_requests"][0]["name"] == "task"
    assert len(inner.requests) == 2


async def test_a_model_inside_a_tool_is_no_user_turn():
    ran = Counter()
    helper = ScriptedChatModel(respond=lambda messages: AIMessage("a summary"))
    tool = counting_tool(ran, answer=lambda n: helper.invoke([HumanMessage(f"Page {n}")]).content)
    graph = agent_graph(repeating_model(), [tool], checkpointer=InMemorySaver())
    assert "__interrupt__" in graph.invoke(ask(), thread("t", handler()))
    assert ran.total == 2


def supervisor(route):
    """Build a worker that loops, and a boss that is asked when it is back."""
    boss = ScriptedChatModel(respond=lambda messages: AIMessage("work"))
    builder = StateGraph(MessagesState)
    builder.add_node("boss", lambda state: {"messages": [boss.invoke(state["messages"])]})
    builder.add_node("worker", tool_node_graph(repeating_model(), [counting_tool(Counter())]))
    builder.add_edge(START, "boss")
    builder.add_conditional_edges("boss", route, ["worker", END])
    builder.add_edge("worker", "boss")
    return builder.compile(checkpointer=InMemorySaver())


def test_stop_ends_each_of_the_agents_that_take_turns():
    graph = supervisor(lambda s: "worker" if s["messages"][-1].content == "work" else END)
    config = thread("t", handler())
    graph.invoke(ask(), config)
    result = graph.invoke(Command(resume="stop"), config)
    assert_valid_history(result["messages"])
    assert [m.content[:8] for m in result["messages"][-2:]] == ["Stopped."] * 2


def test_stop_ends_in_an_error_where_the_final_message_is_taken_for_no_end():
    graph, config = supervisor(lambda state: "worker"), thread("t", handler())
    graph.invoke(ask(), config)
    with pytest.raises(LoopDetectedError, match="A person stopped the run"):
        graph.invoke(Command(resume="stop"), config)


# --- Loops inside nodes, and models that are not seen -----------------------------------------


def in_a_node(ran, times, start):
    """Build a node that holds a whole agent's loop."""
    model, tool = repeating_model(times=times), counting_tool(ran)

    def worker(state):
        messages = start(state)
        while True:
            said = model.invoke(messages)
            messages.append(said)
            if not said.tool_calls:
                return {"messages": [AIMessage("done")]}
            messages += [tool.invoke(one) for one in said.tool_calls]

    builder = StateGraph(MessagesState)
    builder.add_node("worker", worker)
    return builder


def test_workers_side_by_side_in_one_graph_are_counted_apart():
    ran = Counter()
    builder = in_a_node(ran, 2, lambda state: [HumanMessage("go")])
    builder.add_conditional_edges(START, lambda state: [Send("worker", state)] * 3, ["worker"])
    graph = builder.compile(checkpointer=InMemorySaver())
    assert "__interrupt__" not in graph.invoke(ask(), thread("t", handler()))
    assert ran.total == 6


def test_a_loop_inside_one_node_is_asked_about():
    ran = Counter()
    builder = in_a_node(ran, 6, lambda state: list(state["messages"]))
    builder.add_edge(START, "worker")
    graph = builder.compile(checkpointer=InMemorySaver())
    config = thread("t", handler())
    assert len(graph.invoke(ask(), config)["__interrupt__"]) == 1
    assert ran.total == 2
    with pytest.raises(LoopDetectedError):
        # The node's code holds the open call, so there is no history to complete.
        graph.invoke(Command(resume="stop"), config)


@pytest.mark.parametrize("where", ["bound", "everywhere", "tools"])
@every_graph
def test_it_counts_once_wherever_it_is_attached(host, where):
    ran, guard, model = Counter(), handler(), repeating_model()
    tool = counting_tool(ran)
    if where != "bound":
        tool.callbacks = [guard]
    graph = GRAPHS[host](model, [tool], checkpointer=InMemorySaver())
    if where == "everywhere":
        model.callbacks = [guard]
    if where != "tools":
        graph = graph.with_config(callbacks=[guard])
    assert len(graph.invoke(ask(), thread("t"))["__interrupt__"]) == 1
    assert (ran.total, guard.stats()["checked"]) == (2, 3)
    graph.invoke(Command(resume="continue"), thread("t"))
    assert ran.total == 5


@every_graph_and_mode
async def test_on_the_tools_alone_it_asks_once_about_parallel_calls(host, mode):
    ran = Counter()
    step = [("search", {"q": name}) for name in "abc"]
    tool = counting_tool(ran, native_async=True)
    tool.callbacks = [handler()]
    graph = GRAPHS[host](listed_model(step, step, step, []), [tool], checkpointer=InMemorySaver())
    assert len((await drive(graph, mode, ask(), thread("t"))).interrupts) == 1
    assert ran.total == 6
    await drive(graph, mode, Command(resume="continue"), thread("t"))
    assert (graph.get_state(thread("t")).next, ran.total) == ((), 9)


@pytest.mark.parametrize("on_detected", ["interrupt", "raise"])
def test_an_agent_that_calls_its_model_by_other_means_is_asked_about_and_ends(on_detected):
    ran = Counter()
    builder = StateGraph(MessagesState)
    said = lambda state: {"messages": [ai_calls(TWO[:1], len(state["messages"]))]}  # noqa: E731
    builder.add_node("agent", said)
    builder.add_node("tools", ToolNode([counting_tool(ran)]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    graph = builder.compile(checkpointer=InMemorySaver())
    config = thread("t", handler(on_detected=on_detected))
    value: object = ask()
    if on_detected == "interrupt":
        assert len(graph.invoke(value, config)["__interrupt__"]) == 1
        value = Command(resume="stop")
    with pytest.raises(LoopDetectedError):  # There is no model call to end the run from.
        graph.invoke(value, config)
    assert ran.total == 2


def test_a_graph_without_messages_begins_a_turn_where_it_is_called_again():
    ran = Counter()
    tool = counting_tool(ran)
    builder = StateGraph(dict)
    builder.add_node("work", lambda state: {"said": tool.invoke({"q": "a"})})
    builder.add_edge(START, "work")
    graph, config = builder.compile(checkpointer=InMemorySaver()), thread("t", handler())
    for number in range(9):
        assert "__interrupt__" not in graph.invoke({"number": number}, config)
    assert ran.total == 9


def test_raise_ends_a_run_that_calls_no_model_again():
    ran, model = Counter(), repeating_model()
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([counting_tool(ran)]))
    builder.add_edge(START, "agent")
    builder.add_edge("agent", "tools")
    builder.add_conditional_edges(
        "tools", lambda state: END if state["messages"][-1].status == "error" else "agent"
    )
    graph = builder.compile(checkpointer=InMemorySaver())
    with pytest.raises(LoopDetectedError):
        graph.invoke(ask(), thread("t", handler(on_detected="raise")))
    assert ran.total == 2


def test_stop_ends_an_agent_that_owes_a_structured_answer():
    graph = agent_graph(
        repeating_model(),
        [counting_tool(Counter())],
        checkpointer=InMemorySaver(),
        response_format=Report,
    )
    config = thread("t", handler())
    graph.invoke(ask(), config)
    result = graph.invoke(Command(resume="stop"), config)
    assert_valid_history(result["messages"])
    assert result.get("structured_response") is None


def test_structured_answers_are_no_loop():
    # The answer comes as a tool call that no tool runs; here it is the same in each turn.
    model = ScriptedChatModel(respond=lambda messages: ai_calls([("Report", {"text": "x"})], "r"))
    graph = agent_graph(
        model,
        [counting_tool(Counter())],
        checkpointer=InMemorySaver(),
        response_format=ToolStrategy(Report),
    )
    config = thread("t", handler())
    for _ in range(6):
        assert graph.invoke(ask(), config)["structured_response"] == Report(text="x")
