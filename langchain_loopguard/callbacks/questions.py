"""Which call of a batch asks, and which calls wait for the answer?

A batch is asked about once, however many of its calls start. In a `ToolNode` all of them run in
one graph task: the first to start asks, the others repeat its interrupt. With `create_agent`
each runs in a task of its own: the first asks, the others are parked, which leaves them undone
until the resume. In the functional API the task that called them waits for the first of them in
its own order, so there each repeats the interrupt. On a resume LangGraph starts all these tasks
anew, in any order. A task that has asked must call `interrupt` again in each attempt, since
LangGraph matches answers to interrupts by their order within the task, and a tool may ask
questions of its own after ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_loopguard.callbacks.runs import MISSING

if TYPE_CHECKING:
    from uuid import UUID

    from langchain_loopguard.callbacks.runs import Run

_ID_LENGTH = 32
_ID_DIGITS = frozenset("0123456789abcdef")


@dataclass(slots=True, eq=False)
class Question:
    """An interrupt about one batch.

    Attributes:
        ids: The interrupts' ids; more than one if it had to be asked again.
        tasks: The namespaces of the tasks that asked.
        sharers: The namespaces of all tasks that run a call of the batch, with the attempt in
            which each came first.
        asked_in: The session that asked last; an answer comes in a later one.
        answered_in: The session that got the answer.
        interrupts: The interrupts that are open.
        payload: What another process has asked, `None` if none did.
        saved: The answer that a task of another process took, `MISSING` without one.
        attempts: What came of asking in each attempt: the exception to raise in every call of
            that attempt, `None` when it was answered.
    """

    ids: set[str] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)
    sharers: dict[str, UUID] = field(default_factory=dict)
    asked_in: UUID | None = None
    answered_in: UUID | None = None
    interrupts: tuple[Any, ...] = ()
    payload: dict[str, Any] | None = None
    saved: Any = MISSING
    attempts: dict[UUID, Exception | None] = field(default_factory=dict)

    def is_replayed_by(self, run: Run) -> bool:
        """Tell whether the graph was taken back to before this question, which was answered.

        The tasks are new ones then. A person who goes back may want to answer otherwise.
        """
        known = run.ns in self.sharers or run.session == self.answered_in
        return self.answered_in is not None and not known

    def is_asked_by(self, run: Run, interrupt_id: str) -> bool:
        """Tell whether the run's task is the one to ask: nobody did yet, or this one did.

        Args:
            run: The run of the call.
            interrupt_id: The id of its task's first interrupt. A map of answers that holds it
                shows that the task asked in a process that is gone.
        """
        held = is_map(run.resume) and interrupt_id in run.resume
        # Where the graph's own run is not seen, neither is what it was resumed with: a task that
        # comes again may be the one that gets the answer.
        again = not run.rooted and self.sharers.get(run.ns, run.attempt) != run.attempt
        return not self.ids or run.ns in self.tasks or interrupt_id in self.ids or held or again

    def is_settled_for(self, run: Run) -> bool:
        """Tell whether another task took the answer, where the graph's own run is not seen."""
        first = self.sharers.get(run.ns, run.attempt)
        return not run.rooted and first != run.attempt and run.attempt not in self.attempts

    def answer_to(self, run: Run, resumed_with: Any) -> Any:
        """Pick the answer out of what the run's graph was resumed with.

        Args:
            run: The run of the call.
            resumed_with: What the thread was resumed with before this session, `MISSING` without.

        Returns:
            `MISSING` if there is none, also when the resume answered an earlier question.
        """
        if self.saved is not MISSING:
            return self.saved
        if run.session == self.asked_in:
            return MISSING
        if not is_map(run.resume):
            return resumed_with if run.resume is MISSING else run.resume
        return next((run.resume[asked] for asked in self.ids if asked in run.resume), MISSING)


def is_map(resume: Any) -> bool:
    """Tell a map of answers by interrupt id from a single answer."""
    return (
        isinstance(resume, Mapping)
        and bool(resume)
        and all(isinstance(key, str) and _is_id(key) for key in resume)
    )


def _is_id(text: str) -> bool:
    return len(text) == _ID_LENGTH and _ID_DIGITS.issuperset(text)
