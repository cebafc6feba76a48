"""How do these tests tell a guard a story, and what do they read off?"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import Policy
from langchain_loopguard.core.rules import Rule, RuleConfig
from tests.presets.plays import HUMAN, UNKNOWN, between, call, new, run

__all__ = ["HUMAN", "UNKNOWN", "Said", "between", "brought", "call", "new", "run", "said"]

LINES = "one line\nanother line\na third line"


class Said(NamedTuple):
    """Numbers of steps, from 1; `None` when it never came."""

    warn: int | None = None
    ask: int | None = None
    """First asked for because of results."""
    held: int | None = None
    """First asked for before a step ran."""


NEVER = Said()


def said(*steps, rules=None, declared=(), **options):
    """Tell a story to a guard with these rules, by default all, and read what it said first."""
    policy = Policy(**options) if rules is None else Policy(rules=rules, **options)
    guard = LoopGuard(policy)
    for name, metadata in dict(declared).items():
        guard.declare(name, metadata)
    found: dict[str, int] = {}
    number = 0
    for step in steps:
        if step is HUMAN:
            guard.start_turn()
            continue
        number += 1
        before, after = run(guard, step)
        if before.action >= Action.ASK:
            found.setdefault("held", number)
        if after.action is not Action.ALLOW:
            found.setdefault(after.action.name.lower(), number)
    return Said(**found)


class Probe(RuleConfig):
    """A rule that only notes what each step brought."""

    reads_evidence: ClassVar[bool] = True
    seen: ClassVar[list[Any]] = []

    rule: Literal["probe"] = "probe"

    def build(self) -> Rule:
        """Make the rule; what is seen is forgotten."""
        self.seen.clear()
        return _Probe()


class _Probe(Rule):
    def check(self, step):
        return None

    def record(self, step, evidence):
        Probe.seen.append(evidence)

    def start_turn(self):
        pass

    def approve(self, loop):
        pass

    def to_state(self):
        return None

    def load_state(self, state):
        pass


def brought(*steps, **options):
    """Tell a story and give the evidence of every step."""
    said(*steps, rules=(Probe(),), **options)
    return list(Probe.seen)
