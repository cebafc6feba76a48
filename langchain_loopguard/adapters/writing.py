"""What does a handler note in messages, and how does none of it change what a tool gave?

Marks go into results that the host is about to save for the first time, so that they are saved
with them or lost with them. They are metadata, which no model is sent.

Warnings reach the model in copies. LangGraph hands a node's input to the handler before the node
gets it, so the last results in it are replaced by copies; the guard writes into these right before
the model reads them, and takes it back when the node ends, before anything that the node gives is
saved. Where there is no graph's state, it writes into the results that the model is sent, and
takes that back when the model has answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage

from langchain_loopguard.adapters.conversations import messages_in
from langchain_loopguard.langchain.marks import SOURCE, mark_of, with_mark
from langchain_loopguard.langchain.messages import with_warnings
from langchain_loopguard.langchain.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_loopguard.adapters.runs import Run
    from langchain_loopguard.langchain.messages import MessageStep


def lend(run: Run, inputs: dict[str, Any], key: str) -> None:
    """Put copies of the last results into the `inputs` that a node is about to get.

    Earlier results are copied where a warning stands at them.
    """
    messages = inputs.get(key)
    if type(messages) is not list:
        return
    agent = run.above.agent if run.above is not None else None
    warned = agent.reader.counts.warnings if agent is not None else ()
    copies: dict[int, ToolMessage] = {}
    are_last = True
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        are_last = are_last and not isinstance(message, AIMessage)
        if not are_last and not warned:
            break
        if isinstance(message, ToolMessage) and (
            are_last or message.id in warned or message.tool_call_id in warned
        ):
            copies[at] = message.model_copy()
    if copies:
        lent = inputs[key] = messages.copy()
        for at, copy in copies.items():
            lent[at] = copy
        run.lent = tuple((copy, copy.content) for copy in copies.values())


def take_back(run: Run) -> None:
    """Give the messages that were written into their own content again."""
    for message, content in run.lent:
        message.content = content


def write_warnings(
    run: Run, sent: Sequence[BaseMessage], warnings: Mapping[str, str], *, has_state: bool
) -> None:
    """Write the turn's warnings, by the id of the result, into what a model is sent.

    Where a graph's state may hold the same messages, only copies lent to the node are written into.
    """
    lent = {id(copy) for copy, _ in run.attempt.lent}
    for message, copy in zip(sent, with_warnings(sent, warnings) or (), strict=False):
        if copy is message or (has_state and id(message) not in lent):
            continue
        if id(message) not in lent:
            run.lent = (*run.lent, (message, message.content))
        message.content = copy.content


def write_marks(run: Run, outputs: Any) -> None:
    """Write marks into the results among what a run of the host gives; they are its own objects."""
    marks = run.attempt.marks
    for message in messages_in(outputs) if marks else ():
        if isinstance(message, ToolMessage) and message.tool_call_id in marks:
            mark, by_guard = marks.pop(message.tool_call_id)
            kwargs = with_mark(message, mark).additional_kwargs
            message.additional_kwargs = {**kwargs, "lc_source": SOURCE} if by_guard else kwargs


def is_decided(step: MessageStep) -> bool:
    """Tell whether a step says that somebody has decided about it."""
    marks = map(mark_of, (step.message, *step.results))
    return step.held_back or any(mark.approved for mark in marks)


def ending_of(step: MessageStep) -> Outcome | None:
    """Read from the results of a step that the run was to end with it."""
    ends = next((mark.ends for mark in map(mark_of, step.results) if mark.ends), None)
    if not ends:
        return None
    how: Any = "raise" if ends["as"] == "raise" else "end"
    return Outcome(how, final=str(ends.get("text", "")), facts=ends)
