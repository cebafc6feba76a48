"""Where does a run stand, and what does its guard have to read?

A turn is the batch at the end of a graph's messages, with the counts that were saved before it.
It is read from the messages and the counts alone, so that every process reads the same. What is
done about a batch is not decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage

from langchain_loopguard.core.decision import Action
from langchain_loopguard.graph.endings import last_word
from langchain_loopguard.history import is_approved, own_calls, without_foreign_answers
from langchain_loopguard.messages import is_refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import AIMessage, BaseMessage

    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.history import Batch
    from langchain_loopguard.messages import MessageReader

__all__ = ["Turn", "known_counts", "tools_ran", "unread", "verdict"]


@dataclass(slots=True, eq=False)
class Turn:
    """Where a run stands when the gate is asked.

    Attributes:
        messages: The state's messages, up to the batch and its answers: `Batch.ends`.
        batch: The calls of the last AI message.
        known: The saved counts, `None` before the first ones and where none are saved. An empty
            mapping, with which a channel of the user's own may begin, is `None` too.
    """

    messages: Sequence[BaseMessage]
    batch: Batch
    known: Any

    def __post_init__(self) -> None:
        self.known = known_counts(self.known)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls to decide about."""
        return [*self.batch.waiting, *self.batch.unreadable]

    @property
    def late(self) -> bool:
        """Whether the host has answered every call before any tool could run.

        Structured output that doesn't fit its schema is answered so, and so are calls beyond
        the limit of LangChain's `ToolCallLimitMiddleware`.
        """
        return self.batch.answered and not self.calls

    @property
    def own(self) -> AIMessage:
        """The AI message without the calls that a person has answered, who rejected them."""
        if not self.batch.answered:
            return self.batch.message
        return own_calls(self.batch.message, self.messages[self.batch.index + 1 :])

    @property
    def said_before(self) -> str | None:
        """The last word to use if this batch comes where the model was to use no tools."""
        return last_word(self.messages, self.batch.index)


def known_counts(counts: Any) -> Any:
    """Give saved counts, `None` for those that hold nothing."""
    # A reducer of the user's own, or a state's default, begins with an empty mapping.
    return None if type(counts) is dict and not counts else counts


def tools_ran(turn: Turn, reader: MessageReader) -> bool:
    """Tell whether the batch has run, so that only its answers are to be taken in."""
    batch = turn.batch
    if not batch.answered:
        # Tools may have spoken in another way than by answers.
        return bool(batch.others) and reader.place(turn.messages) == batch.index
    if not batch.waiting:
        return True
    # Some calls are answered and some are not: either a person answered those before the batch
    # ran, or the tools left the others out.
    if turn.known is None:
        return batch.tools_ran
    return reader.place(turn.messages) == batch.index


def verdict(turn: Turn, reader: MessageReader) -> Decision:
    """Read what comes before a batch and have the batch counted, once."""
    messages = _unread_until(turn, reader)
    if turn.known is None:
        # What a person let run is known from the marks in the messages.
        for at, message in enumerate(messages[:-1]):
            if is_approved(message) and message.id and not _is_refused(messages, at):
                reader.read(messages[: at + 1])
                decision = reader.check(message)
                if decision.action >= Action.ASK:
                    reader.approve(decision)
    reader.read(messages)
    return reader.check(turn.own)


def _is_refused(messages: Sequence[BaseMessage], at: int) -> bool:
    """Tell whether every answer to a message's calls was the guard's."""
    answers = []
    for message in messages[at + 1 :]:
        if not isinstance(message, ToolMessage):
            break
        answers.append(message)
    return bool(answers) and all(map(is_refusal, answers))


def _unread_until(turn: Turn, reader: MessageReader) -> list[BaseMessage]:
    """As `unread` for the messages up to the batch's own, if possible without those long read."""
    start, end = reader.place(turn.messages), turn.batch.index
    if start is not None:
        messages = [*turn.messages[start:end], turn.own]
        at = reader.place(messages)
        if at is not None:
            return without_foreign_answers(messages[at:])
    return unread(reader, [*turn.messages[:end], turn.own])


def unread(reader: MessageReader, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Give the messages from the one that was counted last on, which are all that matter."""
    return without_foreign_answers(messages[reader.place(messages) or 0 :])
