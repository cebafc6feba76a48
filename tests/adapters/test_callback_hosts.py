"""Does the handler stop an agent where there is no plain graph around it?

Loops written by hand, chains, `AgentExecutor` and the functional API.
"""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from langchain_loopguard import LoopDetectedError
from tests.adapters.handled import handler
from tests.hosts import (
    Counter,
    ScriptedChatModel,
    agent_executor,
    agent_graph,
    ask,
    counting_tool,
    every_mode,
    functional_agent,
    lcel_chain,
    listed_model,
    repeating_model,
    thread,
)

both = pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
TWO = [("search", {"q": "a"}), ("search", {"q": "b"})]


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


def test_turns_that_begin_in_another_process_are_no_loop():
    ran = Counter()
    graph = agent_graph(
        repeating_model(times=1),
        [counting_tool(ran)],
        checkpointer=InMemorySaver(),
        interrupt_before=["tools"],
    )
    one, other = thread("t", handler()), thread("t", handler())
    for number in range(6):
        graph.invoke(ask(f"question {number}"), one if number else other)
        assert "__interrupt__" not in graph.invoke(None, other)
    assert ran.total == 6


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
