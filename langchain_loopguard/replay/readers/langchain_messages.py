"""Loads LangChain's written messages, and turns messages into events.

Apart from `langchain`, which tells the forms: importing langchain_core takes longer than reading
most inputs, and few hold its messages. All goes through langchain_core's own loaders, with
nothing allowed but its message classes.

The events are those that the live adapters would count (`langchain.messages.MessageStep`): the
guard's own refusals are marked, and a call that a person answered in the tool's place is left out.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from langchain_core.load import load
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, messages_from_dict

from langchain_loopguard.langchain.marks import is_generated, mark_of, result_by
from langchain_loopguard.langchain.messages import step_at
from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.base import Events, call

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from langchain_loopguard.langchain.messages import MessageStep
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


def events_of(
    messages: list[BaseMessage], replies: Mapping[str, str] = MappingProxyType({})
) -> list[Event]:
    """Turn a message list into events.

    Args:
        messages: The messages in order.
        replies: For the id of an AI message the kind of what a person answered about its calls,
            see `langchain.replies.Reply`.
    """
    events = Events()
    user: str | None = None
    for at, message in enumerate(messages):
        if isinstance(message, HumanMessage) and not is_generated(message):
            # As the reader of a live run does: the same turn seen again is no new one.
            if message.id is None or message.id != user:
                user = message.id
                events.user()
        elif isinstance(message, AIMessage):
            step = step_at(messages, at)
            if step.calls:
                events.step(
                    [call(one.get("id"), one.get("name"), one.get("args")) for one in step.calls],
                    usage=message.usage_metadata,
                )
                _add_results(events, step, replies.get(message.id or "", ""))
    return events.events


def _add_results(events: Events, step: MessageStep, reply: str) -> None:
    """Add what a live adapter would record of a step, and what was decided about it."""
    event = events.events[-1]
    if reply == "always":
        event["approved"] = "always"
    elif reply in {"continue", "decisions"} or any(
        mark_of(one).approved for one in (step.message, *step.results)
    ):
        event["approved"] = True
    for result in step.for_core():
        failed = result["status"] == "error"
        events.result(result["tool_call_id"], result["content"], failed=failed)
    for message in step.results:
        if result_by(message) == "guard":
            event["refused"] = True
            events.result(message.tool_call_id, message.content, failed=message.status == "error")
    if reply == "text":  # Advice begins a turn, as it does on a live agent.
        events.user()
