"""Does the ledger count what a person may want to know?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.ledger import LedgerReading
from langchain_loopguard.core.policy import LoopGuardPolicy
from tests.core.plays import HUMAN, UNKNOWN, call, run

A, B = call(cmd="a", say="x"), call(cmd="b", say="x")


def read(*steps, reload=False):
    policy = LoopGuardPolicy(rules=())
    guard = LoopGuard(policy)
    for step in steps:
        if reload:
            guard = LoopGuard.from_state(policy, json.loads(json.dumps(guard.to_state())))
        if step is HUMAN:
            guard.human_message()
        else:
            run(guard, step)
    return guard.ledger()


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([], LedgerReading(), id="nothing"),
        pytest.param([A, B], LedgerReading(2), id="two different batches"),
        pytest.param([A, A], LedgerReading(2, 1), id="the same again"),
        pytest.param([A, B, A, B, A], LedgerReading(5, 3), id="a cycle"),
        pytest.param([A, HUMAN, A], LedgerReading(2, 1), id="over a user turn"),
        pytest.param([A, {**A, "say": "y"}], LedgerReading(2), id="another answer"),
        pytest.param([[A, B], [B, A]], LedgerReading(2, 1), id="in another order"),
        pytest.param(
            [[A, {**B, "say": "y"}], [{**A, "say": "y"}, B]], LedgerReading(2), id="answers swapped"
        ),
        pytest.param([{**A, "say": UNKNOWN}], LedgerReading(1, 0, 1), id="an unknown answer"),
        pytest.param([[A, {**B, "say": UNKNOWN}]] * 2, LedgerReading(2, 0, 2), id="one of two"),
        pytest.param(
            [call(say=n) for n in range(5)], LedgerReading(5, 0, 0, 3), id="ever new answers"
        ),
        pytest.param([call(say=n) for n in (1, 2, 2)], LedgerReading(3, 1), id="1 2 2"),
        pytest.param([call(say=n) for n in (1, 1, 2)], LedgerReading(3, 1, 0, 1), id="1 1 2"),
        pytest.param(
            [call(say=1), call(say=UNKNOWN), call(say=2), call(say=3)],
            LedgerReading(4, 0, 1, 1),
            id="after an unknown answer nothing has changed",
        ),
        pytest.param(
            [call(say=1), call(say=2), B, call(say=3)], LedgerReading(4), id="not in a row"
        ),
        pytest.param([[]], LedgerReading(), id="an empty batch"),
    ],
)
def test_what_is_counted(steps, expected):
    assert read(*steps) == expected
    assert read(*steps, reload=True) == expected


@pytest.mark.parametrize(("distance", "seen"), [(40, 1), (80, 1), (81, 1), (82, 0)])
def test_results_at_a_distance_of_40_to_81_batches_are_known(distance, seen):
    between = [call(cmd=f"other {n}", say="x") for n in range(distance - 1)]
    assert read(A, *between, A).identical_result_repeats == seen


def test_a_known_result_is_remembered_anew():
    between = [call(cmd=f"other {n}", say="x") for n in range(100)]
    steps = [A, *between[:50], A, *between[50:], A]
    assert read(*steps).identical_result_repeats == 2


def test_a_refused_batch_is_not_in_the_ledger():
    guard = LoopGuard()
    guard.refuse(guard.check([{"name": "bash", "args": {}, "id": "1"}]))
    assert guard.ledger() == LedgerReading()


def test_the_state_is_at_most_800_bytes():
    guard = LoopGuard(LoopGuardPolicy(rules=()))
    largest = 0
    for n in range(1000):
        run(guard, call(cmd=n, say=n))
        largest = max(largest, len(json.dumps(guard.to_state()["ledger"])))
    assert largest <= 800


@given(st.lists(st.sampled_from([A, B, {**A, "say": "y"}, {**A, "say": UNKNOWN}, HUMAN])))
def test_a_stored_ledger_says_the_same(steps):
    assert read(*steps) == read(*steps, reload=True)
