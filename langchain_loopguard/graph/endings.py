"""What is still to happen once the calls of a batch are answered?

A run that ends leaves no call without an answer, and some ends come only after the answers are
saved: an error is raised, or the model speaks once more without tools. That is written into the
metadata of the last answer, which is never sent to a model and which no tool can imitate, so
nothing but the messages has to survive until then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage

from langchain_loopguard.core.errors import facts_of
from langchain_loopguard.errors import error_of
from langchain_loopguard.messages import (
    SOURCE,
    final_message,
    is_human_turn,
    tool_calls_of,
)

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage, BaseMessage

    from langchain_loopguard.core.errors import LoopDetectedError

__all__ = [
    "check_ended",
    "ends_in_error",
    "is_wrapping_up",
    "last_answer",
    "last_word",
    "marked",
    "wraps_up",
]

_ERROR, _SAID = "error", "wrap_up"


def ends_in_error(error: LoopDetectedError) -> dict[str, Any]:
    """Give the mark for answers after which an error is raised."""
    return {_ERROR: facts_of(error)}


def wraps_up(said: str) -> dict[str, Any]:
    """Give the mark for answers after which the model speaks once more, without tools.

    Args:
        said: The last word to use when the model has none.
    """
    return {_SAID: said}


def marked(answers: Sequence[ToolMessage], mark: Mapping[str, Any]) -> tuple[AnyMessage, ...]:
    """Write a mark into the last answer."""
    if not mark or not answers:
        return tuple(answers)
    last = answers[-1]
    old = last.additional_kwargs.get(SOURCE)
    merged = {**(old if isinstance(old, Mapping) else {}), **mark}
    kwargs = {**last.additional_kwargs, SOURCE: merged}
    return (*answers[:-1], last.model_copy(update={"additional_kwargs": kwargs}))


def check_ended(messages: Sequence[BaseMessage]) -> None:
    """Raise the error that a run was to end with once its calls were answered.

    Raises:
        LoopDetectedError: If the answers at the end say so.
    """
    facts = _mark_at_end(messages).get(_ERROR)
    if isinstance(facts, Mapping):
        raise error_of(facts)


def is_wrapping_up(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether the next model call is to be made without tools, for a last answer."""
    return last_word(messages) is not None


def last_word(messages: Sequence[BaseMessage], end: int | None = None) -> str | None:
    """Give what is said if the model's last answer is none; `None` if none was asked for.

    Args:
        messages: A history.
        end: How many of its messages count, all by default.
    """
    said = _mark_at_end(messages, end).get(_SAID)
    return said if isinstance(said, str) else None


def last_answer(messages: Sequence[AnyMessage], answer: Any) -> AnyMessage:
    """Give the message that ends a run: a model's last answer, or the last word without one.

    Args:
        messages: The messages that it was asked with.
        answer: What it gave.
    """
    if isinstance(answer, AIMessage) and not tool_calls_of(answer) and answer.text.strip():
        return answer
    text = answer.text if isinstance(answer, AIMessage) else answer
    if isinstance(text, str) and text.strip():
        return AIMessage(content=text)
    return final_message(last_word(messages) or "")


def _mark_at_end(messages: Sequence[BaseMessage], end: int | None = None) -> Mapping[str, Any]:
    for index in range(len(messages) if end is None else end, 0, -1):
        message = messages[index - 1]
        if isinstance(message, ToolMessage):
            mark = message.additional_kwargs.get(SOURCE)
            return mark if isinstance(mark, Mapping) else {}
        # What a framework adds behind the answers, an image for instance, changes nothing.
        if isinstance(message, AIMessage) or is_human_turn(message):
            break
    return {}
