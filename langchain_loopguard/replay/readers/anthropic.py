"""Reads Anthropic's messages.

The calls of an assistant message are its blocks of the type `tool_use`; the results are
`tool_result` blocks of the next user message. A user message with nothing but results starts no
turn; one that adds a text to them does, unless the text is a note of the harness.

Facts: Anthropic's API reference for messages, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers.base import (
    Dialect,
    Events,
    blocks_of,
    call,
    events_by_message,
)

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Event

_NOTE = "<system-reminder>"


def has_blocks(message: Any) -> bool:
    """Tell whether a message has a block that only Anthropic's form has."""
    content = message.get("content") if isinstance(message, dict) else None
    return any(_is_use(one) or _is_result(one) for one in blocks_of(content))


def add_message(events: Events, message: dict[str, Any]) -> None:
    """Add one message's events."""
    role, content = message.get("role"), message.get("content")
    blocks = blocks_of(content)
    if role == "assistant":
        events.step(calls_of(blocks), usage=message.get("usage"))
        add_results(events, blocks)
    elif role == "user":
        add_results(events, blocks)
        if is_spoken(content):
            events.user()


def calls_of(blocks: list[dict[str, Any]]) -> list[Event]:
    """List the calls among an assistant message's blocks, those of Anthropic's own tools too."""
    return [
        call(one.get("id"), one.get("name"), one.get("input")) for one in blocks if _is_use(one)
    ]


def add_results(
    events: Events, blocks: list[dict[str, Any]], *, unsaid: bool | None = None
) -> None:
    """Add the results among a message's blocks.

    Args:
        events: Where to add them.
        blocks: The message's blocks.
        unsaid: Whether a call failed whose result does not say so; `None` lets the core read the
            text.
    """
    for block in blocks:
        if _is_result(block):
            failed = block.get("is_error")
            if _is_error(block.get("content")):
                failed = True
            elif not isinstance(failed, bool):
                failed = unsaid
            events.result(block.get("tool_use_id"), block.get("content"), failed=failed)


def is_spoken(content: Any) -> bool:
    """Tell whether a user message holds anything that the user said."""
    if not isinstance(content, list):
        return isinstance(content, str) and bool(content.strip())
    return any(
        not _is_result(block)
        and not (isinstance(block.get("text"), str) and block["text"].lstrip().startswith(_NOTE))
        for block in blocks_of(content)
    )


def _kind(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def _is_use(block: Any) -> bool:
    return _kind(block).endswith("tool_use")


def _is_result(block: Any) -> bool:
    return _kind(block).endswith("tool_result")


def _is_error(content: Any) -> bool:
    return _kind(content).endswith("_error")


ANTHROPIC = Dialect("Anthropic messages", has_blocks, events_by_message(add_message))
