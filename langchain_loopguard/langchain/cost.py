"""What has a loop cost so far, and what did its last steps look like?

Counted in the messages alone, so that a question asked again after a restart says the same. What
the messages don't say is left out rather than estimated; prices are not its business.
"""

from __future__ import annotations

import re
from itertools import islice
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
    found = (index for index in range(end - 1, -1, -1) if makes_calls(messages[index]))
    return [step_at(messages, index) for index in islice(found, most)][::-1]


def cost_of(messages: Sequence[BaseMessage], end: int, steps: int) -> dict[str, Any]:
    """Add up what the `steps` before the AI message at `end` have cost, in JSON types.

    Returns:
        `calls` that ran; `model_calls`, that at `end` included; `input_tokens`, `output_tokens`
        and `total_tokens`, where any message says them; `seconds` between the first of these
        model calls and the last, where their ids tell it.
    """
    done = steps_before(messages, end, steps)
    start = done[0].index if done else end
    spoken = [message for message in messages[start : end + 1] if isinstance(message, AIMessage)]
    cost: dict[str, Any] = {
        "calls": sum(len(step.by_tools) for step in done),
        "model_calls": len(spoken),
    }
    usages: list[Any] = [message.usage_metadata for message in spoken]
    for key in _TOKENS:
        counts = [usage.get(key) for usage in usages if isinstance(usage, dict)]
        known = [count for count in counts if type(count) is int and count >= 0]
        if known:
            cost[key] = sum(known)
    began, ended = _time_of(messages[start]), _time_of(messages[end])
    if began is not None and ended is not None and ended >= began:
        cost["seconds"] = round((ended - began) / 1000, 1)
    return cost


def number_of(count: int, thing: str) -> str:
    """Write how many things there are."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def times_of(count: int) -> str:
    """Write how often something came."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def cost_in_words(cost: Mapping[str, Any], since: str) -> str:
    """Say it to a person in a sentence that begins with `since`."""
    parts = [number_of(cost["calls"], "tool call"), number_of(cost["model_calls"], "model call")]
    if "total_tokens" in cost:
        parts.append(number_of(cost["total_tokens"], "token"))
    time = f", in {cost['seconds']:,} seconds" if cost.get("seconds", 0) >= 1 else ""
    return f"{since}: {', '.join(parts)}{time}."


def _time_of(message: BaseMessage) -> int | None:
    found = _TIMED_ID.search(message.id or "")
    return int(found[1] + found[2], 16) if found else None
