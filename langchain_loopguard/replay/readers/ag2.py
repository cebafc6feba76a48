"""Reads AG2: chat histories (below 1, and AutoGen 0.2) and event logs (from 1 on).

`ChatResult.chat_history` looks like OpenAI's messages, but the results of a step are one message
with `tool_responses`, and the roles are as one of the two agents sees them: `user` is only who
speaks to it. The input of the user is what the agent says that opened the chat, unless it carries
results. It says nothing of failure.

An `EventLogWriter` writes a line an event: the class as `type` and its fields as `data`. A step is
a `ModelResponse` with `tool_calls`, which later events repeat; a call of a provider's own tool
stands alone. A result failed if its event is an error's.

Facts: `autogen.agentchat` of ag2 0.9, `ag2.events` and `ag2.knowledge.log` of ag2 1.2, read
2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers import openai_chat
from langchain_loopguard.replay.readers.base import (
    Dialect,
    Events,
    Format,
    as_dict,
    blocks_of,
    call,
    dicts_of,
    events_by_message,
    first_text,
    located,
    one_run,
    parsed_arguments,
)

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


# --- The event log of AG2 1.x ---------------------------------------------------------------------


def _matches(value: Any) -> bool:
    return value["type"].startswith("ag2.") and isinstance(value["data"], dict)


def _read(run: Events, values: list[Any]) -> None:
    log = _Log(run)
    for number, value in enumerate(values, 1):
        with located(f"event {number}"):
            log.add(value["type"].rpartition(".")[2], value["data"])


class _Log:
    """Adds events one by one, each call and each result once."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self._calls: set[str] = set()
        self._results: set[str] = set()

    def add(self, kind: str, data: dict[str, Any]) -> None:
        """Add one event."""
        if kind == "ModelRequest":
            self.events.user()
        elif kind == "ModelResponse":
            usage = as_dict(as_dict(data.get("usage")).get("data"))
            self._step(as_dict(data.get("tool_calls")).get("calls"), usage, data)
        elif kind == "ToolCallsEvent":
            self._step(data.get("calls"), None, data)
        elif kind.endswith("CallEvent"):
            self._step([data], None, data)
        elif kind == "ToolResultsEvent":
            for one in dicts_of(data.get("results"), "results"):
                self._result(first_text(one, "__event__").rpartition(".")[2], one)
        elif "parent_id" in data and "result" in data:
            self._result(kind, data)

    def _step(self, given: Any, usage: Any, event: dict[str, Any]) -> None:
        told = [one for one in dicts_of(given) if first_text(one, "id") not in self._calls]
        self._calls |= {first_text(one, "id") for one in told}
        calls = [
            call(one.get("id"), one.get("name"), parsed_arguments(one.get("arguments")))
            for one in told
        ]
        self.events.step(calls, usage=usage, at=event.get("created_at"))

    def _result(self, kind: str, data: dict[str, Any]) -> None:
        call_id = first_text(data, "parent_id")
        if call_id in self._results:
            return
        self._results.add(call_id)
        parts = blocks_of(as_dict(as_dict(data.get("result")).get("data")).get("parts"))
        contents = [part.get("content", part.get("data")) for part in parts]
        content = contents[0] if len(contents) == 1 else contents
        self.events.result(call_id, content, failed="error" in data or "Error" in kind)


AG2_EVENTS = Format("AG2 event log", _matches, one_run(_read), group=lambda _: "", exact=True)
