"""Which events do the items of OpenAI's Responses API make?

Calls and answers are items of their own: `function_call` and `function_call_output`, and so for
custom, shell and computer tools. Calls with nothing but reasoning between them are one batch.
A tool that OpenAI runs itself has its answer in the item, or shows none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers.base import Events, call, parsed_arguments

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
    "reasoning item_reference compaction mcp_list_tools mcp_approval_request "
    "mcp_approval_response".split()
)

_OWN_ANSWERS = ("output", "results", "outputs", "error")
"""Where a call that OpenAI ran itself has its answer."""


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


def events_of(items: list[dict[str, Any]]) -> list[Event]:
    """Turn items into events."""
    events = Events()
    calls: list[Event] = []
    answers: list[dict[str, Any]] = []

    def flush() -> None:
        events.batch(calls)
        for item in answers:
            answer = next((item[key] for key in _OWN_ANSWERS if item.get(key) is not None), None)
            if answer is not None:
                events.answer(_id(item), answer, failed=_failed(item))
        calls.clear()
        answers.clear()

    for item in items:
        kind = item.get("type")
        if kind in _CALLS:
            given = parsed_arguments(item.get(_CALLS[kind]))
            name = item.get("name") or str(kind).removesuffix("_call")
            calls.append(call(_id(item), name, given))
            answers.append(item)
        elif kind in _OTHER_ITEMS:
            continue
        elif isinstance(kind, str) and kind.endswith("_call_output"):
            flush()
            events.answer(_id(item), item.get("output"), failed=_failed(item))
        else:
            flush()
            if item.get("role") == "user":
                events.human()
    flush()
    return events.events


def _id(item: dict[str, Any]) -> Any:
    return item.get("call_id") or item.get("id")


def _failed(item: dict[str, Any]) -> bool | None:
    if item.get("status") in {"failed", "incomplete"} or item.get("error") is not None:
        return True
    return None
