"""Reads `--output-format stream-json` of the Cursor agent and of Claude Code.

Both print a line an event with a `session_id`: `system`, `user`, `assistant`, `result`. Cursor
adds `tool_call` lines, when a call started and when it completed. Its `tool_call` has one object
under the tool's name (`readToolCall`; `mcpToolCall` and `function` name it within) with `args` and
a `result`, which is `success` or a kind of failure; calls of one step share a `model_call_id`.
Claude Code keeps the calls in its messages; lines of sub-agents have a `parent_tool_use_id`.

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
    located,
    parsed_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS = frozenset(
    "system user assistant tool_call result thinking stream_event interaction_query "
    "rate_limit_event tool_progress tool_use_summary auth_status connection".split()
)
_SHELL = ("exitCode", "stdout", "stderr")
_BESIDES = frozenset({"toolCallId", "hookAdditionalContexts", "startedAtMs", "completedAtMs"})


def _matches(value: Any) -> bool:
    if value["type"] == "tool_call" and isinstance(value["tool_call"], dict):
        return "subtype" in value
    return value["type"] in _KINDS and isinstance(value["session_id"], str)


def _session(value: dict[str, Any]) -> str | None:
    return first_text(value, "session_id") or None


def _read(values: Values, place: Place) -> Iterator[Conversation]:
    threads: dict[str, _Thread] = {}
    name = ""
    for number, value in enumerate(values, 1):
        name = name or first_text(value, "session_id")
        agent = first_text(value, "parent_tool_use_id")
        with located(f"line {number} of the session"):
            threads.setdefault(agent, _Thread()).add(value)
    for agent, thread in threads.items():
        whole = f"{name or place.name}/{agent}" if agent else name or place.name
        yield Conversation(place.source, whole, tuple(thread.events.events))


class _Thread:
    """The main agent, or one sub-agent."""

    def __init__(self) -> None:
        self.events = Events()
        self._message: str | None = None
        self._asked = ""
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
        call_id = first_text(line, "call_id") or first_text(told, "toolCallId")
        if not call_id or call_id not in self._begun:
            self._begun.add(call_id)
            one = call(call_id, *_name_and_args(keys[0], inner))
            asked = first_text(line, "model_call_id")
            if asked and asked == self._asked:
                self.events.more_calls([one])
            elif asked:
                self.events.step([one], at=line.get("timestamp_ms"))
            else:
                self.events.begin(one)
            self._asked = asked
        if line.get("subtype") == "completed":
            content, failed = _outcome(inner.get("result", inner.get("output")))
            self.events.result(call_id, content, failed=failed)


def _name_and_args(key: str, inner: dict[str, Any]) -> tuple[Any, Any]:
    if key == "function":
        return inner.get("name"), parsed_arguments(inner.get("arguments"))
    args = inner.get("args")
    if key == "mcpToolCall" and isinstance(args, dict):
        return args.get("toolName") or args.get("name"), args.get("args", args.get("arguments"))
    if isinstance(args, dict):
        args = {name: value for name, value in args.items() if name not in _BESIDES}
    return key.removesuffix("ToolCall"), args


def _outcome(result: Any) -> tuple[Any, bool | None]:
    """Return what a call gave back, and whether it failed."""
    if not isinstance(result, dict):
        return result, None
    if "success" not in result:
        return (next(iter(result.values())), True) if len(result) == 1 else (result, True)
    content = result["success"]
    if not isinstance(content, dict):
        return content, False
    failed = bool(content.get("exitCode") or content.get("isError"))
    if "stdout" in content:
        # How long the command took is in there too, and differs each time.
        content = {key: content[key] for key in _SHELL if key in content}
    return content, failed


STREAM_JSON = Format(
    "stream-json of Cursor or Claude Code", _matches, _read, group=_session, exact=True
)
