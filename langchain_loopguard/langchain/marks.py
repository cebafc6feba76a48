"""What do the adapters write into messages, and how is it read back?

All that has to outlive a process beside the counts is written here, once: into
`additional_kwargs` of tool messages and `response_metadata` of AI messages, which are never sent
to a model and which no tool's text can imitate. A tool that is code in this process can forge
them, so a reader believes "not run" only of a step that the guard would have stopped.

Only known sources count: LangChain lets anything mark a message as generated (`lc_source`), and a
tool message of an unknown source is a tool's own result like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_loopguard.core.calls import call_id, call_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SOURCE = "loop_guard"
"""What `lc_source` says on messages of the guard, and the key of a `Mark`."""

_PERSON = frozenset({"hitl_interrupt_decision"})
"""Sources of tool messages that a person's decision put in a tool's place: the call never ran."""

_SUMMARY = frozenset({"summarization"})
"""Sources of messages that stand for a part of the history."""

_M = TypeVar("_M", bound=BaseMessage)


@dataclass(frozen=True, slots=True)
class Mark:
    """What is noted on a message.

    Attributes:
        approved: A person let the call run; on an AI message, all its calls.
        ends: How the run ends once the calls have results: `{"as": "raise", ...facts_of(error)}`
            or `{"as": "final", "text": ...}`, empty where it goes on.
        before: On an AI message: what was decided about the step before it, whose results were
            saved already (`"approved"`, `"refused"` or `"advised"`).
        advised: A person refused the call and said something, which begins a turn.
        skipped: Nobody decided about the call; the tools gave it no result.
    """

    approved: bool = False
    advised: bool = False
    ends: Mapping[str, Any] = field(default_factory=dict)
    before: Literal["", "approved", "refused", "advised"] = ""
    skipped: bool = False


def with_mark(message: _M, mark: Mark) -> _M:
    """Copy a message with a mark in the place of the one it had; an empty mark takes it off."""
    key = "response_metadata" if isinstance(message, AIMessage) else "additional_kwargs"
    noted = {name: value for name in Mark.__slots__ if (value := getattr(mark, name))}
    kept = {name: value for name, value in getattr(message, key).items() if name != SOURCE}
    if noted:
        kept[SOURCE] = {**noted, **({"ends": dict(mark.ends)} if mark.ends else {})}
    return message.model_copy(update={key: kept})


def mark_of(message: BaseMessage) -> Mark:
    """Read the mark of a message; one that nobody or somebody else wrote is empty."""
    if isinstance(message, AIMessage):
        noted = message.response_metadata.get(SOURCE)
    elif isinstance(message, ToolMessage):
        noted = message.additional_kwargs.get(SOURCE)
    else:
        noted = None
    if type(noted) is not dict:
        return Mark()
    ends, before = noted.get("ends"), noted.get("before")
    return Mark(
        approved=noted.get("approved") is True,
        advised=noted.get("advised") is True,
        ends=ends if type(ends) is dict and ends.get("as") in {"raise", "final"} else {},
        before=before if before in {"approved", "refused", "advised"} else "",
        skipped=noted.get("skipped") is True,
    )


def ends_of(messages: Sequence[BaseMessage]) -> Mapping[str, Any]:
    """Read how the run ends now that the last calls have results, empty where it goes on."""
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            return mark_of(message).ends
        # What a framework adds behind the results, a picture for one, changes nothing.
        if not (isinstance(message, HumanMessage) and is_generated(message)):
            break
    return {}


def replacement(
    call: Any, text: str, status: Literal["success", "error"] = "error", mark: Mark | None = None
) -> ToolMessage:
    """Make the message that stands in the place of a call's result, marked as the guard's.

    A `success` is a result that a person gave.
    """
    message = ToolMessage(
        content=text,
        tool_call_id=call_id(call) or "",
        name=call_name(call) or None,
        status=status,
        additional_kwargs={"lc_source": SOURCE},
    )
    return message if mark is None else with_mark(message, mark)


def final_message(text: str) -> AIMessage:
    """Make the message with which the guard ends a run."""
    return AIMessage(content=text, additional_kwargs={"lc_source": SOURCE})


def result_by(message: ToolMessage) -> Literal["tool", "guard", "person"]:
    """Tell who gave a result: a tool or its host, the guard, or a person in another middleware."""
    source = message.additional_kwargs.get("lc_source")
    if source == SOURCE:
        return "guard"
    return "person" if type(source) is str and source in _PERSON else "tool"


def is_generated(message: HumanMessage) -> bool:
    """Tell whether a framework says that it wrote a human message: any source does."""
    source = message.additional_kwargs.get("lc_source")
    return type(source) is str and bool(source)


def has_summary(messages: Iterable[BaseMessage]) -> bool:
    """Tell whether a message stands for a part of the history that is gone."""
    spoken = (message for message in messages if isinstance(message, HumanMessage))
    return any(message.additional_kwargs.get("lc_source") in _SUMMARY for message in spoken)
