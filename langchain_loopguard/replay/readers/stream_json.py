"""Reads `--output-format stream-json` of the Cursor agent and of Claude Code.

Both print a line an event with a `session_id`: `system`, `user`, `assistant`, `result`. Cursor adds
`tool_call` lines, one when a call started and one when it completed, whose `tool_call` has one
object under the tool's name (`readToolCall`, or `function` with a name and arguments as text) with
`args` and a `result` of `success`, `error`, `failure`, `rejected` or `timeout`. Claude Code keeps
the calls in its messages; lines of sub-agents have a `parent_tool_use_id`.

The last line of a run says whether the agent ended in an error, not whether the task was solved.

Facts: Cursor's page on its CLI's output format and Claude Code's on headless runs, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation, ConversationError
from langchain_loopguard.replay.readers import anthropic
from langchain_loopguard.replay.readers.base import (
    Events,
    Format,
    Place,
    Values,
    as_dict,
    blocks_of,
    call,
    first_text,
    parsed_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS = frozenset(
    "system user assistant tool_call result thinking stream_event interaction_query "
    "rate_limit_event tool_progress tool_use_summary auth_status connection".split()
)
_FAILED = ("error", "failure", "rejected", "timeout", "permissionDenied", "fileNotFound")
_BESIDES = frozenset({"toolCallId", "hookAdditionalContexts", "startedAtMs", "completedAtMs"})


def _matches(value: Any) -> bool:
    return value["type"] in _KINDS and isinstance(value["session_id"], str)


def _session(value: dict[str, Any]) -> str | None:
    return first_text(value, "session_id") or None


def _read(values: Values, place: Place) -> Iterator[Conversation]:
    threads: dict[str, _Thread] = {}
    name = first_text(values[0], "session_id") or place.name
    for number, value in enumerate(values, 1):
        agent = first_text(value, "parent_tool_use_id")
        try:
            threads.setdefault(agent, _Thread()).add(value)
        except ConversationError as error:
            raise ConversationError(f"line {number} of the session: {error}") from None
    for agent, thread in threads.items():
        whole = f"{name}/{agent}" if agent else name
        yield Conversation(place.source, whole, tuple(thread.events.events))


class _Thread:
    """The main agent, or one sub-agent."""

    def __init__(self) -> None:
        self.events = Events()
        self._message: str | None = None
        self._begun: set[str] = set()

    def add(self, line: dict[str, Any]) -> None:
        """Add one line."""
        message = as_dict(line.get("message"))
        content = message.get("content")
        if line["type"] == "assistant":
            calls = anthropic.calls_of(blocks_of(content))
            told = first_text(message, "id")
            if calls and told and told == self._message:
                self.events.more_calls(calls)
            else:
                self.events.step(calls, usage=message.get("usage"), at=line.get("timestamp"))
            self._message = told if calls else self._message
        elif line["type"] == "user":
            anthropic.add_results(self.events, blocks_of(content), unsaid=False)
            if not line.get("isSynthetic") and anthropic.is_spoken(content):
                self.events.user()
        elif line["type"] == "tool_call":
            self._tool_call(line)

    def _tool_call(self, line: dict[str, Any]) -> None:
        told = as_dict(line.get("tool_call"))
        keys = [key for key in told if key not in _BESIDES and isinstance(told[key], dict)]
        if len(keys) != 1:
            raise ConversationError("a tool_call of an unknown form")
        inner = told[keys[0]]
        call_id = first_text(line, "call_id")
        if not call_id or call_id not in self._begun:
            self._begun.add(call_id)
            if keys[0] == "function":
                args = parsed_arguments(inner.get("arguments"))
                self.events.begin(call(call_id, inner.get("name"), args))
            else:
                name = keys[0].removesuffix("ToolCall")
                self.events.begin(call(call_id, name, inner.get("args")))
        if line.get("subtype") == "completed":
            result = inner.get("result", inner.get("output"))
            kind = next(iter(result), "") if isinstance(result, dict) else ""
            content = result[kind] if kind == "success" or kind in _FAILED else result
            failed = None if content is result else kind != "success"
            self.events.result(call_id, content, failed=failed)


STREAM_JSON = Format(
    "stream-json of Cursor or Claude Code", _matches, _read, group=_session, exact=True
)
"""What Cursor's and Claude Code's command line prints as stream-json."""
