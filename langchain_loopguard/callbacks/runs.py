"""To which conversation, agent and graph task does a callback event belong?

The host sends events with a run id, the parent's run id and metadata; end events come without
metadata. `RunTree` remembers the open runs, so that every event can be placed. It must not
know what a loop is.

Names used here: a *session* is one call of a graph, or of a chain outside one (all that happens
between a user's input and the answer, or the interrupt). An *attempt* is one execution of one
graph task; LangGraph starts a task anew at a resume and at a retry.
"""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from langchain_loopguard.callbacks.conversations import Batch, Conversation
    from langchain_loopguard.options import Scope

    Key = tuple[str | int, ...]

MISSING: Final = object()
"""No value; `None` is one."""

_MANY = 4096
"""Open runs up to which none is looked at for whether it was lost: as many as a thousand agents at
work have."""

_NS_SEPARATOR = "|"
_HANDLER = "handler"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Run:
    """One open run.

    Attributes:
        id: The run's id.
        parent: The id of the run that started it, if any.
        metadata: Its metadata, as LangChain passes them on.
        thread: The `thread_id` of its metadata, if any.
        ns: The namespace of the graph task that it runs in, empty outside a graph. It is the
            same again when the task is started anew.
        rooted: Whether the outermost run around it is seen.
        session: Id of the graph's run, or of the outermost run outside a graph.
        attempt: Id of the outermost run of the task.
        tool: The innermost tool run around it.
        resume: What the graph was resumed with; `MISSING` in a run that is no resume.
        is_tool: Whether it is a tool's run.
        tool_name: The name of a tool that may declare in `metadata` what it is.
        leads: Whether the session of any run is named after it.
        holds: The conversations that are over when the run ends; see `RunTree.holder`.
        call_id: The id of the tool call that a tool run answers.
        batch: The batch that a tool run belongs to, and the conversation of that batch.
        prompt: A human text that is all that a model was sent, in a conversation under way.
    """

    # `RunTree.start` sets what differs from these. A class's own `__init__` would take longer than
    # all else that is done there, and most agents start four runs a step.
    id: UUID
    parent: UUID | None
    metadata: Mapping[str, Any]
    ns: str
    rooted: bool
    session: UUID
    attempt: UUID
    thread: str | None = None
    tool: Run | None = None
    resume: Any = MISSING
    is_tool: bool = False
    tool_name: str | None = None
    leads: bool = False
    holds: tuple[Key, ...] = ()
    call_id: str | None = None
    batch: Batch | None = None
    conversation: Conversation | None = None
    prompt: str | None = None
    _keys: tuple[Key, Key] | None = None

    @property
    def in_graph(self) -> bool:
        """Whether the run is part of a graph task."""
        return bool(self.ns)

    @property
    def graph_ns(self) -> str:
        """The namespace of the graph around the task; empty for the outermost one."""
        return self.ns.rpartition(_NS_SEPARATOR)[0]

    @property
    def node(self) -> str | None:
        """The name of the graph node that it runs in, if any."""
        return self.metadata.get("langgraph_node")

    @property
    def internal(self) -> bool:
        """Whether a framework calls a model for its own ends, to summarise for instance."""
        return bool(self.metadata.get("lc_source"))

    @property
    def is_call(self) -> bool:
        """Whether the task was called by another task, which the functional API does."""
        return (self.metadata.get("langgraph_path") or (False,))[-1] is True

    def keys(self, scope: Scope) -> tuple[Key, Key]:
        """Name the conversations that the run may belong to.

        Returns:
            First that of an agent that lives inside one task, a loop in a node. Then that of the
            agent around the run: the model and the tools of one agent are different tasks of one
            graph, so the last part of the namespace is left out. An agent that runs inside a tool
            without a graph of its own is told apart by the tool call. Outside a graph the two are
            the same.
        """
        if self._keys is not None:
            return self._keys
        if scope == _HANDLER:
            base: Key = (_HANDLER,)
        elif self.thread is not None:
            base = ("thread", self.thread)
        else:
            base = session_key(self.session)
        tool, around = self.tool, ""
        if tool is not None and tool.ns == self.ns:
            around = tool.call_id or str(tool.id)
        agent_key = (*base, self.graph_ns, around)
        task_key = (*base, self.ns + _NS_SEPARATOR, around) if self.ns else agent_key
        self._keys = (task_key, agent_key)
        return self._keys

    def direct_key(self, scope: Scope) -> Key:
        """Name the conversation of tool calls that no AI message stands behind."""
        return (*self.keys(scope)[1], "direct")


class RunTree:
    """The runs that have started and not ended."""

    def __init__(self) -> None:
        """Start with none."""
        # By number: a UUID takes Python ten times as long to hash.
        self._runs: dict[int, Run] = {}
        self._most = _MANY

    def __len__(self) -> int:
        """Count the open runs."""
        return len(self._runs)

    def __contains__(self, run_id: UUID) -> bool:
        """Tell whether a run is open."""
        return run_id.int in self._runs

    def get(self, run_id: UUID) -> Run | None:
        """Give an open run."""
        return self._runs.get(run_id.int)

    def start(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        metadata: Mapping[str, Any] | None,
        inputs: Any = None,
    ) -> Run:
        """Place a run that starts. Its parent may be unknown: the handler was attached below."""
        told = metadata or _NOTHING
        parent = None if parent_run_id is None else self._runs.get(parent_run_id.int)
        ns = told.get("langgraph_checkpoint_ns") or ""
        if type(ns) is not str:
            ns = str(ns)
        thread = told.get("thread_id")
        run = Run()
        run.id = run_id
        run.parent = parent_run_id
        run.metadata = told
        if thread is not None:
            run.thread = str(thread)
        if parent is None:
            run.ns = ns
            run.rooted = run.leads = parent_run_id is None
            # Without chain events the tasks of one graph still have different parents.
            run.session = run.attempt = parent_run_id or run_id
        else:
            run.ns = ns or parent.ns
            run.rooted = parent.rooted
            run.resume = parent.resume
            run.tool = parent if parent.is_tool else parent.tool
            run.session = parent.session
            if thread is None:
                run.thread = parent.thread
            if run.ns == parent.ns:
                run.attempt = parent.attempt
            else:
                run.attempt = run_id
                if not parent.ns:
                    # The first run of a task: its parent is the graph.
                    run.session = parent.id
                    parent.leads = True
        if inputs is not None and type(inputs) is not dict:
            resume = _resume_of(inputs)
            if resume is not MISSING:
                run.resume = resume
        self._runs[run_id.int] = run
        return run

    def holder(self, run: Run, key: Key, scope: Scope) -> Run | None:
        """Find the run with which a conversation is over.

        Args:
            run: A run of the conversation.
            key: The conversation, one of those that `Run.keys` and `Run.direct_key` name.
            scope: As for `Run.keys`.

        Returns:
            The task around a loop in a node, the task around the graph or the tasks that were
            called in it, or the tool call around an agent without a graph. `None` for the
            conversation of the session's own graph, which is over when the session is.
        """
        if run.tool is not None and run.tool.ns == run.ns:
            return run.tool
        if not run.ns:
            return None
        task = self.get(run.attempt)
        if task is None or key == run.keys(scope)[0]:
            return task
        caller = None if task.parent is None else self.get(task.parent)
        return self.get(caller.attempt) if caller is not None and caller.ns else None

    def end(self, run_id: UUID) -> Run | None:
        """Forget a run that ended; gives it."""
        return self._runs.pop(run_id.int, None)

    def forget_lost(self) -> None:
        """Forget the runs that have outlived what they were started by, once there are many.

        LangChain doesn't tell of the end of a model's run that is cancelled.
        """
        if len(self._runs) <= self._most:
            return
        before = -1
        while before != len(self._runs):
            before = len(self._runs)
            self._runs = {
                number: run
                for number, run in self._runs.items()
                if not run.rooted or run.parent is None or run.parent in self
            }
        self._most = max(_MANY, 2 * before)


def session_key(session: UUID) -> Key:
    """Name what belongs to one session, as the beginning of a key."""
    return ("session", session.int)


def _resume_of(inputs: Any) -> Any:
    # A graph is resumed with `Command(resume=...)` as its input. Whoever holds one has imported
    # LangGraph, so there is nothing to import here.
    types = sys.modules.get("langgraph.types")
    if types is None or not isinstance(inputs, types.Command) or inputs.resume is None:
        return MISSING
    return inputs.resume
