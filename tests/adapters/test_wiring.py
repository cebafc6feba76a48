"""What does `add_loop_guard` leave of a graph as it was, and what does it run on?"""

import operator
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import pytest
from langchain.tools import ToolRuntime
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, RetryPolicy, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_loopguard import LoopGuardNode, LoopGuardState, add_loop_guard, guard_stats
from tests.adapters.agents import looping
from tests.adapters.guarded import (
    SEED,
    assert_complete,
    assert_requests_complete,
    builder_for,
    by_hand,
    owned,
    with_channel,
)
from tests.hosts import (
    MODES,
    Counter,
    ScriptedChatModel,
    ai_calls,
    ask,
    counting_tool,
    drive,
    listed_model,
    repeating_model,
    thread,
)

SEARCH = ("search", {"q": "a"})
BATCH = [SEARCH, ("open", {"q": "b"})]
PARTLY = {"decisions": [{"type": "reject", "message": "no"}, {"type": "approve"}]}
every_mode = pytest.mark.parametrize("mode", MODES)


def builder(model=None, tools=None, schema=MessagesState):
    return builder_for(model or repeating_model(), tools or [counting_tool(Counter())], schema)


def compiled(graph, **options):
    add_loop_guard(graph, **{"policy": SEED, **options})
    return graph.compile(checkpointer=InMemorySaver())


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


# --- What tools nodes do --------------------------------------------------------------------------


@every_mode
async def test_tools_may_return_commands_and_read_their_runtime(mode):
    class State(MessagesState):
        pages: Annotated[list, operator.add]

    @tool
    async def search(q: str, runtime: ToolRuntime) -> Command:
        """Search."""
        page = f"{len(runtime.state['pages'])} {runtime.tool_call_id}"
        result = ToolMessage("error: 503", tool_call_id=runtime.tool_call_id)
        return Command(update={"pages": [page], "messages": [result]})

    @tool
    def plain(q: str, runtime: ToolRuntime) -> str:
        """Search."""
        return f"error: 503 {len(runtime.state['pages'])}"

    calls = [SEARCH, ("plain", {"q": "b"})] if mode.startswith("a") else [("plain", {"q": "b"})]
    model = repeating_model(*calls)
    tools = [search, plain] if mode.startswith("a") else [plain]
    graph = compiled(builder(model, tools, State))
    outcome = await drive(graph, mode, {**ask(), "pages": []}, thread("t"))
    assert outcome.interrupts
    assert len(outcome.values["pages"]) in {0, len(model.requests) - 1}
    assert_requests_complete(model)


def test_an_interrupt_inside_a_tool_has_its_own_answer_beside_the_guards():
    ran = []

    @tool
    def pay(q: str) -> str:
        """Pay."""
        ran.append(interrupt(f"pay for {q}?"))
        return "error: no money"

    model = repeating_model(("pay", {"q": "a"}))
    graph = compiled(builder(model, [pay]))
    result = graph.invoke(ask(), thread("t"))
    questions = []
    for answer in ("yes", "yes", "continue", "yes"):
        questions.append(result["__interrupt__"][0].value)
        result = graph.invoke(Command(resume=answer), thread("t"))
    kinds = [q if isinstance(q, str) else q["type"] for q in questions]
    assert kinds == ["pay for a?", "pay for a?", "loop_detected", "pay for a?"]
    assert ran == ["yes"] * 3
    assert_requests_complete(model)


def test_a_graph_wide_timeout_and_a_retry_policy_are_heeded():
    counter, model = Counter(), repeating_model()
    graph = StateGraph(MessagesState)
    if hasattr(graph, "set_node_defaults"):
        graph.set_node_defaults(timeout=5)

    async def agent(state):
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph.add_node("agent", agent)
    tools = ToolNode([counting_tool(counter)])
    graph.add_node("tools", tools, retry_policy=RetryPolicy(retry_on=Exception))
    graph.add_edge(START, "agent")
    graph = compiled(graph, on_detected="refuse")
    import asyncio

    result = asyncio.run(graph.ainvoke(ask(), thread("t")))
    assert counter.total == 2
    assert result["messages"][-1].text.startswith("Stopped.")


def test_tools_written_by_hand_see_an_ai_message_with_the_calls_to_run_last():
    class State(MessagesState):
        user: str

    seen = []

    def tools(state):
        last = state["messages"][-1]
        seen.append((state["user"], [call["name"] for call in last.tool_calls]))
        return {"messages": [ToolMessage("x", tool_call_id=c["id"]) for c in last.tool_calls]}

    model = listed_model(*[BATCH] * 3)
    graph, _, _ = looping(owned, model=model, tools_node=tools, schema=State)
    graph.invoke({**ask(), "user": "u"}, thread("t"))
    result = graph.invoke(Command(resume=PARTLY), thread("t"))
    assert seen == [("u", ["search", "open"])] * 2 + [("u", ["open"])]
    assert_complete(result["messages"])


def test_calls_that_the_tools_left_out_get_results():
    def only_the_first(state):
        call = state["messages"][-1].tool_calls[0]
        return {"messages": [ToolMessage("x", tool_call_id=call["id"])]}

    graph, _, model = looping(owned, model=listed_model(BATCH), tools_node=only_the_first)
    assert_complete(graph.invoke(ask(), thread("t"))["messages"])
    assert_requests_complete(model)


@pytest.mark.parametrize("build", [owned, with_channel, by_hand])
def test_tools_may_answer_with_an_image_only_or_besides(build):
    def image(state):
        runs.append(1)
        return {"messages": [HumanMessage("image", additional_kwargs={"lc_source": "media"})]}

    def besides(state):
        call = state["messages"][-1].tool_calls[0]
        return {"messages": [ToolMessage("x", tool_call_id=call["id"]), *image(state)["messages"]]}

    runs = []
    model = listed_model(*[[("search", {"q": str(turn)})] for turn in range(3)])
    model.respond = partial(_by_number, model.respond)
    graph, _, _ = looping(build, model=model, tools_node=image)
    assert graph.invoke(ask(), thread("t"))["messages"][-1].text == "done"
    assert len(runs) == 3
    graph, _, model = looping(build, tools_node=besides, model=repeating_model())
    model.respond = lambda messages: ai_calls(
        [SEARCH], sum(isinstance(message, AIMessage) for message in messages)
    )
    assert "__interrupt__" in graph.invoke(ask(), thread("t"))
    assert len(model.requests) == 3


def _by_number(respond, messages):
    return respond([m for m in messages if not m.additional_kwargs.get("lc_source")])


def test_an_agent_that_says_nothing_ends_the_run_and_a_note_hides_no_loop():
    graph, _, _ = looping(owned, agent_node=lambda _: {})
    assert [m.type for m in graph.invoke(ask(), thread("t"))["messages"]] == ["human"]

    def agent(state):
        turn = sum(isinstance(message, AIMessage) for message in state["messages"])
        return {"messages": [ai_calls([SEARCH], turn), SystemMessage("step noted")]}

    graph, counter, _ = looping(owned, agent_node=agent)
    assert "__interrupt__" in graph.invoke(ask(), thread("t"))
    assert counter.total == 2
    assert_complete(graph.invoke(Command(resume="stop"), thread("t"))["messages"])


def test_an_agent_that_gives_its_whole_history_saves_no_warning():
    counter, model = Counter(), repeating_model(times=12)

    def agent(state):
        return {"messages": [*state["messages"], model.invoke(state["messages"])]}

    graph = builder_for(model, [counting_tool(counter)], agent_node=agent)
    graph = compiled(graph, policy=None, on_detected="warn")
    messages = graph.invoke(ask(), thread("t"))["messages"]
    assert any("[Warning" in message.text for message in model.requests[-1])
    assert not any("[Warning" in message.text for message in messages)


# --- States ---------------------------------------------------------------------------------------


class Model(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages]
    user: str = "u"


@dataclass
class Data:
    messages: Annotated[list[AnyMessage], add_messages]
    user: str = "u"


class Appended(TypedDict):
    messages: Annotated[list, operator.add]


class AppendedAndCounts(Appended):
    loop_guard: dict


class Formatted(TypedDict):
    messages: Annotated[list, add_messages(format="langchain-openai")]


class Shortened(TypedDict):
    messages: Annotated[list, lambda left, right: add_messages(left, right)[-50:]]


SCHEMAS = [Model, Data, Appended, AppendedAndCounts, Formatted, Shortened, LoopGuardState]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("build", [owned, by_hand])
@pytest.mark.parametrize("value", ["stop", "continue", "use b", PARTLY])
def test_a_state_of_any_schema_works(build, schema, value):
    def agent(state):
        return {"messages": [model.invoke(getattr(state, "messages", None) or state["messages"])]}

    model = listed_model(*[BATCH] * 3)
    names = ("search", "open")
    graph, counter, _ = looping(build, model=model, names=names, schema=schema, agent_node=agent)
    assert "__interrupt__" in graph.invoke(ask(), thread("t"))
    result = graph.invoke(Command(resume=value), thread("t"))
    runs = {"stop": (2, 2), "continue": (3, 3), "use b": (2, 2)}.get(str(value), (2, 3))
    assert (counter.of("search"), counter.of("open")) == runs
    assert_complete(result["messages"])
    assert_requests_complete(model)


def test_a_reducer_that_only_appends_is_named_in_the_log(caplog):
    add_loop_guard(builder(schema=Appended))
    assert ["only appends" in record.getMessage() for record in caplog.records] == [True]


def test_messages_kept_as_mappings_are_guarded():
    def agent(state):
        function = {"name": "search", "arguments": '{"q": "a"}'}
        call = {"id": f"c{len(state['messages'])}", "type": "function", "function": function}
        return {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]}

    def tools(state):
        runs.append(1)
        last = state["messages"][-1]["tool_calls"][0]
        return {"messages": [{"role": "tool", "content": "error", "tool_call_id": last["id"]}]}

    runs = []
    graph = builder_for(repeating_model(), [], Appended, tools_node=tools, agent_node=agent)
    graph = compiled(graph)
    assert "__interrupt__" in graph.invoke({"messages": []}, thread("t"))
    assert len(runs) == 2
    result = graph.invoke(Command(resume="stop"), thread("t"))
    assert_complete(convert_to_messages(result["messages"]))


def test_open_calls_of_the_input_get_results_in_their_place():
    model = listed_model()
    graph = with_channel(model, [counting_tool(Counter())])
    step = ai_calls([("search", {"q": "a"}), ("search", {"q": "b"})], 1)
    first = ToolMessage("x", tool_call_id="call_1_0")
    given = [*ask()["messages"], step, first, *ask("next")["messages"]]
    messages = graph.invoke({"messages": given}, thread("t"))["messages"]
    assert [m.type for m in messages] == ["human", "ai", "tool", "tool", "human", "ai"]
    assert_complete(messages)
    before = list(messages)
    after = graph.invoke(ask("next"), thread("t"))["messages"]
    assert after[: len(before)] == before


def test_the_counts_are_json_small_and_no_part_of_the_output():
    import json

    for build, shown in ((owned, False), (with_channel, True)):
        graph, _, _ = looping(build, policy=None)
        result = graph.invoke(ask(), thread("t"))
        assert ("loop_guard" in result) is shown
        saved = graph.checkpointer.get_tuple(thread("t")).checkpoint["channel_values"]
        assert len(json.dumps(saved["loop_guard"])) < 4000


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
