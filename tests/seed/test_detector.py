"""Does the detector refuse a batch exactly when the tables say so?"""

import itertools

import pytest

from langchain_loopguard.core.errors import LoopDetectedError
from langchain_loopguard.seed.detector import BatchRecord, LoopDetector, RepeatOutcome
from langchain_loopguard.seed.observation import DEFAULT_OBSERVATION_TOOLS
from langchain_loopguard.seed.results import hash_results
from tests.core.odd import HOSTILE

NOTHING = object()  # answers that are not recorded at all


def batch(*names, **args):
    return [{"name": name, "args": args, "id": f"c{place}"} for place, name in enumerate(names)]


CHANGING, READING, COSTLY = batch("bash", command="ls"), batch("read_file"), batch("navigate")


def refused_at(detector, calls, answers, limit=100):
    """Give the number of the first batch that is refused, `None` if none is."""
    for number, answer in zip(range(1, limit + 1), answers, strict=False):
        try:
            record = detector.check(calls)
        except LoopDetectedError:
            return number
        if answer is not NOTHING:
            detector.record_results(record, answer)
    return None


def same():
    return itertools.repeat(7)


def new():
    return itertools.count()


def two():
    return itertools.cycle([1, 2])


def unknown():
    return itertools.repeat(None)


def unrecorded():
    return itertools.repeat(NOTHING)


# --- The verdict table ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("calls", "options", "answers", "expected"),
    [
        pytest.param(CHANGING, {}, same(), 3, id="changing, same"),
        pytest.param(CHANGING, {}, unrecorded(), 3, id="changing, none recorded"),
        pytest.param(CHANGING, {}, unknown(), 3, id="changing, all unknown"),
        pytest.param(CHANGING, {}, new(), 16, id="changing, always new"),
        pytest.param(CHANGING, {}, two(), 16, id="changing, two in turn"),
        pytest.param(CHANGING, {}, [1, 2, 2, 2, 2], 4, id="changing, 1 2 2 2"),
        pytest.param(CHANGING, {}, [1, None, 2, 3], 3, id="changing, 1 unknown 2"),
        *(
            pytest.param(
                CHANGING,
                {"max_observation_steps": None},
                made(),
                3,
                id=f"changing, no steps, {name}",
            )
            for name, made in {"same": same, "new": new, "unknown": unknown}.items()
        ),
        *(
            pytest.param(
                CHANGING, {"max_observation_steps": steps}, same(), 3, id=f"changing, {steps} steps"
            )
            for steps in (0, 1)
        ),
        pytest.param(READING, {}, same(), 16, id="reading, same"),
        pytest.param(READING, {}, unknown(), 16, id="reading, unknown"),
        pytest.param(READING, {}, new(), None, id="reading, always new"),
        pytest.param(READING, {}, two(), None, id="reading, two in turn"),
        pytest.param(COSTLY, {}, new(), 16, id="costly, always new"),
        pytest.param(COSTLY, {}, same(), 16, id="costly, same"),
        pytest.param(
            READING, {"max_observation_steps": None}, new(), 3, id="reading, no steps, new"
        ),
        pytest.param(
            READING, {"max_observation_steps": None}, same(), 3, id="reading, no steps, same"
        ),
        pytest.param(READING, {"max_observation_steps": 0}, new(), 1, id="reading, 0 steps"),
        pytest.param(READING, {"max_observation_steps": 1}, same(), 2, id="reading, 1 step, same"),
        pytest.param(READING, {"max_observation_steps": 1}, new(), 2, id="reading, 1 step, new"),
        pytest.param(READING, {"observation_tools": []}, same(), 3, id="reading, tier off"),
        pytest.param(READING, {"observation_tools": []}, new(), 16, id="reading, tier off, new"),
        pytest.param(CHANGING, {"observation_tools": ["BASH"]}, same(), 16, id="own pattern"),
        pytest.param(CHANGING, {"max_strikes": 0}, same(), 1, id="no strikes"),
        pytest.param(CHANGING, {"max_strikes": 20}, new(), 21, id="more strikes than steps, new"),
        pytest.param(CHANGING, {"max_strikes": 20}, same(), 21, id="more strikes than steps"),
        pytest.param(
            COSTLY,
            {"max_strikes": 20},
            new(),
            21,
            id="costly, ceiling of more strikes than steps",
        ),
        pytest.param(
            [*READING, *CHANGING], {}, same(), 3, id="a batch of both is a changing batch"
        ),
        pytest.param([*READING, *COSTLY], {}, new(), 16, id="a batch with a costly call"),
        pytest.param([], {"max_strikes": 0}, same(), None, id="empty"),
    ],
)
def test_the_batch_is_refused_at_the_occurrence_the_table_says(calls, options, answers, expected):
    assert refused_at(LoopDetector(**options), calls, answers) == expected


@pytest.mark.parametrize("answers", [same, new, unknown, unrecorded])
@pytest.mark.parametrize("cycle", ["AB" * 50, "AAB" * 40])
def test_a_cycle_is_not_caught(cycle, answers):
    detector = LoopDetector()
    for tool, answer in zip(cycle, answers(), strict=False):
        record = detector.check(batch(tool))
        if answer is not NOTHING:
            detector.record_results(record, answer)


# --- The run ----------------------------------------------------------------------------------


def refuse(detector, calls=CHANGING):
    """Check a batch until it is refused and give the error."""
    try:
        for _ in range(100):
            detector.check(calls)
    except LoopDetectedError as error:
        return error
    return pytest.fail("the batch was never refused")


def test_a_refused_batch_is_refused_again():
    detector = LoopDetector()
    counts = [refuse(detector).count for _ in range(3)]
    assert counts == [3, 4, 5]


def test_another_batch_breaks_the_run():
    detector = LoopDetector(max_strikes=1)
    detector.check(CHANGING)
    detector.check(batch("other"))
    detector.check(CHANGING)


def test_other_arguments_break_the_run():
    detector = LoopDetector(max_strikes=1)
    for number in range(10):
        detector.check(batch("bash", command=number))


def test_a_user_turn_breaks_the_run():
    detector = LoopDetector(max_strikes=1)
    for _ in range(10):
        detector.check(CHANGING)
        detector.break_run()


def test_an_empty_batch_does_not_break_the_run():
    detector = LoopDetector()
    detector.check(CHANGING)
    before = detector.to_state()
    detector.check([])
    assert detector.to_state() == before


def test_the_order_of_the_calls_does_not_break_the_run():
    detector = LoopDetector(max_strikes=1)
    detector.check(batch("a", "b"))
    with pytest.raises(LoopDetectedError):
        detector.check(batch("b", "a"))


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_an_odd_call_is_counted(make):
    assert refused_at(LoopDetector(), [make()], unrecorded()) == 3


def test_the_error_names_each_tool_once_in_the_order_of_the_calls():
    error = refuse(LoopDetector(), batch("b", "a", "b"))
    assert error.tools == ("b", "a")


def test_the_error_names_the_signature_of_the_batch():
    detector = LoopDetector()
    record = detector.check(CHANGING)
    assert refuse(detector).signature == record.signature == "bash:" + record.signature[5:]


def test_the_error_gives_the_count_since_the_answers_changed():
    error = refuse(LoopDetector())
    assert (error.count, error.threshold) == (3, 2)


def test_the_error_gives_the_total_when_the_ceiling_was_reached():
    detector = LoopDetector()
    for answer in range(15):
        detector.record_results(detector.check(CHANGING), answer)
    error = refuse(detector)
    assert (error.count, error.threshold) == (16, 15)


def test_a_caller_who_knows_the_kind_of_a_batch_decides_it():
    detector = LoopDetector()
    for _ in range(15):
        detector.check_batch("bash:0", ["bash"], read_only=True, costly=False)
    with pytest.raises(LoopDetectedError):
        detector.check_batch("bash:0", ["bash"], read_only=True, costly=False)


# --- Answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "now", "outcome"),
    [
        (1, 1, RepeatOutcome.ANSWER_REPEATED),
        (0, 0, RepeatOutcome.ANSWER_REPEATED),
        (1, 2, RepeatOutcome.ANSWER_CHANGED),
        (0, 1, RepeatOutcome.ANSWER_CHANGED),
        (1, None, RepeatOutcome.NOT_COMPARABLE),
        (None, 1, RepeatOutcome.NOT_COMPARABLE),
        (None, None, RepeatOutcome.NOT_COMPARABLE),
    ],
)
def test_answers_are_compared_with_the_last_ones(last, now, outcome):
    detector = LoopDetector()
    detector.record_results(detector.check(CHANGING), last)
    assert detector.record_results(detector.check(CHANGING), now) is outcome


def test_the_first_answers_are_compared_with_nothing():
    detector = LoopDetector()
    outcome = detector.record_results(detector.check(CHANGING), 1)
    assert outcome is RepeatOutcome.NOT_COMPARABLE


def test_answers_of_equal_calls_from_two_batches_may_come_late_and_in_any_order():
    detector = LoopDetector()
    one, two_ = detector.check(CHANGING), detector.check(CHANGING)
    outcomes = [detector.record_results(record, 5) for record in (two_, one)]
    assert outcomes == [RepeatOutcome.NOT_COMPARABLE, RepeatOutcome.ANSWER_REPEATED]


def used_record(detector):
    record = detector.check(CHANGING)
    detector.record_results(record, 1)
    return record


def record_of_another_batch(detector):
    record = detector.check(batch("other"))
    detector.check(CHANGING)
    return record


def record_from_before_a_user_turn(detector):
    record = detector.check(CHANGING)
    detector.break_run()
    return record


def record_of_an_empty_batch(detector):
    detector.check(CHANGING)
    return detector.check([])


def record_of_an_empty_batch_without_a_run(detector):
    return detector.check([])


@pytest.mark.parametrize(
    "make",
    [
        used_record,
        record_of_another_batch,
        record_from_before_a_user_turn,
        record_of_an_empty_batch,
        record_of_an_empty_batch_without_a_run,
    ],
)
def test_a_record_that_is_not_of_the_current_run_changes_nothing(make):
    detector = LoopDetector()
    record = make(detector)
    before = (detector.to_state(), record.used)
    assert detector.record_results(record, 99) is RepeatOutcome.NOT_THE_CURRENT_RUN
    assert (detector.to_state(), record.used) == before


def test_a_record_made_for_a_batch_counted_elsewhere_is_accepted():
    detector = LoopDetector()
    record = BatchRecord(detector.check(CHANGING).signature)
    assert detector.record_results(record, 1) is RepeatOutcome.NOT_COMPARABLE


def test_the_hash_of_real_answers_is_compared():
    detector = LoopDetector()
    detector.record_results(detector.check(CHANGING), hash_results(CHANGING, ["a.py"]))
    outcome = detector.record_results(detector.check(CHANGING), hash_results(CHANGING, ["a.py"]))
    assert outcome is RepeatOutcome.ANSWER_REPEATED


def test_a_record_shows_its_signature():
    assert repr(BatchRecord("t:0")) == "BatchRecord('t:0', used=False)"


# --- Options ----------------------------------------------------------------------------------


def test_the_defaults_are_the_published_ones():
    detector = LoopDetector()
    assert (
        detector.max_strikes,
        detector.observation_tools,
        detector.max_observation_steps,
    ) == (2, DEFAULT_OBSERVATION_TOOLS, 15)


BAD = [
    *(("max_strikes", value) for value in (-1, 1.5, "2", None, True)),
    *(("max_observation_steps", value) for value in (-1, 1.5, "2", False)),
    *(("observation_tools", value) for value in ("read", b"read", None, 5, [""], [" "], [None])),
]


@pytest.mark.parametrize(("field", "value"), BAD)
def test_a_value_that_is_not_allowed_is_refused_with_the_field_s_name(field, value):
    with pytest.raises(ValueError, match=f"^{field} must be .*not "):
        LoopDetector(**{field: value})


@pytest.mark.parametrize(("field", "value"), BAD)
def test_a_refused_value_leaves_the_option_as_it_was(field, value):
    detector = LoopDetector()
    before = getattr(detector, field)
    with pytest.raises(ValueError, match=field):
        setattr(detector, field, value)
    assert getattr(detector, field) == before


def test_options_may_be_changed_during_a_run():
    detector = LoopDetector()
    detector.check(CHANGING)
    detector.max_strikes, detector.max_observation_steps = 0, None
    with pytest.raises(LoopDetectedError):
        detector.check(CHANGING)


def test_changed_patterns_hold_at_once():
    detector = LoopDetector(max_strikes=0)
    refuse(detector)
    detector.observation_tools = ["bash"]
    detector.check(CHANGING)
