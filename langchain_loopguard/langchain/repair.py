"""How does a history stay one that a model API takes?

It refuses a call without a result, two results for one call, and anything between the calls and
their results. All functions give new lists and messages; none decides what happens to a call.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from langchain_loopguard.langchain.marks import replacement, result_by
from langchain_loopguard.langchain.messages import calls_of, id_of, makes_calls, step_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_loopguard.langchain.messages import MessageStep

    _Edits = Mapping[str | None, tuple[str, Mapping[str, Any]]]

_CALL_BLOCKS = {
    "tool_call": "args",
    "tool_use": "input",
    "function_call": "arguments",
    "invalid_tool_call": "args",
}
"""Blocks of content that are calls (LangChain's own, Anthropic's, OpenAI's), and where they keep
their arguments."""


def complete(messages: Sequence[BaseMessage], text: str) -> list[BaseMessage] | None:
    """Give every call a result, each in its place; `None` where nothing has to change.

    A turn that ended in an interrupt or an error leaves calls without results; when the user then
    writes something new instead of answering, the next model call would be refused. `text` is what
    the model reads of such a call.
    """
    whole: list[BaseMessage] = []
    changed, index = False, 0
    while index < len(messages):
        message = messages[index]
        whole.append(message)
        index += 1
        if not makes_calls(message):
            continue
        step = step_at(messages, index - 1)
        if not step.open_calls and not step.apart:
            continue
        changed = True
        own = {id_of(call) for call in calls_of(message)}
        stray = [result for result in step.results if result.tool_call_id not in own]
        whole += [result for result in step.results if result.tool_call_id in own]
        whole += [replacement(call, text) for call in step.open_calls]
        whole += [*stray, *step.others]
        index += len(step.results) + len(step.others)
    return whole if changed else None


def rewritten(
    messages: Sequence[BaseMessage],
    step: MessageStep,
    added: Iterable[BaseMessage],
    *,
    others_first: bool,
) -> list[BaseMessage]:
    """Write a history again so that nothing stands between the last step and its results.

    `added` is added, or put in the place of messages with the same ids. With `others_first` what
    stands behind the step's calls goes before them, since further results are still to come.
    """
    own: list[BaseMessage] = [step.message, *step.results]
    places = {message.id: at for at, message in enumerate(own) if message.id}
    last: list[BaseMessage] = []
    for message in added:
        if message.id in places:
            own[places[message.id]] = message
        else:
            (own if isinstance(message, ToolMessage) else last).append(message)
    before = messages[: step.index]
    if others_first:
        return [*before, *step.others, *own, *last]
    return [*before, *own, *step.others, *last]


def surplus_results(step: MessageStep) -> list[ToolMessage]:
    """Find results in a tool's place of calls that have theirs already.

    Two guards that each answer the calls they stop, LangChain's human-in-the-loop middleware
    for one, may both answer the same call. A tool's own result is never among them: some local
    models give the calls of a step one id, and then each has a result of its own.
    """
    wanted = Counter(id_of(call) or "" for call in calls_of(step.message))
    wanted.subtract(result.tool_call_id for result in step.by_tools)
    surplus: list[ToolMessage] = []
    for result in step.results:
        if result_by(result) != "tool":
            if wanted[result.tool_call_id] <= 0:
                surplus.append(result)
            wanted[result.tool_call_id] -= 1
    return surplus


def only_calls(message: AIMessage, ids: Collection[str | None]) -> AIMessage:
    """Copy an AI message with some of its calls left, for a tools node that runs them all."""
    return message.model_copy(
        update={
            "tool_calls": [call for call in message.tool_calls if id_of(call) in ids],
            "invalid_tool_calls": [c for c in message.invalid_tool_calls if id_of(c) in ids],
        }
    )


def without_calls(message: AIMessage) -> AIMessage:
    """Copy an AI message with its words only."""
    return _with(message, [], [], {})


def edited_message(message: AIMessage, edits: _Edits) -> AIMessage:
    """Copy an AI message with the calls of `Outcome.edits` in the place of some of its own.

    An edited call that could not be parsed becomes a proper one.
    """
    calls: list[Any] = []
    for call in (*message.tool_calls, *message.invalid_tool_calls):
        if id_of(call) in edits:
            name, args = edits[id_of(call)]
            calls.append(tool_call(name=name, args=dict(args), id=id_of(call)))
        elif call.get("type") != "invalid_tool_call":
            calls.append(call)
    unread = [call for call in message.invalid_tool_calls if id_of(call) not in edits]
    return _with(message, calls, unread, edits)


def _with(message: AIMessage, calls: list[Any], unread: list[Any], edits: _Edits) -> AIMessage:
    """Copy a message with these calls; some providers keep them a second time, raw or as blocks."""
    extra = message.additional_kwargs.items()
    raw = {key: value for key, value in extra if key not in {"tool_calls", "function_call"}}
    content: Any = message.content
    if isinstance(content, list):
        kept = {id_of(call) for call in (*calls, *unread)}
        content = [
            _edited(block, edits) for block in content if not _is_call(block) or _id(block) in kept
        ]
    update = {"tool_calls": calls, "invalid_tool_calls": unread}
    return message.model_copy(update={**update, "additional_kwargs": raw, "content": content})


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _CALL_BLOCKS


def _id(block: Any) -> Any:
    return block.get("call_id") or block.get("id")


def _edited(block: Any, edits: _Edits) -> Any:
    edit = edits.get(_id(block)) if _is_call(block) else None
    if edit is None:
        return block
    key, args = _CALL_BLOCKS[block["type"]], dict(edit[1])
    return {**block, "name": edit[0], key: json.dumps(args) if key == "arguments" else args}
