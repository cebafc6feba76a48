"""Is what the documentation says of an agent that is not guarded so, and does what helps help?"""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from langchain_loopguard import LoopGuardCallbackHandler, LoopGuardMiddleware, LoopGuardPolicy
from tests.adapters.guarded import owned
from tests.hosts import (
    Counter,
    agent_as_tool,
    agent_graph,
    ask,
    counting_tool,
    listed_model,
    repeating_model,
    thread,
)

SEED = LoopGuardPolicy.seed()


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


every_adapter = pytest.mark.parametrize("build", [with_handler, with_middleware, with_node])


def test_the_class_in_place_of_an_instance_guards_nothing(caplog):
    ran = Counter()
    graph = agent_graph(repeating_model(times=30), [counting_tool(ran)])
    graph.invoke(ask(), {"callbacks": [LoopGuardCallbackHandler], "recursion_limit": 100})
    assert (ran.total, caplog.records) == (30, [])
    graph.invoke(ask(), {"callbacks": [LoopGuardCallbackHandler()], "recursion_limit": 100})
    assert ran.total < 60


@pytest.mark.parametrize(
    ("build", "own", "found"),
    [
        (with_middleware, (), False),
        (with_node, (), False),
        (with_middleware, (LoopGuardMiddleware(SEED),), True),
        (with_node, (LoopGuardMiddleware(SEED),), True),
        (with_handler, (), True),
    ],
)
def test_an_agent_inside_a_tool_needs_a_guard_of_its_own_or_the_handler(build, own, found):
    ran = Counter()
    inner = agent_graph(repeating_model(times=9), [counting_tool(ran)], middleware=own)
    outer = repeating_model(("task", {"q": "x"}), times=1)
    graph, config = build(outer, [agent_as_tool(inner)], policy=SEED)
    assert ("__interrupt__" in graph.invoke(ask(), config)) is found
    assert ran.total == (2 if found else 9)


DECLARED = {"metadata": {"loop_guard": {"poller": True}}}


@every_adapter
@pytest.mark.parametrize(
    ("tool", "lists", "late"),
    [
        pytest.param({"name": "lookup"}, {}, False, id="no sign"),
        pytest.param({"name": "lookup", **DECLARED}, {}, True, id="declared"),
        pytest.param({"name": "lookup"}, {"poll_tools": ("lookup",)}, True, id="listed"),
    ],
)
def test_waiting_is_asked_about_late_where_something_says_that_it_is(build, tool, lists, late):
    ran = Counter()
    named = counting_tool(ran, answer="nothing here", **tool)
    model = repeating_model((tool["name"], {"q": "7"}))
    graph, config = build(model, [named], policy=LoopGuardPolicy(**lists))
    assert "__interrupt__" in graph.invoke(ask(), {**config, "recursion_limit": 200})
    assert (ran.total > 8) is late


@every_adapter
@pytest.mark.parametrize(
    ("own", "runs"),
    [
        pytest.param({"identity": ["q"]}, 5, id="the arguments that identify a call"),
        pytest.param({"identity": ["q"], "limit": 3}, 2, id="a limit of its own"),
        pytest.param({"identity": ["q"], "limit": 30, "poller": True}, 29, id="a poller's limit"),
    ],
)
def test_what_a_tool_declares_counts_in_every_adapter(build, own, runs):
    ran = Counter()
    named = counting_tool(ran, answer="nothing here", name="lookup", metadata={"loop_guard": own})
    model = listed_model(*[[("lookup", {"q": "7", "note": f"n{n}"})] for n in range(40)])
    graph, config = build(model, [named], policy=LoopGuardPolicy())
    assert "__interrupt__" in graph.invoke(ask(), {**config, "recursion_limit": 200})
    assert ran.total == runs
