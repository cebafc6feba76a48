"""Does the guard own the edges it needs, and is a graph it can't guard refused at construction?"""

import operator
from functools import partial
from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from langchain_loopguard.node import LoopGuardNode, LoopGuardState, add_loop_guard
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
    Counter,
    ScriptedChatModel,
    ai_calls,
    ask,
    counting_tool,
    listed_model,
    repeating_model,
    thread,
)


class Appended(TypedDict):
    messages: Annotated[list, operator.add]


def builder(model=None, schema=MessagesState):
    return builder_for(model or repeating_model(), [counting_tool(Counter())], schema)


def edges_of(graph):
    return {(edge.source, edge.target) for edge in graph.get_graph().edges}


class TestAddLoopGuard:
    def test_draws_every_way_that_a_run_can_take(self):
        assert edges_of(add_loop_guard(builder()).compile()) == {
            ("__start__", "loop_guard_repair"),
            ("loop_guard_repair", "agent"),
            ("agent", "loop_guard"),
            ("tools", "loop_guard"),
            ("loop_guard", "agent"),
            ("loop_guard", "tools"),
            ("loop_guard", "__end__"),
        }

    def test_gives_the_same_builder_back(self):
        graph = builder()
        assert add_loop_guard(graph) is graph

    def test_leaves_a_start_alone_that_does_not_lead_to_the_agent(self):
        graph = StateGraph(MessagesState)
        graph.add_node("agent", lambda state: {})
        graph.add_node("tools", ToolNode([counting_tool(Counter())]))
        graph.add_node("retrieve", lambda state: {})
        graph.add_edge(START, "retrieve")
        graph.add_edge("retrieve", "agent")
        edges = edges_of(add_loop_guard(graph).compile())
        assert {("__start__", "retrieve"), ("retrieve", "agent")} <= edges

    def test_goes_on_to_another_end(self):
        counter = Counter()
        graph = builder_for(repeating_model(times=1), [counting_tool(counter)])
        graph.add_node("respond", lambda state: {"messages": [AIMessage("bye")]})
        graph.add_edge("respond", END)
        add_loop_guard(graph, end="respond")
        assert graph.compile().invoke(ask())["messages"][-1].content == "bye"

    def test_leaves_managed_values_of_the_state_alone(self):
        class State(MessagesState):
            left: RemainingSteps

        seen = []
        graph = builder(schema=State)
        graph.add_node("last", lambda state: seen.append(state["left"]))
        add_loop_guard(graph, policy=SEED, end="last", on_detected="refuse")
        graph.compile().invoke(ask(), {"recursion_limit": 50})
        assert 0 < seen[0] < 50

    def test_takes_nodes_by_other_names(self):
        counter = Counter()
        graph = StateGraph(LoopGuardState)
        model = repeating_model()
        graph.add_node("llm", lambda state: {"messages": [model.invoke(state["messages"])]})
        graph.add_node("run", ToolNode([counting_tool(counter)]))
        graph.add_edge(START, "llm")
        add_loop_guard(graph, "llm", "run", name="watch", policy=SEED)
        result = graph.compile(checkpointer=InMemorySaver()).invoke(ask(), thread("t"))
        assert "__interrupt__" in result
        assert counter.total == 2

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            pytest.param({"agent": "llm"}, r"agent: .*'llm'.*\['agent', 'tools'\]", id="agent"),
            pytest.param({"tools": "run"}, r"tools: .*'run'.*\['agent', 'tools'\]", id="tools"),
            pytest.param({"tools": "agent"}, r"tools: .*another node", id="same"),
            pytest.param({"end": "bye"}, r"end: .*'bye'.*\['agent', 'tools'\]", id="end"),
            pytest.param({"name": "tools"}, "name: .*'tools' already", id="name"),
            pytest.param({"messages_key": "chat"}, r"messages_key: .*'chat'.*messages", id="key"),
            pytest.param(
                {"on_detected": "shout"},
                "on_detected: must be one of .*'warn', 'wrap_up', not 'shout'",
                id="on_detected",
            ),
            pytest.param({"policy": "seed"}, "policy: must be a LoopGuardPolicy", id="policy"),
            pytest.param({"state_key": ""}, "state_key: must be a name", id="state_key"),
            pytest.param(
                {"state_key": "messages"}, "state_key: must be another key", id="the messages' key"
            ),
            pytest.param({"name": ""}, "name: must be a name", id="name"),
            pytest.param(
                {"agent_inbox": "yes"}, "agent_inbox: .*True or False, not 'yes'", id="inbox"
            ),
            pytest.param(
                {"fail_open": "no"}, "fail_open: must be True or False, not 'no'", id="open"
            ),
            pytest.param({"fail_open": None}, "fail_open: must be True or False", id="open-none"),
        ],
    )
    def test_refuses_what_is_wrong_and_names_the_field(self, options, text):
        graph = builder()
        with pytest.raises(ValueError, match=text):
            add_loop_guard(graph, **options)
        assert set(graph.nodes) == {"agent", "tools"}

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            pytest.param({"tool_list": "abc"}, "tool_list: .*list of tools, not 'abc'", id="text"),
            pytest.param(
                {"tool_list": 5}, "tool_list: must be a list of tools, not 5", id="number"
            ),
            pytest.param({"tool_list": counting_tool(Counter())}, "tool_list: must", id="one tool"),
        ],
    )
    def test_a_node_wired_by_hand_refuses_what_is_wrong_too(self, options, text):
        with pytest.raises(ValueError, match=text):
            LoopGuardNode(**options)

    def test_refuses_a_compiled_graph(self):
        with pytest.raises(ValueError, match="builder: must be a StateGraph"):
            add_loop_guard(add_loop_guard(builder()).compile())

    def test_refuses_a_second_guard_of_the_same_name(self):
        with pytest.raises(ValueError, match="name:"):
            add_loop_guard(add_loop_guard(builder()))

    @pytest.mark.parametrize(
        ("wire", "text"),
        [
            pytest.param(
                lambda graph: graph.add_conditional_edges("agent", tools_condition),
                "agent: .*tools_condition",
                id="condition",
            ),
            pytest.param(
                lambda graph: graph.add_edge("agent", "tools"),
                "agent: .*agent -> tools",
                id="edge-to-the-tools",
            ),
            pytest.param(
                lambda graph: graph.add_edge("agent", END), "agent: .*__end__", id="edge-to-the-end"
            ),
            pytest.param(
                lambda graph: graph.add_edge("tools", "agent"),
                "tools: .*tools -> agent",
                id="edge-back",
            ),
            pytest.param(
                lambda graph: graph.add_edge(["agent", "tools"], "other"),
                "agent: .*-> other",
                id="edge-of-both",
            ),
            pytest.param(
                lambda graph: graph.add_conditional_edges(
                    "tools", lambda state: "agent", {"agent": "agent", "end": END}
                ),
                r"tools: .*__end__ \| agent",
                id="condition-with-a-map",
            ),
        ],
    )
    def test_refuses_edges_that_would_run_besides_its_own(self, wire, text):
        graph = builder()
        graph.add_node("other", lambda state: {})
        wire(graph)
        with pytest.raises(ValueError, match=text):
            add_loop_guard(graph)

    def test_refuses_an_agent_that_routes_by_command(self):
        graph = StateGraph(MessagesState)
        graph.add_node("agent", lambda state: Command(goto="tools"), destinations=("tools", END))
        graph.add_node("tools", ToolNode([counting_tool(Counter())]))
        graph.add_edge(START, "agent")
        with pytest.raises(ValueError, match=r"agent: .*Command: __end__ \| tools"):
            add_loop_guard(graph)


def test_the_host_follows_a_static_edge_besides_the_guard():
    # Why the edges are owned: after "stop" the run goes on to the tools all the same.
    visits = []
    graph = builder_for(
        repeating_model(), [counting_tool(Counter())], tools_node=lambda state: visits.append(1)
    )
    graph.add_node("guard", LoopGuardNode(SEED))
    graph.add_edge("agent", "guard")
    graph.add_edge("guard", "tools")
    graph.add_edge("tools", END)
    compiled = graph.compile(checkpointer=InMemorySaver())
    given = [*ask()["messages"]]
    for turn in (1, 2):
        answer = ToolMessage("error", tool_call_id=f"call_{turn}_0")
        given += [ai_calls([("search", {"q": "a"})], turn), answer]
    compiled.invoke({"messages": given}, thread("t"))
    assert visits == []
    compiled.invoke(Command(resume="stop"), thread("t"))
    assert visits == [1]


def test_two_guards_at_the_same_time_ask_and_count_apart():
    class State(TypedDict):
        left: Annotated[list, add_messages]
        right: Annotated[list, add_messages]

    counter, model = Counter(), repeating_model()
    graph = StateGraph(State)
    for side in ("left", "right"):
        graph.add_node(
            f"agent_{side}", lambda state, side=side: {side: [model.invoke(state[side])]}
        )
        graph.add_node(f"tools_{side}", ToolNode([counting_tool(counter)], messages_key=side))
        graph.add_edge(START, f"agent_{side}")
        add_loop_guard(
            graph,
            f"agent_{side}",
            f"tools_{side}",
            name=f"guard_{side}",
            policy=SEED,
            messages_key=side,
            state_key=f"counts_{side}",
        )
    compiled = graph.compile(checkpointer=InMemorySaver())
    given = {"left": ask()["messages"], "right": ask()["messages"]}
    asked = compiled.invoke(given, thread("t"))["__interrupt__"]
    assert len(asked) == 2
    assert counter.total == 4
    answers = {question.id: "stop" for question in asked}
    result = compiled.invoke(Command(resume=answers), thread("t"))
    assert counter.total == 4
    assert_complete(result["left"])
    assert_complete(result["right"])


class TestRepair:
    def test_answers_open_calls_in_their_place(self):
        model = listed_model()
        graph = with_channel(model, [counting_tool(Counter())])
        batch = ai_calls([("search", {"q": "a"}), ("search", {"q": "b"})], 1)
        first = ToolMessage("x", tool_call_id="call_1_0")
        given = [*ask()["messages"], batch, first, *ask("next")["messages"]]
        result = graph.invoke({"messages": given}, thread("t"))
        assert_complete(result["messages"])
        assert_requests_complete(model)
        assert [m.type for m in result["messages"]] == [
            "human",
            "ai",
            "tool",
            "tool",
            "human",
            "ai",
        ]

    def test_leaves_a_complete_history_alone(self):
        graph = with_channel(repeating_model(times=1), [counting_tool(Counter())])
        graph.invoke(ask(), thread("t"))
        before = graph.get_state(thread("t")).values["messages"]
        graph.invoke(ask("next"), thread("t"))
        after = graph.get_state(thread("t")).values["messages"]
        assert after[: len(before)] == before

    @pytest.mark.parametrize(
        "reducer",
        [
            add_messages(format="langchain-openai"),
            partial(add_messages, format=None),
            lambda left, right: add_messages(left, right)[-50:],
        ],
        ids=["with a format", "partial", "wrapped"],
    )
    def test_is_done_with_a_reducer_that_is_built_upon_the_usual_one(self, reducer, caplog):
        class State(TypedDict):
            messages: Annotated[list, reducer]

        model = repeating_model(times=3)
        graph = owned(model, [counting_tool(Counter())], schema=State)
        assert "__interrupt__" in graph.invoke(ask(), thread("t"))
        graph.invoke(ask("never mind"), thread("t"))
        assert_requests_complete(model)
        assert not caplog.records

    def test_is_not_tried_with_a_reducer_that_only_appends(self, caplog):
        graph = builder(schema=Appended)
        add_loop_guard(graph, policy=SEED)
        assert ("__start__", "agent") in edges_of(graph.compile())
        assert ["only appends" in record.getMessage() for record in caplog.records] == [True]

    def test_is_not_tried_with_a_reducer_that_fails(self, caplog):
        def picky(left, right):
            raise TypeError

        class State(TypedDict):
            messages: Annotated[list, picky]

        graph = builder(schema=State)
        add_loop_guard(graph, policy=SEED)
        assert len(caplog.records) == 1


class AppendedAndCounts(Appended):
    loop_guard: dict


def naming(messages):
    """Repeat a call in messages with ids, as the models of every provider have them."""
    turn = sum(isinstance(message, AIMessage) for message in messages)
    message = ai_calls([("search", {"q": "a"})], turn)
    return message.model_copy(update={"id": f"run-{turn}", "content": "I look."})


class TestMessagesThatAreOnlyAppended:
    """`operator.add` keeps a message beside the one with the same id that was to replace it."""

    @pytest.mark.parametrize("schema", [Appended, AppendedAndCounts])
    @pytest.mark.parametrize("build", [owned, by_hand])
    @pytest.mark.parametrize(
        "value",
        [
            "continue",
            "use b",
            {
                "decisions": [
                    {"type": "edit", "edited_action": {"name": "search", "args": {"q": "z"}}}
                ]
            },
        ],
        ids=["continue", "text", "edit"],
    )
    def test_stay_valid_whatever_a_person_answers(self, build, schema, value):
        counter, model = Counter(), ScriptedChatModel(respond=naming)
        graph = build(model, [counting_tool(counter)], schema=schema)
        assert "__interrupt__" in graph.invoke(ask(), thread("t"))
        graph.invoke(Command(resume=value), thread("t"))
        assert_requests_complete(model)
        assert_complete(graph.invoke(Command(resume="stop"), thread("t"))["messages"])
        ran = [args["q"] for _, args in counter.runs]
        assert ran[2:3] == {"continue": ["a"], "use b": []}.get(str(value), ["z"])

    @pytest.mark.parametrize("build", [owned, by_hand])
    @pytest.mark.parametrize(("value", "runs"), [("stop", 2), ("continue", 3)])
    def test_hide_no_answer_behind_a_remark(self, build, value, runs):
        def respond(messages):
            said = any(message.content == "be brief" for message in messages)
            return AIMessage(content="done") if said else naming(messages)

        counter = Counter()
        model = ScriptedChatModel(respond=respond)
        graph = build(model, [counting_tool(counter)], schema=Appended)
        graph.invoke(ask(), thread("t"))
        remark = {"messages": [HumanMessage("be brief")]}
        result = graph.invoke(Command(resume=value, update=remark), thread("t"))
        assert counter.total == runs
        assert not any(isinstance(message, RemoveMessage) for message in result["messages"])

    def test_stay_valid_when_a_last_answer_makes_calls(self):
        model = ScriptedChatModel(respond=naming)
        tools = [counting_tool(Counter())]
        graph = owned(model, tools, schema=Appended, on_detected="wrap_up")
        messages = graph.invoke(ask(), thread("t"))["messages"]
        assert_complete(messages)
        assert messages[-1].content == "I look."

    def test_get_no_hint_in_an_answer_that_has_an_id(self):
        def tools(state):
            asked = state["messages"][-1].tool_calls
            answers = [ToolMessage("error", tool_call_id=c["id"], id=c["id"]) for c in asked]
            return {"messages": answers}

        model = ScriptedChatModel(respond=naming)
        graph = builder_for(model, [], schema=Appended, tools_node=tools)
        add_loop_guard(graph)
        graph.compile(checkpointer=InMemorySaver()).invoke(ask(), thread("t"))
        assert_requests_complete(model)


@pytest.mark.parametrize("value", ["stop", "continue", "use b"])
def test_messages_without_ids_are_guarded_too(value):
    class State(TypedDict):
        messages: Annotated[list, operator.add]

    counter = Counter()
    model = repeating_model(times=4)
    graph = builder_for(model, [counting_tool(counter)], State)
    add_loop_guard(graph, policy=SEED)
    compiled = graph.compile(checkpointer=InMemorySaver())
    assert "__interrupt__" in compiled.invoke(ask(), thread("t"))
    assert counter.total == 2
    result = compiled.invoke(Command(resume=value), thread("t"))
    assert_requests_complete(model)
    assert counter.total == {"stop": 2, "continue": 4, "use b": 2}[value]
    if "__interrupt__" not in result:
        assert_complete(result["messages"])


def test_messages_kept_as_mappings_are_guarded_too():
    class State(TypedDict):
        messages: Annotated[list, operator.add]

    def call(turn):
        function = {"name": "search", "arguments": '{"q": "a"}'}
        return {"id": f"c{turn}", "type": "function", "function": function}

    def agent(state):
        turn = len(state["messages"])
        return {"messages": [{"role": "assistant", "content": "", "tool_calls": [call(turn)]}]}

    def tools(state):
        runs.append(1)
        last = state["messages"][-1]["tool_calls"][0]
        return {"messages": [{"role": "tool", "content": "error", "tool_call_id": last["id"]}]}

    runs = []
    graph = builder_for(
        repeating_model(), [counting_tool(Counter())], State, tools_node=tools, agent_node=agent
    )
    add_loop_guard(graph, policy=SEED)
    compiled = graph.compile(checkpointer=InMemorySaver())
    assert "__interrupt__" in compiled.invoke({"messages": []}, thread("t"))
    assert len(runs) == 2
    result = compiled.invoke(Command(resume="stop"), thread("t"))
    assert_complete(convert_to_messages(result["messages"]))
