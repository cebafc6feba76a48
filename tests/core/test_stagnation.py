"""Is the same prose found when it comes too often?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.stagnation import Stagnation, StagnationDetector


def counts(texts, **numbers):
    detector = StagnationDetector(Stagnation(**numbers))
    return [detector.check(text) for text in texts]


def turns(n):
    return [f"turn {k}" for k in range(n)]


def test_the_same_prose_is_found_at_the_6th_time():
    assert counts(["Shall I?"] * 7) == [0, 0, 0, 0, 0, 6, 7]


def test_other_prose_between_does_not_matter():
    assert counts(["Shall I?", "Yes?"] * 6)[-2:] == [6, 6]


def test_six_times_in_twenty_turns_are_found_and_in_twenty_one_are_not():
    said = ["Shall I?"] * 5
    assert counts([*said, *turns(14), "Shall I?"])[-1] == 6
    assert counts([*said, *turns(15), "Shall I?"])[-1] == 0


@pytest.mark.parametrize("blank", ["", " ", "\n\t\n", None, 5, ["Shall I?"]])
def test_blank_text_and_what_is_no_text_is_no_prose(blank):
    assert counts([blank] * 40) == [0] * 40
    assert counts(["a", blank] * 6)[-2] == 6  # and takes no place in the window


def test_space_around_the_text_does_not_matter():
    assert counts(["a", " a", "a\n", "\ta", "a ", "a"])[-1] == 6


def test_text_that_utf_8_does_not_have_is_prose():
    assert counts(["\ud800"] * 6)[-1] == 6


def test_a_user_turn_forgets_what_was_said():
    guard = LoopGuard()
    for _ in range(5):
        guard.prose("Shall I?")
    guard.human_message()
    assert {guard.prose("Shall I?").action for _ in range(5)} == {Action.ALLOW}


def test_the_guard_asks_and_there_is_nothing_to_hold_back():
    guard = LoopGuard()
    guard.check([{"name": "bash", "args": {}, "id": "1"}])
    *before, asked = [guard.prose("Shall I?") for _ in range(6)]
    assert {decision.action for decision in before} == {Action.ALLOW}
    (found,) = asked.findings
    assert (found.rule, found.action, found.tools, found.count, found.threshold) == (
        "stagnation",
        Action.ASK,
        (),
        6,
        5,
    )
    assert asked.record.used
    assert asked.record.signature == ""


def test_prose_before_any_call_began_with_the_first_batch():
    guard = LoopGuard()
    decision = [guard.prose("Shall I?") for _ in range(6)][-1]
    assert decision.findings[0].since == 1


def test_after_an_approval_the_count_starts_anew():
    guard = LoopGuard()
    asked = [guard.prose("Shall I?") for _ in range(6)][-1]
    guard.approve(asked)
    actions = [guard.prose("Shall I?").action for _ in range(6)]
    assert actions == [Action.ALLOW] * 5 + [Action.ASK]


def test_a_policy_without_it_looks_at_no_prose():
    guard = LoopGuard(LoopGuardPolicy(stagnation=None))
    assert {guard.prose("Shall I?").action for _ in range(40)} == {Action.ALLOW}
    assert guard.to_state()["stagnation"] is None


def test_tool_calls_between_do_not_matter():
    guard = LoopGuard()
    for n in range(5):
        guard.prose("Shall I?")
        guard.check([{"name": "read_file", "args": {"n": n}, "id": "1"}])
    assert guard.prose("Shall I?").action is Action.ASK


@given(st.lists(st.sampled_from(["a", "b", "c", " "]), max_size=60))
def test_a_stored_detector_says_the_same(texts):
    straight, stored = StagnationDetector(), StagnationDetector()
    for text in texts:
        state = json.loads(json.dumps(stored.to_state()))
        stored = StagnationDetector()
        stored.load_state(state)
        assert stored.check(text) == straight.check(text)


def test_a_state_of_a_wider_window_is_cut():
    wide = StagnationDetector(Stagnation(window=200))
    for turn in turns(200):
        wide.check(turn)
    narrow = StagnationDetector()
    narrow.load_state(wide.to_state())
    assert len(narrow.to_state()) == 20


@pytest.mark.parametrize(
    ("numbers", "named"),
    [
        ({"max_repeats": 0}, "max_repeats"),
        ({"window": 1}, "window"),
        ({"window": 201}, "window"),
        ({"max_repeats": 20}, "max_repeats must be below window"),
        ({"repeats": 3}, "repeats"),
    ],
)
def test_bad_numbers_are_named(numbers, named):
    with pytest.raises(ValidationError, match=named):
        Stagnation(**numbers)
