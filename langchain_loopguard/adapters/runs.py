"""To which conversation, agent and graph task does a callback event belong?

The host sends events with a run id, the parent's run id and metadata; end events come without
metadata. `RunTree` remembers the open runs, so that every event can be placed. It must not know
what a loop is.

A *session* is one call of a graph, or of a chain outside one: all that happens between a user's
input and the final answer, or the interrupt. An *attempt* is one execution of one graph task;
LangGraph starts a task again at a resume and at a retry.

The thread is the one of the config, `configurable.thread_id`, which the checkpointer uses.
Metadata may hold another one: LangSmith's users put a grouping id there, the same for many
threads.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from langchain_core.runnables.config import var_child_runnable_config

if TYPE_CHECKING:
    from uuid import UUID

    from langchain_loopguard.adapters.conversations import Conversation, Pending

    Key = tuple[str | int, ...]

MISSING: Final = object()
"""No value; `None` is one."""

_MANY = 4096
"""Open runs up to which none is looked at for whether it was lost: as many as a thousand agents at
work have."""

_ID_LENGTH = 32
_ID_DIGITS = frozenset("0123456789abcdef")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Run:
    """One open run."""

    # `RunTree.start` sets what differs. A class's own `__init__` would take longer than all else
    # there, and most agents start four runs a step.
    id: UUID
    parent: UUID | None
    metadata: Mapping[str, Any]
    ns: str  # The namespace of its graph task, also when that starts again; "" outside a graph.
    rooted: bool  # Whether the outermost run around it is seen.
    session: UUID  # The id of the graph's run, or of the outermost run outside a graph.
    attempt: UUID  # The id of the outermost run of the task.
    tool: Run | None = None  # The innermost tool run around it.
    resume: Any = MISSING  # What the graph was resumed with.
    has_input: bool = False  # Whether it was started with an input, which begins a turn.
    is_open: bool = True
    host: tuple[bool, bool] | None = None  # See `finding.in_task`; `None` until somebody looks.
    # Of a tool's run, and the first of a model's run too:
    kept: Conversation | None = None
    pending: Pending | None = None
    is_tool: bool = False
    call_id: str | None = None
    # Of a model's run: what it was sent where no graph's state tells, and a user's text that was
    # all it was sent in a conversation under way.
    sent: Sequence[Any] = ()
    prompt: str = ""
    # The conversations that are over with it, and copies of messages that were lent to its node,
    # each with its own content.
    holds: tuple[Key, ...] = ()
    lent: tuple[tuple[Any, Any], ...] = ()

    @property
    def scope(self) -> str:
        """The namespace of the graph around the task; `""` for the outermost one."""
        return self.ns.rpartition("|")[0]

    @property
    def around(self) -> str:
        """The tool call around an agent that has no graph of its own, `""` without one."""
        tool = self.tool
        if tool is None or tool.ns != self.ns:
            return ""
        return tool.call_id or str(tool.id)

    @property
    def node(self) -> str:
        """The name of the graph node that it runs in."""
        return str(self.metadata.get("langgraph_node") or "")

    @property
    def is_loose(self) -> bool:
        """Whether nothing is around it: a model or a tool that a loop written by hand calls."""
        return self.parent is None and not self.ns

    @property
    def is_called(self) -> bool:
        """Whether the task was called by another task, which the functional API does."""
        return (self.metadata.get("langgraph_path") or (False,))[-1] is True


class RunTree:
    """The runs that have started and not ended."""

    def __init__(self) -> None:
        """Start with none."""
        # By number: a UUID takes Python ten times as long to hash.
        self._runs: dict[int, Run] = {}
        self._most = _MANY

    def get(self, run_id: UUID | None) -> Run | None:
        """Give an open run."""
        return None if run_id is None else self._runs.get(run_id.int)

    def has(self, number: int) -> bool:
        """Tell whether the run with this number as its id is open."""
        return number in self._runs

    def start(
        self, run_id: UUID, parent_run_id: UUID | None, metadata: Mapping[str, Any] | None
    ) -> Run:
        """Place a run that starts. Its parent may be unknown: the handler was attached below."""
        parent = self.get(parent_run_id)
        run = Run()
        run.id, run.parent, run.metadata = run_id, parent_run_id, metadata or _NOTHING
        ns = run.metadata.get("langgraph_checkpoint_ns")
        run.ns = ns if type(ns) is str else ""
        if parent is None:
            run.rooted = parent_run_id is None
            # Without chain events the tasks of one graph still have different parents.
            run.session = run.attempt = parent_run_id or run_id
        else:
            run.ns = run.ns or parent.ns
            run.rooted = parent.rooted
            run.resume = parent.resume
            run.tool = parent if parent.is_tool else parent.tool
            run.attempt = parent.attempt if run.ns == parent.ns else run_id
            # The first run of a task has the graph as its parent.
            run.session = parent.id if run.ns and not parent.ns else parent.session
        self._runs[run_id.int] = run
        return run

    def took(self, run: Run, inputs: Any) -> None:
        """Note what a chain was started with."""
        # A graph is resumed with `Command(resume=...)`. Whoever holds one has imported LangGraph.
        types = sys.modules.get("langgraph.types")
        if types is None or not isinstance(inputs, types.Command):
            run.has_input = inputs is not None
        elif inputs.resume is not None:
            run.resume = inputs.resume

    def holder(self, run: Run, *, in_task: bool) -> Run | None:
        """Find the run with which a run's conversation is over, which may live within one task."""
        if run.tool is not None and run.tool.ns == run.ns:
            return run.tool
        task = self.get(run.attempt)
        if not run.ns or in_task:
            return task
        caller = None if task is None else self.get(task.parent)
        if caller is not None and caller.ns:
            return self.get(caller.attempt)
        return self.get(run.session) or task

    def end(self, run_id: UUID) -> Run | None:
        """Forget a run that ended; gives it."""
        run = self._runs.pop(run_id.int, None)
        if run is not None:
            run.is_open = False
        return run

    @property
    def are_many(self) -> bool:
        """Whether to look for lost ones."""
        return len(self._runs) > self._most

    def forget_lost(self) -> list[Run]:
        """Forget the runs that have outlived what they were started by.

        LangChain doesn't tell of the end of a model's run that is cancelled.
        """
        lost: list[Run] = []
        while self.are_many:
            open_runs = list(self._runs.values())
            gone = [
                run for run in open_runs if run.rooted and run.parent and not self.get(run.parent)
            ]
            lost += [run for run in gone if self.end(run.id)]
            if not gone:
                self._most = max(_MANY, 2 * len(self._runs))
        return lost


def configurable() -> Mapping[str, Any]:
    """Give the configurable part of the config that this is called in."""
    return (var_child_runnable_config.get() or _NOTHING).get("configurable") or _NOTHING


def is_answer_map(resume: Any) -> bool:
    """Tell a map of answers by interrupt id from a single answer."""
    return (
        isinstance(resume, Mapping)
        and bool(resume)
        and all(
            type(key) is str and len(key) == _ID_LENGTH and _ID_DIGITS.issuperset(key)
            for key in resume
        )
    )
