"""What can a callback ask of the LangGraph task that it runs in?

The only file that uses LangGraph's graphs, so it is loaded only inside one: importing LangGraph
costs some 0.4 seconds. The keys that begin with `__pregel` are LangGraph's own; each use says
what happens when one is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import BaseMessage
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.types import Command, Interrupt, interrupt

from langchain_loopguard.callbacks.runs import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_loopguard.callbacks.runs import Run

_SCRATCHPAD = "__pregel_scratchpad"
_READ = "__pregel_read"
_CHECKPOINTER = "__pregel_checkpointer"
_INTERRUPT = "__interrupt__"
_RESUME = "__resume__"
_OF_UNDONE = frozenset({_INTERRUPT, _RESUME, "__error__", "__error_source_node__"})
"""What is saved of a task that is to be started again."""
_WRITES = "pending_writes"


class PersonAskedError(GraphInterrupt):
    """LangGraph's signal that a person is asked, with a `repr` that does not show the question.

    LangChain logs the `repr` of each exception that leaves a handler, and the question holds the
    arguments of the calls.
    """

    def __repr__(self) -> str:
        """Say how many questions there are."""
        return f"{type(self).__name__}(<{len(self.args[0])} interrupts>)"

    __str__ = __repr__


class LastWordError(ParentCommand):
    """LangGraph's signal that a node ends with a message, with a `repr` that does not show it.

    For the same reason: the message holds what a person gave as a reason.
    """

    def __repr__(self) -> str:
        """Say what it is, by the name that LangGraph's users know."""
        return f"{ParentCommand.__name__}(<a final message>)"

    __str__ = __repr__


class Asked(NamedTuple):
    """A question of one of the tasks of a step, as it was saved.

    Attributes:
        id: The interrupt's id.
        payload: What was asked.
        answers: What the task was resumed with so far; the first answers its first question.
    """

    id: str
    payload: Any
    answers: Sequence[Any]


class Task:
    """The graph task that the current callback runs in."""

    __slots__ = ("_config", "_run", "ns")

    def __init__(self, run: Run, config: Mapping[str, Any]) -> None:
        """Keep the run in it, its namespace, and the configurable part of its config."""
        self.ns = run.ns
        self._run = run
        self._config = config

    @property
    def resumable(self) -> bool:
        """Whether the graph has a checkpointer, so that an interrupt can be answered.

        Where LangGraph doesn't say, a thread id is the sign of one.
        """
        if _CHECKPOINTER in self._config:
            saver = self._config[_CHECKPOINTER]
            return saver is not None and saver is not False
        return bool(self._config.get("thread_id"))

    @property
    def interrupt_id(self) -> str:
        """The id of this task's first interrupt, the same in every process."""
        return Interrupt.from_ns(None, self.ns).id

    def messages(self, key: str) -> Sequence[BaseMessage] | None:
        """Give the messages of the graph's state, `None` if it has none under this key."""
        read = self._config.get(_READ)
        if read is None:
            return None
        try:
            value = read(key, False)  # noqa: FBT003 - the host's signature
        except Exception:  # noqa: BLE001 - an unknown key raises what the channel likes
            return None
        if type(value) is not list and (not isinstance(value, Sequence) or isinstance(value, str)):
            return None
        # One is looked at: a long history is read at every model call.
        return value if not value or isinstance(value[-1], BaseMessage) else None

    def ask(self, payload: dict[str, Any]) -> Any:
        """Interrupt the task.

        Returns:
            The answer when the task was resumed with one, otherwise the `GraphInterrupt` to
            raise. An interrupt made by hand could never be answered.
        """
        try:
            return interrupt(payload)
        except GraphInterrupt as unanswered:
            return PersonAskedError(unanswered.args[0])

    def unanswered(self, outcome: Any) -> tuple[Interrupt[Any], ...] | None:
        """Give the interrupts of what `ask` gave, `None` if that was an answer."""
        return outcome.args[0] if isinstance(outcome, GraphInterrupt) else None

    def undone(self, interrupts: tuple[Interrupt[Any], ...] = ()) -> Exception:
        """Give the exception that leaves the task undone until the resume, with no new question.

        LangGraph says that this class is never raised directly. Here it either repeats what
        `interrupt` raised, or holds no interrupt and only means "not done": a question of its
        own in each task would have to be answered one by one.

        Args:
            interrupts: The interrupts to repeat.
        """
        return PersonAskedError(interrupts)

    @property
    def resumed_with(self) -> Any:
        """What the thread was resumed with in this step, by this process or one before it.

        `MISSING` without such a value: also when the answer came by interrupt id.
        """
        look = getattr(self._config[_SCRATCHPAD], "get_null_resume", None)
        value = look(False) if callable(look) else None  # noqa: FBT003 - the host's signature
        return MISSING if value is None else value

    def asked(self) -> list[Asked]:
        """Give the questions that tasks of this step have asked, in other processes perhaps.

        LangGraph loads what is saved of a step when a run begins and gives each task a function
        that looks into it. Nothing else is within reach of a handler: an async saver refuses to
        be read from the event loop that it serves.

        Returns:
            Empty if LangGraph keeps it elsewhere: then it isn't known that somebody asked.
        """
        try:
            return _asked(self._config[_SCRATCHPAD].get_null_resume)
        except Exception:  # noqa: BLE001 - an internal that has changed may raise anything
            return []

    def last_word(self, key: str, message: BaseMessage) -> Exception | None:
        """Give the exception that ends the node with a message as its output.

        LangGraph takes a command that a node's inside addresses to the node for the node's own
        output, so the graph goes on as if the model had spoken these words.

        Returns:
            `None` where there are no messages to add to, in the functional API for instance.
        """
        node = self._run.node
        if not node or self.messages(key) is None:
            return None
        return LastWordError(Command(graph=node, update={key: [message]}))


def _asked(look: Any) -> list[Asked]:
    names = look.__code__.co_freevars
    writes = look.__closure__[names.index(_WRITES)].cell_contents
    if not writes:
        return []
    answers = {task: _listed(value) for task, channel, value in writes if channel == _RESUME}
    done = {task for task, channel, _ in writes if channel not in _OF_UNDONE}
    return [
        Asked(item.id, item.value, answers.get(task, ()))
        for task, channel, items in writes
        # A task that is done and took no answer will not ask again.
        if channel == _INTERRUPT and (task in answers or task not in done)
        for item in items
    ]


def _listed(answers: Any) -> Sequence[Any]:
    return answers if isinstance(answers, list | tuple) else [answers]


def current_task(run: Run) -> Task | None:
    """Find the task that a callback runs in.

    Returns:
        `None` where the task's context was lost, in a thread started by hand for instance:
        nothing can be asked there.
    """
    try:
        config = get_config().get("configurable", {})
    except RuntimeError:
        return None
    if config.get("checkpoint_ns") != run.ns or _SCRATCHPAD not in config:
        return None
    return Task(run, config)
