"""Reads the conversations of Cline and of its kin (Roo Code, Kilo Code).

A task's `api_conversation_history.json` is a list of Anthropic's messages. Calls are tool blocks,
or with a model without tool calling XML in the text. Results are tool blocks too, or the text
`[tool for 'x'] Result:` of the next user message, also after a call in a block. What the user said
stands in `<task>`, `<feedback>`, `<answer>` or `<user_message>`.

Only tools whose tag stands on its own are treated as calls, so that a model that writes about a tag
makes none: one XML call a message, as Cline runs them.

Facts: Cline's and Roo Code's `assistant-message` parsers and task files, read 2026-11.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers import anthropic
from langchain_loopguard.replay.readers.base import (
    Dialect,
    Events,
    blocks_of,
    call,
    events_by_message,
)

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Event

_TOOLS = (
    "execute_command read_file write_to_file replace_in_file apply_diff insert_content "
    "search_and_replace search_files list_files list_code_definition_names browser_action "
    "use_mcp_tool access_mcp_resource load_mcp_documentation web_fetch web_search "
    "ask_followup_question attempt_completion plan_mode_respond new_task switch_mode "
    "fetch_instructions update_todo_list codebase_search new_rule condense report_bug"
).split()
_CALL = re.compile(rf"(?:^|\n)[^\S\n]*<({'|'.join(_TOOLS)})>(.*?)(?:</\1>|\Z)", re.DOTALL)
_PART = re.compile(r"<(\w+)>(.*?)</\1>", re.DOTALL)
_RESULT = re.compile(r"\[(\w+)(?: for [^\n]*)?\] Result:")
_SPOKEN = re.compile(r"<(?:task|feedback|answer|user_message)>")
_ERROR = ("The tool execution failed", "<error>", "Error executing")
_LONGEST = 200_000


def _texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [b.get("text") for b in blocks_of(content)]
    return [text for text in texts if isinstance(text, str)]


def _knows(message: Any) -> bool:
    texts = _texts(message)
    if message["role"] == "user":
        return any(text.startswith("<task>") or _RESULT.match(text) for text in texts)
    return False


class _Reader:
    """Adds messages one by one, and knows which calls wait for a result in text."""

    def __init__(self) -> None:
        self._waiting: list[Any] = []

    def add(self, events: Events, message: dict[str, Any]) -> None:
        """Add one message."""
        texts = _texts(message)
        blocks = blocks_of(message.get("content"))
        if message.get("role") == "assistant":
            calls = anthropic.calls_of(blocks) or _written_calls(texts, len(events.events))
            events.step(calls, at=message.get("ts"))
            self._waiting = [one["id"] for one in calls] or self._waiting
            return
        anthropic.add_results(events, blocks)
        self._add_texts(events, texts)
        if any(_SPOKEN.search(text[:_LONGEST]) for text in texts):
            events.user()

    def _add_texts(self, events: Events, texts: list[str]) -> None:
        """Add results that are text: what follows the head in its block, else the next block."""
        for at, text in enumerate(texts):
            head = _RESULT.match(text)
            if head is None or not self._waiting:
                continue
            content = text[head.end() :].strip() or next(iter(texts[at + 1 :]), "")
            failed = True if content.startswith(_ERROR) else None
            events.result(self._waiting.pop(0), content, failed=failed)


def _written_calls(texts: list[str], number: int) -> list[Event]:
    """Read the call that is written as XML in a message's text."""
    for text in texts:
        found = _CALL.search(text[:_LONGEST])
        if found is not None:
            inner = found[2]
            args = {name: value.strip() for name, value in _PART.findall(inner)}
            return [call(f"xml-{number}", found[1], args or inner.strip())]
    return []


def _events_of(messages: list[Any]) -> list[Event]:
    return events_by_message(_Reader().add)(messages)


CLINE = Dialect("Cline conversation", _knows, _events_of)
