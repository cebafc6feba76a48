"""Reads the messages of AutoGen 0.4 and later, Magentic-One among its teams.

AgentChat's stream and `TaskResult` hold a `ToolCallRequestEvent` for each step and a
`ToolCallExecutionEvent` for its results; a code executor has its own two events. A model context,
which a saved state holds, has an `AssistantMessage` whose content is a list of calls, and a
`FunctionExecutionResultMessage`. What the source `user` says starts a turn. The saved state of a
team has a context for each agent, each a run.

Magentic-One's surfer and coder act without such events, so that their actions are not seen.

Facts: `autogen_agentchat.messages` and `autogen_core.models` 0.7.5, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation
from langchain_loopguard.replay.readers.base import (
    Dialect,
    Events,
    Format,
    Place,
    Values,
    as_dict,
    call,
    dicts_of,
    events_by_message,
    parsed_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_TURNS = frozenset({"TextMessage", "MultiModalMessage", "UserMessage"})
_RESULTS = frozenset({"ToolCallExecutionEvent", "FunctionExecutionResultMessage"})
_KINDS = _TURNS | _RESULTS | frozenset(
    "ToolCallRequestEvent ToolCallSummaryMessage CodeGenerationEvent CodeExecutionEvent "
    "ThoughtEvent StopMessage HandoffMessage UserInputRequestedEvent MemoryQueryEvent "
    "SelectSpeakerEvent SelectorEvent ModelClientStreamingChunkEvent AssistantMessage".split()
)  # fmt: skip


def _knows(message: Any) -> bool:
    kind = message["type"]
    return kind in _KINDS and ("source" in message or kind in _RESULTS) and "role" not in message


def _add(events: Events, message: dict[str, Any]) -> None:
    kind, content = message.get("type"), message.get("content")
    if kind in _TURNS and message.get("source") == "user":
        events.user()
    elif kind == "ToolCallRequestEvent" or (
        kind == "AssistantMessage" and isinstance(content, list)
    ):
        given = dicts_of(content, "content")
        events.step(
            [call(c.get("id"), c.get("name"), parsed_arguments(c.get("arguments"))) for c in given],
            usage=message.get("models_usage"),
            at=message.get("created_at"),
        )
    elif kind in _RESULTS:
        for one in dicts_of(content, "content"):
            events.result(one.get("call_id"), one.get("content"), failed=one.get("is_error"))
    elif kind == "CodeGenerationEvent":
        events.step([call(None, "code", {"code_blocks": message.get("code_blocks")})])
    elif kind == "CodeExecutionEvent":
        result = as_dict(message.get("result"))
        code = result.get("exit_code")
        failed = bool(code) if type(code) is int else None
        events.result(None, result.get("output"), failed=failed)


AUTOGEN = Dialect("AutoGen messages", _knows, events_by_message(_add))


def _is_team(value: Any) -> bool:
    return value["type"] == "TeamState" and isinstance(value["agent_states"], dict)


def _read_team(values: Values, place: Place) -> Iterator[Conversation]:
    for value in values:
        for name, state in value["agent_states"].items():
            context = as_dict(as_dict(as_dict(state).get("agent_state")).get("llm_context"))
            if "messages" in context:
                messages = dicts_of(context["messages"], f"{name}, messages")
                whole = f"{place.name}/{name.partition('/')[0]}"
                events = AUTOGEN.events_of(messages)
                yield Conversation(place.source, whole, tuple(events))


AUTOGEN_TEAM = Format("AutoGen team state", _is_team, _read_team, exact=True)
