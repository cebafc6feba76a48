"""Which events do Anthropic's messages make?

The calls of an assistant message are its blocks of the type `tool_use`; the answers are
`tool_result` blocks of the next user message. A user message with nothing but answers is none of
a person; one that adds a text to them is, unless the text is a note of the harness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers.base import Events, call

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Event

_NOTE = "<system-reminder>"


def has_blocks(message: Any) -> bool:
    """Tell whether a message has a block that only Anthropic's form has."""
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(_is_use(one) or _is_result(one) for one in content)


def events_of(messages: list[dict[str, Any]]) -> list[Event]:
    """Turn messages into events."""
    events = Events()
    for message in messages:
        add_message(events, message.get("role"), message.get("content"))
    return events.events


def add_message(events: Events, role: Any, content: Any) -> None:
    """Add one message's events."""
    blocks = [block for block in content if isinstance(block, dict)] if _is_list(content) else []
    if role == "assistant":
        events.batch(calls_of(blocks))
        add_answers(events, blocks)
    elif role == "user":
        add_answers(events, blocks)
        if is_spoken(content):
            events.human()


def calls_of(blocks: list[dict[str, Any]]) -> list[Event]:
    """List the calls among an assistant message's blocks, those of Anthropic's own tools too."""
    return [
        call(block.get("id"), block.get("name"), block.get("input"))
        for block in blocks
        if _is_use(block)
    ]


def add_answers(
    events: Events, blocks: list[dict[str, Any]], *, unsaid: bool | None = None
) -> None:
    """Add the answers among a message's blocks.

    Args:
        events: Where to add them.
        blocks: The message's blocks.
        unsaid: Whether a call failed whose answer does not say so; `None` lets the text tell.
    """
    for block in blocks:
        if _is_result(block):
            failed = block.get("is_error")
            if _is_error(block.get("content")):
                failed = True
            elif not isinstance(failed, bool):
                failed = unsaid
            events.answer(block.get("tool_use_id"), block.get("content"), failed=failed)


def is_spoken(content: Any) -> bool:
    """Tell whether a user message holds anything that a person said."""
    if not _is_list(content):
        return isinstance(content, str) and bool(content.strip())
    return any(
        not _is_result(block)
        and not (isinstance(block.get("text"), str) and block["text"].lstrip().startswith(_NOTE))
        for block in content
        if isinstance(block, dict)
    )


def _is_list(content: Any) -> bool:
    return isinstance(content, list)


def _is_use(block: Any) -> bool:
    kind = block.get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and kind.endswith("tool_use")


def _is_result(block: Any) -> bool:
    kind = block.get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and kind.endswith("tool_result")


def _is_error(content: Any) -> bool:
    kind = content.get("type") if isinstance(content, dict) else None
    return isinstance(kind, str) and kind.endswith("_error")
