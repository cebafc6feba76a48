"""What does `add_loop_guard` leave of a graph as it was?"""

from typing import Annotated

import pytest
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command
from typing_extensions import TypedDict

from langchain_loopguard import LoopGuardNode, LoopGuardState, add_loop_guard, guard_stats
from tests.adapters.agents import looping
from tests.adapters.guarded import (
    SEED,
    assert_complete,
    assert_requests_complete,
    builder,
    builder_for,
    by_hand,
    compiled,
    owned,
    with_channel,
)
from tests.hosts import (
    Counter,
    ScriptedChatModel,
    ai_calls,
    ask,
    counting_tool,
    drive,
    every_mode,
    listed_model,
    repeating_model,
    thread,
)

SEARCH = ("search", {"q": "a"})
BATCH = [SEARCH, ("open", {"q": "b"})]
PARTLY = {"decisions": [{"type": "reject", "message": "no"}, {"type": "approve"}]}


def edges_of(graph):
    return {(edge.source, edge.target) for edge in graph.get_graph().edges}


# --- Edges ----------------------------------------------------------------------------------------


def static_back(graph):
    graph.add_conditional_edges("agent", tools_condition, ["tools", END])
    graph.add_edge("tools", "agent")


def conditional_back(graph):
    static_back(graph)
    graph.edges.discard(("tools", "agent"))
    graph.add_conditional_edges("tools", lambda _: "on", {"on": "agent"})


def two_ways_back(graph):
    graph.add_node("note", lambda _: {})
    static_back(graph)
    graph.add_edge("tools", "note")


@pytest.mark.parametrize("edges", [None, static_back, conditional_back, two_ways_back])
@every_mode
async def test_a_stop_ends_the_run_whatever_edges_there_are(edges, mode):
    counter = Counter()
    model = repeating_model()
    graph = builder(model, [counting_tool(counter, native_async=True)])
    if edges:
        edges(graph)
    graph = compiled(graph)
    outcome = await drive(graph, mode, ask(), thread("t"))
    assert len(outcome.interrupts) == 1
    outcome = await drive(graph, mode, Command(resume="stop"), thread("t"))
    assert counter.total == 2
    assert len(model.requests) == 3
    assert graph.get_state(thread("t")).next == ()
    assert outcome.messages[-1].text.startswith("Stopped.")


def test_a_state_written_as_the_tools_goes_on_and_commands_of_the_tools_lead():
    model = repeating_model(times=3)
    graph = compiled(builder(model))
    step, result = ai_calls([SEARCH], 0), ToolMessage("x", tool_call_id="call_0_0")
    given = {"messages": [*ask()["messages"], step, result]}
    graph.update_state(thread("t"), given, as_node="tools")
    assert graph.get_state(thread("t")).next == ("agent",)

    def tools(state):
        call = state["messages"][-1].tool_calls[0]
        result = ToolMessage("error", tool_call_id=call["id"])
        return Command(update={"messages": [result]}, goto="agent")

    model = repeating_model()
    graph = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", tools, destinations=("agent",))
    graph.add_edge(START, "agent")
    graph = compiled(graph, on_detected="refuse")
    assert graph.invoke(ask(), thread("t"))["messages"][-1].text.startswith("Stopped.")
    assert len(model.requests) == 3 + SEED.max_refusals


def test_the_host_follows_a_static_edge_in_spite_of_a_command():
    seen = []
    graph = StateGraph(MessagesState)
    graph.add_node("a", lambda _: Command(goto=END))
    graph.add_node("b", lambda _: seen.append(1))
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.compile().invoke(ask())
    assert seen == [1]


def test_no_node_is_added_and_the_edges_are_drawn():
    graph = add_loop_guard(builder())
    drawn = edges_of(graph.compile())
    assert drawn == {
        ("__start__", "agent"),
        ("agent", "tools"),
        ("agent", "__end__"),
        ("tools", "agent"),
        ("tools", "__end__"),
    }


def test_tool_turns_under_a_recursion_limit_are_those_without_a_guard():
    def turns(guarded):
        counter = Counter()
        graph = builder(repeating_model(), [counting_tool(counter, answer=str)])
        if guarded:
            add_loop_guard(graph, on_detected="warn")
        else:
            static_back(graph)
        with pytest.raises(RecursionError):
            graph.compile().invoke(ask(), {"recursion_limit": 25})
        return counter.total

    assert turns(guarded=True) == turns(guarded=False) == 12


def test_a_run_goes_to_the_end_that_is_named():
    class State(MessagesState):
        left: RemainingSteps

    for model, options in (
        (repeating_model(times=1), {}),
        (repeating_model(), {"on_detected": "refuse"}),
    ):
        graph = builder(model, schema=State)
        graph.add_node("last", lambda state: {"messages": [AIMessage(str(state["left"]))]})
        graph = compiled(graph, end="last", **options)
        assert int(graph.invoke(ask(), thread("t"))["messages"][-1].text) > 0


def test_nodes_may_have_other_names_and_the_start_lead_elsewhere():
    counter, model = Counter(), repeating_model()
    graph = StateGraph(LoopGuardState)
    graph.add_node("llm", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("run", ToolNode([counting_tool(counter)]))
    graph.add_node("prepare", lambda _: {})
    graph.add_conditional_edges(START, lambda _: "prepare", ["prepare"])
    graph.add_edge("prepare", "llm")
    graph = compiled(graph, agent="llm", tools="run")
    assert "__interrupt__" in graph.invoke(ask(), thread("t"))
    assert counter.total == 2
    graph.invoke(ask("never mind"), thread("t"))
    assert_requests_complete(model)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param({"agent": "llm"}, r"agent: .*'llm'.*\['agent', 'tools'\]", id="agent"),
        pytest.param({"tools": "run"}, r"tools: .*'run'.*\['agent', 'tools'\]", id="tools"),
        pytest.param({"tools": "agent"}, r"tools: .*another node", id="same"),
        pytest.param({"end": "bye"}, r"end: .*'bye'.*\['agent', 'tools'\]", id="end"),
        pytest.param({"messages_key": "chat"}, r"messages_key: .*'chat'.*messages", id="key"),
        pytest.param({"on_detected": "shout"}, "on_detected: must be one of .*'shout'", id="mode"),
        pytest.param({"policy": "seed"}, "policy: must be a LoopGuardPolicy", id="policy"),
        pytest.param({"state_key": ""}, "state_key: must be a name", id="state_key"),
        pytest.param({"state_key": "messages"}, "state_key: must be another", id="same-key"),
        pytest.param({"wrap_up_model": 3}, "wrap_up_model: must be a chat model", id="model"),
        pytest.param({"fail_open": "no"}, "fail_open: must be True or False", id="flag"),
    ],
)
def test_what_is_wrong_is_refused_by_name(options, text):
    with pytest.raises(ValueError, match=text):
        add_loop_guard(builder(), **options)
    if set(options) <= {"on_detected", "policy", "state_key", "wrap_up_model", "fail_open"}:
        with pytest.raises(ValueError, match=text):
            LoopGuardNode(**options)


def test_a_compiled_graph_and_a_second_guard_are_refused():
    with pytest.raises(ValueError, match="not compiled"):
        add_loop_guard(add_loop_guard(builder()).compile())
    with pytest.raises(ValueError, match="has a loop guard already"):
        add_loop_guard(add_loop_guard(builder()))
    with pytest.raises(ValueError, match="was not called on it"):
        guard_stats(builder())


# --- Several guards -------------------------------------------------------------------------------


def test_two_guards_in_one_graph_ask_and_count_apart():
    class State(TypedDict):
        left: Annotated[list, add_messages]
        right: Annotated[list, add_messages]

    counter, model = Counter(), repeating_model()
    graph = StateGraph(State)
    for side in ("left", "right"):
        graph.add_node(f"a_{side}", lambda state, side=side: {side: [model.invoke(state[side])]})
        graph.add_node(f"t_{side}", ToolNode([counting_tool(counter)], messages_key=side))
        graph.add_edge(START, f"a_{side}")
        keys = {"messages_key": side, "state_key": f"counts_{side}"}
        add_loop_guard(graph, f"a_{side}", f"t_{side}", policy=SEED, **keys)
    graph = graph.compile(checkpointer=InMemorySaver())
    asked = graph.invoke({side: ask()["messages"] for side in ("left", "right")}, thread("t"))
    answers = {question.id: "stop" for question in asked["__interrupt__"]}
    assert len(answers) == 2
    result = graph.invoke(Command(resume=answers), thread("t"))
    assert counter.total == 4
    assert guard_stats(graph)["asked"] == 2
    assert_complete(result["left"])
    assert_complete(result["right"])


@pytest.mark.parametrize("schema", [MessagesState, LoopGuardState])
def test_two_guarded_sub_graphs_run_side_by_side(schema):
    counter = Counter()
    outer = StateGraph(schema)
    for name in "ab":
        model = listed_model([(name, {"q": "x"})], [(name, {"q": "y"})])
        inner = builder_for(model, [counting_tool(counter, name)], schema)
        add_loop_guard(inner)
        outer.add_node(name, inner.compile())
        outer.add_edge(START, name)
    graph = outer.compile(checkpointer=InMemorySaver())
    assert "__interrupt__" not in graph.invoke(ask(), thread("t"))
    assert counter.total == 4


@every_mode
async def test_a_sub_graph_asks_at_the_root_and_resumes_inside(mode):
    counter, model = Counter(), repeating_model()
    inner = builder_for(model, [counting_tool(counter)])
    outer = StateGraph(MessagesState)
    outer.add_node("inner", add_loop_guard(inner, policy=SEED).compile())
    outer.add_edge(START, "inner")
    graph = outer.compile(checkpointer=InMemorySaver())
    outcome = await drive(graph, mode, ask(), thread("t"))
    assert (len(outcome.interrupts), counter.total) == (1, 2)
    outcome = await drive(graph, mode, Command(resume="stop"), thread("t"))
    assert (len(model.requests), counter.total) == (3, 2)
    assert_complete(outcome.messages)


def test_an_agent_in_a_tool_asks_at_the_root():
    counter = Counter()
    agent = owned(repeating_model(), [counting_tool(counter)], saver=False)

    @tool
    def task(q: str) -> str:
        """Hand work on."""
        return str(agent.invoke({"messages": [HumanMessage(q)]})["messages"][-1].content)

    node = ToolNode([task], handle_tool_errors=True)
    outer = builder_for(listed_model([("task", {"q": "x"})]), [task], tools_node=node)
    graph = compiled(outer)
    assert "__interrupt__" in graph.invoke(ask(), thread("t"))
    result = graph.invoke(Command(resume="stop"), thread("t"))
    assert counter.total == 2
    assert "Stopped" in result["messages"][-2].text


def test_a_sub_graph_stays_in_sight_behind_the_guard():
    inner = add_loop_guard(builder()).compile()
    outer = StateGraph(MessagesState)
    outer.add_node("agent", inner)
    outer.add_node("tools", ToolNode([counting_tool(Counter())]))
    outer.add_edge(START, "agent")
    graph = add_loop_guard(outer).compile()
    assert [name for name, _ in graph.get_subgraphs()] == ["agent"]


def respond_invalid(messages):
    turn = sum(isinstance(m, AIMessage) for m in messages)
    broken = {"name": "open", "args": "{", "id": f"bad_{turn}", "error": None}
    message = ai_calls([SEARCH], turn)
    message.invalid_tool_calls = [{**broken, "type": "invalid_tool_call"}]
    return message


@pytest.mark.parametrize("build", [owned, with_channel, by_hand])
def test_a_call_that_cannot_be_parsed_blinds_nothing(build):
    model = ScriptedChatModel(respond=respond_invalid)
    graph, counter, model = looping(build, model=model)
    assert "__interrupt__" in graph.invoke(ask(), thread("t"))
    assert counter.total == 2
    assert_requests_complete(model)
    assert_complete(graph.invoke(Command(resume="stop"), thread("t"))["messages"])
