"""Does the handler stop an agent where there is no plain graph around it?

Loops written by hand, chains, `AgentExecutor`, the functional API, and agents inside agents.
"""

from __future__ import annotations

import pytest
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send
from pydantic import BaseModel

from langchain_loopguard import LoopDetectedError, LoopGuardCallbackHandler, LoopGuardPolicy
from tests.hosts import (
    GRAPHS,
    MODES,
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
    functional_agent,
    lcel_chain,
    listed_model,
    repeating_model,
    thread,
    tool_node_graph,
)

SEED = LoopGuardPolicy.seed()
every_mode = pytest.mark.parametrize("mode", MODES)
every_graph = pytest.mark.parametrize("host", GRAPHS)
both = pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
TWO = [("search", {"q": "a"}), ("search", {"q": "b"})]


class Report(BaseModel):
    """A structured answer."""

    text: str


def handler(**options) -> LoopGuardCallbackHandler:
    """Make a handler that hides none of its own faults."""
    return LoopGuardCallbackHandler(SEED, **{"fail_open": False, **options})


async def call(runnable, mode, value, config):
    """Run anything in one of `MODES`."""
    if mode == "invoke":
        return runnable.invoke(value, config)
    if mode == "ainvoke":
        return await runnable.ainvoke(value, config)
    if mode == "stream":
        return list(runnable.stream(value, config))
    return [chunk async for chunk in runnable.astream(value, config)]


# --- Loops written by hand --------------------------------------------------------------------


async def model_and_tool(mode, ran, config, feed):
    """Call the model and then its tool, without anything around them."""
    model, tool = repeating_model(), counting_tool(ran)
    messages = [HumanMessage("go")]
    for _ in range(9):
        said = await call(model, mode, messages, config)
        (made,) = said.tool_calls
        given = await call(tool, mode, made if feed == "messages" else made["args"], config)
        answer = given if feed == "messages" else ToolMessage(given, tool_call_id=made["id"])
        messages += [said, answer]


async def chain(mode, ran, config, feed):
    """Call a chain of the model and the tool."""
    made = lcel_chain(repeating_model(), [counting_tool(ran)])
    messages = [HumanMessage("go")]
    for _ in range(9):
        given = await call(made, mode, messages, config)
        if feed == "dicts":
            said, answer = given
            messages += [
                {"role": "assistant", "content": "", "tool_calls": said.tool_calls},
                {"role": "tool", "tool_call_id": answer.tool_call_id, "content": answer.content},
            ]
        else:
            messages += given if feed == "messages" else []


async def tool_alone(mode, ran, config, feed):
    """Call the tool only, as a text, a dict or a tool call."""
    tool = counting_tool(ran)
    for number in range(9):
        made = {"name": "search", "args": {"q": "a"}, "type": "tool_call", "id": f"c{number}"}
        value = {"text": "a", "dict": {"q": "a"}, "call": made}[feed]
        await call(tool, mode, value, config)


async def in_one_run(mode, ran, config, feed):
    """Call the tool in a loop inside one run of a chain."""
    tool = counting_tool(ran)

    async def work(_):
        for _ in range(9):
            await tool.ainvoke({"q": "a"})

    def work_sync(_):
        for _ in range(9):
            tool.invoke({"q": "a"})

    await call(RunnableLambda(work_sync, work), mode, feed, config)


THREAD = {"configurable": {"thread_id": "t"}}
LOOPS = [
    # loop, how it feeds results back, scope, more of the config, whether it is found
    (model_and_tool, "messages", "thread", {}, True),
    (model_and_tool, "content", "thread", {}, True),
    (chain, "messages", "thread", {}, True),
    (chain, "messages", "handler", {}, True),
    (chain, "dicts", "handler", {}, True),
    (chain, "nothing", "handler", {}, True),
    (chain, "nothing", "thread", THREAD, True),
    (chain, "nothing", "thread", {"metadata": {"thread_id": "a group of threads"}}, False),
    (chain, "nothing", "thread", {}, False),
    (tool_alone, "text", "handler", {}, True),
    (tool_alone, "dict", "handler", {}, True),
    (tool_alone, "call", "handler", {}, True),
    (tool_alone, "dict", "thread", {}, False),
    (in_one_run, "nothing", "thread", {}, True),
]


@pytest.mark.parametrize("on_detected", ["interrupt", "raise", "refuse"])
@pytest.mark.parametrize(("loop", "feed", "scope", "more", "found"), LOOPS)
@both
async def test_a_loop_by_hand_ends_in_an_error_right_before_the_tool_runs(
    mode, loop, feed, scope, more, found, on_detected
):
    ran = Counter()
    config = {"callbacks": [handler(on_detected=on_detected, scope=scope)], **more}
    if not found:
        await loop(mode, ran, config, feed)
        assert ran.total == 9
        return
    with pytest.raises(LoopDetectedError, match="search 3 times") as error:
        await loop(mode, ran, config, feed)
    assert ran.total == 2
    assert (error.value.tools, error.value.count) == (("search",), 3)
    cure = {"interrupt": "no graph here", "raise": "'refuse'", "refuse": "This call was not run."}
    assert cure[on_detected] in str(error.value)


def test_loops_by_hand_of_many_users_on_one_handler_are_counted_apart():
    config = {"callbacks": [handler(on_detected="raise")]}
    ran, model = Counter(), repeating_model()
    tool = counting_tool(ran)
    users = [[HumanMessage("go")] for _ in range(5)]
    for _ in range(2):
        said = [model.invoke(messages, config) for messages in users]
        for messages, one in zip(users, said, strict=True):
            messages += [one, tool.invoke(one.tool_calls[0], config)]
    assert ran.total == 10
    said = model.invoke(users[0], config)
    with pytest.raises(LoopDetectedError):
        tool.invoke(said.tool_calls[0], config)


def test_warnings_in_a_loop_by_hand_stand_in_the_request_only():
    config = {"callbacks": [handler(on_detected="warn")]}
    model, tool, messages = repeating_model(), counting_tool(Counter()), [HumanMessage("go")]
    for _ in range(5):
        said = model.invoke(messages, config)
        messages += [said, tool.invoke(said.tool_calls[0], config)]
    assert "[Warning" in str(model.requests[-1])
    assert "[Warning" not in str(messages)


@pytest.mark.parametrize("same", [True, False], ids=["with its history", "new questions"])
def test_turns_of_a_user_are_no_loop(same):
    ran = Counter()
    made = lcel_chain(repeating_model(), [counting_tool(ran)])
    config = {"callbacks": [handler(scope="handler")]}
    messages: list = []
    for number in range(9):
        text = "the weather?" if same else f"question {number}"
        messages = [*(messages if same else []), HumanMessage(text)]
        messages += [*made.invoke(messages, config), AIMessage("Rain.")]
    assert ran.total == 9


def test_turns_of_a_user_within_one_run_are_no_loop():
    # Nothing has an id, and one session holds all turns: only a new text tells of one.
    ran = Counter()
    made = lcel_chain(repeating_model(), [counting_tool(ran)])

    def work(_):
        for number in range(9):
            made.invoke([HumanMessage(f"question {number}")])

    RunnableLambda(work).invoke(None, {"callbacks": [handler()]})
    assert ran.total == 9


async def test_a_retried_tool_counts_once():
    ran = Counter()

    def fails_twice(number: int) -> str:
        if number % 3:
            raise ConnectionError("reset")
        return "ok"

    tool = counting_tool(ran, answer=fails_twice).with_retry(
        stop_after_attempt=3, wait_exponential_jitter=False
    )
    config = {"callbacks": [handler(scope="handler")]}
    assert [tool.invoke({"q": "a"}, config) for _ in range(2)] == ["ok", "ok"]
    with pytest.raises(LoopDetectedError):
        tool.invoke({"q": "a"}, config)
    assert ran.total == 6


# --- AgentExecutor and the functional API -----------------------------------------------------


def prose_executor(ran):
    """Build an agent whose messages hold no tool calls at all."""
    from langchain_classic.agents import AgentExecutor, create_react_agent

    prompt = PromptTemplate.from_template(
        "Tools: {tools} {tool_names}\nQuestion: {input}\n{agent_scratchpad}"
    )
    text = "Thought: look\nAction: search\nAction Input: a"
    model = ScriptedChatModel(respond=lambda messages: AIMessage(text))
    tool = counting_tool(ran)
    return AgentExecutor(agent=create_react_agent(model, [tool], prompt), tools=[tool])


EXECUTORS = [
    (lambda ran: agent_executor(repeating_model(), [counting_tool(ran)]), 2),
    (lambda ran: agent_executor(repeating_model(*TWO), [counting_tool(ran)]), 4),
    (prose_executor, 2),
]


@pytest.mark.parametrize(("build", "runs"), EXECUTORS, ids=["one", "parallel", "prose"])
@every_mode
async def test_an_agent_executor_ends_in_an_error(mode, build, runs):
    ran = Counter()
    with pytest.raises(LoopDetectedError) as error:
        await call(build(ran), mode, {"input": "go"}, {"callbacks": [handler()]})
    assert ran.total == runs
    assert isinstance(error.value, GraphBubbleUp)


async def test_results_that_change_let_an_agent_executor_go_on():
    tool = counting_tool(Counter(), answer=lambda number: f"page {number}")
    executor = agent_executor(repeating_model(times=6), [tool])
    assert executor.invoke({"input": "go"}, {"callbacks": [handler()]})["output"] == "done"


@every_mode
async def test_the_functional_api_asks_and_goes_on(mode):
    ran = Counter()
    agent = functional_agent(
        listed_model(TWO, TWO, TWO, []),
        [counting_tool(ran)],
        checkpointer=InMemorySaver(),
        native_async=mode.startswith("a"),
    )
    config = thread("t", handler())
    await call(agent, mode, [HumanMessage("go")], config)
    assert ran.total == 4
    assert len(agent.get_state(config).interrupts) == 1
    await call(agent, mode, Command(resume="continue"), config)
    assert ran.total == 6
    assert agent.get_state(config).next == ()


@pytest.mark.parametrize("on_detected", ["interrupt", "raise", "refuse"])
async def test_an_end_in_the_functional_api_is_an_error(on_detected):
    ran = Counter()
    agent = functional_agent(repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver())
    config = thread("t", handler(on_detected=on_detected))
    value: object = [HumanMessage("go")]
    if on_detected == "interrupt":
        agent.invoke(value, config)
        value = Command(resume="stop")
    with pytest.raises(LoopDetectedError):
        agent.invoke(value, config)
    assert ran.total == 2


# --- Agents inside agents ---------------------------------------------------------------------


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


@every_graph
@every_mode
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


@every_mode
@every_graph
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
    assert result["structured_response"] is None


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
