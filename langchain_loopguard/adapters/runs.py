"""To which session, graph task and agent does a callback event belong?

The host sends events with a run id, the parent's run id and metadata; end events come without
metadata. `RunTree` remembers the open runs, so that every event can be placed. It must not know
what a loop is.

The thread is the one of the config, `configurable.thread_id`, which the checkpointer uses.
Metadata may hold another one: LangSmith's users put a grouping id there, the same for many
threads.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from langchain_core.runnables.config import var_child_runnable_config

if TYPE_CHECKING:
    from uuid import UUID

    from langchain_loopguard.adapters.conversations import Conversation, Pending
    from langchain_loopguard.core.errors import LoopDetectedError
    from langchain_loopguard.langchain.marks import Mark
    from langchain_loopguard.langchain.outcome import Outcome

    Key = tuple[str | int, ...]

MISSING: Final = object()
"""No value; `None` is one."""

_MANY = 4096
"""Open runs up to which none is looked at for whether it was lost: as many as a thousand agents at
work have."""

_STRANGERS = 256
"""Runs that are remembered of which only the inside is seen, and never the end."""

_ID_LENGTH = 32
_ID_DIGITS = frozenset("0123456789abcdef")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class Ending:
    """How a session ends before its next model call."""

    outcome: Outcome
    error: LoopDetectedError  # What it ends for.
    # The conversations in which calls were stopped since; the attempts in which agents gave the
    # final message, with the signals; and whether the end was carried out.
    stopped: set[Key] = field(default_factory=set)
    said: dict[tuple[str, str], tuple[UUID, Exception]] = field(default_factory=dict)
    delivered: bool = False


@dataclass(slots=True, eq=False)
class Session:
    """One call of a graph, or of a chain outside one.

    It is all that happens between a user's input and the final answer, or the interrupt.
    """

    id: UUID  # That of the graph's run, or of the outermost run outside a graph.
    has_input: bool = False  # Whether it was started with an input, which begins a turn.
    begun: bool = False  # Whether its turn has begun.
    ending: Ending | None = None


class Run:
    """One open run."""

    # `RunTree.start` sets what differs. A class's own `__init__` would take longer than all else
    # there, and most agents start four runs a step.
    id: UUID
    metadata: Mapping[str, Any]
    ns: str  # The namespace of its graph task, also when that starts again; "" outside a graph.
    session: Session
    leads: Session | None = None  # The session whose first run it is.
    above: Run | None = None  # What it was started by.
    first: Run | None = None  # See `attempt`; `None` if it is that one.
    tool: Run | None = None  # The innermost tool run around it.
    rooted: bool = True  # Whether the outermost run around it is seen.
    resume: Any = MISSING  # What the graph was resumed with.
    is_open: bool = True
    # Of a tool's and a model's run: whether LangGraph knows the task, and can be resumed there.
    in_task: bool = False
    can_ask: bool = False
    kept: Conversation | None = None
    # Of a tool's run.
    pending: Pending | None = None
    call_id: str | None = None
    # Of a model's run: what it was sent where no graph's state tells, and a user's text that was
    # all it was sent in a conversation under way.
    sent: Sequence[Any] = ()
    prompt: str = ""
    # Of a graph's run: the conversation of its agent.
    agent: Conversation | None = None
    # The conversations that are over with it, and copies of messages that were lent to its node,
    # each with its own content.
    holds: tuple[Conversation, ...] = ()
    lent: tuple[tuple[Any, Any], ...] = ()
    # Of the first run of an attempt: what is to be written into results, by call id, and whether
    # the guard gave the result.
    marks: dict[str | None, tuple[Mark, bool]]

    @property
    def attempt(self) -> Run:
        """The first run of its task; outside a graph, the outermost run.

        LangGraph starts a task again at a resume and at a retry, which is another attempt.
        """
        return self.first or self

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
    def is_loose(self) -> bool:
        """Whether nothing is around it: a model or a tool that a loop written by hand calls."""
        return self.above is None and not self.ns

    def took(self, inputs: Any) -> None:
        """Note what a chain was started with."""
        if not self.ns:  # It may be a graph's run.
            self.leads = self.leads or Session(self.id)
        # A graph is resumed with `Command(resume=...)`. Whoever holds one has imported LangGraph.
        types = sys.modules.get("langgraph.types")
        if types is not None and isinstance(inputs, types.Command):
            self.resume = self.resume if inputs.resume is None else inputs.resume
        elif self.leads is not None:
            self.leads.has_input = inputs is not None


class RunTree:
    """The runs that have started and not ended; safe in any thread."""

    def __init__(self) -> None:
        """Start with none."""
        # By number: a UUID takes Python ten times as long to hash.
        self._runs: dict[int, Run] = {}
        self._strangers: OrderedDict[int, Run] = OrderedDict()
        self._most = _MANY

    def start(
        self,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> Run:
        """Place a run that starts; takes what a start event says."""
        run = Run()
        run.id, run.metadata = run_id, metadata or _NOTHING
        ns = run.metadata.get("langgraph_checkpoint_ns")
        run.ns = ns if type(ns) is str else ""
        if parent_run_id is None:
            run.session = run.leads = Session(run_id)
        else:
            above = self._runs.get(parent_run_id.int) or self._stranger(parent_run_id, run.ns)
            run.above, run.rooted, run.resume = above, above.rooted, above.resume
            run.tool = above if above.pending is not None else above.tool
            run.ns = run.ns or above.ns
            if run.ns == above.ns:
                run.first = above.first or above
            # The first run of a task has the graph as its parent.
            is_first = run.ns and not above.ns
            run.session = above.leads if is_first and above.leads is not None else above.session
        if run.first is None:
            run.marks = {}
        self._runs[run_id.int] = run
        return run

    def _stranger(self, run_id: UUID, ns: str) -> Run:
        """Make up a run that was not seen: the handler was attached below it."""
        run = Run()
        run.id, run.ns, run.session, run.marks = run_id, ns, Session(run_id), {}
        run.rooted = run.is_open = False
        run = self._strangers.setdefault(run_id.int, run)
        if len(self._strangers) > _STRANGERS:
            self._strangers.popitem(last=False)
        return run

    def holder(self, run: Run, *, in_task: bool) -> Run | None:
        """Find the run with which a run's conversation is over, which may live within one task."""
        if run.tool is not None and run.tool.ns == run.ns:
            return run.tool
        found = run.attempt
        if run.ns and not in_task:
            caller = found.above
            if caller is not None and caller.ns and caller.is_open:
                found = caller.attempt
            else:
                found = self._runs.get(run.session.id.int, found)
        return found if found.is_open else None

    def end(self, run_id: UUID) -> Run | None:
        """Forget a run that ended; gives it."""
        run = self._runs.pop(run_id.int, None)
        if run is not None:
            run.is_open = False
        return run

    def lost(self) -> list[Run]:
        """Forget, where runs are many, those that have outlived what they were started by.

        LangChain doesn't tell of the end of a model's run that is cancelled.
        """
        if len(self._runs) <= self._most:
            return []
        runs = list(self._runs.values())
        lost = [run for run in runs if run.rooted and run.above and not run.above.is_open]
        for run in lost:
            self.end(run.id)
        self._most = max(_MANY, 2 * len(self._runs))
        return lost


def thread_id() -> Any:
    """Give the id of the thread in the config that this is called in, `None` without one."""
    config = var_child_runnable_config.get()
    return None if not config else (config.get("configurable") or _NOTHING).get("thread_id")


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
