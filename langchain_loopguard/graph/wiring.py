"""Which nodes and edges does a guard need in a graph, and which must not be there?

LangGraph follows a static edge as well as a node's own routing, so an edge out of the agent or
out of the tools that is not the guard's would run the tools that a person has just refused.
This file must not know the guard. What it can't see are edges that are added later.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import RemoveMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from typing_extensions import TypedDict

from langchain_loopguard.graph.reducers import replaces_by_id
from langchain_loopguard.graph.tracing import node_options
from langchain_loopguard.history import answer_open_calls, is_same

__all__ = ["check_builder", "read_key", "repair_at_start", "tools_of", "with_state_key"]

logger = logging.getLogger("langchain_loopguard")

_NO_REPAIR = (
    "The reducer of %r only appends, so the loop guard can't change a message there. Calls that "
    "an interrupted turn leaves open stay open when the user writes something new: send the "
    "model what langchain_loopguard.history.answer_open_calls makes of the history. Under "
    "add_messages the guard does it."
)

_Builder = StateGraph[Any, Any, Any, Any]


def check_builder(
    builder: Any, name: str, agent: str, tools: str, *, end: str, messages_key: str
) -> None:
    """Check that a guard can be put between the agent and the tools.

    Raises:
        ValueError: If a node or the messages are missing, or if the agent or the tools have edges
            of their own. The message names the field and what is allowed.
    """
    if not isinstance(builder, StateGraph):
        raise ValueError(  # noqa: TRY004 - one type for everything that is wrong at construction
            f"builder: must be a StateGraph that is not compiled, not {type(builder).__name__}"
        )
    nodes = sorted(builder.nodes)
    for field, wanted in (("agent", agent), ("tools", tools), ("end", end)):
        if wanted not in builder.nodes and not (field == "end" and wanted == END):
            raise ValueError(f"{field}: the graph has no node {wanted!r}; its nodes are {nodes}")
    if agent == tools:
        raise ValueError(f"tools: must be another node than agent, which is {agent!r}")
    if name in builder.nodes:
        raise ValueError(f"name: the graph has a node {name!r} already; its nodes are {nodes}")
    if messages_key not in builder.channels:
        raise ValueError(
            f"messages_key: the state has no {messages_key!r}; "
            f"its keys are {sorted(builder.channels)}"
        )
    for field, source in (("agent", agent), ("tools", tools)):
        own = _edges_from(builder, source)
        if own:
            raise ValueError(
                f"{field}: {source!r} has edges of its own ({', '.join(own)}), which would run "
                f"besides the guard's. Remove them: the guard goes on to {tools!r}, {agent!r} or "
                f"{end!r}. A graph that needs other edges there is wired by hand, with "
                "LoopGuardNode"
            )


def tools_of(builder: Any, node: str) -> list[Any]:
    """List the tools of a node that is a `ToolNode`; none for any other node."""
    nodes = builder.nodes if isinstance(builder, StateGraph) else {}
    runnable = getattr(nodes.get(node), "runnable", None)
    by_name = getattr(runnable, "tools_by_name", None)
    return list(by_name.values()) if isinstance(by_name, Mapping) else []


def with_state_key(builder: _Builder, state_key: str) -> Any:
    """Give a node's input schema: the graph's own keys and `state_key`.

    A key that the graph's state lacks becomes a channel that is saved with the thread and is no
    part of the graph's input and output: LangGraph makes a channel for a key that it meets in a
    node's input.
    """
    if state_key in builder.channels:
        return builder.state_schema
    # Managed values, `RemainingSteps` for one, are no channels and must not become any.
    own = [key for key in builder.schemas[builder.state_schema] if key not in builder.managed]
    keys: dict[str, Any] = {**dict.fromkeys(own, Any), state_key: dict[str, Any]}
    return TypedDict("GuardedState", keys, total=False)  # type: ignore[operator]


def repair_at_start(builder: _Builder, name: str, agent: str, *, messages_key: str) -> None:
    """Lead an edge START -> agent through a node that answers the calls left open.

    Nothing is done without such an edge. It can't be done, and a warning says so, where the
    reducer of the messages takes no history in the place of another one.
    """
    if (START, agent) not in builder.edges:
        return
    if not replaces_by_id(builder.channels[messages_key]):
        logger.warning(_NO_REPAIR, messages_key)
        return

    def repair(state: Any) -> dict[str, Any]:
        messages = list(read_key(state, messages_key) or ())
        whole = answer_open_calls(messages)
        if is_same(whole, messages):
            return {}
        return {messages_key: [RemoveMessage(id=REMOVE_ALL_MESSAGES), *whole]}

    builder.edges.remove((START, agent))
    builder.add_node(name, repair, **node_options())
    builder.add_edge(START, name)
    builder.add_edge(name, agent)


def read_key(state: Any, key: str) -> Any:
    """Read a key of a graph's state, `None` without it; the state's schema may be any kind."""
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def _edges_from(builder: _Builder, source: str) -> list[str]:
    found = [f"{start} -> {to}" for start, to in sorted(builder.edges) if start == source]
    for starts, to in sorted(builder.waiting_edges):
        if source in starts:
            found.append(f"{' + '.join(starts)} -> {to}")
    for branch, spec in builder.branches.get(source, {}).items():
        ends = " | ".join(sorted(spec.ends.values())) if spec.ends else "any node"
        found.append(f"{source} -> {branch}: {ends}")
    targets = builder.nodes[source].ends
    if targets:
        found.append(f"{source} -> Command: {' | '.join(sorted(targets))}")
    return found
