"""How is a graph guarded without a node of the guard's own?

`add_loop_guard` puts the guard around the tools node, in its place, so it costs no super-step,
keeps the user's edges, and saves the counts with the results. Around the agent it adds warnings
to what the model reads, and at the start it begins the turn.

Host traps that are answered here: a static edge is followed in spite of `goto=END`, so edges out
of the tools become conditional; a node with a timeout has to be async, so everything has an async
twin; a key that two sub-graphs write at the same time breaks both, so the counts are a channel of
the graph's own, outside of its state's schema, unless the schema lists it. What can't be seen are
edges that are added later.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.messages import RemoveMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from langchain_loopguard.adapters._langgraph import (
    add_channel,
    begins_turn,
    is_nested,
    new_path,
    read_channel,
    replaces_by_id,
    routed_path,
    thread_key,
    wrap_node,
    write_channel,
)
from langchain_loopguard.adapters.graph import (
    GraphGuard,
    LastAnswer,
    is_ended,
    leaves_graph,
    read_key,
    results_in,
    with_key,
)
from langchain_loopguard.langchain.errors import error_of_facts
from langchain_loopguard.langchain.marks import ends_of, final_message, replacement
from langchain_loopguard.langchain.messages import id_of, last_step, makes_calls, with_warnings
from langchain_loopguard.langchain.options import IsUserMessage, OnDetected, Options, ShowContent
from langchain_loopguard.langchain.repair import complete

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from langchain_core.messages import BaseMessage, ToolMessage
    from langchain_core.runnables import Runnable

    from langchain_loopguard.adapters.gate import Passed
    from langchain_loopguard.langchain.history import Reader
    from langchain_loopguard.langchain.telemetry import Count
    from langchain_loopguard.langchain.wording import Wording
    from langchain_loopguard.policy import LoopGuardPolicy

__all__ = ["add_loop_guard", "guard_stats"]

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
        policy: As for `LoopGuardNode`, and so are the options below.
        on_detected: What happens to a step that is a loop; with `"observe"` nothing at all, and
            what is found is emitted.
        end: Where a run goes that makes no more calls or was stopped.
        messages_key: The state's key for the messages.
        state_key: The key for the counts. Where the state's schema lists it, it is that one, and
            sub-graphs with the same key share it; otherwise it is a channel that is saved with
            the thread and is no part of the graph's input and output.
        wrap_up_model: Who gives the last answer under `"wrap_up"`, the agent without one.
        show_content: How much of arguments and results a question shows.
        agent_inbox: Whether a question carries the older form too that Agent Inbox reads.
        is_user_message: Which human messages a user wrote.
        wording: The sentences to use.
        fail_open: Whether a fault of the guard itself lets the agent go on.

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
    guard = _Around(
        options,
        tools=list(by_name.values()) if isinstance(by_name, Mapping) else [],
        messages_key=messages_key,
        state_key=state_key,
        wrap_up_model=wrap_up_model,
    )
    guard.replaces = replaces_by_id(builder.channels[messages_key])
    guard.ways = (agent, end)
    if on_detected == "observe":
        wrap_node(builder, tools, guard.observe, guard.observe)
    else:
        add_channel(builder, state_key)
        wrap_node(builder, tools, guard.tools, guard.atools)
        wrap_node(builder, agent, guard.agent, guard.aagent)
        _begin_at_start(builder, guard)
    guard.commands = _lead(builder, guard, agent, tools, end, watched=on_detected != "observe")
    builder.nodes[tools].runnable.loop_guard = guard.gate  # type: ignore[union-attr]
    return builder


def guard_stats(graph: Any) -> dict[Count, int]:
    """Count what the guards that `add_loop_guard` put into a graph did, over all threads.

    Args:
        graph: The builder, or the graph that it compiled to. Sub-graphs are asked for themselves.

    Raises:
        ValueError: If no guard was added to it.
    """
    builder = getattr(graph, "builder", graph)
    nodes = getattr(builder, "nodes", {}).values()
    gates = [getattr(getattr(node, "runnable", None), "loop_guard", None) for node in nodes]
    read = [gate.stats() for gate in gates if gate is not None]
    if not read:
        raise ValueError("graph: add_loop_guard was not called on it")
    return {name: sum(one[name] for one in read) for name in read[0]}


# --- Around the nodes -----------------------------------------------------------------------------


class _Around(GraphGuard):
    """The guard around an agent's and a tools node."""

    ways: tuple[str, str] = ("", "")
    """The agent, and where a run ends."""
    commands = False
    """Whether the way is told by a `Command`, since the tools node has no edges."""

    def begin(self, _: Any, config: Any, way: Any) -> Any:
        """Begin a turn with the run's input, and give results to calls that were left open."""
        try:
            messages = self.as_messages(
                read_channel(self.messages_key, fresh=True, config=config) or []
            )
            whole = complete(messages, self.gate.options.wording.not_run) if self.replaces else None
            if whole is not None:
                update = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *whole]
                write_channel(self.messages_key, update, config)
            counts = read_channel(self.state_key, config=config)
            given = read_channel(self.state_key, fresh=True, config=config)
            # Counts that came with the input are somebody else's.
            begins = given == counts and begins_turn(messages, counts, config)
            reader = self.gate.open(counts) if begins else None
            if reader is not None:
                self.gate.start_run(reader, whole or messages)
                write_channel(self.state_key, self.gate.save(reader) or {}, config)
        except Exception as error:  # noqa: BLE001 - logged, or raised if the user wants so
            self.gate.fault(error)
        return way

    def agent(self, state: Any, call: Callable[[Any], Any]) -> Any:
        """Call the agent with the warnings in its messages."""
        shown, copies = self._shown(state)
        return _restored(call(shown), self.messages_key, copies)

    async def aagent(self, state: Any, call: Callable[[Any], Awaitable[Any]]) -> Any:
        """As `agent`."""
        shown, copies = self._shown(state)
        return _restored(await call(shown), self.messages_key, copies)

    def tools(self, state: Any, call: Callable[[Any], Any]) -> Any:
        """Run the calls, or not."""
        entered = self._enter(state)
        if isinstance(entered, _Run):
            return entered.leave(call(entered.state))
        if isinstance(entered, LastAnswer):
            return entered.finish(self.wrap_up_model.invoke(entered.history))
        return call(state) if entered is None else entered

    async def atools(self, state: Any, call: Callable[[Any], Awaitable[Any]]) -> Any:
        """As `tools`."""
        entered = self._enter(state)
        if isinstance(entered, _Run):
            return entered.leave(await call(entered.state))
        if isinstance(entered, LastAnswer):
            return entered.finish(await self.wrap_up_model.ainvoke(entered.history))
        return await call(state) if entered is None else entered

    def observe(self, state: Any, call: Callable[[Any], Any]) -> Any:
        """Record what would be done, and run the calls; for `invoke` and `ainvoke` alike."""
        messages = self.messages(state)
        step = last_step(messages)
        if step is not None and step.calls:
            key = f"{thread_key()}|{messages[0].id}"
            reader = self.gate.recall(key, messages)
            self.gate.take(reader, step, messages, ask=None)
            self.gate.remember(key, reader)
        return call(state)

    def _shown(self, state: Any) -> tuple[Any, list[BaseMessage]]:
        given = read_key(state, self.messages_key)
        if not isinstance(given, list):
            return state, []
        messages = self.as_messages(given)
        ends = ends_of(messages)
        if ends.get("as") == "raise":
            raise error_of_facts(ends)
        counts = read_channel(self.state_key)
        warnings = counts.get("warnings") if isinstance(counts, dict) else None
        told = with_warnings(messages, warnings) if isinstance(warnings, dict) else None
        if told is None or messages is not given:  # an agent that reads them in its own form
            return state, []
        changed = [old for old, new in zip(messages, told, strict=True) if old is not new]
        return with_key(state, self.messages_key, told), changed

    def _enter(self, state: Any) -> Any:
        """Decide; gives `None` where there is nothing to decide or after a fault."""
        messages = self.messages(state)
        step = last_step(messages)
        if step is None or not step.calls:
            return None
        stopped = self.stopped_again(step, messages) if step.open_calls else None
        if stopped is not None:
            return self._output(stopped, ends=True)
        counts = read_channel(self.state_key)
        reader = self.gate.open(counts, messages)
        if reader is None:
            return None
        passed = self.decide(reader, step, messages)
        if passed is None:
            return None
        outcome = passed.outcome
        if outcome.next == "run" and passed.runs():
            return _Run(self, passed, reader, messages, self.for_tools(state, passed, messages))
        saved = self.gate.save(reader)
        if outcome.next == "answer" and self.wrap_up_model is not None and not step.late:
            return self.last_answer(
                passed, messages, lambda said: self._output(said, saved, ends=True)
            )
        added = self.added(passed, marks=False)
        if outcome.next == "end":
            added.append(final_message(outcome.final))
        written = self.written(passed, messages, added)
        return self._output(written, saved, ends=outcome.next == "end")

    def _output(
        self, messages: list[BaseMessage], counts: Any = None, *, ends: bool = False
    ) -> Any:
        update: dict[str, Any] = {self.messages_key: messages} if messages else {}
        if counts is not None:
            update[self.state_key] = counts
        return Command(update=update, goto=self.ways[ends]) if self.commands else update


class _Run:
    """A step whose calls run."""

    def __init__(
        self,
        guard: _Around,
        passed: Passed,
        reader: Reader,
        messages: list[BaseMessage],
        state: Any,
    ) -> None:
        self.guard, self.passed, self.reader = guard, passed, reader
        self.messages, self.state = messages, state

    def leave(self, output: Any) -> Any:
        """Read the results, and give the node's output with the counts and what was added."""
        guard, step = self.guard, self.passed.step
        results = results_in(output, guard.messages_key)
        skipped = self._skipped(results, output)
        added = guard.added(self.passed, marks=is_nested())
        history = self.messages
        if added or step.others:
            own = [*step.results, *self.passed.results()]
            history = [*history[: step.index], self.passed.message, *own]
        history = [*history, *results, *skipped]
        if results:
            guard.gate.read(self.reader, history)
        counts = guard.gate.save(self.reader, history)
        update: dict[str, Any] = {} if counts is None else {guard.state_key: counts}
        written = guard.written(self.passed, self.messages, added)
        if written:
            update[guard.messages_key] = written
        if output is None or not update:
            return update or output
        if type(output) is dict and not written and not skipped:
            return {**output, **update}
        # What is added stands before the results.
        outputs = output if isinstance(output, list | tuple) else [output]
        added_last = {guard.messages_key: skipped} if skipped else {}
        return [Command(update=update), *outputs, Command(update=added_last)]

    def _skipped(self, results: list[ToolMessage], output: Any) -> list[ToolMessage]:
        """Make results of the calls that tools which gave some have left out."""
        if not results or leaves_graph(output):
            return []
        given = {result.tool_call_id for result in results}
        missing = [call for call in self.passed.step.waiting if id_of(call) not in given]
        text, runs = self.guard.gate.options.wording.skipped, self.passed.runs()
        return [replacement(call, text) for call in missing if id_of(call) in runs]


def _restored(output: Any, key: str, originals: list[BaseMessage]) -> Any:
    """Put messages back that an agent gives with the warnings it was called with."""
    given = output.get(key) if originals and isinstance(output, dict) else None
    if not isinstance(given, list):
        return output
    by_id = {one.id: one for one in originals if one.id}
    return {**output, key: [by_id.get(str(getattr(one, "id", "")), one) for one in given]}


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


def _begin_at_start(builder: _Builder, guard: _Around) -> None:
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


def _lead(
    builder: _Builder, guard: _Around, agent: str, tools: str, end: str, *, watched: bool
) -> bool:
    """Make the edges that lack, and have those out of the tools end a run that the guard ends.

    Returns:
        Whether the tools have no edges and go where a `Command` says.
    """

    def onward(state: Any, _: Any) -> str:
        step = last_step(guard.messages(state))
        return tools if step is not None and makes_calls(step.message) else end

    def leads(node: str) -> bool:
        edges = any(at == node for at, _ in builder.edges)
        joins = any(node in starts for starts, _ in builder.waiting_edges)
        return edges or joins or bool(builder.branches.get(node) or builder.nodes[node].ends)

    def watch(state: Any, _: Any, way: Any) -> Any:
        return end if is_ended(guard.messages(state)) else way

    if not leads(agent):
        builder.add_conditional_edges(agent, new_path("calls", onward), [tools, end])
    static = sorted(to for at, to in builder.edges if at == tools)
    if not leads(tools):
        static = [agent]
    if not watched:
        builder.edges.update((tools, to) for to in static)
        return False
    for name, branch in list(builder.branches.get(tools, {}).items()):
        builder.branches[tools][name] = routed_path(branch, watch, end)
    builder.edges.difference_update({(tools, to) for to in static})
    if static:
        path = new_path("results", lambda state, config: watch(state, config, static))
        builder.add_conditional_edges(tools, path, _targets(static, end))
    return not static and not builder.branches.get(tools)


def _targets(static: Sequence[str], end: str) -> list[Any]:
    return [*dict.fromkeys((*static, end))]
