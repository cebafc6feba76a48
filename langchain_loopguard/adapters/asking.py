"""Which of a step's calls asks a person, which wait, and by which signals?

A person is asked once for a step, however many of its calls start. In a `ToolNode` all of them run
in one graph task: the first to start asks, the others repeat its interrupt. With `create_agent`
each runs in a task of its own: the first asks, the others are parked, so they don't run
until the resume. In the functional API the task that called them waits for the first of them in
its own order, so there each repeats the interrupt. On a resume LangGraph starts all these tasks
again, in any order. A task that has asked must call `interrupt` again in each attempt, since
LangGraph matches answers to interrupts by their order within the task, and a tool may ask
questions of its own after ours.

Imports LangGraph, so it is loaded only inside a graph. The `repr` of a signal shows neither
arguments nor what a person said, since LangChain logs it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableLambda
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.prebuilt.tool_node import ToolInvocationError
from langgraph.types import Command

from langchain_loopguard.adapters import _langgraph
from langchain_loopguard.adapters.runs import MISSING, is_answer_map
from langchain_loopguard.core.errors import LoopDetectedError
from langchain_loopguard.langchain.question import QUESTION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from langchain_core.messages import AIMessage
    from langgraph.types import Interrupt

    from langchain_loopguard.adapters.conversations import Pending
    from langchain_loopguard.adapters.runs import Run


class PersonAskedError(GraphInterrupt):
    """LangGraph's signal that a person is asked; without an interrupt in it, that a task waits.

    A question of its own in each task would have to be answered one by one.
    """

    def __str__(self) -> str:
        """Say what whoever swallows it may show to the model."""
        return "This call was not run yet: a person is asked first."

    __repr__ = __str__


class LastWordError(ParentCommand):
    """LangGraph's signal that a node ends with a message."""

    def __repr__(self) -> str:
        """Say what it is, by the name that LangGraph's users know."""
        return f"{ParentCommand.__name__}(<a final message>)"

    __str__ = __repr__


class RefusedCallError(LoopDetectedError, ToolInvocationError, RuntimeError):
    """A call that is not run; `message` is for the model, `str()` for a person.

    LangGraph's `ToolNode` (and so `create_agent`) makes an error message of it, as it does with a
    call whose arguments are wrong; elsewhere it is a `LoopDetectedError`. A `RuntimeError` as
    well, because LangGraph's default retry policy doesn't retry those.
    """

    message: str

    def __init__(self, loop: LoopDetectedError, text: str) -> None:
        """Refuse a call with `text`, because of `loop`."""
        # The bases' own constructors want a validation error and format it.
        Exception.__init__(self, text)
        self.signature, self.tools = loop.signature, loop.tools
        self.count, self.threshold = loop.count, loop.threshold
        self.message = text
        self.tool_name, self.tool_kwargs = ", ".join(loop.tools), {}
        self.source = loop  # type: ignore[assignment] # no validation failed here
        self.filtered_errors = []

    def __str__(self) -> str:
        """Say what was detected."""
        return str(self.source)

    def __repr__(self) -> str:
        """Say what the model is to read: a `ToolNode` that handles every error shows it this."""
        return self.message


def say_last(node: str, key: str, message: AIMessage) -> Exception | None:
    """Give the signal that ends the running node with a message as its output.

    LangGraph takes a command that a node's inside addresses to the node for the node's own
    output, so the graph goes on as if the model had spoken these words. Such an output is never
    streamed, so the message is also the output of a small run with the node's name.

    Returns:
        `None` where there are no messages to add to, in the functional API for instance.
    """
    if not node or not isinstance(_langgraph.read_channel(key), list | tuple):
        return None
    said: RunnableLambda[Any, Any] = RunnableLambda(lambda _: {key: [message]}, name=node)
    said.invoke({})
    return LastWordError(Command(graph=node, update={key: [message]}))


@dataclass(slots=True, eq=False)
class Question:
    """An interrupt about one step."""

    ids: set[str] = field(default_factory=set)  # Of the interrupts; one for each task that asked.
    sharers: set[str] = field(default_factory=set)  # The namespaces of tasks that run its calls.
    asked_in: UUID | None = None  # The session that asked last; an answer comes in a later one.
    answered_in: UUID | None = None  # The session that got the answer.
    interrupts: tuple[Interrupt[Any], ...] = ()  # Those that are open.
    payload: Mapping[str, Any] | None = None  # What was asked, here or in another process.
    saved: Any = MISSING  # The answer that a task of another process took.
    # What came of asking in each attempt: what every call of it raises, `None` once answered.
    attempts: dict[UUID, Exception | None] = field(default_factory=dict)

    def is_replayed_by(self, run: Run) -> bool:
        """Tell whether the graph was taken back to before this question.

        The tasks are new ones then. A person who goes back may want to answer otherwise.
        """
        known = run.ns in self.sharers or run.session.id in {self.asked_in, self.answered_in}
        left = run.rooted and run.resume is MISSING and self.asked_in is not None
        return not known and (self.answered_in is not None or left)

    def blocks(self, run: Run) -> Exception | None:
        """Give what a call raises that can't ask and finds no answer, `None` if it can."""
        if run.attempt.id in self.attempts:
            return self._came_of(run)
        self.sharers.add(run.ns)
        if self.was_asked_in(run) or self._answer_to(run) is not MISSING:
            return None
        # Whether another task has called this one, which waits for it.
        is_called = (run.metadata.get("langgraph_path") or (False,))[-1] is True
        return PersonAskedError(self.interrupts if is_called else ())

    def repeat(self, run: Run) -> Exception | None:
        """Call `interrupt` again in a task that has asked, although the answer is known."""
        if run.attempt.id in self.attempts:
            return self._came_of(run)  # It may start only after the run has gone on without it.
        if not self.was_asked_in(run):
            return None
        try:
            self.ask(run, {}, {})
        except GraphInterrupt as error:
            return error
        return None

    def ask(self, run: Run, payload: Mapping[str, Any], schema: dict[str, Any]) -> Any:
        """Give the answer, or interrupt the run's task.

        Raises:
            PersonAskedError: If there is none yet.
        """
        self.sharers.add(run.ns)
        if self.ids and not self.was_asked_in(run):
            return self._answer_to(run)
        self.ids.add(_langgraph.question_id(run.ns))
        self.payload = self.payload or payload
        try:
            value = _langgraph.ask_person({**self.payload}, schema)
        except GraphInterrupt as unanswered:
            # An interrupt made by hand could never be answered.
            self.interrupts = unanswered.args[0]
            self.asked_in = run.session.id
            self.attempts[run.attempt.id] = error = PersonAskedError(self.interrupts)
            raise error from None
        self.attempts[run.attempt.id] = None
        return value

    def was_asked_in(self, run: Run) -> bool:
        """Tell whether the run's task has asked it, now or in another process."""
        return _langgraph.question_id(run.ns) in self.ids

    def _came_of(self, run: Run) -> Exception | None:
        """Give what came of asking in the run's attempt, for another call of it."""
        error = self.attempts[run.attempt.id]
        return PersonAskedError(self.interrupts) if isinstance(error, GraphInterrupt) else error

    def _answer_to(self, run: Run) -> Any:
        """Pick the answer out of what the graph was resumed with, `MISSING` if there is none.

        There is none either where the resume answered an earlier question.
        """
        if self.saved is not MISSING:
            return self.saved
        if run.session.id == self.asked_in:
            return MISSING
        if is_answer_map(run.resume):
            return next((run.resume[asked] for asked in self.ids if asked in run.resume), MISSING)
        given = _langgraph.given_resume() if run.resume is MISSING else run.resume
        return MISSING if given is None and run.resume is MISSING else given


def ask(pending: Pending, run: Run, payload: dict[str, Any], schema: dict[str, Any]) -> Any:
    """Ask a person, or return the answer; see `gate.Ask`."""
    pending.question = pending.question or Question()
    return pending.question.ask(run, payload, schema)


def find_question(pending: Pending) -> Question | None:
    """Give the question about a step, with what other processes have asked and got as answers."""
    question = pending.question
    for asked in _langgraph.saved_questions():
        value = asked.value
        ours = isinstance(value, dict) and value.get("type") == QUESTION
        if ours and not pending.call_ids.isdisjoint(value.get("tool_call_ids", ())):
            question = question or Question()
            question.ids.add(asked.id)
            question.payload = question.payload or value
            if asked.answers:
                question.saved = asked.answers[0]
    return question
