"""What does a guard say to a whole conversation?

Conversations are told in the transcript form: `human`, `batch` and `note` events. `read_through`
hands one to a `LoopGuard` as a host would and reports where it first warned, asked and stopped.
"""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from langchain_loopguard.core.decision import Action, Finding
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.policy import LoopGuardPolicy

DATA = Path(__file__).parent / "data"


@dataclass
class Verdict:
    """Numbers of steps, counted from 1 over the whole conversation; `None` when it never came."""

    warn: int | None = None
    ask: int | None = None
    """First ask, wherever it came from: before a step ran or out of its results."""
    held: int | None = None
    """First ask before a step ran: the one that a host acts on."""
    stop: int | None = None
    asks: list[int] = field(default_factory=list)
    """Every step that a person is asked about."""
    findings: list[tuple[int, Finding]] = field(default_factory=list)
    guard: LoopGuard | None = None
    """The guard as the conversation left it."""

    @property
    def rules(self):
        """The rules that asked, in order of appearance."""
        return list(dict.fromkeys(f.rule for _, f in self.findings if f.action >= Action.ASK))


def read_through(  # noqa: C901 - a conversation told in order
    events, policy=None, *, unattended=False, through_json=False
):
    """Run a conversation through a guard.

    Args:
        events: The conversation in the transcript form. A `note` with `approve` in its text
            approves the latest decision that asked.
        policy: The guard's policy, by default `LoopGuardPolicy()`.
        unattended: Refuse every step that a person would be asked about, as a host without one
            does, and end with the first stop. By default asks are only noted and the step runs.
        through_json: Take the guard's state through JSON before every event.
    """
    policy = policy or LoopGuardPolicy()
    guard = LoopGuard(policy)
    verdict = Verdict()
    number = 0
    asked = None
    for event in events:
        if through_json:
            guard = LoopGuard.from_state(policy, json.loads(json.dumps(guard.to_state())))
        if event["type"] == "human":
            guard.start_turn()
        elif event["type"] == "note" and "approve" in event["text"] and asked is not None:
            guard.approve(asked)
        elif event["type"] == "batch" and event["calls"]:
            number += 1
            decision = guard.check(event["calls"])
            _note(verdict, number, decision)
            if decision.action >= Action.ASK:
                asked = decision
                verdict.held = verdict.held or number
                if decision.action is Action.STOP:
                    verdict.stop = number
                    if unattended:
                        break
                if unattended:
                    guard.refuse(decision)
                    continue
            record = decision.record
            if through_json:
                guard = LoopGuard.from_state(policy, json.loads(json.dumps(guard.to_state())))
                record = guard.record_for(event["calls"])
            revealed = guard.record_results(record, event.get("results") or [])
            _note(verdict, number, revealed)
            if revealed.action >= Action.ASK:
                asked = revealed
    verdict.guard = guard
    return verdict


def policy_for(conversation, policy=None):
    """The policy with the pollers that the conversation declares."""
    policy = policy or LoopGuardPolicy()
    pollers = tuple(conversation.get("expect", {}).get("poll_tools", ()))
    return policy.model_copy(update={"poll_tools": pollers}) if pollers else policy


@cache
def load(name):
    """Read the conversations of a file in `tests/data`; they are not to be changed."""
    with lzma.open(DATA / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _note(verdict, number, decision):
    for finding in decision.findings:
        verdict.findings.append((number, finding))
    if decision.action is Action.WARN:
        verdict.warn = verdict.warn or number
    elif decision.action >= Action.ASK:
        verdict.ask = verdict.ask or number
        if number not in verdict.asks:
            verdict.asks.append(number)
