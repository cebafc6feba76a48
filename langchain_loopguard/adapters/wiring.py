"""How is a graph guarded without a node of the guard's own?

`add_loop_guard` puts the guard around the tools node, in its place, so it costs no super-step,
keeps the user's edges, and saves the counts with the results. Around the agent it adds warnings
to what the model reads, and at the start it begins the turn.

Host traps that are answered here: a static edge is followed in spite of `goto=END`, so static
edges out of the tools become the guard's own way; a node with a timeout has to be async, so
everything has an async twin; a key that two sub-graphs write at the same time breaks both, so the
counts are a channel of the graph's own, outside of its state's schema, unless the schema lists
it. What can't be seen are edges that are added later.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph

from langchain_loopguard.adapters._langgraph import (
    add_channel,
    new_path,
    read_no_state,
    replaces_by_id,
    routed_path,
    wrap_node,
    written_messages,
)
from langchain_loopguard.adapters.around import Around
from langchain_loopguard.adapters.graph import is_ended
from langchain_loopguard.langchain.messages import makes_calls
from langchain_loopguard.langchain.options import IsUserMessage, OnDetected, Options, ShowContent

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from langchain_loopguard.langchain.telemetry import Count
    from langchain_loopguard.langchain.wording import Wording
    from langchain_loopguard.policy import LoopGuardPolicy

_Builder = StateGraph[Any, Any, Any, Any]

logger = logging.getLogger("langchain_loopguard")

_NO_REPAIR = (
    "The reducer of %r only appends, so the loop guard can't change a message there. Calls that "
    "an interrupted turn leaves open stay open when the user writes something new. Under "
    "add_messages the guard gives them results."
)


def add_loop_guard(
    builder: StateGraph[Any, Any, Any, Any],
    agent: str = "agent",
    tools: str = "tools",
    *,
    policy: LoopGuardPolicy | None = None,
    on_detected: OnDetected = "interrupt",
    end: str = END,
    messages_key: str = "messages",
    state_key: str = "loop_guard",
    wrap_up_model: Runnable[Any, Any] | None = None,
    show_content: ShowContent = "full",
    agent_inbox: bool = False,
    is_user_message: IsUserMessage = None,
    wording: Wording | Mapping[str, str] | None = None,
    fail_open: bool = True,
) -> StateGraph[Any, Any, Any, Any]:
    """Guard the tools node of a graph; call it last, before `compile`.

    Edges that lead out of the agent and the tools are kept; without any, the guard makes them:
    from the agent to the tools where calls wait and to `end` otherwise, from the tools back to
    the agent. A run that the guard ends goes to `end` whatever the edges say.

    Calls that an interrupted turn left open get results when the user writes something new
    instead of answering. That takes a reducer for the messages that puts one in the place of
    another, as `add_messages` does; with any other one a warning is logged.

    Args:
        builder: The graph, not compiled yet; it is changed.
        agent: The node that calls the model.
        tools: The node that runs the calls.
        policy: As for `LoopGuardMiddleware`, and so are the options below.
        on_detected: With `"observe"` nothing is changed, and what is found is emitted.
        end: Where a run goes that makes no more calls or was stopped.
        messages_key: The state's key for the messages.
        state_key: The key for the counts. Where the state's schema lists it, it is that one, and
            sub-graphs with the same key share it; otherwise it is a channel that is saved with
            the thread and is no part of the graph's input and output.
        wrap_up_model: Who gives the last answer under `"wrap_up"`, the agent without one.
        show_content: As for the middleware.
        agent_inbox: As for the middleware.
        is_user_message: As for the middleware.
        wording: As for the middleware.
        fail_open: As for the middleware.

    Returns:
        The same builder; `guard_stats` tells what was done.

    Raises:
        ValueError: If a node, a key or an option is not what it must be. The message names the
            field and what is allowed.
    """
    _check(builder, agent, tools, end=end, messages_key=messages_key)
    options = Options(
        policy=policy,  # type: ignore[arg-type]
        on_detected=on_detected,
        show_content=show_content,
        agent_inbox=agent_inbox,
        is_user_message=is_user_message,
        wording=wording,  # type: ignore[arg-type]
        fail_open=fail_open,
    )
    by_name = getattr(builder.nodes[tools].runnable, "tools_by_name", None)
    guard = Around(
        options,
        tools=list(by_name.values()) if isinstance(by_name, Mapping) else [],
        messages_key=messages_key,
        state_key=state_key,
        wrap_up_model=wrap_up_model,
    )
    guard.replaces = replaces_by_id(builder.channels[messages_key])
    guard.back, guard.end = agent, end
    if on_detected == "observe":
        wrap_node(builder, tools, guard.observe, guard.observe)
    else:
        add_channel(builder, state_key)
        wrap_node(builder, tools, guard.tools, guard.atools)
        wrap_node(builder, agent, guard.agent, guard.aagent)
        _begin_at_start(builder, guard)
    _connect(builder, guard, agent, tools, end, watched=on_detected != "observe")
    builder.nodes[tools].runnable.loop_guard = guard.gate  # type: ignore[union-attr]
    return builder


def guard_stats(graph: Any) -> dict[Count, int]:
    """Count what the guards of `add_loop_guard` did in a graph or its builder, over all threads.

    Sub-graphs are asked for themselves. Raises `ValueError` if no guard was added to it.
    """
    builder = getattr(graph, "builder", graph)
    nodes = getattr(builder, "nodes", {}).values()
    gates = [getattr(getattr(node, "runnable", None), "loop_guard", None) for node in nodes]
    read = [gate.stats() for gate in gates if gate is not None]
    if not read:
        raise ValueError("graph: add_loop_guard was not called on it")
    return {name: sum(one[name] for one in read) for name in read[0]}


# --- Edges ----------------------------------------------------------------------------------------


def _check(builder: Any, agent: str, tools: str, *, end: str, messages_key: str) -> None:
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
    if hasattr(builder.nodes[tools].runnable, "loop_guard"):
        raise ValueError(f"tools: {tools!r} has a loop guard already")
    if messages_key not in builder.channels:
        keys = sorted(builder.channels)
        raise ValueError(f"messages_key: the state has no {messages_key!r}; its keys are {keys}")


def _begin_at_start(builder: _Builder, guard: Around) -> None:
    """Have the first edge out of the start begin the turn."""
    if not guard.replaces:
        logger.warning(_NO_REPAIR, guard.messages_key)
    branches = builder.branches.get(START)
    first = next((to for at, to in sorted(builder.edges) if at == START), None)
    if first is not None:
        builder.edges.remove((START, first))
        path = new_path(f"to_{first}", lambda state, config: guard.begin(state, config, first))
        builder.add_conditional_edges(START, path, [first])
    elif branches:
        name = next(iter(branches))
        branches[name] = routed_path(branches[name], guard.begin, END)


def _leads_on(builder: _Builder, node: str) -> bool:
    edges = any(at == node for at, _ in builder.edges)
    joins = any(node in starts for starts, _ in builder.waiting_edges)
    return edges or joins or bool(builder.branches.get(node) or builder.nodes[node].ends)


def _connect(
    builder: _Builder, guard: Around, agent: str, tools: str, end: str, *, watched: bool
) -> None:
    """Make the edges that lack, and have those out of the tools end a run that the guard ends."""
    spec = builder.nodes[tools]

    def onward(state: Any, _: Any) -> str:
        messages = reversed(guard.messages(state))
        last = next((message for message in messages if isinstance(message, AIMessage)), None)
        return tools if last is not None and makes_calls(last) else end

    def watch(state: Any, _: Any, way: Any) -> Any:
        return end if is_ended(guard.messages(state)) else way

    if not _leads_on(builder, agent):
        builder.add_conditional_edges(agent, new_path("calls", onward), [tools, end])
    static = sorted(to for at, to in builder.edges if at == tools)
    if not _leads_on(builder, tools):
        static = [agent]
    if not watched:
        builder.edges.update((tools, to) for to in static)
        return
    builder.edges.difference_update({(tools, to) for to in static})
    branches = builder.branches.get(tools, {})
    for name, branch in list(branches.items()):
        branches[name] = routed_path(branch, watch, end)
    if static:
        # No command: a state that is written as the tools' (`update_state`) has to go on too.
        def ahead(_: Any, config: Any) -> Any:
            return end if is_ended(written_messages(config, guard.messages_key)) else static

        path = new_path("results", ahead)
        builder.add_conditional_edges(tools, path, [*dict.fromkeys((*static, end))])
        read_no_state(builder, tools, "results")
    elif not branches:
        # The tools' own commands lead on; what is refused goes back by one of the guard's.
        guard.commands = True
        spec.ends = tuple(dict.fromkeys((*(spec.ends or ()), agent, end)))
