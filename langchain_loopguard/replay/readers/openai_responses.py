"""Reads the items of OpenAI's Responses API, which the Agents SDK and Codex keep too.

Calls and results are items of their own: `function_call` and `function_call_output`, and so for
custom, shell and computer tools. Calls with nothing but reasoning between them are one step.
A tool that OpenAI runs itself has its result in the item, or shows none.

Facts: OpenAI's API reference for responses, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.base import Dialect, Events, call, parsed_arguments

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Event

_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
    "tool_search_call": "arguments",
    "mcp_call": "arguments",
    "web_search_call": "action",
    "file_search_call": "queries",
    "code_interpreter_call": "code",
    "image_generation_call": "prompt",
}
"""Kind of call -> the key of its arguments."""

_OTHER_ITEMS = frozenset(
    "reasoning item_reference compaction compaction_summary context_compaction ghost_snapshot "
    "mcp_list_tools mcp_approval_request mcp_approval_response tool_search_output".split()
)

_OWN_RESULTS = ("output", "results", "outputs", "error")
"""Where a call that OpenAI ran itself has its result."""


def is_item(value: Any) -> bool:
    """Tell whether a value is an item that only the Responses API has."""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if kind in _CALLS:
        return "id" in value or "call_id" in value
    if kind in _OTHER_ITEMS:
        return "role" not in value
    return isinstance(kind, str) and kind.endswith("_call_output") and "output" in value


class Items:
    """Adds items one by one to events.

    Attributes:
        events: Where they are added.
    """

    def __init__(self, events: Events) -> None:
        self.events = events
        self._calls: list[tuple[Event, dict[str, Any]]] = []

    def add(self, item: dict[str, Any], *, failed: bool | None = None) -> None:
        """Add one item.

        Args:
            item: The item.
            failed: Whether the call failed of which this is the result, if that is known.

        Raises:
            ConversationError: If it is a call of an unknown kind.
        """
        kind = item.get("type")
        if kind in _CALLS:
            given = parsed_arguments(item.get(_CALLS[kind]))
            name = item.get("name") or str(kind).removesuffix("_call")
            self._calls.append((call(_id(item), name, given), item))
        elif kind in _OTHER_ITEMS:
            return
        elif isinstance(kind, str) and kind.endswith(("_call_output", "_tool_output")):
            self.flush()
            failed = _failed(item) if failed is None else failed
            self.events.result(_id(item), item.get("output"), failed=failed)
        elif isinstance(kind, str) and kind.endswith("_call"):
            raise ConversationError(f"a call of the unknown kind {kind[:40]}")
        else:
            self.flush()
            if item.get("role") == "user":
                self.events.user()

    def flush(self) -> None:
        """Close the step that is being read."""
        self.events.step([made for made, _ in self._calls])
        for made, item in self._calls:
            found = next((item[key] for key in _OWN_RESULTS if item.get(key) is not None), None)
            if found is not None:
                self.events.result(made["id"], found, failed=_failed(item))
        self._calls.clear()


def events_of(items: list[Any]) -> list[Event]:
    """Read a list of items.

    Raises:
        ConversationError: If one is a call of an unknown kind, or no object.
    """
    reader = Items(Events())
    for number, item in enumerate(items, 1):
        if not isinstance(item, dict):
            raise ConversationError(f"item {number}: not an object")
        reader.add(item)
    reader.flush()
    return reader.events.events


def _id(item: dict[str, Any]) -> Any:
    return item.get("call_id") or item.get("id")


def _failed(item: dict[str, Any]) -> bool | None:
    if item.get("status") in {"failed", "incomplete"} or item.get("error") is not None:
        return True
    return None


OPENAI_RESPONSES = Dialect("OpenAI Responses", is_item, events_of)
