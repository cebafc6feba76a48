"""Reads the conversations of Cline and of its kin (Roo Code, Kilo Code).

A task's `api_conversation_history.json` is a list of Anthropic's messages. A model without tool
calling writes a call as XML in its text, and the result comes back as the text
`[tool for 'x'] Result:` of the next user message; newer versions have tool blocks. What the user
said stands in `<task>`, `<feedback>`, `<answer>` or `<user_message>`.

Only tools whose tag stands on its own are taken for calls, so that a model that writes about a tag
makes none: one call a message, as Cline runs them.

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
    from collections.abc import Iterable

    from langchain_loopguard.replay.conversation import Event

_TOOLS = (
    "execute_command read_file write_to_file replace_in_file apply_diff insert_content "
    "search_and_replace search_files list_files list_code_definition_names browser_action "
    "use_mcp_tool access_mcp_resource load_mcp_documentation web_fetch web_search "
    "ask_followup_question attempt_completion plan_mode_respond new_task switch_mode "
    "fetch_instructions update_todo_list codebase_search new_rule condense report_bug"
).split()
_CALL = re.compile(rf"(?:^|\n)\s*<({'|'.join(_TOOLS)})>(.*?)(?:</\1>|\Z)", re.DOTALL)
_PART = re.compile(r"<(\w+)>(.*?)</\1>", re.DOTALL)
_RESULT = re.compile(r"\[(\w+)(?: for [^\n]*)?\] Result:")
_SPOKEN = re.compile(r"<(?:task|feedback|answer|user_message)>")
_NO_TOOL = "[ERROR] You did not use a tool"
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


def _calls_of(texts: Iterable[str]) -> list[Event]:
    for text in texts:
        found = _CALL.search(text[:_LONGEST])
        if found is not None:
            inner = found[2]
            args = {name: value.strip() for name, value in _PART.findall(inner)}
            return [call(None, found[1], args or inner.strip())]
    return []


def _add(events: Events, message: dict[str, Any]) -> None:
    if anthropic.has_blocks(message):
        anthropic.add_message(events, message)
        return
    texts = _texts(message)
    if message.get("role") == "assistant":
        events.step(_calls_of(texts))
        return
    at = next((at for at, text in enumerate(texts) if _RESULT.match(text)), None)
    if at is not None:
        head = _RESULT.match(texts[at])
        text = texts[at][head.end() :].strip() if head is not None else ""
        # The result may be the next block; after it come the user's words and the environment.
        text = text or next(iter(texts[at + 1 :]), "")
        events.result(None, text, failed=True if text.startswith(_ERROR) else None)
    if any(_SPOKEN.search(text[:_LONGEST]) for text in texts):
        events.user()


CLINE = Dialect("Cline conversation", _knows, events_by_message(_add))
"""Cline's conversations."""
