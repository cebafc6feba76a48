"""Which of LangGraph's internals does the package touch?

Each one is here, once, with a test against the real host in
`tests/adapters/test_langgraph_internals.py`; a release of LangGraph that moves one fails there.
Keys that begin with `__pregel` stand in the config of a running task. What isn't found is taken
for absent, so the worst is a guard that asks nobody.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.channels import LastValue
from langgraph.config import get_config
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import interrupt

from langchain_loopguard.langchain.messages import short

try:
    from langgraph._internal._runnable import RunnableCallable
except ImportError:  # where it was, and where later releases say that it is
    from langgraph.utils.runnable import RunnableCallable  # type: ignore[attr-defined]
try:
    from langgraph.types import TracePolicy, omit_payload
except ImportError:  # before LangGraph had it, spans were recorded as they came
    TRACE_POLICY: Any = None
else:
    TRACE_POLICY = TracePolicy(process_inputs=omit_payload, process_outputs=omit_payload)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from langgraph.graph import StateGraph

__all__ = [
    "TRACE_POLICY",
    "RunnableCallable",
    "add_channel",
    "agent_scope",
    "ask_person",
    "can_ask",
    "is_nested",
    "is_resumed",
    "read_channel",
    "replaces_by_id",
    "routed_path",
    "running_channel",
    "thread_key",
    "wrap_node",
    "write_channel",
]

_CHECKPOINTER = "__pregel_checkpointer"
_READ = "__pregel_read"
"""A partial of a function that takes the channels as its second argument."""
_SEND = "__pregel_send"
_SCRATCHPAD = "__pregel_scratchpad"

_TYPED_RESUME = "response_schema" in inspect.signature(interrupt).parameters


# --- The running task -----------------------------------------------------------------------------


def _configurable() -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = get_config().get("configurable") or {}
    except RuntimeError:  # not inside a graph
        return {}
    return found


def can_ask() -> bool:
    """Tell whether what the running graph saves outlives the run: whether it can be resumed."""
    configurable = _configurable()
    # Set for every task, to None without a checkpointer. Should it be gone one day, a thread id
    # is what a checkpointer asks for.
    return configurable.get(_CHECKPOINTER, configurable.get("thread_id")) is not None


def ask_person(question: dict[str, Any], schema: dict[str, Any]) -> Any:
    """Interrupt the graph; on the resume, give the answer."""
    return interrupt(question, response_schema=schema) if _TYPED_RESUME else interrupt(question)


def is_resumed() -> bool:
    """Tell whether this task was interrupted and has an answer now."""
    try:
        scratchpad = _configurable()[_SCRATCHPAD]
        return bool(scratchpad.resume) or scratchpad.get_null_resume(False) is not None  # noqa: FBT003
    except Exception:  # noqa: BLE001 - the host's internals
        return False


def _namespace() -> str:
    try:
        return str(get_config()["metadata"].get("langgraph_checkpoint_ns") or "")
    except (KeyError, RuntimeError):
        return ""


def agent_scope() -> str:
    """Name the graph that this is called in: `""` for the outermost one."""
    return _namespace().rpartition("|")[0]


def is_nested() -> bool:
    """Tell whether this is called in a graph that runs within a node of another one."""
    return "|" in _namespace()


def thread_key() -> str:
    """Name the conversation that this is called in: its thread and the graph's scope."""
    return f"{short(str(_configurable().get('thread_id') or ''))}|{agent_scope()}"


def read_channel(key: str, *, fresh: bool = False) -> Any:
    """Read a channel of the graph that this is called in, `None` without it.

    Args:
        key: The channel's key; it need not be one of the node's own input.
        fresh: Whether to see what the task has written up to now, the run's input at its start.
    """
    read = _configurable().get(_READ)
    if read is None:
        return None
    with contextlib.suppress(Exception):  # no such channel, or nothing in it
        return read(key, fresh)
    return None


def write_channel(key: str, value: Any) -> None:
    """Write to a channel besides what the task writes by itself."""
    _configurable()[_SEND]([(key, value)])


def running_channel(key: str) -> Any:
    """Give a channel of the graph that this is called in, `None` where it can't be found."""
    try:
        return _configurable()[_READ].args[1][key]
    except Exception:  # noqa: BLE001 - the host's internals
        return None


def replaces_by_id(channel: Any) -> bool:
    """Tell whether a message replaces one with the same id, and whether a history can be replaced.

    `add_messages` does; `operator.add`, which many graphs use, keeps both. Nothing tells them
    apart but what they do, so a channel is asked with two messages of nobody's.

    Args:
        channel: A graph's channel; it is not changed.
    """
    if getattr(channel, "operator", None) is add_messages:
        return True
    try:
        probe = channel.from_checkpoint([HumanMessage("a", id="1"), AIMessage("b", id="2")])
        probe.update([[AIMessage("c", id="2")]])
        # By the texts, since a reducer may give the content another form and drop the ids.
        changed = [str(message.text) for message in probe.get()]
        probe.update([[RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("d", id="3")]])
        return changed == ["a", "c"] and [str(message.text) for message in probe.get()] == ["d"]
    except Exception:  # noqa: BLE001 - the reducer is somebody else's and may do anything
        return False


# --- A graph that is being built ------------------------------------------------------------------


def add_channel(builder: StateGraph[Any, Any, Any, Any], key: str) -> None:
    """Add a channel that is saved with the thread and is no part of the input and output."""
    if key not in builder.channels:
        builder.channels[key] = LastValue(dict, key)


def wrap_node(
    builder: StateGraph[Any, Any, Any, Any],
    name: str,
    around: Callable[[Any, Callable[[Any], Any]], Any],
    around_async: Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]],
) -> None:
    """Put a function around a node, in its place: no node, edge or super-step is added.

    Args:
        builder: The graph.
        name: The node.
        around: Takes the state and what calls the node with a state, and gives the node's output.
        around_async: The same for `ainvoke`.
    """
    spec = builder.nodes[name]
    inner: Any = spec.runnable

    # Closures over the node and no object that holds it: a sub-graph is found in them.
    def run(state: Any, config: Any) -> Any:
        return around(state, lambda given: inner.invoke(given, config))

    async def arun(state: Any, config: Any) -> Any:
        return await around_async(state, lambda given: inner.ainvoke(given, config))

    run.__annotations__.clear()
    arun.__annotations__.clear()
    wrapped = RunnableCallable(run, arun, name=inner.get_name(), trace=False, recurse=False)
    with contextlib.suppress(AttributeError):
        wrapped.tools_by_name = inner.tools_by_name  # type: ignore[attr-defined]
    spec.runnable = wrapped


def routed_path(branch: Any, route: Callable[[Any, Any], Any], end: str) -> Any:
    """Give a conditional edge whose way is chosen anew.

    Args:
        branch: One of `builder.branches[node]`.
        route: Takes the state and the way that the edge would go, and gives the one to go.
        end: Where `route` may send besides.
    """
    inner = branch.path

    def path(state: Any, config: Any) -> Any:
        return route(state, inner.invoke(state, config))

    async def apath(state: Any, config: Any) -> Any:
        return route(state, await inner.ainvoke(state, config))

    path.__annotations__.clear()
    apath.__annotations__.clear()
    ends = None if branch.ends is None else {**branch.ends, end: end}
    return branch._replace(
        path=RunnableCallable(path, apath, name=inner.get_name(), trace=False), ends=ends
    )
