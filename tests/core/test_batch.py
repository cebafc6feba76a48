"""What does a batch amount to, before and after it ran?"""

import copy
import pickle

import pytest

from langchain_loopguard.core.answers import match_results
from langchain_loopguard.core.batch import Outcome
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.signature import batch_signature

A, B = ({"name": "bash", "args": {"command": word}, "id": word} for word in "ab")


def batch_of(*calls):
    return LoopGuard().check(calls).record


def answers(*calls, **said):
    batch = batch_of(*calls)
    results = [{"tool_call_id": word, "content": content} for word, content in said.items()]
    return Outcome(batch, match_results(batch.ids, results)).digest


def test_a_batch_has_the_signature_of_its_calls():
    assert batch_of(A).signature == batch_signature([A])
    assert batch_of(B, A).signature == batch_signature([A, B])
    assert batch_of().signature == ""


def test_signatures_are_worked_out_once():
    batch = batch_of(A, B)
    assert batch.signatures is batch.signatures
    assert batch.signature is batch.signature


def test_a_batch_that_was_answered_lets_go_of_its_arguments_and_keeps_its_signature():
    guard = LoopGuard()
    record = guard.check([A, B]).record
    guard.record_results(record, [{"tool_call_id": "a", "content": "x"}])
    assert list(record.canonical) == []
    assert record.signature == batch_signature([A, B])


def test_the_digest_of_a_batch_does_not_depend_on_the_order_of_its_calls():
    assert batch_of(A, B).digest == batch_of(B, A).digest


@pytest.mark.parametrize(
    "other", [[A], [A, A, B], [A, {**B, "name": "sh"}], [A, {**B, "args": {"command": "c"}}]]
)
def test_batches_that_differ_have_another_digest(other):
    assert batch_of(A, B).digest != batch_of(*other).digest


def test_ids_do_not_matter():
    assert batch_of(A).digest == batch_of({**A, "id": "other"}).digest


def test_a_batch_shows_its_signature():
    assert repr(batch_of(A)) == f"Batch({batch_signature([A])!r}, used=False)"


def test_answers_are_equal_in_whatever_order_the_calls_come():
    assert answers(A, B, a="x", b="y") == answers(B, A, b="y", a="x")


def test_swapped_answers_differ():
    assert answers(A, B, a="x", b="y") != answers(A, B, a="y", b="x")


def test_with_an_answer_missing_there_is_no_digest():
    assert answers(A, B, a="x") is None
    assert answers(A, B, b="x") is None
    assert answers() == 0


def pickled(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - its own


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_decision_and_its_record_can_be_copied(copied, count):
    calls = [{"name": "job", "args": {"n": n}, "id": f"c{n}"} for n in range(count)]
    guard = LoopGuard(LoopGuardPolicy.seed())
    decision = guard.check(calls)
    copy_of_it = copied(decision)
    assert copy_of_it.action is decision.action
    assert copy_of_it.record.signature == decision.record.signature
    assert guard.record_results(copy_of_it.record, []).findings == ()
