"""What does a policy say to every conversation, and is it right?

A verdict is right when a loop is asked about in time, and good work is not asked about. A
warning is always allowed; it is counted for solved runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from langchain_loopguard.policy import LoopGuardPolicy
from tests.conversations import policy_for, read_through
from tests.evaluation.sets import all_sets


class Verdict(NamedTuple):
    """Numbers of steps, counted from 1; `None` when it never came."""

    warn: int | None
    ask: int | None
    held: int | None
    """The first ask before a step ran."""
    asks: tuple[int, ...]
    """Every step that a person was asked about."""

    @property
    def level(self) -> str:
        """The strongest that was said."""
        return "asked" if self.ask else "warned" if self.warn else "silent"


def verdicts(policy: LoopGuardPolicy) -> dict[str, list[Verdict]]:
    """Judge every conversation of every set."""
    return {name: [judge(one, policy) for one in given] for name, given, _ in all_sets()}


def judge(conversation: dict[str, Any], policy: LoopGuardPolicy) -> Verdict:
    """Judge one conversation."""
    said = read_through(conversation["events"], policy_for(conversation, policy))
    return Verdict(said.warn, said.ask, said.held, tuple(said.asks))


def wrong(conversation: dict[str, Any], verdict: Verdict) -> str:
    """Say what is wrong with a verdict; empty when it is right or nobody knows."""
    expect, ask = conversation.get("expect"), verdict.ask
    if expect is None:
        label = conversation.get("label")
        if label == "loop":
            return "" if ask else "missed"
        good = label == "benign" or conversation["outcome"] == "success"
        return f"asked at {ask}" if good and ask else ""
    if "ask_by" in expect and not (ask and ask <= expect["ask_by"]):
        return f"asked at {ask}, {expect['ask_by']} was expected" if ask else "missed"
    if ask and ask < expect.get("ask_not_before", 0):
        return f"asked at {ask}, not before {expect['ask_not_before']} was expected"
    if ask and expect.get("never_ask"):
        return f"asked at {ask}"
    if expect.get("silent_after_human") and _opening(conversation["events"]) & {*verdict.asks}:
        return "asked at the first step of a turn"
    return ""


def _opening(events: list[dict[str, Any]]) -> set[int]:
    """Number the steps that come first in a turn."""
    number, is_first, found = 0, False, set()
    for event in events:
        if event["type"] == "batch":
            number += 1
            if is_first:
                found.add(number)
        is_first = event["type"] == "human"
    return found
