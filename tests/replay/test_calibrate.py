"""Are the proposed thresholds no tighter than the runs can vouch for?"""

from __future__ import annotations

import itertools
import math
import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.core.rules import Repeat, Stall
from langchain_loopguard.replay import Conversation, replay
from langchain_loopguard.replay.calibrate import (
    FACTORS,
    CalibrationError,
    Calibrator,
    Grid,
    Measure,
    kind_of,
    measure,
    runs_needed,
    upper_bound,
)
from tests.conversations import load
from tests.replay.made_runs import batch, good, mixture, patient, repeating, run

GRID = Grid(LoopGuardPolicy())
DEFAULT = tuple(FACTORS.index(1.0) for _ in GRID.places)
LAST = len(FACTORS) - 1


def calibrated(runs, *, labels=None, allowed=0.05, grid=GRID):
    calibrator = Calibrator(grid, allowed=allowed)
    for one in runs:
        calibrator.add(measure(one, grid, labels))
    return calibrator.result()


# --- The bound ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "asked", "needed"),
    [(0.01, 0, 299), (0.05, 0, 59), (0.001, 0, 2995), (0.01, 1, 473), (0.05, 1, 93), (0.1, 2, 61)],
)
def test_the_runs_that_are_needed_are_the_tables(share, asked, needed):
    assert runs_needed(share, asked) == needed


@given(
    share=st.floats(0.005, 0.5), asked=st.integers(0, 20), confidence=st.sampled_from([0.9, 0.99])
)
def test_one_run_less_than_needed_is_too_few(share, asked, confidence):
    needed = runs_needed(share, asked, confidence)
    assert upper_bound(asked, needed, confidence) <= share * (1 + 1e-9)
    assert upper_bound(asked, needed - 1, confidence) > share


@given(runs=st.integers(1, 2_000), part=st.floats(0, 0.99))
def test_at_the_bound_so_few_asks_have_one_chance_in_twenty(runs, part):
    asked = int(runs * part)
    assert bdtr(asked, runs, upper_bound(asked, runs)) == pytest.approx(0.05, rel=1e-6)


def test_when_every_run_is_asked_about_the_bound_is_all():
    assert upper_bound(3, 3) == 1.0


# --- The candidates -----------------------------------------------------------------------------


def test_each_rung_tightens_one_rule_by_one_step():
    rungs = GRID.ladder()
    for above, below in itertools.pairwise(rungs):
        steps = [two - one for one, two in zip(above.levels, below.levels, strict=True)]
        assert sorted(steps) == [0] * (len(steps) - 1) + [1]


def test_the_ladder_goes_from_the_loosest_to_the_tightest():
    rungs = GRID.ladder()
    assert (set(rungs[0].levels), set(rungs[-1].levels)) == ({0}, {LAST})


def test_the_policy_it_starts_from_is_a_rung():
    assert [GRID.at(rung.levels) for rung in GRID.ladder()].count(LoopGuardPolicy()) == 1


def test_a_warning_never_comes_after_the_ask():
    for level in range(LAST + 1):
        rules = GRID.at([level] * len(GRID.places)).rules
        # A model of a rule's numbers refuses those in another order.
        assert [type(rule).model_validate(rule.model_dump()) for rule in rules] == list(rules)


def test_steps_to_the_same_numbers_are_one_rung():
    grid = Grid(LoopGuardPolicy(rules=(Stall(warn=2, ask=2, ask_after_change=2),)))
    numbers = [grid.at(rung.levels).rules[0].ask for rung in grid.ladder()]
    assert numbers == [6, 4, 3, 2]


def test_the_rest_of_the_policy_stays():
    policy = LoopGuardPolicy(poll_tools=("wait",), max_refusals=1)
    assert Grid(policy).at(DEFAULT) == policy


def test_a_policy_without_numbers_to_tune_is_refused():
    with pytest.raises(CalibrationError, match="no rule that can be tuned"):
        Grid(LoopGuardPolicy.seed())


# --- One run ------------------------------------------------------------------------------------


@cache
def odd_runs():
    cases = [one for one in load("cases") if len(one["events"]) < 80]
    made = [run(*one["events"], name=one["id"]) for one in cases[:25]]
    return [*made, *mixture(20), *patient(3), *patient(2, times=9)]


@cache
def odd_measures():
    return [measure(one, GRID) for one in odd_runs()]


@pytest.mark.parametrize("level", [0, 2, 4, LAST])
def test_a_run_is_measured_as_the_whole_policy_would_treat_it(level):
    levels = [level] * len(GRID.places)
    policy = GRID.at(levels)
    measured = [(one.calls_saved(levels) >= 0) for one in odd_measures()]
    assert measured == [replay(one, policy).looped for one in odd_runs()]


def test_a_tighter_rung_asks_about_no_fewer_runs():
    for measured in odd_measures():
        asked = [(measured.calls_saved(rung.levels) >= 0) for rung in GRID.ladder()]
        assert asked == sorted(asked)


def test_what_is_not_tuned_asks_on_every_rung():
    policy = LoopGuardPolicy(rules=(Stall(), *LoopGuardPolicy.seed().rules))
    measured = measure(repeating(4), Grid(policy))
    assert measured.calls_saved([0]) >= 0


def test_the_calls_saved_are_those_of_the_rule_that_held_the_run_back_first():
    assert measure(repeating(9), GRID).calls_saved(DEFAULT) == replay(repeating(9)).saved


@pytest.mark.parametrize(
    ("outcome", "own", "given", "kind"),
    [
        ("success", None, None, "good"),
        ("fail", None, None, "other"),
        ("unknown", None, None, "other"),
        ("success", "loop", None, "loop"),
        ("fail", "benign", None, "good"),
        ("success", "unclear", None, "other"),
        ("success", None, "loop", "loop"),
        ("success", "loop", "benign", "good"),
    ],
)
def test_a_label_goes_before_the_outcome(outcome, own, given, kind):
    extra = {} if own is None else {"label": own}
    labels = {} if given is None else {(None, "one"): given}
    assert kind_of(run("hello", name="one", outcome=outcome, **extra), labels) == kind


def test_a_label_with_a_source_goes_before_one_without():
    labels = {("made", "one"): "loop", (None, "one"): "benign"}
    assert kind_of(run("hello", name="one"), labels) == "loop"


# --- The proposal -------------------------------------------------------------------------------


def test_with_too_few_good_runs_nothing_is_proposed():
    result = calibrated(good(58))
    assert (result.needed, result.rows, result.policy) == (59, (), None)


def test_with_enough_good_runs_the_policy_is_kept():
    assert calibrated(good(59)).policy == LoopGuardPolicy()


def test_without_labelled_loops_nothing_is_tightened():
    assert calibrated([*good(59), *patient(0), repeating(4, outcome="fail")]).policy == (
        LoopGuardPolicy()
    )


def test_a_loop_that_the_policy_misses_tightens_it():
    result = calibrated([*good(59), repeating(4, label="loop")])
    assert result.policy.rules[0] == Repeat(warn=4, ask=4, ask_across=10, patience=16)


def test_of_the_rungs_that_catch_the_loop_the_nearest_is_taken():
    result = calibrated([*good(59), repeating(4, label="loop")])
    assert result.rows[result.chosen - 1].loops < result.proposal.loops
    assert result.policy.rules[1:] == LoopGuardPolicy().rules[1:]


def test_a_loop_is_not_caught_at_the_cost_of_good_runs():
    result = calibrated([*good(59), *patient(6, times=4), repeating(4, label="loop")])
    assert (result.policy, result.proposal.loops) == (LoopGuardPolicy(), 0)


def test_a_policy_that_asks_about_good_runs_is_loosened():
    result = calibrated([*good(80), *patient(10)])
    assert result.proposal.asked == 0
    assert result.policy.rules[0].ask == 8


def test_good_runs_that_are_asked_about_are_named():
    result = calibrated([*good(80), *patient(2)])
    assert sorted(result.asked_about) == ["made patient-0", "made patient-1"]


def test_after_the_first_rung_that_fails_none_holds():
    holds = [row.holds for row in calibrated([*good(80), *patient(10)]).rows]
    assert holds == sorted(holds, reverse=True)
    assert {True, False} == set(holds)


def test_when_the_loosest_asks_too_often_nothing_is_proposed():
    result = calibrated([*good(60), *patient(20, times=20)])
    assert (bool(result.rows), result.policy) == (True, None)


def test_with_twice_the_runs_one_touchy_rule_does_not_hold_up_the_others():
    result = calibrated([*good(180), *patient(20)])
    rules = result.policy.rules
    assert (result.good, result.tested) == (200, 100)
    assert rules[0].ask == 8
    assert rules[1:] == LoopGuardPolicy().rules[1:]


def test_equal_runs_count_once():
    result = calibrated([*good(58), *good(58)])
    assert (result.good, result.doubles, result.rows) == (58, 58, ())


def test_a_run_without_calls_is_no_evidence():
    hello = [run("hello", name=f"run-{at}", outcome="success") for at in range(59)]
    assert calibrated(hello).good == 0


def test_the_order_of_the_runs_has_no_say():
    runs = [*good(140), *patient(10), repeating(4, label="loop")]
    turned = list(reversed(runs))
    assert calibrated(runs).as_dict() == calibrated(turned).as_dict()


def test_arguments_that_are_no_json_are_measured():
    made = batch(("look", "a", "x"))
    made["calls"][0]["args"] = {"\ud800": {1}}
    assert measure(run(made), GRID).calls == 1


def test_a_policy_that_asks_too_often_is_rarely_proposed():
    """Draw good runs of which 6 % are asked about from the default on, 2 % one step above it.

    5 % are allowed, so the default or a tighter rung is an error. A loop that only the tightest
    rungs catch draws the choice down as far as the bound lets it.
    """
    dice = random.Random(20)
    grid = Grid(LoopGuardPolicy(rules=(Stall(),)))
    loop = Measure("loop", "", None, b"loop", 9, ((-1,) * LAST + (3,), (-1,)))

    def drawn(at):
        chance = dice.random()
        first = 3 if chance < 0.02 else 4 if chance < 0.06 else len(FACTORS)
        saved = tuple(1 if level >= first else -1 for level in range(len(FACTORS)))
        return Measure("good", "", None, b"%d" % at, 9, (saved, (-1,)))

    errors = proposals = 0
    for _ in range(300):
        calibrator = Calibrator(grid, allowed=0.05)
        calibrator.add(loop)
        for at in range(100):
            calibrator.add(drawn(at))
        result = calibrator.result()
        proposals += result.chosen is not None
        errors += result.chosen is not None and result.proposal.rung.levels[0] >= 4
    assert errors / 300 < 0.05
    assert proposals > 150


# --- Real runs ----------------------------------------------------------------------------------


def test_the_default_holds_on_the_measured_runs():
    corpus = [one for one in load("corpus") if one["outcome"] == "success" or "label" in one]
    result = calibrated(map(Conversation.from_dict, corpus), allowed=0.01)
    assert result.policy == LoopGuardPolicy()
    assert math.isclose(result.proposal.bound, 0.0081, abs_tol=2e-4)
