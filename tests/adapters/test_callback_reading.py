"""Does the handler read a history as it is: turns, ids, results, other people's decisions?"""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command
from typing_extensions import TypedDict

from langchain_loopguard import LoopDetectedError, LoopGuardCallbackHandler, LoopGuardPolicy
from tests.hosts import (
    GRAPHS,
    MODES,
    Counter,
    ScriptedChatModel,
    agent_graph,
    ai_calls,
    ask,
    assert_valid_history,
    counting_tool,
    drive,
    listed_model,
    marks_a_persons_answer,
    repeating_model,
    since_langchain_1_3_15,
    thread,
    tool_node_graph,
)

SEED = LoopGuardPolicy.seed()
every_graph = pytest.mark.parametrize("host", GRAPHS)
every_mode = pytest.mark.parametrize("mode", MODES)


def handler(**options) -> LoopGuardCallbackHandler:
    """Make a handler that hides none of its own faults."""
    return LoopGuardCallbackHandler(SEED, **{"fail_open": False, **options})


def make(host, model, ran, **options):
    """Build a graph of one tool on a saver."""
    return GRAPHS[host](model, [counting_tool(ran)], checkpointer=InMemorySaver(), **options)


def graph_of(agent, tools, schema=MessagesState, key="messages", extra=None):
    """Build a graph around a node that calls a model, with another node behind the tools."""
    builder = StateGraph(schema)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(tools, messages_key=key))
    builder.add_node("extra", extra or (lambda state: {}))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", lambda s: tools_condition(s, messages_key=key))
    builder.add_edge("tools", "extra")
    builder.add_edge("extra", "agent")
    return builder.compile(checkpointer=InMemorySaver())


# --- Turns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", [HumanMessage("the same question"), SystemMessage("Tick.")])
@every_mode
@every_graph
async def test_the_same_call_in_nine_runs_is_no_loop(host, mode, message):
    ran = Counter()

    def respond(messages):
        done = isinstance(messages[-1], ToolMessage)
        return AIMessage("done") if done else ai_calls([("search", {"q": "a"})], len(messages))

    graph = make(host, ScriptedChatModel(respond=respond), ran)
    config = thread("t", handler())
    for _ in range(9):
        value = {"messages": [message.model_copy()]}
        assert (await drive(graph, mode, value, config)).interrupts == ()
    assert ran.total == 9


def test_a_summary_is_no_user_turn():
    # Summaries are human messages that a framework wrote; they replace the history, too.
    ran, asked = Counter(), []

    def respond(messages):
        if "summary" in str(messages[-1].content).lower() and messages[-1].type != "tool":
            return AIMessage("They searched.")
        asked.append(messages)
        return ai_calls([("search", {"q": "a"})], len(asked))

    model = ScriptedChatModel(respond=respond)
    middleware = SummarizationMiddleware(model, trigger=("messages", 4), keep=("messages", 2))
    graph = make("create_agent", model, ran, middleware=[middleware])
    assert "__interrupt__" in graph.invoke(ask(), thread("t", handler()))
    assert ran.total <= 5


@every_graph
def test_a_user_who_writes_something_new_while_a_person_is_asked_starts_a_turn(host):
    ran = Counter()
    graph, config = make(host, repeating_model(), ran), thread("t", handler())
    graph.invoke(ask(), config)
    assert "__interrupt__" in graph.invoke(ask("never mind"), config)
    assert ran.total == 4


def test_a_trimmed_prompt_hides_no_loop():
    ran, model = Counter(), ScriptedChatModel(respond=lambda m: ai_calls([("search", {})], "x"))

    def agent(state):
        made = model.invoke(state["messages"][-2:])
        calls = [{**made.tool_calls[0], "id": f"c{len(state['messages'])}"}]
        return {"messages": [made.model_copy(update={"tool_calls": calls})]}

    graph = graph_of(agent, [counting_tool(ran)])
    assert "__interrupt__" in graph.invoke(ask(), thread("t", handler()))
    assert ran.total == 2


@pytest.mark.parametrize("answer", [AIMessage("fine"), ai_calls([("Route", {"to": "a"})], "r")])
@pytest.mark.parametrize("loops", [True, False])
def test_a_question_on_the_side_is_no_user_turn_and_no_step(answer, loops):
    ran, side = Counter(), ScriptedChatModel(respond=lambda messages: answer)
    pages = [[("search", {"q": str(number)})] for number in range(8)]
    model = repeating_model() if loops else listed_model(*pages)

    def judge(state):
        side.invoke([*state["messages"], HumanMessage("Is this going well?")])
        side.invoke([HumanMessage("Which way?")])
        return {}

    graph = graph_of(
        lambda state: {"messages": [model.invoke(state["messages"])]},
        [counting_tool(ran)],
        extra=judge,
    )
    assert ("__interrupt__" in graph.invoke(ask(), thread("t", handler()))) is loops
    assert ran.total == (2 if loops else 8)


# --- Ids and keys -----------------------------------------------------------------------------


class Plain(TypedDict):
    messages: Annotated[list, operator.add]


class Talk(TypedDict):
    talk: Annotated[list, add_messages]


def test_a_history_without_message_ids_counts_the_same():
    ran, model = Counter(), repeating_model()

    def agent(state):
        return {"messages": [model.invoke(state["messages"]).model_copy(update={"id": None})]}

    graph = graph_of(agent, [counting_tool(ran)], Plain)
    assert "__interrupt__" in graph.invoke(ask(), thread("t", handler()))
    assert ran.total == 2


def test_another_messages_key_can_be_named():
    ran, model = Counter(), repeating_model()

    def agent(state):
        return {"talk": [model.invoke(state["talk"])]}

    graph = graph_of(agent, [counting_tool(ran)], Talk, "talk")
    config = thread("t", handler(messages_key="talk"))
    assert "__interrupt__" in graph.invoke({"talk": [HumanMessage("go")]}, config)
    graph.invoke(Command(resume="stop"), config)
    talk = graph.get_state(config).values["talk"]
    assert_valid_history(talk)
    assert talk[-1].content.startswith("Stopped.")
    assert ran.total == 2


@pytest.mark.parametrize("loops", [True, False])
@every_graph
def test_call_ids_that_are_all_the_same_hide_no_loop_and_make_none(host, loops):
    ran = Counter()

    def respond(messages):
        steps = sum(isinstance(m, AIMessage) for m in messages)
        query = "a" if loops else str(steps)
        return AIMessage("done") if steps == 9 else ai_calls([("search", {"q": query})], "again")

    graph = make(host, ScriptedChatModel(respond=respond), ran)
    assert ("__interrupt__" in graph.invoke(ask(), thread("t", handler()))) is loops
    assert ran.total == (2 if loops else 9)


# --- Results ----------------------------------------------------------------------------------


def commanding_tool(ran: Counter, answer):
    """Make a tool that answers with a `Command`."""

    @tool
    def search(q: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Search."""
        text = answer(ran.add("search", {"q": q}))
        return Command(update={"messages": [ToolMessage(text, tool_call_id=tool_call_id)]})

    return search


def plain_tool(ran: Counter, answer):
    """Make a tool that answers with a text."""
    return counting_tool(ran, answer=answer)


@pytest.mark.parametrize("kind", [plain_tool, commanding_tool])
@pytest.mark.parametrize("changes", [True, False])
@every_mode
@every_graph
async def test_results_that_change_let_the_agent_go_on(host, mode, changes, kind):
    ran = Counter()
    made = kind(ran, lambda number: f"page {number}" if changes else "nothing")
    graph = GRAPHS[host](repeating_model(times=7), [made], checkpointer=InMemorySaver())
    config = thread("t", handler())
    outcome = await drive(graph, mode, ask(), config)
    assert (len(outcome.interrupts), ran.total) == ((0, 7) if changes else (1, 2))
    if not changes:
        await drive(graph, mode, Command(resume="stop"), config)
        assert_valid_history(graph.get_state(config).values["messages"])


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
def test_errors_that_a_tool_node_handles_are_results(handled):
    def fails(number: int) -> str:
        raise ConnectionError("reset")

    ran = Counter()
    tools = [counting_tool(ran, answer=fails)]
    graph = tool_node_graph(
        repeating_model(), tools, checkpointer=InMemorySaver(), handle_tool_errors=handled
    )
    assert "__interrupt__" in graph.invoke(ask(), thread("t", handler()))
    assert ran.total == 2


@pytest.mark.parametrize(
    ("handled", "told"), [(True, "Use the archive."), ("It failed.", "It failed."), (False, None)]
)
def test_a_refusal_is_what_the_tool_node_makes_of_it(handled, told):
    ran = Counter()
    step = [("search", {"q": "a"})]
    graph = make("tool_node", listed_model(*[step] * 3), ran, handle_tool_errors=handled)
    config = thread("t", handler())
    graph.invoke(ask(), config)
    if told is None:
        with pytest.raises(LoopDetectedError):
            graph.invoke(Command(resume="Use the archive."), config)
        return
    messages = graph.invoke(Command(resume="Use the archive."), config)["messages"]
    assert told in messages[-2].content
    assert ran.total == 2


@every_graph
def test_bad_arguments_for_ever_are_a_loop(host):
    # The tool is never run; the host answers with what is wrong about the arguments.
    ran = Counter()
    graph = make(host, repeating_model(("search", {"q": {"not": "text"}})), ran)
    result = graph.invoke(ask(), thread("t", handler()))
    assert (len(result["__interrupt__"]), ran.total) == (1, 0)
    assert sum(isinstance(m, AIMessage) for m in result["messages"]) == 3


# --- Beside others ----------------------------------------------------------------------------


@since_langchain_1_3_15
@every_mode
async def test_retries_of_middleware_swallow_no_decision(mode):
    ran, model = Counter(), repeating_model()
    retries = [
        ToolRetryMiddleware(max_retries=2, initial_delay=0),
        ModelRetryMiddleware(max_retries=2, initial_delay=0),
    ]
    graph, config = make("create_agent", model, ran, middleware=retries), thread("t", handler())
    assert len((await drive(graph, mode, ask(), config)).interrupts) == 1
    await drive(graph, mode, Command(resume="stop"), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert messages[-1].content.startswith("Stopped.")
    assert (len(model.requests), ran.total) == (3, 2)


WRAPPERS = {
    "with_retry": lambda m: m.with_retry(stop_after_attempt=2, wait_exponential_jitter=False),
    "with_fallbacks": lambda model: model.with_fallbacks([model]),
}


@pytest.mark.parametrize("call", [("search", {"q": "a"}), ("no_such_tool", {})])
@pytest.mark.parametrize("wrap", WRAPPERS)
def test_wrappers_of_the_model_undo_neither_a_question_nor_a_stop(wrap, call):
    model = repeating_model(call)
    wrapped = WRAPPERS[wrap](model)
    graph = graph_of(
        lambda state: {"messages": [wrapped.invoke(state["messages"])]}, [counting_tool(Counter())]
    )
    config = thread("t", handler())
    assert len(graph.invoke(ask(), config)["__interrupt__"]) == 1
    asked = len(model.requests)
    messages = graph.invoke(Command(resume="stop"), config)["messages"]
    assert messages[-1].content.startswith("Stopped.")
    assert_valid_history(messages)
    assert len(model.requests) == asked


@pytest.mark.parametrize(
    ("decision", "runs", "found"),
    [
        ({"type": "approve"}, 2, True),
        pytest.param({"type": "reject"}, 0, False, marks=marks_a_persons_answer),
    ],
)
def test_what_a_person_decides_elsewhere_is_counted_once_or_not_at_all(decision, runs, found):
    ran = Counter()
    other = HumanInTheLoopMiddleware(interrupt_on={"search": True})
    graph = make("create_agent", repeating_model(), ran, middleware=[other])
    config = thread("t", handler())
    result = graph.invoke(ask(), config)
    for _ in range(3):
        assert "type" not in result["__interrupt__"][0].value
        result = graph.invoke(Command(resume={"decisions": [decision]}), config)
    assert (result["__interrupt__"][0].value.get("type") == "loop_detected") is found
    assert ran.total == runs


def test_a_history_is_read_anew_in_each_of_nine_processes():
    ran = Counter()
    graph = make("create_agent", repeating_model(), ran)
    for process in range(9):
        guard = LoopGuardCallbackHandler(LoopGuardPolicy(), fail_open=False)
        try:
            result = graph.invoke(None if process else ask(), thread("t", guard, recursion_limit=2))
        except GraphRecursionError:
            continue
        break
    assert "__interrupt__" in result
    assert ran.total < 9


# --- The default policy on agents that heed no advice -----------------------------------------


def endless(*steps):
    """Make a model that takes the steps in turn, for ever."""

    def respond(messages):
        turn = sum(isinstance(message, AIMessage) for message in messages)
        return ai_calls(steps[turn % len(steps)], turn)

    return ScriptedChatModel(respond=respond)


S, D, T = ("shell", {"q": "ls"}), ("diff", {"q": ""}), ("tests", {"q": ""})


@pytest.mark.parametrize("on_detected", ["interrupt", "refuse"])
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([[S], [D], [S], [T]], id="rotation"),
        pytest.param([[S, D], [D, S]], id="parallel in either order"),
        pytest.param([[("no_such_tool", {})]], id="a missing tool"),
    ],
)
@every_graph
def test_the_default_policy_ends_it_with_a_valid_history(host, steps, on_detected):
    tools = [
        counting_tool(Counter(), name, f"{name}: as ever") for name in ("shell", "diff", "tests")
    ]
    graph = GRAPHS[host](endless(*steps), tools, checkpointer=InMemorySaver())
    guard = LoopGuardCallbackHandler(on_detected=on_detected, fail_open=False)
    config = thread("t", guard, recursion_limit=200)
    graph.invoke(ask(), config)
    if on_detected == "interrupt":
        graph.invoke(Command(resume="stop"), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert messages[-1].content.startswith("Stopped.")
    assert sum(isinstance(message, AIMessage) for message in messages) <= 25
