"""Which of LangGraph's internals does the package touch?

Each one is here, once, with a test against the real host in
`tests/adapters/test_langgraph_internals.py`; a release of LangGraph that moves one fails there.
Keys that begin with `__pregel` stand in the config of a running task. What isn't found is treated
as absent, so the worst is a guard that asks nobody.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.channels import LastValue
from langgraph.config import get_config
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import Interrupt, interrupt

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
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from langchain_core.messages import BaseMessage
    from langgraph.graph import StateGraph

NodeCallable = RunnableCallable
"""What a node of a graph is that has an async twin."""

_CHECKPOINTER = "__pregel_checkpointer"
_READ = "__pregel_read"
"""A partial of a function that takes the channels as its second argument."""
_SEND = "__pregel_send"
_SCRATCHPAD = "__pregel_scratchpad"

_TYPED_RESUME = "response_schema" in inspect.signature(interrupt).parameters


# --- The running task -----------------------------------------------------------------------------


def _config() -> Mapping[str, Any]:
    try:
        return get_config()
    except RuntimeError:  # not inside a graph
        return {}


def _configurable() -> Mapping[str, Any]:
    return _config().get("configurable") or {}


def can_ask() -> bool:
    """Tell whether what the running graph saves outlives the run: whether it can be resumed."""
    return _is_saved(_configurable())


def _is_saved(configurable: Mapping[str, Any]) -> bool:
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
    metadata = _config().get("metadata") or {}
    return str(metadata.get("langgraph_checkpoint_ns") or "")


def agent_scope() -> str:
    """Name the graph that this is called in: `""` for the outermost one."""
    return _namespace().rpartition("|")[0]


def is_nested() -> bool:
    """Tell whether this is called in a graph that runs within a node of another one."""
    return "|" in _namespace()


def begins_turn(messages: Sequence[BaseMessage], counts: Any) -> bool:
    """Tell whether the run of a graph that starts with these messages begins a turn.

    One that is handed over to goes on in the turn of the others; one that has counted nothing and
    gets a task of its own, a fork for one, begins its own.
    """
    task = not counts and bool(messages) and isinstance(messages[-1], HumanMessage)
    return task or not is_nested()


def thread_key() -> str:
    """Name the conversation that this is called in: its thread and the graph's scope."""
    return f"{short(str(_configurable().get('thread_id') or ''))}|{agent_scope()}"


def read_channel(key: str, *, fresh: bool = False) -> Any:
    """Read a channel of the graph that this is called in, `None` without it.

    The key need not be one of the node's own input; `fresh` shows what the task has written up to
    now, at the start the run's input.
    """
    return _read(_configurable(), key, fresh=fresh)


def _read(configurable: Mapping[str, Any], key: str, *, fresh: bool) -> Any:
    try:
        return configurable[_READ](key, fresh)
    except Exception:  # noqa: BLE001 - not in a graph, no such channel, or nothing in it
        return None


class Task(NamedTuple):
    """A running task: whether its graph can be resumed, and what one of its channels holds."""

    is_saved: bool
    channel: Any


def running_task(ns: str, key: str) -> Task | None:
    """Look at the task with this namespace, `None` where this is not called in its context.

    It is not in a thread that was started by hand; nothing can be asked there.
    """
    configurable = _configurable()
    if configurable.get("checkpoint_ns") != ns or _SCRATCHPAD not in configurable:
        return None
    return Task(_is_saved(configurable), _read(configurable, key, fresh=False))


def write_channel(key: str, value: Any) -> None:
    """Write to a channel besides what the running task writes by itself."""
    _configurable()[_SEND]([(key, value)])


def running_channel(key: str) -> Any:
    """Give a channel of the graph that this is called in, `None` where it can't be found."""
    try:
        return _configurable()[_READ].args[1][key]
    except Exception:  # noqa: BLE001 - the host's internals
        return None


def replaces_by_id(channel: Any) -> bool:
    """Tell whether a message replaces one with the same id, and a history can be replaced.

    `add_messages` does; `operator.add`, which many graphs use, keeps both. Nothing tells them apart
    but what they do, so a copy of the channel is asked with two messages of nobody's.
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

    `around` takes the state and what calls the node with a state, and gives the node's output.
    """
    spec = builder.nodes[name]
    inner: Any = spec.runnable

    # Closures over the node and no object that holds it: a sub-graph is found in them.
    def run(state: Any, config: Any) -> Any:
        return around(state, lambda given: inner.invoke(given, config))

    async def arun(state: Any, config: Any) -> Any:
        return await around_async(state, lambda given: inner.ainvoke(given, config))

    wrapped = _callable(run, arun, inner.get_name())
    with contextlib.suppress(AttributeError):
        wrapped.tools_by_name = inner.tools_by_name
    spec.runnable = wrapped


def routed_path(branch: Any, route: Callable[[Any, Any, Any], Any], end: str) -> Any:
    """Give a conditional edge, one of `builder.branches[node]`, whose way `route` chooses.

    It takes the state, the config and the way that the edge would go, and may send to `end` too.
    """
    inner = branch.path

    def path(state: Any, config: Any) -> Any:
        return route(state, config, inner.invoke(state, config))

    async def apath(state: Any, config: Any) -> Any:
        return route(state, config, await inner.ainvoke(state, config))

    ends = None if branch.ends is None else {**branch.ends, end: end}
    return branch._replace(path=_callable(path, apath, inner.get_name()), ends=ends)


def new_path(name: str, route: Callable[[Any, Any], Any]) -> Any:
    """Make the path of a conditional edge that takes the config too and is no run in a trace."""

    def path(state: Any, config: Any) -> Any:
        return route(state, config)

    return _callable(path, None, name)


class _NoState(TypedDict):
    """The state of an edge that reads none."""


def read_no_state(builder: StateGraph[Any, Any, Any, Any], node: str, name: str) -> None:
    """Spare the conditional edge `name` the state, for which every reducer runs a second time."""
    builder.schemas.setdefault(_NoState, {})
    branch = builder.branches[node][name]
    builder.branches[node][name] = branch._replace(input_schema=_NoState)


def written_messages(config: Mapping[str, Any], key: str) -> list[Any]:
    """List what the node before a conditional edge has written to the messages.

    Args:
        config: The config that the edge gets.
        key: The channel's key.
    """
    read = config["configurable"][_READ]
    try:
        written = [value for channel, value in read.args[3].writes if channel == key]
    except (AttributeError, IndexError):  # all messages are as right, and slower
        written = [read(key, True)]  # noqa: FBT003 - the host's own
    return [one for value in written for one in (value if isinstance(value, list) else [value])]


def _callable(run: Any, arun: Any, name: str) -> Any:
    # LangGraph warns of a parameter `config` that is annotated as anything of its own.
    for function in (run, arun):
        if function is not None:
            function.__annotations__.clear()
    return RunnableCallable(run, arun, name=name, trace=False, recurse=False)


# --- Questions that tasks have asked --------------------------------------------------------------

_OF_UNDONE = frozenset({"__interrupt__", "__resume__", "__error__", "__error_source_node__"})
"""What is saved of a task that is to be started again."""


class SavedQuestion(NamedTuple):
    """A question of one of the tasks of the running step, as it was saved.

    Attributes:
        id: The interrupt's id.
        value: What was asked.
        answers: What the task was resumed with so far; the first answers its first question.
    """

    id: str
    value: Any
    answers: Sequence[Any]


def question_id(ns: str) -> str:
    """Give the id of the first interrupt of a task, the same in every process."""
    return Interrupt.from_ns(None, ns).id


def given_resume() -> Any:
    """Give what the thread was resumed with in this step, `None` where that came by id."""
    try:
        return _configurable()[_SCRATCHPAD].get_null_resume(False)  # noqa: FBT003
    except Exception:  # noqa: BLE001 - the host's internals
        return None


def saved_questions() -> list[SavedQuestion]:
    """List the questions that tasks of this step have asked, in other processes perhaps.

    LangGraph loads what is saved of a step when a run begins and gives each task a function that
    looks into it. Nothing else is within reach of a callback: an async saver refuses to be read
    from the event loop that it serves.
    """
    try:
        look = _configurable()[_SCRATCHPAD].get_null_resume
        place = look.__code__.co_freevars.index("pending_writes")
        writes = look.__closure__[place].cell_contents
    except Exception:  # noqa: BLE001 - as above
        return []
    answers = {task: value for task, channel, value in writes or () if channel == "__resume__"}
    done = {task for task, channel, _ in writes or () if channel not in _OF_UNDONE}
    return [
        SavedQuestion(item.id, item.value, _listed(answers.get(task, ())))
        for task, channel, items in writes or ()
        # A task that is done and took no answer will not ask again.
        if channel == "__interrupt__" and (task in answers or task not in done)
        for item in items
    ]


def _listed(answers: Any) -> Sequence[Any]:
    return answers if isinstance(answers, list | tuple) else [answers]
