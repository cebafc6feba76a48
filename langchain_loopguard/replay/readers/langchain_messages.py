"""Loads LangChain's written messages, and turns messages into events.

Apart from `langchain`, which tells the forms: importing langchain_core takes longer than reading
most inputs, and few hold its messages. All goes through langchain_core's own loaders, with
nothing allowed but its message classes.

The events are those that `MessageReader` would count: the guard's own refusals are marked, and a
call that a person answered in the tool's place is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.load import load
from langchain_core.messages import BaseMessage, ToolMessage, messages_from_dict

from langchain_loopguard.history import is_approved, without_foreign_answers
from langchain_loopguard.messages import is_human_turn, is_refusal, tool_calls_of, without_notice
from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.base import Events, call

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_loopguard.replay.conversation import Event

_SKIPPED = frozenset({"remove", "RemoveMessage"})


def message_of(value: Any) -> BaseMessage | None:
    """Load one message; `None` for one that only removes another.

    Raises:
        ConversationError: If langchain_core does not take it.
    """
    try:
        if value.get("lc") == 1:
            loaded = load(value, allowed_objects="messages", ignore_unserializable_fields=True)
        else:
            if value["type"] in _SKIPPED:
                return None
            data = value["data"] if isinstance(value.get("data"), dict) else value
            loaded = messages_from_dict([{"type": value["type"], "data": data}])[0]
    except Exception as error:
        raise ConversationError(f"not a LangChain message: {type(error).__name__}") from error
    if not isinstance(loaded, BaseMessage):
        raise ConversationError("not a LangChain message")
    return None if loaded.type in _SKIPPED else loaded


def messages_of(values: Iterable[Any]) -> list[BaseMessage]:
    """Load messages in order."""
    loaded = (message_of(value) for value in values)
    return [message for message in loaded if message is not None]


def events_of(messages: list[BaseMessage], approved: frozenset[str] = frozenset()) -> list[Event]:
    """Turn a message list into events.

    Args:
        messages: The messages in order.
        approved: Ids of the AI messages that a person let run.
    """
    events = Events()
    user: str | None = None
    messages = without_foreign_answers(messages)
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if is_human_turn(message):
            # As the reader of a live run does: the same turn seen again is no new one.
            if message.id is None or message.id != user:
                user = message.id
                events.user()
            continue
        calls = tool_calls_of(message)
        if not calls:
            continue
        events.step(
            [call(one.get("id"), one.get("name"), one.get("args")) for one in calls],
            usage=getattr(message, "usage_metadata", None),
        )
        step = events.events[-1]
        if is_approved(message) or (message.id is not None and message.id in approved):
            step["approved"] = True
        while at < len(messages):
            result = messages[at]
            if not isinstance(result, ToolMessage):
                break
            at += 1
            if is_refusal(result):
                step["refused"] = True
            result = without_notice(result)
            events.result(result.tool_call_id, result.content, failed=result.status == "error")
    return events.events
