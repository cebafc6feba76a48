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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from langchain_loopguard.callbacks.conversations import Batch, Conversation

    Key = tuple[str, ...]

MISSING: Final = object()
"""No value; `None` is one."""

_NS_SEPARATOR = "|"
_HANDLER = "handler"


@dataclass(slots=True, eq=False)
class Run:
    """One open run.

    Attributes:
        id: The run's id.
        parent: The id of the run that started it, if any.
        thread: The `thread_id` of its metadata, if any.
        ns: The namespace of the graph task that it runs in, empty outside a graph. It is the
            same again when the task is started anew.
        node: The name of the graph node that it runs in, if any.
        rooted: Whether the outermost run around it is seen.
        session: Id of the graph's run, or of the outermost run outside a graph.
        attempt: Id of the outermost run of the task.
        is_call: Whether the task was called by another task, which the functional API does.
        tool: The innermost tool run around it.
        resume: What the graph was resumed with; `MISSING` in a run that is no resume.
        internal: Whether a framework calls a model for its own ends, to summarise for instance.
        call_id: The id of the tool call that a tool run answers.
        batch: The batch that a tool run belongs to, and the conversation of that batch.
    """

    id: UUID
    parent: UUID | None
    thread: str | None
    ns: str
    node: str | None
    rooted: bool
    session: UUID
    attempt: UUID
    tool: Run | None
    resume: Any = MISSING
    internal: bool = False
    is_call: bool = False
    is_tool: bool = False
    call_id: str | None = None
    batch: Batch | None = None
    conversation: Conversation | None = None

    @property
    def in_graph(self) -> bool:
        """Whether the run is part of a graph task."""
        return bool(self.ns)

    @property
    def graph_ns(self) -> str:
        """The namespace of the graph around the task; empty for the outermost one."""
        return self.ns.rpartition(_NS_SEPARATOR)[0]

    def agent_key(self, scope: str) -> Key:
        """Name the conversation of the agent around this run.

        The model and the tools of one agent are different tasks of one graph, so the last part
        of the namespace is left out. An agent that runs inside a tool without a graph of its own
        is told apart by the tool call.
        """
        return (*self._base(scope), self.graph_ns, self._around())

    def task_key(self, scope: str) -> Key:
        """Name the conversation of an agent that lives inside one task: a loop in a node."""
        if not self.ns:
            return self.agent_key(scope)
        return (*self._base(scope), self.ns + _NS_SEPARATOR, self._around())

    def direct_key(self, scope: str) -> Key:
        """Name the conversation of tool calls that no AI message stands behind."""
        return (*self.agent_key(scope), "direct")

    def _base(self, scope: str) -> Key:
        if scope == _HANDLER:
            return (_HANDLER,)
        if self.thread is not None:
            return ("thread", self.thread)
        return ("session", str(self.session))

    def _around(self) -> str:
        tool = self.tool
        if tool is None or tool.ns != self.ns:
            return ""
        return tool.call_id or str(tool.id)


@dataclass(slots=True, eq=False)
class RunTree:
    """The runs that have started and not ended."""

    _runs: dict[UUID, Run] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the open runs."""
        return len(self._runs)

    def __contains__(self, run_id: object) -> bool:
        """Tell whether a run is open."""
        return run_id in self._runs

    def get(self, run_id: UUID) -> Run | None:
        """Give an open run."""
        return self._runs.get(run_id)

    def start(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        metadata: Mapping[str, Any] | None,
        inputs: Any = None,
    ) -> Run:
        """Place a run that starts. Its parent may be unknown: the handler was attached below."""
        metadata = metadata or {}
        parent = self._runs.get(parent_run_id) if parent_run_id is not None else None
        ns = str(metadata.get("langgraph_checkpoint_ns") or "")
        thread = metadata.get("thread_id")
        if not ns and parent is not None:
            ns = parent.ns
        above = parent_run_id or run_id
        if parent is None:
            session = above
        elif ns and not parent.ns:
            # The first run of a task: its parent is the graph.
            session = parent.id
        else:
            session = parent.session
        if parent is not None and parent.ns == ns:
            attempt = parent.attempt
        else:
            # Without chain events the tasks of one graph still have different parents.
            attempt = above if parent is None else run_id
        resume = _resume_of(inputs)
        if resume is MISSING and parent is not None:
            resume = parent.resume
        run = Run(
            id=run_id,
            parent=parent_run_id,
            thread=str(thread) if thread is not None else (parent.thread if parent else None),
            ns=ns,
            node=metadata.get("langgraph_node"),
            rooted=parent.rooted if parent is not None else parent_run_id is None,
            session=session,
            attempt=attempt,
            tool=_innermost_tool(parent),
            resume=resume,
            internal=bool(metadata.get("lc_source")),
            is_call=(metadata.get("langgraph_path") or (False,))[-1] is True,
        )
        self._runs[run_id] = run
        return run

    def end(self, run_id: UUID) -> Run | None:
        """Forget a run that ended; gives it."""
        return self._runs.pop(run_id, None)


def _resume_of(inputs: Any) -> Any:
    # A graph is resumed with `Command(resume=...)` as its input. Whoever holds one has imported
    # LangGraph, so there is nothing to import here.
    types = sys.modules.get("langgraph.types")
    if types is None or not isinstance(inputs, types.Command) or inputs.resume is None:
        return MISSING
    return inputs.resume


def _innermost_tool(parent: Run | None) -> Run | None:
    if parent is None:
        return None
    return parent if parent.is_tool else parent.tool
