"""Does a guard that is stored and read again between all events say what one that lives on says?"""

from __future__ import annotations

import json

import pytest

from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from tests.conversations import load, policy_for

EACH = {"cases": 1, "policy": 1, "reports": 1, "corpus": 4}
"""One of how many conversations of each file is told."""


def verdicts(events, policy, *, stored):
    """What is found in each batch before it runs and by its answers."""
    guard, found = LoopGuard(policy), []

    def again():
        return LoopGuard.from_state(policy, json.loads(json.dumps(guard.to_state())))

    for event in events:
        guard = again() if stored else guard
        if event["type"] == "human":
            guard.human_message()
        elif event["type"] == "batch" and event["calls"]:
            checked = guard.check(event["calls"])
            record = checked.record
            if stored:
                guard = again()
                record = guard.record_for(event["calls"])
            revealed = guard.record_results(record, event.get("results") or ())
            found += [[one.as_dict() for one in said.findings] for said in (checked, revealed)]
    return found


@pytest.mark.parametrize("name", EACH)
def test_a_guard_that_is_stored_between_all_events_says_the_same(name):
    different = []
    for told in load(name)[:: EACH[name]]:
        policy = LoopGuardPolicy() if name == "corpus" else policy_for(told)
        lived, stored = (verdicts(told["events"], policy, stored=one) for one in (False, True))
        if lived != stored:
            different.append(told["id"])
    assert different == []
