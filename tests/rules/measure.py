"""Which figures does each number of the default rules give, and which would its neighbours?

`python -m tests.rules.measure` prints them for every number, `… same_answer.ask nothing_new` for
some; with `--shapes`, which takes long, also how many shapes of `tests.rules.shapes` it gets
wrong. A number in a rule's file has what was measured here in its docstring.
"""

# ruff: noqa: T201 - prints its findings.

from __future__ import annotations

import sys

from pydantic import ValidationError

from langchain_loopguard.core.policy import LoopGuardPolicy
from tests.conversations import load, read_through
from tests.rules.figures import measure
from tests.rules.shapes import SEEDS, SHAPES, judge

_STEPS = (-5, -3, -2, -1, 0, 1, 2, 3, 5, 10)
"""How far from its value a number is tried."""

_COLUMNS = "value  loops  distance  benign  solved  warned  cases wrong  incident  shapes wrong"


def numbers(policy):
    """`(rule, field, value)` of every number of the policy's rules."""
    for rule in policy.rules:
        for field, value in rule:
            if type(value) is int:
                yield rule, field, value


def with_number(policy, rule, field, value):
    """The policy with another value for one number, `None` if that is not allowed."""
    try:
        other = type(rule)(**{**dict(rule), field: value})
    except ValidationError:
        return None
    rules = tuple(other if one.rule == rule.rule else one for one in policy.rules)
    return policy.model_copy(update={"rules": rules})


def wrong_shapes(policy):
    """`benign+loops` that the policy gets wrong."""
    wrong = [shape.loop for shape in SHAPES.values() if judge(shape, SEEDS[0], policy)]
    return f"{wrong.count(False)}+{wrong.count(True)}"


def row(value, found, shapes, *, mark=" "):
    """One line of the table: what the figures are with this value."""
    return (
        f"{value:4}{mark}  {found.loops - len(found.missed_loops):2}/{found.loops}  "
        f"{found.distance:8.2f}  {len(found.asked_benign):3}/{found.benign}  "
        f"{len(found.asked_solved):6}  {len(found.warned_solved):6}  {len(found.wrong_cases):11}  "
        f"{found.incident_warn:5}/{found.incident_ask}  {shapes:>12}"
    )


_NEVER = 10**6


def longest(rule, field):
    """How far good runs of the corpus go: the rule alone asks about one at this number.

    Gives it for solved and for labelled benign runs; labelled loops are left out.
    """
    found = []
    for good in (lambda run: run["outcome"] == "success", lambda run: run.get("label") == "benign"):
        runs = [run for run in load("corpus") if good(run) and run.get("label") != "loop"]
        value = 0
        while runs and value < getattr(rule, field):
            policy = _alone(rule, field, value + 1)
            if policy is not None:
                runs = [run for run in runs if read_through(run["events"], policy).ask]
            value += bool(runs)
        found.append(value)
    return found


def _alone(rule, field, value):
    """The rule with all its other limits out of the way, `None` if the value is not allowed."""
    others = {name: _NEVER for name, _ in rule if name.startswith("ask")}
    if field != "ask":  # No other limit may be, or is taken to be, lower than `ask`.
        others["ask"] = value
    if hasattr(rule, "warn"):
        others["warn"] = min(rule.warn, max(value, 2))
    try:
        other = type(rule)(**{**dict(rule), **others, field: value})
    except ValidationError:
        return None
    return LoopGuardPolicy(rules=(other,), probation=False, stagnation=None)


def main(names, *, shapes=False):
    """Print the table of every number, or of those whose names begin with one of the names."""
    policy = LoopGuardPolicy()
    for rule, field, value in numbers(policy):
        name = f"{rule.rule}.{field}"
        if names and not name.startswith(names):
            continue
        print(f"\n{name}")
        if field.startswith("ask") and field != "ask_poller":  # No run declares a poller.
            solved, benign = longest(rule, field)
            print(f"in good runs up to {solved} (solved) and {benign} (benign)")
        print(_COLUMNS)
        for step in _STEPS:
            other = with_number(policy, rule, field, value + step)
            if other is not None:
                wrong = wrong_shapes(other) if shapes else ""
                mark = " " if step else "*"
                print(row(value + step, measure(other), wrong, mark=mark), flush=True)


if __name__ == "__main__":
    wanted = sys.argv[1:]
    main(tuple(name for name in wanted if name[0] != "-"), shapes="--shapes" in wanted)
