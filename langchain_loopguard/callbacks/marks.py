"""What does a handler leave in a graph's messages, so that the next process knows it?

A handler keeps nothing of its own: what outlives the process is what the host saves. So each
fact is written into a message that the host is about to save for the first time, when the run
that made it ends, and is saved with it or lost with it. Nothing here is sent to a model, and no
tool's text can imitate it.

- The answers of a batch that a person let run say so, each of them, since each call may be
  saved by itself.
- Answers in place of calls that were refused are marked as the guard's. If the run was to end
  there, they say how: the process may die before the model call that ends it.
- Calls of tools that don't exist are answered before anybody can ask. What was decided about
  such a batch is written into the model's next message, which is saved with the decision. So
  is what was to be added to those answers: they are saved already, and a host that saves only
  what is new (`DeltaChannel`) never saves them again. It is added anew when they are read.

`fate` reads it back. It must not know how a loop is found.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_loopguard.core.errors import facts_of
from langchain_loopguard.history import is_approved
from langchain_loopguard.messages import SOURCE, is_human_turn, is_refusal, makes_calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableMapping, Sequence

    from langchain_loopguard.core.errors import LoopDetectedError

WITHHELD = "<what a person said>"
"""What stands in an error in place of a person's words, since errors are logged."""

_LET_RUN, _ENDS = "let_run", "ends"
_BEFORE = "loop_guard_before"
"""Metadata key of an AI message that says what became of the batch before it. Response metadata
is never sent to a model."""


class Fate(enum.Enum):
    """What became of a batch, as far as its messages tell."""

    OPEN = "open"
    """It has its answers, and the model was not called since. Nobody has decided about it."""
    LET_RUN = "let run"
    """A person let it run, all of it or a part."""
    REFUSED = "refused"
    """It was refused, or the run was ended over it."""
    PASSED = "passed"
    """The model was called after it, and nothing says that anybody decided about it."""
    LEFT = "left"
    """The next thing after its answers is a user turn: the model was never called after it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What is to be written into the answer of a call.

    Attributes:
        refused: Whether the answer is the guard's, and not a tool's.
        note: What is written besides.
        withheld: What a person said, to be put where the answer says `WITHHELD`.
    """

    refused: bool = False
    note: Mapping[str, Any] = field(default_factory=dict)
    withheld: str = ""


LET_RUN = Mark(note={_LET_RUN: True})
"""A person let the call run."""


REFUSED = Mark(refused=True)
"""The call was refused, and the run goes on."""

REFUSED_ALONE = Mark(refused=True, note=LET_RUN.note)
"""The call was refused, and others of its batch were let run. Those may leave no trace: the
answer to a call of a tool that does not exist is saved before anybody is asked."""


def ends(error: LoopDetectedError, last_word: str | None) -> Mark:
    """Mark a call that was refused because the run is to end.

    Args:
        error: What it is to end in.
        last_word: The final AI message where it may end without an error.
    """
    return Mark(refused=True, note={_ENDS: {**facts_of(error), "last_word": last_word}})


def decided(*, goes_on: bool, texts: Mapping[str, str]) -> dict[str, Any]:
    """Give what the model's next message is to say of a batch of which no tool was started.

    Args:
        goes_on: Whether it was let run, all of it or a part.
        texts: What was added to the answers, by call id.
    """
    what = Fate.LET_RUN if goes_on else Fate.REFUSED
    return {"fate": what.value, "texts": dict(texts)}


def write(outputs: Any, marks: MutableMapping[str, Mark], before: Mapping[str, Any] | None) -> bool:
    """Write marks into the messages that a run of the host gives.

    The host keeps these very objects, and saves them only after the run has ended.

    Args:
        outputs: What the run gives.
        marks: The marks of calls by id; those that were written are taken out.
        before: What the AI message in it is to say of the batch before it, see `decided`.

    Returns:
        Whether the latter was.
    """
    written = False
    for message in _messages_in(outputs):
        if isinstance(message, ToolMessage):
            mark = marks.pop(message.tool_call_id, None)
            if mark is not None:
                _note(message, mark)
        elif isinstance(message, AIMessage) and before is not None and not written:
            message.response_metadata = {**message.response_metadata, _BEFORE: before}
            written = True
    return written


def is_plain(batch: Sequence[BaseMessage]) -> bool:
    """Tell whether a batch has answers, all its tools' own, and nothing follows them.

    If so its fate is `Fate.OPEN` and it says nothing of an end. For speed alone: nearly every
    model call continues such a batch.
    """
    for message in batch[1:]:
        if type(message) is not ToolMessage or message.additional_kwargs:
            return False
    return len(batch) > 1 and makes_calls(batch[0]) and not is_approved(batch[0])


def fate(batch: Sequence[BaseMessage]) -> Fate:
    """Tell what became of a batch.

    Args:
        batch: Its AI message and what follows, at least to the next AI message or user turn.
    """
    answers = list(_answers(batch))
    following = batch[1 + len(answers) :]
    then = next((m for m in following if isinstance(m, AIMessage) or is_human_turn(m)), None)
    said = _said_by(then).get("fate")
    if is_approved(batch[0]) or said == Fate.LET_RUN.value or any(map(_was_let_run, answers)):
        return Fate.LET_RUN
    if said == Fate.REFUSED.value or any(map(is_refusal, answers)) or _is_guards(then):
        return Fate.REFUSED
    if then is None:
        return Fate.OPEN
    return Fate.PASSED if isinstance(then, AIMessage) else Fate.LEFT


def ending_of(batch: Sequence[BaseMessage]) -> Mapping[str, Any] | None:
    """Give the facts of the error in which a run was to end after this batch, with `last_word`.

    Args:
        batch: As for `fate`.

    Returns:
        `None` if the run was to go on, or the conversation did.
    """
    answers = list(_answers(batch))
    if any(isinstance(m, AIMessage) or is_human_turn(m) for m in batch[1 + len(answers) :]):
        return None
    for answer in answers:
        facts = _noted(answer).get(_ENDS)
        if isinstance(facts, Mapping):
            return facts
    return None


def add_texts(messages: Iterable[BaseMessage], texts: Mapping[str, str]) -> None:
    """Add texts to answers that were given already, by call id, and mark them as the guard's."""
    for message in messages:
        if not isinstance(message, ToolMessage) or is_refusal(message):
            continue
        text = texts.get(message.tool_call_id)
        if text is not None:
            given = message.content
            block = {"type": "text", "text": f"\n{text}"}
            content = f"{given}\n\n{text}" if isinstance(given, str) else [*given, block]
            replace(message, content, {**message.additional_kwargs, "lc_source": SOURCE})


def restore(history: Sequence[BaseMessage]) -> None:
    """Add to answers what was added before, where that was not saved."""
    asked = 0
    for place, message in enumerate(history):
        if not isinstance(message, AIMessage):
            continue
        texts = _said_by(message).get("texts")
        if texts and isinstance(texts, Mapping):
            add_texts(_answers(history[asked:place]), texts)
        asked = place


def replace(message: BaseMessage, content: Any, kwargs: dict[str, Any]) -> None:
    """Change a message that the host has in its state.

    In one step, since another thread may be saving it: that one sees the message as it was or as
    it will be. Used only where both are right, because the next process would do it again.
    """
    vars(message).update({"content": content, "additional_kwargs": kwargs})


def _note(message: ToolMessage, mark: Mark) -> None:
    kwargs = dict(message.additional_kwargs)
    if mark.refused:
        kwargs["lc_source"] = SOURCE
    if mark.note:
        kwargs[SOURCE] = {**_noted(message), **mark.note}
    message.additional_kwargs = kwargs
    if mark.withheld and isinstance(message.content, str):
        message.content = message.content.replace(WITHHELD, mark.withheld)


def _noted(message: BaseMessage) -> Mapping[str, Any]:
    noted = message.additional_kwargs.get(SOURCE)
    return noted if isinstance(noted, Mapping) else {}


def _said_by(message: BaseMessage | None) -> Mapping[str, Any]:
    said = message.response_metadata.get(_BEFORE) if isinstance(message, AIMessage) else None
    return said if isinstance(said, Mapping) else {}


def _was_let_run(message: BaseMessage) -> bool:
    return _noted(message).get(_LET_RUN) is True


def _is_guards(message: BaseMessage | None) -> bool:
    return message is not None and message.additional_kwargs.get("lc_source") == SOURCE


def _answers(batch: Sequence[BaseMessage]) -> Iterator[ToolMessage]:
    for message in batch[1:]:
        if not isinstance(message, ToolMessage):
            return
        yield message


def _messages_in(outputs: Any) -> Iterable[BaseMessage]:
    if isinstance(outputs, BaseMessage):
        yield outputs
    elif isinstance(outputs, list | tuple):
        for part in outputs:
            yield from _messages_in(part)
    elif isinstance(outputs, Mapping):
        for value in outputs.values():
            if isinstance(value, list | tuple | BaseMessage):
                yield from _messages_in(value)
    elif isinstance(getattr(outputs, "update", None), Mapping | list | tuple):
        # A LangGraph `Command`.
        yield from _messages_in(outputs.update)
