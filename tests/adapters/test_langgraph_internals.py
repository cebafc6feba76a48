"""Does LangGraph still have what `adapters._langgraph` takes from it? Each on the real host."""

import operator
from typing import Annotated

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables.config import set_config_context
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command
from typing_extensions import TypedDict

from langchain_loopguard.adapters import _langgraph as host
from tests.hosts import ask, thread


def run(*nodes, saver=None, schema=MessagesState, value=None, config=None, path=None):
    """Run a graph of these nodes in a row; gives the graph and what it returned."""
    builder = StateGraph(schema)
    names = [f"n{number}" for number in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        builder.add_node(name, node)
    if path is not None:
        builder.add_conditional_edges(START, host.new_path("begin", path), names[:1])
    else:
        builder.add_edge(START, "n0")
    for one, other in zip(names, [*names[1:], END], strict=True):
        builder.add_edge(one, other)
    graph = builder.compile(checkpointer=saver)
    return graph, graph.invoke(value or ask(), config or thread("t"))


def seen_in_a_node(read, **options):
    seen = []
    run(lambda _: seen.append(read()), **options)
    return seen[0]


@pytest.mark.parametrize(("saver", "can"), [(None, False), (InMemorySaver(), True)])
def test_a_person_can_be_asked_where_the_thread_is_saved(saver, can):
    assert seen_in_a_node(host.can_ask, saver=saver) is can


def test_nobody_can_be_asked_outside_a_graph():
    assert host.can_ask() is False
    assert host.read_channel("messages") is None
    assert host.is_nested() is False
    assert host.is_resumed() is False


def test_a_question_is_asked_and_its_answer_given():
    schema = {"anyOf": [{"const": "yes"}]}
    given, resumed = [], []

    def node(_):
        resumed.append(host.is_resumed())
        given.append(host.ask_person({"type": "q"}, schema))

    graph, result = run(node, saver=InMemorySaver())
    asked = result["__interrupt__"][0]
    assert asked.value == {"type": "q"}
    assert getattr(asked, "response_schema", schema) == schema
    graph.invoke(Command(resume="no"), thread("t"))
    assert (given, resumed) == (["no"], [False, True])


def test_a_question_leaves_by_a_signal_that_is_known():
    from langchain_loopguard.langchain.errors import is_signal

    caught = []

    def node(_):
        try:
            host.ask_person({}, {})
        except GraphInterrupt as signal:
            caught.append(is_signal(signal))
            raise

    run(node, saver=InMemorySaver())
    assert caught == [True]
    assert not is_signal(ValueError())


def test_a_channel_is_read_that_is_no_part_of_the_nodes_input():
    class Other(TypedDict):
        count: int

    class State(MessagesState):
        count: int

    def node(state: Other):
        return {"count": len(host.read_channel("messages"))}

    _, result = run(node, schema=State, value={**ask(), "count": 7})
    assert result["count"] == 1
    assert seen_in_a_node(lambda: host.read_channel("nothing")) is None
    channel = seen_in_a_node(lambda: host.running_channel("messages"))
    assert host.replaces_by_id(channel)


def test_the_start_is_seen_with_its_input_and_written_to():
    seen = []

    def note():
        seen.append(host.read_channel("messages"))
        seen.append([m.text for m in host.read_channel("messages", fresh=True)])
        seen.append(host.is_nested())
        host.write_channel("messages", [("human", "and more")])

    def begin(_, config):
        with set_config_context(config) as context:
            context.run(note)
        return "n0"

    _, result = run(lambda _: {}, path=begin, saver=InMemorySaver())
    assert seen == [[], ["go"], False]
    assert [m.text for m in result["messages"]] == ["go", "and more"]


def test_the_start_is_not_seen_again_on_a_resume():
    seen = []
    graph, _ = run(
        lambda _: host.ask_person({}, {}) and None,
        path=lambda *_: seen.append(1) or "n0",
        saver=InMemorySaver(),
    )
    graph.invoke(Command(resume="x"), thread("t"))
    assert seen == [1]


def test_a_scope_names_the_graph_within_the_thread():
    scopes = []

    def note(_):
        scopes.append((host.agent_scope(), host.is_nested(), host.thread_key().split("|")[0]))

    inner = StateGraph(MessagesState)
    inner.add_node("inside", note)
    inner.add_edge(START, "inside")
    run(note, inner.compile(), config=thread("a" * 100))
    (outer, outer_nested, key), (scope, nested, _) = scopes
    assert (outer, outer_nested, nested) == ("", False, True)
    assert scope.startswith("n1:")
    assert key.startswith("xxh3:")


def test_a_wrapped_node_keeps_config_context_tools_and_sub_graphs():
    from langgraph.prebuilt import ToolNode

    inner = StateGraph(MessagesState)
    inner.add_node("inside", lambda _: {"messages": [("ai", "hello")]})
    inner.add_edge(START, "inside")
    builder = StateGraph(MessagesState)
    builder.add_node("sub", inner.compile())
    builder.add_node("tools", ToolNode([]))
    builder.add_edge(START, "sub")
    seen = []

    def around(state, call):
        seen.append(get_config()["metadata"]["langgraph_node"])
        return call(state)

    async def around_async(state, call):
        seen.append("async")
        return await call(state)

    for name in ("sub", "tools"):
        host.wrap_node(builder, name, around, around_async)
    graph = builder.compile()
    assert graph.invoke(ask(), {})["messages"][-1].text == "hello"
    assert seen == ["sub"]
    assert [name for name, _ in graph.get_subgraphs()] == ["sub"]
    assert builder.nodes["tools"].runnable.tools_by_name == {}
    assert "inside" in str(graph.get_graph(xray=1).nodes)


def test_a_conditional_edge_can_be_routed_anew():
    builder = StateGraph(MessagesState)
    builder.add_node("a", lambda _: {})
    builder.add_node("b", lambda _: {"messages": [("ai", "b")]})
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", lambda _: "go", {"go": "b"})
    name, branch = next(iter(builder.branches["a"].items()))
    builder.branches["a"][name] = host.routed_path(branch, lambda *_: END, END)
    assert len(builder.compile().invoke(ask())["messages"]) == 1
    builder.branches["a"][name] = host.routed_path(branch, lambda _, __, way: way, END)
    assert builder.compile().invoke(ask())["messages"][-1].text == "b"


@pytest.mark.parametrize("saved", [True, False])
def test_an_edge_without_state_sees_what_its_node_wrote(saved):
    seen = []
    builder = StateGraph(MessagesState)
    builder.add_node("a", lambda _: {"messages": [AIMessage("a1"), AIMessage("a2")]})
    builder.add_edge(START, "a")

    def path(state, config):
        seen.append((state, [str(one.text) for one in host.written_messages(config, "messages")]))
        return END

    builder.add_conditional_edges("a", host.new_path("ahead", path), [END])
    host.read_no_state(builder, "a", "ahead")
    graph = builder.compile(checkpointer=InMemorySaver() if saved else None)
    graph.invoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t"}})
    assert [texts for _, texts in seen] == [["a1", "a2"]]
    assert "go" not in str(seen)


def test_an_added_channel_is_saved_and_no_part_of_the_output():
    builder = StateGraph(MessagesState)
    host.add_channel(builder, "kept")
    builder.add_node("a", lambda _: {"kept": {"n": 1}})
    builder.add_edge(START, "a")
    graph = builder.compile(checkpointer=InMemorySaver())
    assert set(graph.invoke(ask(), thread("t"))) == {"messages"}
    saved = graph.checkpointer.get_tuple(thread("t")).checkpoint["channel_values"]
    assert saved["kept"] == {"n": 1}


@pytest.mark.parametrize(
    ("reducer", "replaces"),
    [
        (add_messages, True),
        (add_messages(format="langchain-openai"), True),
        (lambda left, right: add_messages(left, right)[-50:], True),
        (operator.add, False),
        (lambda left, right: left // right, False),
    ],
)
def test_a_reducer_is_known_by_what_it_does(reducer, replaces):
    class State(TypedDict):
        messages: Annotated[list, reducer]

    assert host.replaces_by_id(StateGraph(State).channels["messages"]) is replaces


# --- Questions that tasks have asked ----------------------------------------------------------


def task_ns():
    return get_config()["configurable"]["checkpoint_ns"]


def looked(ns):
    return host.running_task(ns, "messages") is not None


def test_a_task_is_known_by_its_namespace():
    assert seen_in_a_node(lambda: (looked(task_ns()), looked("n0:1"))) == (True, False)
    assert looked("") is False


def test_a_saved_question_and_what_the_thread_is_resumed_with_are_seen_in_a_later_run():
    saver, seen = InMemorySaver(), []

    def node(_):
        seen.append((host.question_id(task_ns()), host.saved_questions(), host.given_resume()))
        host.ask_person({"type": "q"}, {})

    graph, asked = run(node, saver=saver)
    graph.invoke(Command(resume="yes"), thread("t"))
    (own, before, nothing), (again, (question,), given) = seen
    assert (before, nothing, given, own) == ([], None, "yes", again)
    assert (question.id, question.value, list(question.answers)) == (own, {"type": "q"}, [])
    assert asked["__interrupt__"][0].id == own


def test_outside_a_graph_there_are_no_questions():
    assert host.saved_questions() == []
    assert host.given_resume() is None
