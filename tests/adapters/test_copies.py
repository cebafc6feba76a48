"""Is a copy of an adapter one with the same options that has seen nothing?

Applications copy their graphs with `copy.deepcopy`, and send them to other processes.
"""

from __future__ import annotations

import copy
import pickle

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from langchain_loopguard import (
    LoopGuardCallbackHandler,
    LoopGuardMiddleware,
    LoopGuardNode,
    LoopGuardPolicy,
    add_loop_guard,
)
from tests.adapters.guarded import builder_for
from tests.hosts import Counter, agent_graph, ask, counting_tool, repeating_model, thread

SEED = LoopGuardPolicy.seed()
ADAPTERS = {
    "handler": LoopGuardCallbackHandler,
    "middleware": LoopGuardMiddleware,
    "node": LoopGuardNode,
}
WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda item: pickle.loads(pickle.dumps(item)),  # noqa: S301 - what it has made
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
every_adapter = pytest.mark.parametrize("adapter", ADAPTERS)


def guarded(adapter, guard, model):
    """Build an agent that the adapter guards; gives it and the config to run it with."""
    tools = [counting_tool(Counter())]
    if adapter == "handler":
        return agent_graph(model, tools, checkpointer=InMemorySaver()), thread("t", guard)
    if adapter == "middleware":
        graph = agent_graph(model, tools, middleware=[guard], checkpointer=InMemorySaver())
        return graph, thread("t")
    builder = builder_for(model, tools)
    builder.add_node("guard", guard)
    builder.add_edge("agent", "guard")
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=InMemorySaver()), thread("t")


@every_way
@every_adapter
def test_guards_with_the_same_options(adapter, way):
    guard = way(ADAPTERS[adapter](SEED, on_detected="warn", fail_open=False))
    graph, config = guarded(adapter, guard, repeating_model(times=4))
    graph.invoke(ask(), config)
    assert guard.stats()["warned"] > 0


@pytest.mark.parametrize("way", [WAYS["deepcopy"], WAYS["pickle"]], ids=["deepcopy", "pickle"])
@every_adapter
def test_has_seen_nothing_of_what_the_first_one_saw(adapter, way):
    first = ADAPTERS[adapter](SEED, fail_open=False)
    graph, config = guarded(adapter, first, repeating_model())
    assert "__interrupt__" in graph.invoke(ask(), config)
    second = way(first)
    assert set(second.stats().values()) == {0}
    graph, config = guarded(adapter, second, repeating_model())
    assert "__interrupt__" in graph.invoke(ask(), config)
    assert first.stats()["asked"] == second.stats()["asked"] == 1


def test_of_a_graph_with_a_guard_is_made():
    # LangGraph's compiled graphs can be copied, and no copy of theirs can be run.
    builder = builder_for(repeating_model(), [counting_tool(Counter())])
    add_loop_guard(builder, policy=SEED)
    copy.deepcopy(builder.compile())
    copy.deepcopy(agent_graph(repeating_model(), [], middleware=[LoopGuardMiddleware(SEED)]))
    graph = copy.deepcopy(builder).compile(checkpointer=InMemorySaver())
    assert "__interrupt__" in graph.invoke(ask(), thread("t"))
