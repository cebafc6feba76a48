"""What has a loop cost so far, and what did its last steps look like?

Counted in the messages alone, so that a question asked again after a restart says the same. What
the messages don't say is left out rather than estimated; prices are not its business.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage

from langchain_loopguard.langchain.messages import makes_calls, step_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_loopguard.langchain.messages import MessageStep

_TOKENS = ("input_tokens", "output_tokens", "total_tokens")

_TIMED_ID = re.compile(
    r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
)
"""A UUID of version 7 begins with the time in milliseconds. LangChain names an AI message after
the model's run, and runs have such ids."""


def steps_before(messages: Sequence[BaseMessage], end: int, most: int) -> list[MessageStep]:
    """Read up to `most` steps that stand before the message at `end`, the oldest first."""
    found: list[MessageStep] = []
    for index in range(end - 1, -1, -1):
        if len(found) >= most:
            break
        if makes_calls(messages[index]):
            found.append(step_at(messages, index))
    return found[::-1]


def cost_of(messages: Sequence[BaseMessage], end: int, steps: int) -> dict[str, Any]:
    """Add up what some steps have cost.

    Args:
        messages: A history; of one that was trimmed it is the cost of what is left.
        end: Where the AI message stands that waits.
        steps: How many steps before it belong to the loop.

    Returns:
        In JSON types: `calls` that ran; `model_calls`, that at `end` included; `input_tokens`,
        `output_tokens` and `total_tokens`, where any message says them; `seconds` between the
        first of these model calls and the last, where their ids tell it.
    """
    done = steps_before(messages, end, steps)
    start = done[0].index if done else end
    spoken = [message for message in messages[start : end + 1] if isinstance(message, AIMessage)]
    cost: dict[str, Any] = {
        "calls": sum(len(step.by_tools) for step in done),
        "model_calls": len(spoken),
    }
    for key in _TOKENS:
        known = [usage[key] for usage in map(_usage, spoken) if _is_count(usage.get(key))]
        if known:
            cost[key] = sum(known)
    began, ended = _time_of(messages[start]), _time_of(messages[end])
    if began is not None and ended is not None and ended >= began:
        cost["seconds"] = round((ended - began) / 1000, 1)
    return cost


def cost_in_words(cost: Mapping[str, Any], since: str) -> str:
    """Say it to a person in a sentence that begins with `since`."""
    parts = [_number(cost["calls"], "tool call"), _number(cost["model_calls"], "model call")]
    if "total_tokens" in cost:
        parts.append(_number(cost["total_tokens"], "token"))
    time = f", in {cost['seconds']:,} seconds" if cost.get("seconds", 0) >= 1 else ""
    return f"{since}: {', '.join(parts)}{time}."


def _usage(message: AIMessage) -> Mapping[str, Any]:
    usage: Any = message.usage_metadata
    return usage if isinstance(usage, dict) else {}


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _time_of(message: BaseMessage) -> int | None:
    found = _TIMED_ID.search(message.id or "")
    return int(found[1] + found[2], 16) if found else None


def _number(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
