"""Does the handler read a history as it is: turns, ids, results?"""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from langchain.agents.middleware import (
    SummarizationMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages
from langgraph.types import Command
from typing_extensions import TypedDict

from langchain_loopguard import LoopDetectedError
from tests.adapters.handled import graph_of, handler, make
from tests.hosts import (
    GRAPHS,
    Counter,
    ScriptedChatModel,
    agent_graph,
    ai_calls,
    ask,
    assert_valid_history,
    counting_tool,
    drive,
    every_graph,
    every_graph_and_mode,
    every_mode,
    listed_model,
    repeating_model,
    thread,
    tool_node_graph,
)

# --- Turns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", [HumanMessage("the same question"), SystemMessage("Tick.")])
@every_graph_and_mode
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
@every_graph_and_mode
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
