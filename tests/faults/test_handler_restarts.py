"""Does a callback handler that knows nothing yet go on as the one before would have?

The process that died is told by a graph that stops where it died, and the next one by a fresh
handler; the kills themselves are in `test_kills`.
"""

from __future__ import annotations

from typing import Annotated

import pytest
from langchain_core.messages import BaseMessageChunk, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from langchain_loopguard import LoopDetectedError, LoopGuardCallbackHandler, LoopGuardPolicy
from tests.hosts import (
    GRAPHS,
    Counter,
    agent_as_tool,
    ask,
    assert_valid_history,
    counting_tool,
    listed_model,
    repeating_model,
    thread,
)

SEED = LoopGuardPolicy.seed()
SEARCH = ("search", {"q": "a"})
NOWHERE = ("nowhere", {"q": "a"})
every_host = pytest.mark.parametrize("host", GRAPHS)


def fresh(**options) -> dict:
    """Give the config of the thread with a handler of its own."""
    return thread("t", LoopGuardCallbackHandler(SEED, **{"fail_open": False, **options}))


def graph_of(host, model, ran=None):
    tools = [counting_tool(Counter() if ran is None else ran)]
    return GRAPHS[host](model, tools, checkpointer=InMemorySaver())


def asked_in(result) -> list[list]:
    """Give what was found, for each question of a result."""
    return [item.value["findings"] for item in result.get("__interrupt__", ())]


def model_node(host) -> str:
    return "model" if host == "create_agent" else "agent"


@every_host
def test_the_last_batch_of_a_turn_is_not_counted_again_in_the_next(host):
    # Two searches in each turn are no loop; one that is carried over makes them three.
    graph = graph_of(host, repeating_model(SEARCH, times=2))
    config = fresh()
    for _ in range(3):
        assert "__interrupt__" not in graph.invoke(ask(), config)


@every_host
def test_a_stop_holds_when_the_batch_ends_with_a_tool_that_does_not_exist(host):
    ran = Counter()
    model = repeating_model(SEARCH, NOWHERE)
    graph = graph_of(host, model, ran)
    graph.invoke(ask(), fresh())
    asked = len(model.requests)
    # The calls are answered, and the process dies before the model node that ends the run.
    graph.invoke(Command(resume="stop"), fresh(), interrupt_before=[model_node(host)])
    graph.invoke(None, fresh())
    assert len(model.requests) == asked
    assert ran.total == 2
    last = graph.get_state(fresh()).values["messages"][-1].content
    assert last.startswith("Stopped. The agent called search, nowhere 3 times")


def test_a_stop_in_a_sub_agent_holds_when_the_process_dies_before_the_outer_model():
    ran = Counter()
    inner = GRAPHS["create_agent"](repeating_model(), [counting_tool(ran)])
    outer_model = listed_model([("task", {"q": "go"})])
    outer = GRAPHS["create_agent"](
        outer_model, [agent_as_tool(inner)], checkpointer=InMemorySaver()
    )
    outer.invoke(ask(), fresh())
    outer.invoke(Command(resume="stop"), fresh(), interrupt_before=["model"])
    messages = outer.invoke(None, fresh())["messages"]
    assert_valid_history(messages)
    assert messages[-1].content.startswith("Stopped. The agent called search 3 times")
    assert len(outer_model.requests) == 1
    assert ran.total == 2


@every_host
def test_a_batch_that_a_person_let_run_is_not_asked_about_after_it_ran(host):
    ran = Counter()
    graph = graph_of(host, repeating_model(SEARCH, times=3), ran)
    graph.invoke(ask(), fresh())
    # The tools ran, and the process dies before the model is called.
    graph.invoke(Command(resume="continue"), fresh(), interrupt_after=["tools"])
    assert ran.total == 3
    result = graph.invoke(None, fresh())
    assert "__interrupt__" not in result
    assert result["messages"][-1].content == "done"


@every_host
def test_so_it_is_where_tools_answer_with_a_command(host):
    ran: list[str] = []

    @tool
    def search(q: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Search."""
        ran.append(q)
        return Command(update={"messages": [ToolMessage("nothing", tool_call_id=tool_call_id)]})

    model = repeating_model(SEARCH, SEARCH, times=3)
    graph = GRAPHS[host](model, [search], checkpointer=InMemorySaver())
    graph.invoke(ask(), fresh())
    graph.invoke(Command(resume="continue"), fresh(), interrupt_after=["tools"])
    assert len(ran) == 6
    assert "__interrupt__" not in graph.invoke(None, fresh())


@every_host
@pytest.mark.parametrize("again", [False, True], ids=["same-handler", "fresh-handler"])
def test_a_loop_that_was_stopped_is_not_asked_about_in_the_next_turn(host, again):
    # No tool is started for these calls, so they are asked about before the model is called.
    graph = graph_of(host, listed_model([NOWHERE], [NOWHERE], [NOWHERE]))
    config = fresh()
    assert "__interrupt__" in graph.invoke(ask(), config)
    graph.invoke(Command(resume="stop"), config)
    model = listed_model([SEARCH])
    graph = GRAPHS[host](model, [counting_tool(Counter())], checkpointer=graph.checkpointer)
    result = graph.invoke(ask("other"), fresh() if again else config)
    assert "__interrupt__" not in result
    assert result["messages"][-1].content == "done"


@every_host
def test_a_run_that_was_to_end_in_an_error_does_so_in_the_next_process(host):
    graph = graph_of(host, repeating_model())
    graph.invoke(ask(), fresh(on_detected="raise"), interrupt_before=["tools"])
    for _ in range(2):
        graph.invoke(None, fresh(on_detected="raise"), interrupt_before=["tools"])
    # The calls are answered, and the process dies before the model call that ends the run. Where
    # the graph only pauses there, the handler ends it after all.
    with pytest.raises(LoopDetectedError) as first:
        graph.invoke(None, fresh(on_detected="raise"), interrupt_before=[model_node(host)])
    assert len(graph.get_state(fresh()).values["messages"]) == 7
    with pytest.raises(LoopDetectedError) as second:
        graph.invoke(None, fresh(on_detected="raise"))
    assert (str(second.value), second.value.count) == (str(first.value), 3)


@every_host
def test_a_loop_that_ended_a_turn_in_an_error_does_not_end_the_next_turn(host):
    graph = graph_of(host, listed_model([NOWHERE], [NOWHERE], [NOWHERE]))
    with pytest.raises(LoopDetectedError):
        graph.invoke(ask(), fresh(on_detected="raise"))
    model = listed_model([SEARCH])
    graph = GRAPHS[host](model, [counting_tool(Counter())], checkpointer=graph.checkpointer)
    result = graph.invoke(ask("other"), fresh(on_detected="raise"))
    assert result["messages"][-1].content == "done"


APPROVE = {"type": "approve"}
REJECT = {"type": "reject", "message": "Not this."}


@every_host
@pytest.mark.parametrize(
    ("second", "mixed"),
    [
        pytest.param(("search", {"q": "b"}), [APPROVE, REJECT], id="one-ran"),
        # The call that was let run leaves no trace of its own.
        pytest.param(NOWHERE, [REJECT, APPROVE], id="none-ran"),
    ],
)
def test_a_batch_that_was_let_run_in_part_counts_as_let_run(host, second, mixed):
    # Approved in part: counted anew, so the next two repeats run. The same in a new process.
    def play(configs) -> list[int]:
        graph = graph_of(host, repeating_model(SEARCH, second))
        graph.invoke(ask(), configs())
        graph.invoke(
            Command(resume={"decisions": mixed}), configs(), interrupt_before=[model_node(host)]
        )
        result = graph.invoke(None, configs())
        return [finding["since"] for finding in result["__interrupt__"][0].value["findings"]]

    config = fresh()
    assert play(fresh) == play(lambda: config)


@every_host
@pytest.mark.parametrize("answer", ["continue", "Use the archive."])
def test_a_handler_that_asked_learns_of_the_answer_that_another_one_took(host, answer):
    def play(first, second) -> list[list]:
        graph = graph_of(host, repeating_model(times=5))
        asked = [graph.invoke(ask(), first())]
        graph.invoke(Command(resume=answer), second(), interrupt_after=["tools"])
        # The first one goes on, and knows only what is in the thread.
        asked.append(graph.invoke(None, first()))
        return [asked_in(result) for result in asked]

    one, other, alone = fresh(), fresh(), fresh()
    assert play(lambda: one, lambda: other) == play(lambda: alone, lambda: alone)


# --- A batch whose tools don't exist -----------------------------------------------------------


def streaming_graph(model, tools):
    """Build a graph whose node puts its message together from chunks by itself."""

    def agent(state: MessagesState) -> dict:
        whole: BaseMessageChunk | None = None
        for chunk in model.stream(state["messages"]):
            whole = chunk if whole is None else whole + chunk
        return {"messages": [whole]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("host", [*GRAPHS, "streaming"])
@pytest.mark.parametrize("answers", [["continue"] * 2, ["Use the archive."] * 2, ["continue", "?"]])
def test_what_was_decided_without_a_tool_is_known_in_the_next_process(host, answers):
    # It is saved with the model's next message: nothing but the model has run since.
    def play(configs) -> list[list]:
        model, tools = repeating_model(NOWHERE), [counting_tool(Counter())]
        if host == "streaming":
            graph = streaming_graph(model, tools)
        else:
            graph = GRAPHS[host](model, tools, checkpointer=InMemorySaver())
        results = [graph.invoke(ask(), configs())]
        results += [graph.invoke(Command(resume=answer), configs()) for answer in answers]
        return [asked_in(result) for result in results]

    config = fresh()
    assert play(fresh) == play(lambda: config)


@pytest.mark.parametrize("again", [False, True], ids=["same-handler", "fresh-handler"])
def test_a_persons_text_is_not_lost_where_a_host_saves_only_what_is_new(again):
    # The text was added to an answer that is in the thread already.
    from deepagents import create_deep_agent

    model = listed_model([NOWHERE], [NOWHERE], [NOWHERE])
    graph = create_deep_agent(model=model, tools=[], checkpointer=InMemorySaver())
    config = fresh()
    assert "__interrupt__" in graph.invoke(ask(), config)
    graph.invoke(Command(resume="Use the archive."), fresh() if again else config)
    assert sum("Use the archive." in str(message.text) for message in model.requests[3]) == 1


@every_host
@pytest.mark.parametrize("mode", ["interrupt", "raise", "refuse"])
@pytest.mark.parametrize("call", [SEARCH, NOWHERE], ids=["tool", "no-tool"])
def test_a_turn_that_was_left_counts_the_same_in_the_next_process(host, mode, call):
    # The user writes something new where a person was asked, or after an error.
    def play(configs) -> list:
        graph = graph_of(host, repeating_model(call, times=5))
        seen: list = []
        for text in ("one", "two"):
            try:
                asked = asked_in(graph.invoke(ask(text), configs(on_detected=mode)))
                # A step that was asked about and left is no step to who didn't ask.
                seen += [[{**found, "since": 0} for found in one] for one in asked]
            except LoopDetectedError as error:
                seen.append(str(error))
        return seen

    alone: dict = {}

    def same(**options):
        return alone or alone.update(fresh(**options)) or alone

    assert play(fresh) == play(same)
