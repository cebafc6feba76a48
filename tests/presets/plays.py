"""How do tests tell a guard with other systems' rules a story and read its verdicts?

A story is a list of steps: a call, a list of calls made in one message, or `HUMAN`. A verdict is a
line such as `2? warn 3/3`: the step's place from 0, `?` before it ran or `!` after its results,
the action, the count and the number that it was held against.
"""

import itertools
import json

from langchain_loopguard import LoopGuard, LoopGuardPolicy

HUMAN = "a user message"
UNKNOWN = object()
"""A result that never came."""


def call(name="bash", /, *, say="ok", fails=False, **args):
    """Tell of one call and its result."""
    return {"name": name, "args": args, "say": say, "fails": fails}


def new(**call_args):
    """Tell of 999 calls of which none was seen before, and neither were their results."""
    return [call(**call_args, n=n, say=f"said {n} for the first time") for n in range(999)]


def between(steps, others):
    """Put one of the others after each of the steps."""
    return list(itertools.chain.from_iterable(zip(steps, others, strict=False)))


def run(guard, step):
    """Play one step and give the decisions before it ran and after its results."""
    calls = step if isinstance(step, list) else [step]
    ids = [f"c{place}" for place in range(len(calls))]
    given = [{**one, "id": own} for own, one in zip(ids, calls, strict=True)]
    results = [
        {"id": own, "content": one["say"], "status": "error" if one["fails"] else "success"}
        for own, one in zip(ids, calls, strict=True)
        if one["say"] is not UNKNOWN
    ]
    decision = guard.check(given)
    return decision, guard.record_results(decision.record, results)


def guard_of(rules):
    """Make a guard of these rules and no others."""
    return LoopGuard(LoopGuardPolicy(rules=rules))


def findings(rules, steps, *, reload=False):
    """Play a story: place, `?` or `!`, and each finding; `reload` stores and loads the state."""
    guard = guard_of(rules)
    place = 0
    for step in steps:
        if reload:
            state = json.loads(json.dumps(guard.to_state()))
            guard = LoopGuard.from_state(guard.policy, state)
        if step is HUMAN:
            guard.start_turn()
            continue
        for when, decision in zip("?!", run(guard, step), strict=True):
            yield from ((place, when, one) for one in decision.findings)
        place += 1


def verdicts(rules, steps, *, reload=False):
    """Play a story and write every finding."""
    return [
        f"{place}{when} {one.action.name.lower()} {one.count}/{one.threshold}"
        for place, when, one in findings(rules, steps, reload=reload)
    ]
