"""Does the handler stop an agent where there is no plain graph around it?

Chains, `AgentExecutor`, tools called by hand, the functional API, and agents inside agents.
"""

from __future__ import annotations

import pytest
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
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
every_choice = pytest.mark.parametrize("on_detected", ["interrupt", "raise", "refuse"])


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


# --- Chains and loops written by hand ---------------------------------------------------------


async def loop_by_hand(chain, config, mode="invoke", times=10):
    """Call a chain again and again, with its answers fed back."""
    messages = [HumanMessage("go")]
    for _ in range(times):
        messages += await call(chain, mode, messages, config)


async def again(runnable, value, config, mode="invoke", times=10):
    """Call anything again and again with the same input."""
    for _ in range(times):
        await call(runnable, mode, value, config)


@every_choice
@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_a_loop_by_hand_around_a_chain_ends_in_an_error(mode, on_detected):
    ran = Counter()
    chain = lcel_chain(repeating_model(), [counting_tool(ran)])
    config = {"callbacks": [handler(on_detected=on_detected, scope="handler")]}
    with pytest.raises(LoopDetectedError):
        await loop_by_hand(chain, config, mode)
    assert ran.total == 2


async def test_a_loop_by_hand_is_found_in_its_messages_too():
    # Each call of the chain is a run of its own, but the messages hold what came before.
    ran = Counter()
    chain = lcel_chain(repeating_model(), [counting_tool(ran)])
    with pytest.raises(LoopDetectedError):
        await loop_by_hand(chain, {"callbacks": [handler()]})
    assert ran.total == 2


async def test_a_history_kept_as_dicts_without_ids_counts_the_same():
    ran = Counter()
    chain = lcel_chain(repeating_model(), [counting_tool(ran)])
    config = {"callbacks": [handler(scope="handler")]}
    history = [{"role": "user", "content": "go"}]

    def step() -> None:
        message, answer = chain.invoke(history, config)
        made = {"role": "assistant", "content": "", "tool_calls": message.tool_calls}
        role = {"role": "tool", "tool_call_id": answer.tool_call_id}
        history.extend([made, {**role, "content": answer.content}])

    step()
    step()
    with pytest.raises(LoopDetectedError):
        step()
    assert ran.total == 2


async def test_a_loop_by_hand_that_feeds_nothing_back_is_found_over_the_handler():
    ran = Counter()
    chain = lcel_chain(repeating_model(), [counting_tool(ran)])
    config = {"callbacks": [handler(scope="handler")]}
    with pytest.raises(LoopDetectedError):
        await again(chain, [HumanMessage("go")], config)
    assert ran.total == 2


async def test_the_same_question_in_nine_turns_is_no_loop_over_the_handler():
    ran = Counter()
    chain = lcel_chain(repeating_model(), [counting_tool(ran)])
    config = {"callbacks": [handler(scope="handler")]}
    messages = []
    for _ in range(9):
        messages += [HumanMessage("the weather?")]
        messages += chain.invoke(messages, config)
        messages += [AIMessage("Rain.")]
    assert ran.total == 9


async def test_different_questions_without_a_history_are_different_turns():
    ran = Counter()
    chain = lcel_chain(repeating_model(), [counting_tool(ran)])
    config = {"callbacks": [handler(scope="handler")]}
    for number in range(9):
        chain.invoke([HumanMessage(f"question {number}")], config)
    assert ran.total == 9


async def test_runs_of_a_chain_are_counted_apart_by_default():
    ran = Counter()
    chain = lcel_chain(repeating_model(), [counting_tool(ran)])
    config = {"callbacks": [handler()]}
    for _ in range(9):
        chain.invoke([HumanMessage("go")], config)
    assert ran.total == 9


async def test_runs_of_a_chain_with_a_thread_id_are_counted_together():
    ran = Counter()
    chain = lcel_chain(repeating_model(), [counting_tool(ran)])
    config = {"callbacks": [handler()], "metadata": {"thread_id": "t"}}
    with pytest.raises(LoopDetectedError):
        await again(chain, [HumanMessage("go")], config)
    assert ran.total == 2


@every_choice
@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_a_loop_inside_one_chain_run_ends_in_an_error(mode, on_detected):
    # The loop is a function in the chain; the answers never come back to a model.
    ran = Counter()
    tool = counting_tool(ran)

    def work(_):
        for _ in range(9):
            tool.invoke({"q": "a"})

    async def awork(_):
        for _ in range(9):
            await tool.ainvoke({"q": "a"})

    chain = RunnableLambda(work, awork)
    with pytest.raises(LoopDetectedError):
        await call(chain, mode, "go", {"callbacks": [handler(on_detected=on_detected)]})
    assert ran.total == 2


@pytest.mark.parametrize("value", ["a", {"q": "a"}], ids=["text", "dict"])
@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_a_tool_called_by_hand_is_counted_over_the_handler(mode, value):
    ran = Counter()
    tool = counting_tool(ran)
    config = {"callbacks": [handler(scope="handler")]}
    with pytest.raises(LoopDetectedError):
        await again(tool, value, config, mode)
    assert ran.total == 2


async def test_tool_calls_by_hand_with_ids_are_counted_over_the_handler():
    ran = Counter()
    tool = counting_tool(ran)
    config = {"callbacks": [handler(scope="handler")]}
    made = {"name": "search", "args": {"q": "a"}, "type": "tool_call"}
    tool.invoke({**made, "id": "c1"}, config)
    tool.invoke({**made, "id": "c2"}, config)
    with pytest.raises(LoopDetectedError):
        tool.invoke({**made, "id": "c3"}, config)
    assert ran.total == 2


async def test_a_tool_called_by_hand_with_ever_new_answers_runs_up_to_the_ceiling():
    # The answer counts: the same call is let run fifteen times while it brings something new.
    ran = Counter()
    tool = counting_tool(ran, answer=lambda number: f"page {number}")
    config = {"callbacks": [handler(scope="handler")]}
    with pytest.raises(LoopDetectedError):
        await again(tool, {"q": "a"}, config, times=99)
    assert ran.total == 15


async def test_a_tool_called_by_hand_is_not_counted_over_runs_by_default():
    ran = Counter()
    tool = counting_tool(ran)
    for _ in range(9):
        tool.invoke({"q": "a"}, {"callbacks": [handler()]})
    assert ran.total == 9


async def test_an_error_outside_a_graph_says_what_was_found():
    tool = counting_tool(Counter())
    config = {"callbacks": [handler(scope="handler")]}
    with pytest.raises(LoopDetectedError, match=r"search 3 times.*no graph here") as error:
        await again(tool, {"q": "a"}, config)
    assert isinstance(error.value, GraphBubbleUp)


async def test_a_retried_tool_counts_once():
    # `with_retry` starts a run for each attempt.
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


# --- AgentExecutor ----------------------------------------------------------------------------


@every_choice
@every_mode
async def test_an_agent_executor_ends_in_an_error(mode, on_detected):
    ran = Counter()
    executor = agent_executor(repeating_model(), [counting_tool(ran)])
    config = {"callbacks": [handler(on_detected=on_detected)]}
    with pytest.raises(LoopDetectedError):
        await call(executor, mode, {"input": "go"}, config)
    assert ran.total == 2


async def test_parallel_calls_of_an_agent_executor_are_one_batch():
    # The executor gives the tools no call ids: they are known by name and arguments.
    ran = Counter()
    batch = [("search", {"q": "a"}), ("search", {"q": "b"})]
    executor = agent_executor(repeating_model(*batch), [counting_tool(ran)])
    with pytest.raises(LoopDetectedError) as error:
        executor.invoke({"input": "go"}, {"callbacks": [handler()]})
    assert error.value.signature.count("|") == 1
    assert ran.total == 4


async def test_answers_that_change_let_an_agent_executor_go_on():
    ran = Counter()
    tool = counting_tool(ran, answer=lambda number: f"page {number}")
    executor = agent_executor(repeating_model(times=6), [tool])
    result = executor.invoke({"input": "go"}, {"callbacks": [handler()]})
    assert result["output"] == "done"


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_an_agent_that_calls_tools_in_prose_is_stopped(mode):
    # Its prompt grows with every step, and its messages hold no tool calls at all.
    from langchain_classic.agents import AgentExecutor, create_react_agent
    from langchain_core.prompts import PromptTemplate

    ran = Counter()
    prompt = PromptTemplate.from_template(
        "Tools: {tools} {tool_names}\nQuestion: {input}\n{agent_scratchpad}"
    )
    text = "Thought: look\nAction: search\nAction Input: a"
    model: BaseChatModel = ScriptedChatModel(respond=lambda messages: AIMessage(text))
    tool = counting_tool(ran)
    executor = AgentExecutor(agent=create_react_agent(model, [tool], prompt), tools=[tool])
    with pytest.raises(LoopDetectedError):
        await call(executor, mode, {"input": "go"}, {"callbacks": [handler()]})
    assert ran.total == 2


# --- The functional API -----------------------------------------------------------------------


@every_mode
async def test_the_functional_api_asks_and_goes_on(mode):
    ran = Counter()
    batch = [("search", {"q": "a"}), ("search", {"q": "b"})]
    agent = functional_agent(
        listed_model(batch, batch, batch, []),
        [counting_tool(ran)],
        checkpointer=InMemorySaver(),
        native_async=mode.startswith("a"),
    )
    config = thread("t", handler())
    result = await call(agent, mode, [HumanMessage("go")], config)
    result = result[-1] if isinstance(result, list) else result
    assert len(result["__interrupt__"]) == 1
    assert ran.total == 4
    assert len(agent.get_state(config).interrupts) == 1
    await call(agent, mode, Command(resume="continue"), config)
    assert ran.total == 6
    assert agent.get_state(config).next == ()


async def test_a_stop_in_the_functional_api_ends_in_an_error():
    ran = Counter()
    agent = functional_agent(repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver())
    config = thread("t", handler())
    agent.invoke([HumanMessage("go")], config)
    with pytest.raises(LoopDetectedError, match="A person stopped the run"):
        agent.invoke(Command(resume="stop"), config)
    assert ran.total == 2


@pytest.mark.parametrize("on_detected", ["raise", "refuse"])
async def test_the_functional_api_ends_in_an_error_where_nobody_is_asked(on_detected):
    ran = Counter()
    agent = functional_agent(repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver())
    with pytest.raises(LoopDetectedError):
        agent.invoke([HumanMessage("go")], thread("t", handler(on_detected=on_detected)))
    assert ran.total == 2


# --- Agents inside agents ---------------------------------------------------------------------


def nested(inner, outer_model, host="create_agent"):
    """Make an agent that has another agent as its tool `task`."""
    return GRAPHS[host](outer_model, [agent_as_tool(inner)], checkpointer=InMemorySaver())


@every_mode
async def test_a_loop_inside_a_sub_agent_is_asked_about_at_the_top(mode):
    ran = Counter()
    inner = agent_graph(repeating_model(), [counting_tool(ran)])
    graph = nested(inner, repeating_model(("task", {"q": "x"}), times=1))
    config = thread("t", handler())
    outcome = await drive(graph, mode, ask(), config)
    assert len(outcome.interrupts) == 1
    assert outcome.interrupts[0].value["action_requests"][0]["name"] == "search"
    assert ran.total == 2


@every_mode
async def test_stop_inside_a_sub_agent_ends_the_whole_run_validly(mode):
    ran = Counter()
    inner = agent_graph(repeating_model(), [counting_tool(ran)])
    outer_model = repeating_model(("task", {"q": "x"}))
    graph = nested(inner, outer_model)
    config = thread("t", handler())
    await drive(graph, mode, ask(), config)
    await drive(graph, mode, Command(resume="stop"), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert graph.get_state(config).next == ()
    assert messages[-1].content.startswith("Stopped.")
    assert len(outer_model.requests) == 1
    assert ran.total == 2


@every_mode
async def test_raise_inside_a_sub_agent_leaves_the_outer_history_valid(mode):
    ran = Counter()
    inner = agent_graph(repeating_model(), [counting_tool(ran)])
    graph = nested(inner, repeating_model(("task", {"q": "x"})))
    config = thread("t", handler(on_detected="raise"))
    with pytest.raises(LoopDetectedError):
        await drive(graph, mode, ask(), config)
    assert_valid_history(graph.get_state(config).values["messages"])
    assert ran.total == 2


async def test_continue_inside_a_sub_agent_goes_on_there():
    ran = Counter()
    inner = agent_graph(repeating_model(times=4), [counting_tool(ran)])
    graph = nested(inner, repeating_model(("task", {"q": "x"}), times=1))
    config = thread("t", handler())
    graph.invoke(ask(), config)
    result = graph.invoke(Command(resume="continue"), config)
    assert_valid_history(result["messages"])
    assert result["messages"][-1].content == "done"
    assert ran.total == 4


@pytest.mark.parametrize("host", GRAPHS)
@every_mode
async def test_parallel_sub_agents_that_make_the_same_calls_are_counted_apart(mode, host):
    # Their tool call ids are equal, too.
    ran = Counter()
    inner = agent_graph(repeating_model(times=2), [counting_tool(ran)])
    tasks = [("task", {"q": "x"}), ("task", {"q": "y"}), ("task", {"q": "z"})]
    graph = nested(inner, repeating_model(*tasks, times=1), host)
    outcome = await drive(graph, mode, ask(), thread("t", handler()))
    assert outcome.interrupts == ()
    assert ran.total == 6


async def test_parallel_sub_agents_that_both_loop_are_asked_about_one_by_one():
    ran = Counter()
    inner = agent_graph(repeating_model(times=3), [counting_tool(ran)])
    tasks = [("task", {"q": "x"}), ("task", {"q": "y"})]
    graph = nested(inner, repeating_model(*tasks, times=1))
    config = thread("t", handler())
    asked = graph.invoke(ask(), config)["__interrupt__"]
    assert len(asked) == 2
    assert ran.total == 4
    result = graph.invoke(Command(resume={asked[0].id: "continue"}), config)
    assert ran.total == 5
    assert [item.id for item in result["__interrupt__"]] == [asked[1].id]
    result = graph.invoke(Command(resume={asked[1].id: "continue"}), config)
    assert ran.total == 6
    assert_valid_history(result["messages"])


@every_mode
async def test_an_agent_that_hands_out_the_same_task_again_and_again_is_stopped(mode):
    inner_model = repeating_model(times=0)
    inner = agent_graph(inner_model, [counting_tool(Counter())])
    graph = nested(inner, repeating_model(("task", {"q": "x"})))
    outcome = await drive(graph, mode, ask(), thread("t", handler()))
    assert outcome.interrupts[0].value["action_requests"][0]["name"] == "task"
    assert len(inner_model.requests) == 2


async def test_a_model_inside_a_tool_is_no_user_turn():
    # A tool that asks a model sends it a human message; the loop around it goes on all the same.
    ran = Counter()
    helper = ScriptedChatModel(respond=lambda messages: AIMessage("a summary"))

    def body(number: int) -> str:
        return helper.invoke([HumanMessage(f"Summarise {number}")]).content

    tool = counting_tool(ran, answer=body)
    graph = agent_graph(repeating_model(), [tool], checkpointer=InMemorySaver())
    result = graph.invoke(ask(), thread("t", handler()))
    assert "__interrupt__" in result
    assert ran.total == 2


async def test_an_agent_of_another_kind_inside_a_tool_is_counted_on_its_own():
    ran = Counter()
    executor = agent_executor(repeating_model(times=2), [counting_tool(ran)])
    outer = counting_tool(Counter(), "task", lambda _: executor.invoke({"input": "x"})["output"])
    batch = [("task", {"q": "x"}), ("task", {"q": "y"}), ("task", {"q": "z"})]
    graph = agent_graph(listed_model(*[[one] for one in batch]), [outer])
    result = graph.invoke(ask(), {"callbacks": [handler()]})
    assert result["messages"][-1].content == "done"
    assert ran.total == 6


async def test_a_loop_of_another_kind_of_agent_inside_a_tool_ends_the_run_validly():
    ran = Counter()
    executor = agent_executor(repeating_model(), [counting_tool(ran)])
    outer = counting_tool(Counter(), "task", lambda _: executor.invoke({"input": "x"})["output"])
    graph = agent_graph(repeating_model(("task", {})), [outer], checkpointer=InMemorySaver())
    config = thread("t", handler())
    # It runs inside the graph's task, so a person can be asked, too.
    assert len(graph.invoke(ask(), config)["__interrupt__"]) == 1
    graph.invoke(Command(resume="stop"), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert messages[-1].content.startswith("Stopped.")


@every_mode
async def test_a_subgraph_that_is_a_node_asks_and_stops(mode):
    ran = Counter()
    inner = tool_node_graph(repeating_model(), [counting_tool(ran)])
    builder = StateGraph(MessagesState)
    builder.add_node("worker", inner)
    builder.add_edge(START, "worker")
    graph = builder.compile(checkpointer=InMemorySaver())
    config = thread("t", handler())
    outcome = await drive(graph, mode, ask(), config)
    assert len(outcome.interrupts) == 1
    await drive(graph, mode, Command(resume="stop"), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert messages[-1].content.startswith("Stopped.")
    assert ran.total == 2


async def test_stop_ends_each_of_the_agents_that_take_turns():
    # A supervisor calls its model again when the worker is back.
    ran = Counter()
    worker = tool_node_graph(repeating_model(), [counting_tool(ran)])
    boss = ScriptedChatModel(respond=lambda messages: AIMessage("work"))

    def supervisor(state: MessagesState):
        return {"messages": [boss.invoke(state["messages"])]}

    def route(state: MessagesState) -> str:
        return "worker" if state["messages"][-1].content == "work" else END

    builder = StateGraph(MessagesState)
    builder.add_node("supervisor", supervisor)
    builder.add_node("worker", worker)
    builder.add_edge(START, "supervisor")
    builder.add_conditional_edges("supervisor", route, ["worker", END])
    builder.add_edge("worker", "supervisor")
    graph = builder.compile(checkpointer=InMemorySaver())
    config = thread("t", handler())
    graph.invoke(ask(), config)
    result = graph.invoke(Command(resume="stop"), config)
    assert_valid_history(result["messages"])
    assert [m.content[:8] for m in result["messages"][-2:]] == ["Stopped."] * 2
    assert len(boss.requests) == 1


async def test_stop_ends_in_an_error_where_the_last_word_is_taken_for_no_end():
    ran = Counter()
    model = repeating_model()

    def agent(state: MessagesState):
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([counting_tool(ran)]))
    builder.add_edge(START, "agent")
    builder.add_edge("agent", "tools")
    builder.add_edge("tools", "agent")
    graph = builder.compile(checkpointer=InMemorySaver())
    config = thread("t", handler())
    graph.invoke(ask(), config)
    with pytest.raises(LoopDetectedError, match="A person stopped the run"):
        graph.invoke(Command(resume="stop"), config)
    assert ran.total == 2


async def test_deep_agents_are_guarded_inside_their_sub_agents():
    # Middleware of the main agent is not applied there; a callback is.
    from deepagents import create_deep_agent

    ran = Counter()
    looping = repeating_model()

    def respond(messages):
        if any("work hard" in str(m.content) for m in messages if isinstance(m, HumanMessage)):
            return looping.respond(messages)
        if any(isinstance(m, ToolMessage) for m in messages):
            return AIMessage("done")
        task = {"description": "work hard", "subagent_type": "general-purpose"}
        return ai_calls([("task", task)], 0)

    graph = create_deep_agent(
        model=ScriptedChatModel(respond=respond),
        tools=[counting_tool(ran)],
        checkpointer=InMemorySaver(),
    )
    config = thread("t", handler())
    result = graph.invoke(ask(), config)
    assert result["__interrupt__"][0].value["action_requests"][0]["name"] == "search"
    assert ran.total == 2
    graph.invoke(Command(resume="stop"), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert messages[-1].content.startswith("Stopped.")
    assert ran.total == 2


async def test_workers_side_by_side_in_one_graph_are_counted_apart():
    # Each worker is a node with a loop of its own in it; all of them make the same first call.
    ran = Counter()
    tool = counting_tool(ran, answer="ok")
    model = repeating_model(times=2)

    def worker(state):
        messages = [HumanMessage("go")]
        while True:
            answer = model.invoke(messages)
            messages.append(answer)
            if not answer.tool_calls:
                return {"messages": [AIMessage("done")]}
            messages += [tool.invoke(call) for call in answer.tool_calls]

    builder = StateGraph(MessagesState)
    builder.add_node("worker", worker)
    builder.add_conditional_edges(START, lambda state: [Send("worker", state)] * 3, ["worker"])
    graph = builder.compile(checkpointer=InMemorySaver())
    result = graph.invoke(ask(), thread("t", handler()))
    assert "__interrupt__" not in result
    assert ran.total == 6


async def test_a_loop_inside_one_node_is_asked_about():
    ran = Counter()
    tool = counting_tool(ran)
    model = repeating_model(times=6)

    def worker(state):
        messages = list(state["messages"])
        while True:
            answer = model.invoke(messages)
            messages.append(answer)
            if not answer.tool_calls:
                return {"messages": [AIMessage("done")]}
            messages += [tool.invoke(call) for call in answer.tool_calls]

    builder = StateGraph(MessagesState)
    builder.add_node("worker", worker)
    builder.add_edge(START, "worker")
    graph = builder.compile(checkpointer=InMemorySaver())
    config = thread("t", handler())
    assert len(graph.invoke(ask(), config)["__interrupt__"]) == 1
    assert ran.total == 2
    with pytest.raises(LoopDetectedError):
        # The node's code holds the open call, so there is no history to complete.
        graph.invoke(Command(resume="stop"), config)


@pytest.mark.parametrize("host", GRAPHS)
async def test_a_handler_that_is_bound_to_the_graph_works_the_same(host):
    ran = Counter()
    graph = GRAPHS[host](repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver())
    bound = graph.with_config(callbacks=[handler()])
    assert len(bound.invoke(ask(), thread("t"))["__interrupt__"]) == 1
    bound.invoke(Command(resume="stop"), thread("t"))
    assert_valid_history(graph.get_state(thread("t")).values["messages"])


@pytest.mark.parametrize("host", GRAPHS)
async def test_a_handler_that_is_attached_three_times_counts_once(host):
    ran = Counter()
    guard = handler()
    model = repeating_model(times=2)
    model.callbacks = [guard]
    tool = counting_tool(ran)
    tool.callbacks = [guard]
    graph = GRAPHS[host](model, [tool], checkpointer=InMemorySaver())
    result = graph.with_config(callbacks=[guard]).invoke(ask(), thread("t", guard))
    assert result["messages"][-1].content == "done"
    assert ran.total == 2


@pytest.mark.parametrize("host", GRAPHS)
async def test_a_handler_on_the_tools_alone_finds_the_loop_in_the_state(host):
    ran = Counter()
    tool = counting_tool(ran)
    tool.callbacks = [handler()]
    graph = GRAPHS[host](repeating_model(), [tool], checkpointer=InMemorySaver())
    assert len(graph.invoke(ask(), thread("t"))["__interrupt__"]) == 1
    assert ran.total == 2
    graph.invoke(Command(resume="continue"), thread("t"))
    assert ran.total == 5


# --- Agents whose model or end is not seen ----------------------------------------------------


def graph_without_a_chat_model(ran: Counter, *, after_tools: str = "agent"):
    """Build an agent that calls its model by other means than LangChain."""

    def agent(state: MessagesState):
        return {"messages": [ai_calls([("search", {"q": "a"})], len(state["messages"]))]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([counting_tool(ran)]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", after_tools)
    return builder.compile(checkpointer=InMemorySaver())


@every_mode
async def test_an_agent_that_calls_its_model_by_other_means_is_asked_about(mode):
    ran = Counter()
    graph = graph_without_a_chat_model(ran)
    config = thread("t", handler())
    outcome = await drive(graph, mode, ask(), config)
    assert len(outcome.interrupts) == 1
    assert ran.total == 2


@pytest.mark.parametrize("on_detected", ["interrupt", "raise"])
async def test_an_agent_that_calls_its_model_by_other_means_really_ends(on_detected):
    # There is no model call to end the run from, so its next tool call does.
    ran = Counter()
    graph = graph_without_a_chat_model(ran)
    config = thread("t", handler(on_detected=on_detected))
    value = ask()
    if on_detected == "interrupt":
        graph.invoke(value, config)
        value = Command(resume="stop")
    with pytest.raises(LoopDetectedError):
        graph.invoke(value, config)
    assert ran.total == 2


async def test_raise_is_raised_at_the_end_of_a_run_without_another_model_call():
    ran = Counter()
    graph = graph_without_a_chat_model(ran, after_tools=END)
    config = thread("t", handler(on_detected="raise"))
    graph.invoke({"messages": []}, config)
    graph.invoke({"messages": []}, config)
    with pytest.raises(LoopDetectedError):
        graph.invoke({"messages": []}, config)
    assert ran.total == 2
    assert_valid_history(graph.get_state(config).values["messages"])


async def test_stop_ends_an_agent_that_owes_a_structured_answer():
    ran = Counter()
    graph = agent_graph(
        repeating_model(),
        [counting_tool(ran)],
        checkpointer=InMemorySaver(),
        response_format=Report,
    )
    config = thread("t", handler())
    graph.invoke(ask(), config)
    result = graph.invoke(Command(resume="stop"), config)
    assert_valid_history(result["messages"])
    assert result["structured_response"] is None
    assert ran.total == 2


async def test_structured_answers_of_an_agent_are_no_loop():
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


@every_mode
@pytest.mark.parametrize("host", GRAPHS)
async def test_a_handler_on_the_tools_alone_asks_once_about_parallel_calls(host, mode):
    ran = Counter()
    batch = [("search", {"q": "a"}), ("search", {"q": "b"}), ("search", {"q": "c"})]
    tool = counting_tool(ran, native_async=True)
    tool.callbacks = [handler()]
    graph = GRAPHS[host](
        listed_model(batch, batch, batch, []), [tool], checkpointer=InMemorySaver()
    )
    outcome = await drive(graph, mode, ask(), thread("t"))
    assert len(outcome.interrupts) == 1
    assert ran.total == 6
    await drive(graph, mode, Command(resume="continue"), thread("t"))
    assert graph.get_state(thread("t")).next == ()
    assert ran.total == 9
