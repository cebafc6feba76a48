"""Is what the README says under "Nothing happens?" what is seen, and does what helps help?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_loopguard import (
    LoopDetectedError,
    LoopGuardCallbackHandler,
    LoopGuardMiddleware,
    LoopGuardPolicy,
)
from tests.adapters.guarded import owned
from tests.hosts import (
    Counter,
    agent_as_tool,
    agent_executor,
    agent_graph,
    ask,
    counting_tool,
    lcel_chain,
    repeating_model,
    thread,
    tool_node_graph,
)

README = Path(__file__).parent.parent.parent / "README.md"
SEED = LoopGuardPolicy.seed()
LOGGER = "langchain_core.callbacks.manager"


def test_every_symptom_of_the_readme_is_here():
    table = README.read_text(encoding="utf-8").split("## Nothing happens?")[1].split("##")[0]
    told = re.findall(r"^\| (.+?) \|", table, flags=re.MULTILINE)[1:]
    known = [
        "nothing is ever asked",
        "names a checkpointer",
        "from a chain or an `AgentExecutor`",
        "a loop around a chain",
        "an agent inside a tool",
        "the log says",
        "waiting is asked about",
    ]
    assert [name for name, line in zip(known, told, strict=True) if name not in line] == []


def with_handler(model, tools, **options):
    """An agent with the callback handler, and the config that brings it."""
    graph = agent_graph(model, tools, checkpointer=InMemorySaver())
    return graph, thread("t", LoopGuardCallbackHandler(**options))


def with_middleware(model, tools, **options):
    """An agent with the middleware."""
    guard = [LoopGuardMiddleware(**options)]
    return agent_graph(model, tools, middleware=guard, checkpointer=InMemorySaver()), thread("t")


def with_node(model, tools, **options):
    """A graph with the node."""
    return owned(model, tools, **options), thread("t")


ADAPTERS = pytest.mark.parametrize(
    "build", [with_handler, with_middleware, with_node], ids=["handler", "middleware", "node"]
)


# --- Nothing is ever asked ------------------------------------------------------------------------


def test_the_class_in_place_of_an_instance_guards_nothing(caplog):
    ran = Counter()
    graph = agent_graph(repeating_model(times=30), [counting_tool(ran)])
    graph.invoke(ask(), {"callbacks": [LoopGuardCallbackHandler], "recursion_limit": 100})
    assert (ran.total, caplog.records) == (30, [])


def test_an_instance_asks():
    ran = Counter()
    graph, config = with_handler(repeating_model(times=30), [counting_tool(ran)])
    assert "__interrupt__" in graph.invoke(ask(), config)
    assert ran.total < 30


# --- LoopDetectedError ----------------------------------------------------------------------------


@pytest.mark.parametrize("host", [agent_graph, tool_node_graph])
def test_without_a_checkpointer_the_error_says_what_to_do(host):
    graph = host(repeating_model(), [counting_tool(Counter())])
    with pytest.raises(LoopDetectedError, match=r"create_agent\(.*compile\(.*`on_detected`"):
        graph.invoke(ask(), {"callbacks": [LoopGuardCallbackHandler(SEED)]})


def test_an_agent_executor_ends_in_the_error():
    executor = agent_executor(repeating_model(), [counting_tool(Counter())])
    with pytest.raises(LoopDetectedError, match="no graph here that could ask"):
        executor.invoke({"input": "go"}, {"callbacks": [LoopGuardCallbackHandler(SEED)]})


# --- A loop around a chain ------------------------------------------------------------------------


def around_a_chain(handler, *, history):
    """Call a chain nine times; says how often its tool ran."""
    ran = Counter()
    chain = lcel_chain(repeating_model(), [counting_tool(ran)])
    messages = [HumanMessage("go")]
    for _ in range(9):
        new = chain.invoke(messages, {"callbacks": [handler]})
        messages += new if history else []
    return ran.total


def test_a_loop_around_a_chain_without_a_history_is_not_found():
    assert around_a_chain(LoopGuardCallbackHandler(SEED), history=False) == 9


@pytest.mark.parametrize(
    ("options", "history"),
    [
        pytest.param({}, True, id="the history is passed on"),
        pytest.param({"scope": "handler"}, False, id="counted over the handler"),
    ],
)
def test_a_loop_around_a_chain_is_found_with_what_helps(options, history):
    with pytest.raises(LoopDetectedError):
        around_a_chain(LoopGuardCallbackHandler(SEED, **options), history=history)


# --- An agent inside a tool -----------------------------------------------------------------------


def inside_a_tool(build, inner, **options):
    """Run an agent under a guard whose tool is another agent."""
    graph, config = build(
        repeating_model(("task", {"q": "x"}), times=1), [agent_as_tool(inner)], **options
    )
    return graph.invoke(ask(), config)


@pytest.mark.parametrize("build", [with_middleware, with_node], ids=["middleware", "node"])
def test_an_agent_inside_a_tool_is_not_seen_by_the_guard_around_it(build):
    ran = Counter()
    inner = agent_graph(repeating_model(times=9), [counting_tool(ran)])
    assert "__interrupt__" not in inside_a_tool(build, inner, policy=SEED)
    assert ran.total == 9


@pytest.mark.parametrize("build", [with_middleware, with_node], ids=["middleware", "node"])
def test_an_agent_inside_a_tool_is_guarded_by_a_guard_of_its_own(build):
    ran = Counter()
    guard = LoopGuardMiddleware(SEED)
    inner = agent_graph(repeating_model(times=9), [counting_tool(ran)], middleware=[guard])
    assert "__interrupt__" in inside_a_tool(build, inner, policy=SEED)
    assert ran.total == 2


def test_the_handler_sees_an_agent_inside_a_tool():
    ran = Counter()
    inner = agent_graph(repeating_model(times=9), [counting_tool(ran)])
    assert "__interrupt__" in inside_a_tool(with_handler, inner, policy=SEED)
    assert ran.total == 2


# --- What LangChain logs --------------------------------------------------------------------------


def logged(caplog):
    lines = [record.getMessage() for record in caplog.records if record.name == LOGGER]
    caplog.clear()
    return lines


def test_an_interrupt_is_logged_as_an_error_in_the_handler(caplog):
    graph, config = with_handler(repeating_model(), [counting_tool(Counter())], policy=SEED)
    assert "__interrupt__" in graph.invoke(ask(), config)
    assert [line.partition(":")[0] for line in logged(caplog)] == [
        "Error in LoopGuardCallbackHandler.on_tool_start callback"
    ]


def test_the_end_of_a_run_is_logged_as_a_command_to_the_parent(caplog):
    graph, config = with_handler(repeating_model(), [counting_tool(Counter())], policy=SEED)
    graph.invoke(ask(), config)
    logged(caplog)
    graph.invoke(Command(resume="stop"), config)
    start = "Error in LoopGuardCallbackHandler.on_chat_model_start callback: ParentCommand("
    assert [line for line in logged(caplog) if line.startswith(start)]


# --- Waiting --------------------------------------------------------------------------------------


def waits(build, tool, **lists):
    """Let an agent call a tool with one answer; says how often it ran before it was asked about."""
    ran = Counter()
    named = counting_tool(ran, answer="still running", **tool)
    model = repeating_model((tool["name"], {"q": "7"}))
    graph, config = build(model, [named], policy=LoopGuardPolicy(**lists))
    assert "__interrupt__" in graph.invoke(ask(), {**config, "recursion_limit": 200})
    return ran.total


@ADAPTERS
@pytest.mark.parametrize("name", ["job_state", "poll_job", "await_job"])
def test_waiting_is_asked_about_where_the_name_does_not_say_so(name, build):
    assert waits(build, {"name": name}) == 5


POLLER = {"name": "job_state", "metadata": {"loop_guard": {"poller": True}}}


@ADAPTERS
def test_a_tool_that_is_declared_a_poller_is_asked_about_late(build):
    assert waits(build, POLLER) == 20


@ADAPTERS
@pytest.mark.parametrize(
    ("tool", "lists"),
    [
        pytest.param({"name": "job_state"}, {"poll_tools": ("job_state",)}, id="poll_tools"),
        pytest.param({"name": "wait_for_job"}, {}, id="a name that says wait"),
        pytest.param({"name": "sleep"}, {}, id="a name that says sleep"),
    ],
)
def test_a_tool_that_is_known_to_wait_is_asked_about_late(tool, lists, build):
    assert waits(build, tool, **lists) == 20
