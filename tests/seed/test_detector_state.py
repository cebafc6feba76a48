"""Does a stored detector go on, and does it do what its rules say in any run?"""

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_loopguard.core.errors import LoopDetectedError
from langchain_loopguard.seed.detector import LoopDetector
from tests.seed.test_detector import CHANGING, NOTHING, batch, refuse


def test_a_detector_without_a_run_has_an_empty_state():
    assert LoopDetector().to_state() == {}


@pytest.mark.parametrize("answers", [None, 0, 7, 2**64 - 1, -1])
def test_a_detector_goes_on_where_another_stopped(answers):
    one, other = LoopDetector(), LoopDetector()
    one.record_results(one.check(CHANGING), answers)
    other.load_state(json.loads(json.dumps(one.to_state())))
    assert other.to_state() == one.to_state()
    outcomes = [
        detector.record_results(detector.check(CHANGING), answers) for detector in (one, other)
    ]
    assert outcomes[0] is outcomes[1]


def test_an_empty_state_means_no_run():
    detector = LoopDetector()
    detector.check(CHANGING)
    detector.load_state({})
    assert detector.to_state() == {}


GOOD = {"signature": "t:0", "count": 1, "total": 1, "last_answers": None}


@pytest.mark.parametrize(
    "state",
    [
        *({key: GOOD[key] for key in GOOD if key != missing} for missing in GOOD),
        {**GOOD, "signature": 5},
        {**GOOD, "count": "1"},
        {**GOOD, "total": -1},
        {**GOOD, "last_answers": "no number"},
        {**GOOD, "last_answers": 5},
        ["t:0"],
        "t:0",
        5,
    ],
)
def test_a_state_of_another_form_is_refused_and_changes_nothing(state):
    detector = LoopDetector()
    detector.check(CHANGING)
    before = detector.to_state()
    with pytest.raises(ValueError, match="not a state that `to_state` gave"):
        detector.load_state(state)
    assert detector.to_state() == before


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301
def test_a_copy_goes_on_by_itself(again):
    detector = LoopDetector()
    detector.check(CHANGING)
    refuse(again(detector))
    assert detector.to_state()["count"] == 1


def test_the_state_stays_small():
    detector = LoopDetector()
    for number in range(10_000):
        detector.record_results(detector.check(batch("t", n=number)), number)
    assert len(json.dumps(detector.to_state())) < 200


# --- Against a second telling of the rules ----------------------------------------------------


class Told:
    """The rules as they are told in words, without any thought of speed."""

    def __init__(self, strikes, steps):
        self.strikes, self.steps, self.run = strikes, steps, None

    def check(self, name):
        reading = name in {"read_file", "click"}
        allowance = self.strikes if self.steps is None else self.steps
        threshold = allowance if reading else self.strikes
        exempt = reading and self.steps is not None and name != "click"
        if self.run is None or self.run["name"] != name:
            self.run = {"name": name, "count": 0, "total": 0, "last": None}
        self.run["count"] += 1
        self.run["total"] += 1
        return self.run["count"] > threshold or (
            not exempt and self.run["total"] > max(allowance, self.strikes)
        )

    def record(self, name, answer):
        if self.run is None or self.run["name"] != name:
            return
        if None not in (self.run["last"], answer) and self.run["last"] != answer:
            self.run["count"] = 1
        self.run["last"] = answer


steps_of_a_run = st.lists(
    st.tuples(
        st.sampled_from(["bash", "read_file", "click"]),
        st.sampled_from([NOTHING, None, 1, 2]),
        st.integers(0, 9),
    ),
    max_size=60,
)


@given(st.integers(0, 4), st.none() | st.integers(0, 6), steps_of_a_run)
def test_the_detector_does_what_the_rules_say(strikes, steps, run):
    detector = LoopDetector(max_strikes=strikes, max_observation_steps=steps)
    told = Told(strikes, steps)
    for name, answer, chance in run:
        try:
            record, loop = detector.check(batch(name)), False
        except LoopDetectedError:
            record, loop = None, True
        assert loop == told.check(name)
        if record is not None and answer is not NOTHING:
            detector.record_results(record, answer)
            told.record(name, answer)
        if chance == 0:
            detector.break_run()
            told.run = None
