"""Is the seed's detector, run as a rule, the seed's detector?

What the detector itself does is told in `tests.core.test_detector`.
"""

import pytest
from pydantic import ValidationError

from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.rules import RepeatedBatch
from tests.core.plays import HUMAN, UNKNOWN, call
from tests.rules.told import APPROVE, NEVER, Told, findings, only, told, words

SEED = LoopGuardPolicy.seed()
BASH = call(command="make", say="no")
READ = call("read_file", path="a", say="text")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([BASH] * 2, NEVER, id="two equal batches"),
        pytest.param([BASH] * 3, Told(ask=3, held=3), id="three equal batches"),
        pytest.param([READ] * 15, NEVER, id="fifteen equal looks"),
        pytest.param([READ] * 16, Told(ask=16, held=16), id="sixteen equal looks"),
        pytest.param(
            [call(say=f"said {n}") for n in range(16)],
            Told(ask=16, held=16),
            id="sixteen changed answers",
        ),
        pytest.param(
            [call("read_file", say=f"said {n}") for n in range(60)], NEVER, id="a poll that moves"
        ),
        pytest.param([BASH, READ] * 30, NEVER, id="two in turn"),
        pytest.param([BASH, BASH, HUMAN, BASH, BASH], NEVER, id="a user turn between"),
        pytest.param(
            [call(say=UNKNOWN)] * 3, Told(ask=3, held=3), id="unknown answers are no change"
        ),
        pytest.param([[BASH, READ], [READ, BASH]] * 2, Told(ask=3, held=3), id="in either order"),
    ],
)
def test_the_seed_asks_the_moment_its_detector_finds_a_loop(steps, expected):
    assert told(SEED, steps) == expected


def test_the_seed_has_no_other_rule():
    assert LoopGuardPolicy(rules=(RepeatedBatch(),), probation=False, stagnation=None) == SEED


def test_after_an_approval_the_count_starts_anew():
    asked = [n for n, _, _ in findings(SEED, [*[BASH] * 3, APPROVE, *[BASH] * 3])]
    assert asked == [3, 6]


def test_a_finding_says_which_tools_how_often_and_since_when():
    batch = [BASH, call("edit", say="ok"), BASH]
    ((_, when, found),) = findings(SEED, [READ, *[batch] * 3])
    assert (when, found.tools, found.count, found.threshold, found.since) == (
        "?",
        ("bash", "edit"),
        3,
        2,
        2,
    )


def test_a_batch_of_many_calls_is_kept_as_a_hash_and_found_all_the_same():
    batch = [call(f"tool_{word}", say="no") for word in words(40)]
    assert told(SEED, [batch, batch[::-1], batch]) == Told(ask=3, held=3)
    assert told(SEED, [batch, batch[1:], batch]) == NEVER


def test_a_name_of_any_length_and_letters_is_found():
    batch = [call("n" * 1000 + "\ud800", say="no")]
    assert told(SEED, [batch] * 3) == Told(ask=3, held=3)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"max_strikes": 0}, Told(ask=1, held=1)),
        ({"max_strikes": 4}, Told(ask=5, held=5)),
        ({"observation_tools": ("bash",)}, Told(ask=16, held=16)),
        ({"observation_tools": ("bash",), "max_observation_steps": 3}, Told(ask=4, held=4)),
        ({"observation_tools": ("bash",), "max_observation_steps": None}, Told(ask=3, held=3)),
    ],
)
def test_the_numbers_are_the_detectors(numbers, expected):
    assert told(only(RepeatedBatch(**numbers)), [BASH] * 20) == expected


@pytest.mark.parametrize("field", ["max_strikes", "max_observation_steps"])
def test_a_number_below_nought_is_refused(field):
    with pytest.raises(ValidationError, match=field):
        RepeatedBatch(**{field: -1})
