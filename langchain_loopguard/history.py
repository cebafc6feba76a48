"""Which tool calls of a message list still wait for an answer, and how do they get one?

A model API refuses a history in which a call has no answer, in which an answer comes twice, or
in which anything stands between the calls and their answers. This file must not know graphs or
how loops are found.
"""

from __future__ import annotations

import json
import operator
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from langchain_loopguard.core.calls import call_id, call_name
from langchain_loopguard.messages import (
    NOT_RUN,
    SOURCE,
    is_human_turn,
    plain_call,
    refusal_messages,
    tool_calls_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from langchain_core.messages import AnyMessage, BaseMessage

__all__ = [
    "Batch",
    "answer_open_calls",
    "approved_message",
    "edited_message",
    "invalid_call_messages",
    "is_approved",
    "is_same",
    "last_batch",
    "only_calls",
    "own_calls",
    "response_message",
    "rewritten",
    "surplus_answers",
    "without_approval",
    "without_calls",
    "without_foreign_answers",
]

_APPROVED = "loop_guard_approved"
"""Metadata key of an AI message whose calls a person let run. Response metadata is never sent to
a model, unlike some `additional_kwargs`."""

_CALL_BLOCKS = {"tool_use": "input", "tool_call": "args", "function_call": "arguments"}
"""Content blocks that repeat a call (Anthropic, LangChain's own, OpenAI), and where they keep its
arguments."""


@dataclass(slots=True, eq=False)
class Batch:
    """The calls of a list's last AI message, and what follows it.

    Attributes:
        index: Where the AI message stands.
        message: The AI message.
        waiting: Its calls without an answer, in the order of the message.
        unreadable: Its calls without an answer whose arguments could not be parsed; no tool can
            run them.
        answered: Whether any of its calls has an answer.
        tools_ran: Whether one of the answers is a tool's. A call that was answered without a
            tool, by a person who rejected it for instance, carries `lc_source`.
        others: What follows besides answers: a person's remark, a framework's note.
        apart: Whether one of these stands before an answer, which a model API refuses.
    """

    index: int
    message: AIMessage
    waiting: list[dict[str, Any]]
    unreadable: list[dict[str, Any]]
    answered: bool
    tools_ran: bool
    others: tuple[BaseMessage, ...] = ()
    apart: bool = False

    @property
    def spoken(self) -> bool:
        """Whether a person has spoken since."""
        return any(map(is_human_turn, self.others))

    def ends(self, messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        """Give the messages up to the batch and its answers, without `others`."""
        if not self.others:
            return messages
        answers = [m for m in messages[self.index + 1 :] if isinstance(m, ToolMessage)]
        return [*messages[: self.index + 1], *answers]


def last_batch(messages: Sequence[BaseMessage]) -> Batch | None:
    """Find the last AI message of a list.

    Hosts look for it in the same way, so it is that one whose calls run next, whatever a person
    or a framework has put behind it.

    Returns:
        `None` when there is none.
    """
    index, others = len(messages) - 1, False
    while index >= 0 and not isinstance(messages[index], AIMessage):
        others = others or not isinstance(messages[index], ToolMessage)
        index -= 1
    message = messages[index] if index >= 0 else None
    if not isinstance(message, AIMessage):
        return None
    after = messages[index + 1 :]
    answers = [answer for answer in after if isinstance(answer, ToolMessage)]
    done = {answer.tool_call_id for answer in answers}
    batch = Batch(
        index,
        message,
        _without_answer(message.tool_calls, done),
        _without_answer(message.invalid_tool_calls, done),
        bool(answers),
        any(not answer.additional_kwargs.get("lc_source") for answer in answers),
    )
    if others:
        batch.others = tuple(other for other in after if not isinstance(other, ToolMessage))
        batch.apart = not all(isinstance(m, ToolMessage) for m in after[: len(answers)])
    return batch


def _without_answer(calls: Sequence[Any], done: AbstractSet[str]) -> list[dict[str, Any]]:
    return [plain_call(call) for call in calls if _id(call) not in done] if calls else []


def answer_open_calls(messages: Sequence[Any], text: str = NOT_RUN) -> list[AnyMessage]:
    """Complete a history: every call without an answer gets one, in its place.

    A turn that ended in an interrupt, or in an error, leaves calls without answers; when the
    user then writes something new instead of answering, the next model call is refused. Use it
    on what is sent to the model, or let `add_loop_guard` do it.

    Args:
        messages: The history; it is not changed.
        text: What the model is told of such a call.

    Returns:
        The same messages, with a tool message for each open call behind its AI message. An
        answer moves up if something else stands before it; one without a call stays as it is.
    """
    whole: list[AnyMessage] = []
    moved: set[int] = set()
    index = 0
    while index < len(messages):
        message = messages[index]
        if index not in moved:
            whole.append(message)
        index += 1
        calls = tool_calls_of(message)
        done: set[str | None] = set()
        while calls and index < len(messages):
            answer = messages[index]
            if not isinstance(answer, ToolMessage):
                break
            done.add(answer.tool_call_id)
            whole.append(answer)
            index += 1
        still_open = {_id(call) for call in calls} - done
        if still_open:
            late = _late_answers(messages, index, still_open)
            whole.extend(messages[at] for at in late)
            done.update(messages[at].tool_call_id for at in late)
            moved.update(late)
        whole.extend(refusal_messages([c for c in calls if _id(c) not in done], text))
    return whole


def _late_answers(messages: Sequence[Any], start: int, ids: AbstractSet[str | None]) -> list[int]:
    """Find the answers that come before the next AI message; ids may start anew there."""
    found = []
    for at in range(start, len(messages)):
        message = messages[at]
        if isinstance(message, AIMessage):
            break
        if isinstance(message, ToolMessage) and message.tool_call_id in ids:
            found.append(at)
    return found


def is_same(messages: Sequence[Any], others: Sequence[Any]) -> bool:
    """Tell whether two lists hold the very same messages in the same order."""
    return len(messages) == len(others) and all(map(operator.is_, messages, others))


def rewritten(
    messages: Sequence[BaseMessage],
    batch: Batch,
    changes: Iterable[AnyMessage],
    *,
    others_first: bool,
) -> list[AnyMessage]:
    """Write a history anew in which nothing stands between a batch and its answers.

    Args:
        messages: The history up to the batch and its answers, as `Batch.ends` gives it.
        batch: The batch.
        changes: Messages to add, or to put in the place of those with the same ids.
        others_first: Whether what followed the batch goes before it, since further answers are
            still to come behind it; it goes behind the answers otherwise.
    """
    before, tail = messages[: batch.index], messages[batch.index :]
    places = {message.id: at for at, message in enumerate(tail) if message.id}
    own: list[Any] = list(tail)
    last: list[Any] = []
    for change in changes:
        if change.id in places:
            own[places[change.id]] = change
        else:
            (own if isinstance(change, ToolMessage) else last).append(change)
    if others_first:
        return [*before, *batch.others, *own, *last]
    return [*before, *own, *batch.others, *last]


def invalid_call_messages(calls: Iterable[Mapping[str, Any]]) -> list[ToolMessage]:
    """Answer calls whose arguments could not be parsed, which no tool node does.

    The answer stands for a tool's, so it is not marked as the guard's: a model that repeats the
    same broken call and gets the same answer is in a loop.
    """
    return [
        ToolMessage(
            content="Error: the arguments of this call are not valid JSON. Fix them and try again.",
            tool_call_id=str(call.get("id") or ""),
            name=call_name(call) or None,
            status="error",
        )
        for call in calls
    ]


def response_message(call: Mapping[str, Any], text: str) -> ToolMessage:
    """Answer a call in the tool's place with what a person said."""
    return ToolMessage(
        content=text,
        tool_call_id=str(call.get("id") or ""),
        name=call_name(call) or None,
        status="success",
        additional_kwargs={"lc_source": SOURCE},
    )


def only_calls(message: AIMessage, ids: Iterable[Any]) -> AIMessage:
    """Copy an AI message with some of its calls left."""
    wanted = set(ids)
    return _with_calls(
        message,
        [call for call in message.tool_calls if _id(call) in wanted],
        [call for call in message.invalid_tool_calls if _id(call) in wanted],
    )


def own_calls(message: AIMessage, answers: Iterable[BaseMessage]) -> AIMessage:
    """Copy an AI message without the calls that something other than a tool has answered.

    See `without_foreign_answers`.
    """
    foreign = {
        answer.tool_call_id
        for answer in answers
        if isinstance(answer, ToolMessage) and _foreign(answer)
    }
    if not foreign:
        return message
    return only_calls(message, {_id(call) for call in tool_calls_of(message)} - foreign)


def without_calls(message: AIMessage) -> AIMessage:
    """Copy an AI message with its words only."""
    copy = _with_calls(message, [], [])
    raw = {
        key: value
        for key, value in copy.additional_kwargs.items()
        if key not in {"tool_calls", "function_call"}
    }
    content = copy.content
    if isinstance(content, list):
        content = [block for block in content if not _is_call_block(block)]
    return copy.model_copy(update={"additional_kwargs": raw, "content": content})


def surplus_answers(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Find answers that were written in a tool's place to calls that have theirs already.

    Two guards that each answer the calls they hold back, LangChain's human-in-the-loop
    middleware for one, may both answer the same call; a model API refuses that. What a tool
    answered is never among them: some local models give the calls of a batch one id, and then
    each of them has an answer of its own.

    Args:
        messages: A history that ends with the answers of its last batch.
    """
    index = len(messages)
    while index > 0 and isinstance(messages[index - 1], ToolMessage):
        index -= 1
    if len(messages) - index < 2:  # noqa: PLR2004 - one answer is none too many
        return []
    answers = [message for message in messages[index:] if isinstance(message, ToolMessage)]
    calls = tool_calls_of(messages[index - 1]) if index else []
    wanted = Counter(_id(call) or "" for call in calls)
    wanted.subtract(answer.tool_call_id for answer in answers if not _stands_in(answer))
    surplus: list[BaseMessage] = []
    for answer in answers:
        if _stands_in(answer):
            if wanted[answer.tool_call_id] <= 0:
                surplus.append(answer)
            wanted[answer.tool_call_id] -= 1
    return surplus


def _stands_in(answer: BaseMessage) -> bool:
    return bool(answer.additional_kwargs.get("lc_source"))


def edited_message(
    message: AIMessage, edits: Mapping[Any, tuple[str, Mapping[str, Any]]]
) -> AIMessage:
    """Copy an AI message with other calls in the place of some of its own.

    Args:
        message: The AI message; it is not changed.
        edits: For each call id that changes, the name and the arguments to call instead. An
            edited call that could not be parsed becomes a proper one.
    """
    known = {_id(call) for call in message.tool_calls}
    calls = [
        tool_call(name=edits[_id(call)][0], args=dict(edits[_id(call)][1]), id=_id(call))
        if _id(call) in edits
        else call
        for call in message.tool_calls
    ]
    calls += [
        tool_call(name=edits[_id(call)][0], args=dict(edits[_id(call)][1]), id=_id(call))
        for call in message.invalid_tool_calls
        if _id(call) in edits and _id(call) not in known
    ]
    unread = [call for call in message.invalid_tool_calls if _id(call) not in edits]
    copy = _with_calls(message, calls, unread)
    # Some providers' adapters keep the calls a second time, raw or in the content.
    raw = {key: value for key, value in copy.additional_kwargs.items() if key != "tool_calls"}
    content = copy.content
    if isinstance(content, list):
        content = [_edited_block(block, edits) for block in content]
    return copy.model_copy(update={"additional_kwargs": raw, "content": content})


def approved_message(message: AIMessage) -> AIMessage:
    """Copy an AI message with the mark that a person let its calls run."""
    metadata = {**message.response_metadata, _APPROVED: True}
    return message.model_copy(update={"response_metadata": metadata})


def without_approval(message: AIMessage) -> AIMessage:
    """Copy an AI message without that mark: a new one can't have it, whoever wrote it there."""
    metadata = {k: v for k, v in message.response_metadata.items() if k != _APPROVED}
    return message.model_copy(update={"response_metadata": metadata})


def is_approved(message: BaseMessage) -> bool:
    """Tell whether a message says that a person let its calls run.

    A model's provider may send any metadata. A gate takes the mark off a message that is new,
    and believes it only of a batch that it would have asked about.
    """
    return isinstance(message, AIMessage) and message.response_metadata.get(_APPROVED) is True


def without_foreign_answers(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Leave out the calls that something other than a tool answered, with their answers.

    A person's "reject" in LangChain's human-in-the-loop middleware is one: that call never ran,
    so it is no part of the batch that did. The guard's own answers stay: they tell a refusal.
    """
    if not any(_foreign(message) for message in messages):
        return list(messages)
    kept: list[BaseMessage] = []
    at = -1
    for message in messages:
        if not isinstance(message, ToolMessage):
            at = len(kept)
        elif _foreign(message):
            # Ids may start anew in every turn: the answer belongs to the AI message before it.
            asked = kept[at] if at >= 0 else None
            if isinstance(asked, AIMessage):
                ids = {_id(call) for call in tool_calls_of(asked)}
                kept[at] = only_calls(asked, ids - {message.tool_call_id})
            continue
        kept.append(message)
    return kept


def _id(call: Any) -> str | None:
    """Read the id of a call, which a host that checks nothing may have put there of any kind."""
    found = call.get("id") if type(call) is dict else call_id(call)
    return found if type(found) is str else None


def _foreign(message: BaseMessage) -> bool:
    source = message.additional_kwargs.get("lc_source")
    return bool(source) and source != SOURCE and isinstance(message, ToolMessage)


def _with_calls(message: AIMessage, calls: list[Any], unread: list[Any]) -> AIMessage:
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": unread})


def _is_call_block(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _CALL_BLOCKS


def _edited_block(block: Any, edits: Mapping[Any, tuple[str, Mapping[str, Any]]]) -> Any:
    if not _is_call_block(block):
        return block
    edit = edits.get(block.get("call_id") or block.get("id"))
    if edit is None:
        return block
    key = _CALL_BLOCKS[block["type"]]
    args: Any = dict(edit[1])
    return {**block, "name": edit[0], key: json.dumps(args) if key == "arguments" else args}
