"""Reads the chat history of AG2 (and of AutoGen 0.2), `ChatResult.chat_history`.

Messages look like OpenAI's, but the results of a step are one message with `tool_responses`, and
the roles are as one of the two agents sees them: `user` is only who speaks to it. The input of the
user is what the agent says that opened the chat, unless it carries results.

Not read: the event log of AG2 1.x, whose events are Python objects without a written form.

Facts: `autogen.agentchat.conversable_agent` of ag2 0.9, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers import openai_chat
from langchain_loopguard.replay.readers.base import Dialect, Events, dicts_of, events_by_message

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Event


def _knows(message: Any) -> bool:
    return isinstance(message["tool_responses"], list)


def _events_of(messages: list[Any]) -> list[Event]:
    speakers = (one["name"] for one in messages if isinstance(one, dict) and one.get("name"))
    user = next(speakers, None)

    def add(events: Events, message: dict[str, Any]) -> None:
        calls = openai_chat.calls_of(message)
        responses = dicts_of(message.get("tool_responses"), "tool_responses")
        events.step(calls)
        for one in responses:
            call_id = one.get("tool_call_id") or one.get("id")
            events.result(call_id, one.get("content"))
        if not responses and not calls and message.get("content"):
            name = message.get("name")
            if name == user if name is not None else message.get("role") == "user":
                events.user()

    return events_by_message(add)(messages)


AG2 = Dialect("AG2 chat history", _knows, _events_of)
"""AG2's chat history."""
