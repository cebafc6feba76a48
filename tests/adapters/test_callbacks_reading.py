"""Does the handler count what ran, once each, and nothing else?"""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, trim_messages
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from langchain_loopguard import LoopDetectedError, LoopGuardCallbackHandler, LoopGuardPolicy
from langchain_loopguard.callbacks.marks import WITHHELD
from langchain_loopguard.messages import NOTICE_MARK
from tests.hosts import (
    GRAPHS,
    MODES,
    Counter,
    ScriptedChatModel,
    agent_as_tool,
    agent_graph,
    ai_calls,
    ask,
    assert_valid_history,
    counting_tool,
    drive,
    lcel_chain,
    listed_model,
    repeating_model,
    thread,
    tool_node_graph,
)

SEED = LoopGuardPolicy.seed()
every_graph = pytest.mark.parametrize("host", GRAPHS)
every_mode = pytest.mark.parametrize("mode", MODES)


def handler(**options) -> LoopGuardCallbackHandler:
    """Make a handler that hides none of its own faults."""
    return LoopGuardCallbackHandler(SEED, **{"fail_open": False, **options})


# --- User turns -------------------------------------------------------------------------------


@every_mode
@every_graph
async def test_the_same_call_in_nine_user_turns_is_no_loop(host, mode):
    ran = Counter()
    graph = GRAPHS[host](
        repeating_model(times=1), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    config = thread("t", handler())
    for _ in range(9):
        outcome = await drive(graph, mode, ask("the same question"), config)
        assert outcome.interrupts == ()
    assert ran.total == 9


@every_graph
async def test_a_summary_is_no_user_turn(host):
    # Summaries are human messages that a framework wrote; they replace the history, too.
    ran = Counter()
    summary = AIMessage("They searched.", additional_kwargs={})
    asked = []

    def respond(messages):
        if "summary" in str(messages[-1].content).lower() and messages[-1].type != "tool":
            return summary
        asked.append(messages)
        return ai_calls([("search", {"q": "a"})], len(asked))

    model = ScriptedChatModel(respond=respond)
    if host == "create_agent":
        middleware = SummarizationMiddleware(model, trigger=("messages", 4), keep=("messages", 2))
        graph = agent_graph(
            model, [counting_tool(ran)], checkpointer=InMemorySaver(), middleware=[middleware]
        )
        result = graph.invoke(ask(), thread("t", handler()))
    else:
        graph = tool_node_graph(model, [counting_tool(ran)], checkpointer=InMemorySaver())
        config = thread("t", handler())
        graph.invoke(ask(), config)
        marked = HumanMessage("A summary", additional_kwargs={"lc_source": "summarization"})
        graph.invoke(Command(resume="continue", update={"messages": [marked]}), config)
        result = graph.invoke(None, config)
    assert "__interrupt__" in result
    assert ran.total <= 5


@every_mode
async def test_a_trimmed_prompt_hides_no_loop(mode):
    # The model is sent the last two messages only, without the human one.
    ran = Counter()
    tools = [counting_tool(ran)]
    inner = repeating_model()

    def respond(messages):
        kept = trim_messages(messages, max_tokens=2, token_counter=len, strategy="last")
        del kept
        return inner.respond(messages)

    model = ScriptedChatModel(respond=respond)

    def agent(state: MessagesState) -> dict[str, Any]:
        made = sum(isinstance(m, AIMessage) for m in state["messages"])
        answer = model.invoke(state["messages"][-2:])
        calls = [{**c, "id": f"{c['id']}_{made}"} for c in answer.tool_calls]
        return {"messages": [answer.model_copy(update={"tool_calls": calls})]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    graph = builder.compile(checkpointer=InMemorySaver())
    outcome = await drive(graph, mode, ask(), thread("t", handler()))
    assert len(outcome.interrupts) == 1
    assert ran.total == 2


def graph_with_a_side_question(model, side, tools):
    """Build agent, tools and a node that asks a model something on the side after each step."""

    def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def judge(state: MessagesState) -> dict[str, Any]:
        side.invoke([*state["messages"], HumanMessage("Is this going well?")])
        side.invoke([HumanMessage("Which way?")])
        return {}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("judge", judge)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "judge")
    builder.add_edge("judge", "agent")
    return builder.compile(checkpointer=InMemorySaver())


async def test_a_question_on_the_side_is_no_user_turn():
    ran = Counter()
    side = ScriptedChatModel(respond=lambda messages: AIMessage("fine"))
    graph = graph_with_a_side_question(repeating_model(), side, [counting_tool(ran)])
    assert "__interrupt__" in graph.invoke(ask(), thread("t", handler()))
    assert ran.total == 2


async def test_structured_answers_on_the_side_are_no_tool_calls():
    # A router that answers with the same tool call each time runs no tool.
    ran = Counter()
    side = ScriptedChatModel(respond=lambda messages: ai_calls([("Route", {"to": "a"})], "r"))
    pages = [[("search", {"q": str(number)})] for number in range(8)]
    graph = graph_with_a_side_question(listed_model(*pages), side, [counting_tool(ran)])
    assert "__interrupt__" not in graph.invoke(ask(), thread("t", handler()))
    assert ran.total == 8


def loop_by_hand(model, tools, between):
    """Build a loop around a chain; messages have no ids, `between` is done after each step."""
    chain = lcel_chain(model, tools)

    def work(question: str):
        messages = [HumanMessage(question)]
        while not isinstance(messages[-1], AIMessage):
            said, *answers = chain.invoke(messages)
            messages += [said.model_copy(update={"id": None}), *answers]
            between(len(messages))
        return messages

    return work


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(AIMessage("fine"), id="words"),
        pytest.param(ai_calls([("Grade", {"good": True})], "g"), id="a structured answer"),
    ],
)
def test_a_question_on_the_side_of_a_loop_by_hand_is_no_user_turn(answer):
    ran, told = Counter(), []
    side = ScriptedChatModel(respond=lambda _: answer)
    guard = handler(on_detected="warn", notify=told.append)
    work = loop_by_hand(
        repeating_model(times=5),
        [counting_tool(ran)],
        lambda step: side.invoke([HumanMessage(f"Is step {step} fine?")]),
    )
    RunnableLambda(work).invoke("go", {"callbacks": [guard]})
    assert ran.total == 5
    assert [decision.findings[0].count for decision in told] == [3, 4, 5]


def test_a_new_question_in_a_loop_by_hand_is_a_user_turn():
    ran = Counter()
    guard = handler(on_detected="raise")
    work = loop_by_hand(repeating_model(times=2), [counting_tool(ran)], lambda _: None)
    turns = RunnableLambda(lambda questions: [work(question) for question in questions])
    turns.invoke(["one", "two", "three"], {"callbacks": [guard]})
    assert ran.total == 6
    with pytest.raises(LoopDetectedError):
        turns.invoke(["one", "one"], {"callbacks": [guard]})


async def test_a_history_without_message_ids_counts_the_same():
    class Plain(TypedDict):
        messages: Annotated[list, operator.add]

    ran = Counter()
    model = repeating_model()

    def agent(state: Plain) -> dict[str, Any]:
        answer = model.invoke(state["messages"])
        return {"messages": [answer.model_copy(update={"id": None})]}

    builder = StateGraph(Plain)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([counting_tool(ran)]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    graph = builder.compile(checkpointer=InMemorySaver())
    assert "__interrupt__" in graph.invoke(ask(), thread("t", handler()))
    assert ran.total == 2


@every_graph
async def test_call_ids_that_start_anew_each_turn_are_no_repeats(host):
    ran = Counter()

    def respond(messages):
        steps = sum(isinstance(m, AIMessage) for m in messages)
        if steps == 9:
            return AIMessage("done")
        return ai_calls([("search", {"q": str(steps)})], "again")

    graph = GRAPHS[host](
        ScriptedChatModel(respond=respond), [counting_tool(ran)], checkpointer=InMemorySaver()
    )
    result = graph.invoke(ask(), thread("t", handler()))
    assert result["messages"][-1].content == "done"
    assert ran.total == 9


@every_graph
async def test_repeats_whose_call_ids_are_all_the_same_are_found(host):
    ran = Counter()
    model = ScriptedChatModel(respond=lambda _: ai_calls([("search", {"q": "a"})], "again"))
    graph = GRAPHS[host](model, [counting_tool(ran)], checkpointer=InMemorySaver())
    config = thread("t", handler())
    assert "__interrupt__" in graph.invoke(ask(), config)
    assert ran.total == 2
    assert "__interrupt__" in graph.invoke(Command(resume="continue"), config)
    assert ran.total == 5


async def test_another_messages_key_can_be_named():
    class Talk(TypedDict):
        talk: Annotated[list, add_messages]

    ran = Counter()
    model = repeating_model()

    def agent(state: Talk) -> dict[str, Any]:
        return {"talk": [model.invoke(state["talk"])]}

    builder = StateGraph(Talk)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([counting_tool(ran)], messages_key="talk"))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", lambda s: tools_condition(s, messages_key="talk"))
    builder.add_edge("tools", "agent")
    graph = builder.compile(checkpointer=InMemorySaver())
    config = thread("t", handler(messages_key="talk"))
    assert "__interrupt__" in graph.invoke({"talk": [HumanMessage("go")]}, config)
    graph.invoke(Command(resume="stop"), config)
    talk = graph.get_state(config).values["talk"]
    assert_valid_history(talk)
    assert talk[-1].content.startswith("Stopped.")
    assert ran.total == 2


# --- Answers ----------------------------------------------------------------------------------


@every_mode
@every_graph
async def test_answers_that_change_let_the_agent_go_on(host, mode):
    tools = [counting_tool(Counter(), answer=lambda number: f"page {number}")]
    graph = GRAPHS[host](repeating_model(times=7), tools, checkpointer=InMemorySaver())
    outcome = await drive(graph, mode, ask(), thread("t", handler()))
    assert outcome.messages[-1].content == "done"


def commanding_tool(ran: Counter, answer):
    """Make a tool that answers with a `Command`."""

    @tool
    def search(q: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Search."""
        text = answer(ran.add("search", {"q": q}))
        return Command(update={"messages": [ToolMessage(text, tool_call_id=tool_call_id)]})

    return search


@every_mode
@every_graph
async def test_tools_that_return_a_command_are_counted(host, mode):
    ran = Counter()
    tools = [commanding_tool(ran, lambda _: "nothing")]
    graph = GRAPHS[host](repeating_model(), tools, checkpointer=InMemorySaver())
    config = thread("t", handler())
    assert len((await drive(graph, mode, ask(), config)).interrupts) == 1
    assert ran.total == 2
    await drive(graph, mode, Command(resume="stop"), config)
    assert_valid_history(graph.get_state(config).values["messages"])


@every_graph
async def test_the_answer_in_a_command_counts(host):
    ran = Counter()
    tools = [commanding_tool(ran, lambda number: f"page {number}")]
    graph = GRAPHS[host](repeating_model(times=7), tools, checkpointer=InMemorySaver())
    result = graph.invoke(ask(), thread("t", handler()))
    assert result["messages"][-1].content == "done"


@every_mode
async def test_a_retried_tool_counts_once(mode):
    # Each attempt starts a run, with the same call id.
    ran = Counter()

    def fails_twice(number: int) -> str:
        if number % 3:
            raise ConnectionError("reset")
        return f"page {number}"

    graph = agent_graph(
        repeating_model(times=4),
        [counting_tool(ran, answer=fails_twice)],
        checkpointer=InMemorySaver(),
        middleware=[ToolRetryMiddleware(max_retries=3, initial_delay=0, jitter=False)],
    )
    outcome = await drive(graph, mode, ask(), thread("t", handler()))
    assert outcome.messages[-1].content == "done"
    assert ran.total == 12


@pytest.mark.parametrize("handled", [True, "It failed.", (ConnectionError,)])
async def test_errors_that_a_tool_node_handles_are_answers(handled):
    def fails(number: int) -> str:
        raise ConnectionError("reset")

    ran = Counter()
    graph = tool_node_graph(
        repeating_model(),
        [counting_tool(ran, answer=fails)],
        checkpointer=InMemorySaver(),
        handle_tool_errors=handled,
    )
    config = thread("t", handler())
    assert "__interrupt__" in graph.invoke(ask(), config)
    assert ran.total == 2


@pytest.mark.parametrize("handled", [True, "It failed."])
async def test_a_tool_node_that_handles_every_error_asks_and_refuses_too(handled):
    ran = Counter()
    graph = tool_node_graph(
        repeating_model(),
        [counting_tool(ran)],
        checkpointer=InMemorySaver(),
        handle_tool_errors=handled,
    )
    config = thread("t", handler())
    assert "__interrupt__" in graph.invoke(ask(), config)
    graph.invoke(Command(resume="Use the archive."), config)
    messages = graph.get_state(config).values["messages"]
    told = [m.content for m in messages if isinstance(m, ToolMessage)][-1]
    assert ("Use the archive." if handled is True else "It failed.") in told
    assert WITHHELD not in told
    graph.invoke(Command(resume="stop"), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert messages[-1].content.startswith("Stopped.")


async def test_a_tool_node_that_handles_no_errors_ends_in_an_error():
    ran = Counter()
    graph = tool_node_graph(
        repeating_model(),
        [counting_tool(ran)],
        checkpointer=InMemorySaver(),
        handle_tool_errors=False,
    )
    with pytest.raises(LoopDetectedError):
        graph.invoke(ask(), thread("t", handler(on_detected="refuse")))
    assert ran.total == 2


@every_graph
async def test_bad_arguments_for_ever_are_a_loop(host):
    # The tool is never run; the host answers with what is wrong about the arguments.
    ran = Counter()
    graph = GRAPHS[host](
        repeating_model(("search", {"q": {"not": "text"}})),
        [counting_tool(ran)],
        checkpointer=InMemorySaver(),
    )
    result = graph.invoke(ask(), thread("t", handler()))
    assert len(result["__interrupt__"]) == 1
    assert ran.total == 0
    assert sum(isinstance(m, AIMessage) for m in result["messages"]) == 3


# --- Other middleware -------------------------------------------------------------------------


@every_mode
async def test_retries_and_fallbacks_swallow_no_decision(mode):
    ran = Counter()
    model = repeating_model()
    graph = agent_graph(
        model,
        [counting_tool(ran)],
        checkpointer=InMemorySaver(),
        middleware=[
            ToolRetryMiddleware(max_retries=2, initial_delay=0),
            ModelRetryMiddleware(max_retries=2, initial_delay=0),
        ],
    )
    config = thread("t", handler())
    assert len((await drive(graph, mode, ask(), config)).interrupts) == 1
    await drive(graph, mode, Command(resume="stop"), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert messages[-1].content.startswith("Stopped.")
    assert len(model.requests) == 3
    assert ran.total == 2


@pytest.mark.parametrize("wrap", ["with_retry", "with_fallbacks"])
async def test_wrappers_of_the_model_do_not_undo_a_stop(wrap):
    ran = Counter()
    model = repeating_model()
    wrapped = (
        model.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
        if wrap == "with_retry"
        else model.with_fallbacks([model])
    )

    def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [wrapped.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([counting_tool(ran)]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    graph = builder.compile(checkpointer=InMemorySaver())
    config = thread("t", handler())
    graph.invoke(ask(), config)
    asked = len(model.requests)
    try:
        graph.invoke(Command(resume="stop"), config)
    except LoopDetectedError:
        # The wrapper tried again after the run had been ended with its last message.
        assert wrap == "with_retry"
    assert len(model.requests) == asked
    assert ran.total == 2
    assert_valid_history(graph.get_state(config).values["messages"])


async def test_calls_that_a_person_approves_elsewhere_are_counted_once():
    ran = Counter()
    graph = agent_graph(
        repeating_model(),
        [counting_tool(ran)],
        checkpointer=InMemorySaver(),
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"search": True})],
    )
    config = thread("t", handler())
    approve = {"decisions": [{"type": "approve"}]}
    result = graph.invoke(ask(), config)
    for _ in range(2):
        assert "type" not in result["__interrupt__"][0].value
        result = graph.invoke(Command(resume=approve), config)
    assert ran.total == 2
    # The third time it was approved there, and is a loop here.
    result = graph.invoke(Command(resume=approve), config)
    assert result["__interrupt__"][0].value["type"] == "loop_detected"
    assert ran.total == 2
    result = graph.invoke(Command(resume=approve), config)
    assert ran.total == 3


async def test_calls_that_a_person_rejects_elsewhere_are_no_batch_that_ran():
    ran = Counter()
    graph = agent_graph(
        repeating_model(),
        [counting_tool(ran)],
        checkpointer=InMemorySaver(),
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"search": True})],
    )
    config = thread("t", handler())
    reject = {"decisions": [{"type": "reject", "message": "no"}]}
    result = graph.invoke(ask(), config)
    for _ in range(5):
        result = graph.invoke(Command(resume=reject), config)
        assert "type" not in result["__interrupt__"][0].value
    assert ran.total == 0


async def test_a_new_user_message_while_a_person_is_asked_starts_a_turn():
    # The host starts the model again; what was asked about is not run.
    ran = Counter()
    graph = agent_graph(repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver())
    config = thread("t", handler())
    graph.invoke(ask(), config)
    result = graph.invoke(ask("never mind"), config)
    assert "__interrupt__" in result
    assert ran.total == 4


# --- Hints to the model -----------------------------------------------------------------------


@every_mode
@every_graph
async def test_a_warning_reaches_the_model_in_the_last_answer(host, mode):
    model = repeating_model(times=4)
    graph = GRAPHS[host](model, [counting_tool(Counter())], checkpointer=InMemorySaver())
    guard = LoopGuardCallbackHandler(LoopGuardPolicy(), fail_open=False)
    await drive(graph, mode, ask(), thread("t", guard))
    told = [str(request[-1].content) for request in model.requests]
    assert [NOTICE_MARK in text for text in told] == [False, False, False, True, True]
    messages = graph.get_state(thread("t")).values["messages"]
    assert_valid_history(messages)
    assert sum(NOTICE_MARK in str(m.content) for m in messages) == 2


async def test_the_guards_own_words_are_no_answer():
    # With them in it, each answer would differ from the one before.
    ran = Counter()
    graph = agent_graph(repeating_model(), [counting_tool(ran)], checkpointer=InMemorySaver())
    for process in range(9):
        # Each time another process, which reads the words in the history.
        guard = LoopGuardCallbackHandler(LoopGuardPolicy(), fail_open=False)
        config = thread("t", guard, recursion_limit=2)
        try:
            result = graph.invoke(ask() if process == 0 else None, config)
        except GraphRecursionError:
            continue
        break
    assert "__interrupt__" in result
    assert ran.total < 9


# --- The default policy on agents that heed no advice -----------------------------------------


def endless(*batches):
    """Make a model that sends the batches in turn, for ever."""

    def respond(messages):
        turn = sum(isinstance(message, AIMessage) for message in messages)
        return ai_calls(batches[turn % len(batches)], turn)

    return ScriptedChatModel(respond=respond)


S, D, T = ("shell", {"q": "ls"}), ("diff", {"q": ""}), ("tests", {"q": ""})


@pytest.mark.parametrize("on_detected", ["interrupt", "refuse"])
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(lambda: endless([S], [D], [S], [T]), id="rotation"),
        pytest.param(lambda: endless([S, D], [D, S]), id="parallel in either order"),
        pytest.param(lambda: endless([("no_such_tool", {})]), id="a missing tool"),
    ],
)
@every_graph
async def test_the_default_policy_ends_it_with_a_valid_history(host, model, on_detected):
    ran = Counter()
    tools = [counting_tool(ran, name, f"{name}: as before") for name in ("shell", "diff", "tests")]
    graph = GRAPHS[host](model(), tools, checkpointer=InMemorySaver())
    guard = LoopGuardCallbackHandler(LoopGuardPolicy(), on_detected=on_detected, fail_open=False)
    config = thread("t", guard, recursion_limit=200)
    if on_detected == "interrupt":
        assert len(graph.invoke(ask(), config)["__interrupt__"]) == 1
        graph.invoke(Command(resume="stop"), config)
    else:
        with pytest.raises(LoopDetectedError):
            graph.invoke(ask(), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert sum(isinstance(message, AIMessage) for message in messages) <= 25


async def test_a_question_of_a_sub_agent_is_no_answer_of_its_tool():
    # LangGraph reports the interrupt as the tool's error.
    inner = agent_graph(repeating_model(times=3), [counting_tool(Counter())])
    graph = agent_graph(
        repeating_model(("task", {"q": "x"}), times=1),
        [agent_as_tool(inner)],
        checkpointer=InMemorySaver(),
    )
    guard = handler()
    config = thread("t", guard)
    graph.invoke(ask(), config)
    kept = guard._reading.conversations.find(("thread", "t", "", ""))
    assert kept.last.outputs == {}


def test_a_batch_of_the_turn_before_is_not_counted_again():
    found = []
    guard = LoopGuardCallbackHandler(on_detected="warn", notify=found.append)
    model = listed_model(*[[("search", {"q": "a"})]] * 4)
    agent = agent_graph(model, [counting_tool(Counter())], checkpointer=InMemorySaver())
    for _ in range(2):
        agent.invoke(ask(), thread("t", guard))
    assert {decision.record.number for decision in found} == {3, 4, 7, 8}
