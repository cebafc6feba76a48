"""Which tool calls are measured?

Calls and results of a given size in which no word comes twice, so that no guard, however fuzzy,
treats one as the repeat of another. This file needs nothing but Python: the peers read it too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

SIZES = {
    "100 B + 200 B": (100, 200),
    "10 KB + 10 KB": (10_000, 10_000),
    "100 B + 1 MB": (100, 1_000_000),
}
"""Bytes of arguments and bytes of the result."""

HISTORIES = (10, 10_000, 100_000)
"""Calls before the one that is measured."""


class Made(NamedTuple):
    """A call as LangChain gives it, and the text of its result."""

    call: dict[str, Any]
    result: str


def text(size: int, number: int) -> str:
    """Make lines of some fifty characters, `size` in all, with words of their own."""
    words = max(1, size // 10)
    lines = [" ".join(f"@w{word:07x}" for word in range(at, at + 5)) for at in range(0, words, 5)]
    mark = f"{number:x}"
    return "\n".join(lines).replace("@", mark)[:size].ljust(size, "x")


def made(count: int, arguments: int, result: int, start: int = 0) -> list[Made]:
    """Make calls, each with its own arguments and its own result.

    Args:
        count: How many.
        arguments: Bytes of each call's arguments as JSON, at least 60.
        result: Bytes of each result.
        start: The number of the first; equal numbers give equal calls.
    """
    return [
        Made(
            {
                "name": "edit_file",
                "args": {"path": f"src/{n:x}.py", "text": text(arguments - 40, n)},
                "id": f"call_{n}",
                "type": "tool_call",
            },
            text(result, n),
        )
        for n in range(start, start + count)
    ]


def guard_work(guard: Any) -> Callable[[Made], None]:
    """Give what a host does with a guard for one call."""
    # The host makes the list of calls and the message, so one of each is made and only filled.
    calls: list[Any] = [None]
    message = {"tool_call_id": "", "content": "", "status": "success"}
    messages = [message]

    def work(item: Made) -> None:
        calls[0] = call = item.call
        decision = guard.check(calls)
        message["tool_call_id"] = call["id"]
        message["content"] = item.result
        guard.record_results(decision.record, messages)

    return work
