"""How do tests tell a rule a story and read its verdicts?

A story is a list of steps: a call, a list of calls made in one message, or `HUMAN`. A verdict is a
line such as `2? warn 3/3`: the step's place from 0, `?` before it ran or `!` after its results,
the action, the count and the number that it was held against.

The rules are fed here as the guard feeds them, one decision of all rules at a time.
"""

import itertools
import json
from typing import Any, NamedTuple

from xxhash import xxh3_64_intdigest

from langchain_loopguard.core.calls import call_arguments, call_name
from langchain_loopguard.core.canonical import canonical_arguments
from langchain_loopguard.core.step import Call, Step

HUMAN = "a user message"
UNKNOWN = object()
"""A result that never came."""


class Result(NamedTuple):
    """What the rules read of a result."""

    text: bytes
    failed: bool

    @property
    def digest(self):
        return xxh3_64_intdigest(self.text)


def call(name="bash", /, *, say="ok", fails=False, **args):
    """Tell of one call and its result."""
    return {"name": name, "args": args, "say": say, "fails": fails}


def new(**call_args: Any):
    """Tell of 999 calls of which none was seen before, and neither were their results."""
    return [call(**call_args, n=n, say=f"said {n} for the first time") for n in range(999)]


def between(steps, others):
    """Put one of the others after each of the steps."""
    return list(itertools.chain.from_iterable(zip(steps, others, strict=False)))


class Play:
    """Rules in a conversation."""

    def __init__(self, rules, state=None):
        self.rules = [rule.build() for rule in rules]
        self.number = 0
        if state is not None:
            self.number, states = state
            for rule, written in zip(self.rules, states, strict=True):
                rule.load_state(written)

    def state(self):
        return json.loads(json.dumps([self.number, [rule.to_state() for rule in self.rules]]))

    def check(self, step):
        """Give the step and the findings before it runs."""
        self.number += 1
        calls = step if isinstance(step, list) else [step]
        made = Step(
            self.number,
            tuple(
                Call(
                    None,
                    call_name(one),
                    call_arguments(one),
                    canonical_arguments(call_arguments(one)),
                    0,
                    None,
                )
                for one in calls
            ),
        )
        return made, [found for rule in self.rules if (found := rule.check(made))]

    def record(self, made, step):
        """Give the findings after the results."""
        calls = step if isinstance(step, list) else [step]
        made.results = tuple(
            None if one["say"] is UNKNOWN else Result(one["say"].encode(), one["fails"])
            for one in calls
        )
        return [found for rule in self.rules if (found := rule.record(made, None))]

    def run(self, step):
        """Play one step: the findings before it ran, and those after its results."""
        made, before = self.check(step)
        return before, self.record(made, step)

    def approve(self, findings):
        for found in findings:
            for rule in self.rules:
                if found.rule == rule.config.rule:
                    rule.approve(found.loop)

    def start_turn(self):
        for rule in self.rules:
            rule.start_turn()


def findings(rules, steps, *, reload=False):
    """Play a story: place, `?` or `!`, and each finding; `reload` stores and loads the state."""
    play = Play(rules)
    place = 0
    for step in steps:
        if reload:
            play = Play(rules, play.state())
        if step is HUMAN:
            play.start_turn()
        elif step != []:
            for when, found in zip("?!", play.run(step), strict=True):
                yield from ((place, when, one) for one in found)
            place += 1


def verdicts(rules, steps, *, reload=False):
    """Play a story and write every finding."""
    return [
        f"{place}{when} {one.action.name.lower()} {one.count}/{one.threshold}"
        for place, when, one in findings(rules, steps, reload=reload)
    ]
