"""Can one number be changed without writing the whole policy?"""

from __future__ import annotations

import pytest

from langchain_loopguard import LoopGuardPolicy


def numbers(policy: LoopGuardPolicy) -> dict[str, int]:
    return {rule.rule: rule.ask for rule in policy.rules}


def test_one_number_is_changed_and_the_others_are_kept() -> None:
    tuned = LoopGuardPolicy(poll_tools=("wait_for",)).tune(same_answer={"ask": 7})
    assert numbers(tuned) == {**numbers(LoopGuardPolicy()), "same_answer": 7}
    assert tuned.poll_tools == ("wait_for",)


def test_a_rule_is_switched_off_by_none() -> None:
    assert "same_numbers" not in numbers(LoopGuardPolicy().tune(same_numbers=None))


def test_the_policy_itself_is_not_changed() -> None:
    policy = LoopGuardPolicy()
    policy.tune(same_answer={"ask": 7})
    assert policy == LoopGuardPolicy()


def test_an_unknown_rule_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"has no .*same_anwser.*same_answer"):
        LoopGuardPolicy().tune(same_anwser={"ask": 7})


def test_a_number_out_of_range_is_named() -> None:
    with pytest.raises(ValueError, match=r"same_answer\.ask"):
        LoopGuardPolicy().tune(same_answer={"ask": 0})


def test_a_preset_takes_the_other_options() -> None:
    assert LoopGuardPolicy.seed(probation=True).probation
