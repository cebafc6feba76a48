"""Does a loop that was flagged stay flagged over a user turn?"""

import json

import pytest

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.rules import SameAnswer
from tests.core.plays import HUMAN, UNKNOWN, call, run

POLICY = LoopGuardPolicy(rules=(SameAnswer(),))
READ = call("read_file", path="a", say="text")


def asked(steps, policy=POLICY, *, approve_at=None):
    """Give `(batch, rule)` of every ask; batches are counted from 1."""
    found = []
    for reload in (False, True):
        guard, number = LoopGuard(policy), 0
        found.append([])
        for step in steps:
            if reload:
                guard = LoopGuard.from_state(policy, json.loads(json.dumps(guard.to_state())))
            if step is HUMAN:
                guard.human_message()
                continue
            number += 1
            for _, decision in run(guard, step):
                found[-1] += [(number, f.rule) for f in decision.findings if f.action >= Action.ASK]
                if decision.action >= Action.ASK and number == approve_at:
                    guard.approve(decision)
    assert found[0] == found[1]
    return found[0]


LOOP = [READ] * 5
FLAGGED = (5, "same_answer")


def test_after_a_user_turn_the_first_call_runs_and_its_first_repeat_is_flagged():
    assert asked([*LOOP, HUMAN, READ]) == [FLAGGED]
    assert asked([*LOOP, HUMAN, READ, READ]) == [FLAGGED, (7, "probation")]


def test_what_was_flagged_again_is_held_from_then_on():
    guard = LoopGuard(POLICY)
    for step in LOOP:
        run(guard, step)
    guard.human_message()
    run(guard, READ)
    run(guard, READ)
    (_, held), _ = run(guard, READ)
    assert (held.action, [f.rule for f in held.findings]) == (Action.ASK, ["probation"])


def test_a_loop_that_was_only_warned_of_is_on_no_probation():
    assert asked([*[READ] * 4, HUMAN, READ, READ]) == []


def test_other_calls_between_make_no_difference():
    others = [call("edit", text=word, say="ok") for word in "xyz"]
    assert asked([*LOOP, HUMAN, *others, READ, *others, READ])[1:] == [(13, "probation")]


def test_a_changed_answer_acquits():
    changed = {**READ, "say": "other"}
    assert asked([*LOOP, HUMAN, READ, changed, changed, changed]) == [FLAGGED]
    assert asked([*LOOP, HUMAN, READ, READ, changed, READ, READ])[2:] == [(8, "probation")]


def test_an_unknown_answer_neither_acquits_nor_flags():
    unknown = {**READ, "say": UNKNOWN}
    steps = [*LOOP, HUMAN, READ, unknown, unknown]
    assert asked(steps) == [FLAGGED]
    assert asked([*steps, READ])[1:] == [(9, "probation")]


def test_probation_lasts_until_a_turn_without_the_call():
    assert asked([*LOOP, HUMAN, HUMAN, READ, READ])[1:] == [(7, "probation")]
    other = call("edit", text="x", say="ok")
    assert asked([*LOOP, HUMAN, READ, HUMAN, READ, READ]) == [FLAGGED]
    assert asked([*LOOP, HUMAN, other, HUMAN, READ, READ])[1:] == [(8, "probation")]


def test_what_was_flagged_on_probation_is_on_probation_again():
    steps = [*LOOP, HUMAN, READ, READ, HUMAN, READ, READ]
    assert asked(steps)[1:] == [(7, "probation"), (9, "probation")]


def test_the_calls_of_a_flagged_batch_are_watched_each():
    other = call("search", q="b", say="none")
    steps = [*[[READ, other]] * 5, HUMAN, other, READ, other]
    assert asked(steps)[1:] == [(8, "probation")]


def test_only_the_last_turns_flagged_calls_are_watched_once_something_is_flagged_again():
    other = call("search", q="b", say="none")
    steps = [*LOOP, HUMAN, *[other] * 5, HUMAN, READ, READ]
    assert asked(steps) == [FLAGGED, (10, "same_answer")]


def test_sixteen_calls_are_watched_the_latest():
    calls = [call("search", q=f"q{n}", say="none") for n in range(17)]
    for place, flagged in ((0, False), (1, True), (16, True)):
        steps = [*[calls] * 5, HUMAN, calls[place], calls[place]]
        assert bool(asked(steps)[1:]) is flagged


def test_an_approval_ends_the_probation():
    assert asked([*LOOP, HUMAN, READ, READ], approve_at=5) == [FLAGGED]
    steps = [*LOOP, HUMAN, READ, READ, READ, READ]
    assert asked(steps, approve_at=7) == [FLAGGED, (7, "probation")]


def test_a_policy_may_go_without():
    policy = LoopGuardPolicy(rules=(SameAnswer(),), probation=False)
    assert asked([*LOOP, HUMAN, READ, READ], policy) == [FLAGGED]


def test_asking_the_same_in_nine_turns_is_no_loop():
    assert asked([READ, HUMAN] * 9, LoopGuardPolicy()) == []


def test_a_finding_names_the_tool_and_the_batch():
    guard = LoopGuard(POLICY)
    for step in LOOP:
        run(guard, step)
    guard.human_message()
    run(guard, READ)
    _, (_, decision) = run(guard, [call("edit", say="ok"), READ])
    (found,) = decision.findings
    assert (found.rule, found.tools, found.count, found.threshold, found.since) == (
        "probation",
        ("read_file",),
        2,
        2,
        7,
    )


@pytest.mark.parametrize("calls", [1, 2])
def test_refused_repeats_end_the_run(calls):
    guard = LoopGuard(POLICY)
    for step in LOOP:
        run(guard, step)
    guard.human_message()
    run(guard, READ)
    run(guard, READ)
    actions = []
    for _ in range(4):
        step = [{"name": "read_file", "args": READ["args"], "id": "1"}] * calls
        decision = guard.check(step)
        guard.refuse(decision)
        actions.append(decision.action)
    assert actions == [Action.ASK, Action.ASK, Action.ASK, Action.STOP]
