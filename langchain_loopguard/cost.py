"""What has a loop cost so far?

Counted in the messages alone, from the batch where the loop began to the one that waits for an
answer, so that a question asked anew after a restart says the same. What the messages don't say
is left out rather than estimated. Prices are not its business: they change, and the guard knows
no model.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage

from langchain_loopguard.history import without_foreign_answers
from langchain_loopguard.messages import is_refusal, tool_calls_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_loopguard.core.decision import Decision

__all__ = ["cost_in_words", "loop_cost"]

_TOKENS = ("input_tokens", "output_tokens", "total_tokens")

_TIMED_ID = re.compile(
    r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
)
"""A UUID of version 7 begins with the time in milliseconds. LangChain names an AI message after
the model's run, and runs have such ids."""


def loop_cost(decision: Decision, messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """Add up what a loop has cost before the batch that is asked about.

    Args:
        decision: What was found about that batch.
        messages: The messages with the batch's AI message in them.

    Returns:
        In JSON types: `calls`, the tool calls that ran; `model_calls`, that for the waiting batch
        included; `input_tokens`, `output_tokens` and `total_tokens`, each the sum of what the AI
        messages say in `usage_metadata`, left out where none says it; `seconds`, between the
        first of these model calls and the last, left out where the messages' ids don't tell.
        Of a history that was trimmed it is the cost of what is left. Empty when the batch is not
        among the messages.
    """
    whole = without_foreign_answers(messages)
    end = _place_of(decision, whole)
    if end is None:
        return {}
    back = getattr(decision.record, "number", 0) - min(f.since for f in decision.findings)
    start, left = end, max(back, 0)
    while left and start:
        start -= 1
        left -= bool(tool_calls_of(whole[start]))
    spoken = [message for message in whole[start : end + 1] if isinstance(message, AIMessage)]
    cost: dict[str, Any] = {
        "calls": sum(
            isinstance(message, ToolMessage) and not is_refusal(message)
            for message in whole[start:]
        ),
        "model_calls": len(spoken),
    }
    for key in _TOKENS:
        known = [usage[key] for usage in map(_usage, spoken) if _is_count(usage.get(key))]
        if known:
            cost[key] = sum(known)
    began, ended = _time_of(whole[start]), _time_of(whole[end])
    if began is not None and ended is not None and ended >= began:
        cost["seconds"] = round((ended - began) / 1000, 1)
    return cost


def cost_in_words(cost: Mapping[str, Any]) -> str:
    """Say it to a person in a sentence; empty without a cost."""
    if not cost:
        return ""
    text = f"Since the loop began: {_number(cost['calls'], 'tool call')}"
    text += f", {_number(cost['model_calls'], 'model call')}"
    if "total_tokens" in cost:
        text += f", {_number(cost['total_tokens'], 'token')}"
    if cost.get("seconds", 0) >= 1:
        text += f", in {cost['seconds']:,} seconds"
    return f"{text}."


def _place_of(decision: Decision, messages: Sequence[BaseMessage]) -> int | None:
    """Find the batch's AI message, the latest one, since ids may repeat."""
    if not decision.findings:
        return None
    wanted = {str(item) for item in getattr(decision.record, "ids", ()) if item}
    for index in range(len(messages) - 1, -1, -1):
        ids = {str(call["id"]) for call in tool_calls_of(messages[index]) if call.get("id")}
        if ids & wanted or (not wanted and tool_calls_of(messages[index])):
            return index
    return None


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
