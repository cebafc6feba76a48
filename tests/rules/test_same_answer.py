"""Is the same call with the same answer found, and only then?"""

import itertools

import pytest
from pydantic import ValidationError

from langchain_loopguard.core.rules import SameAnswer
from tests.core.plays import HUMAN, UNKNOWN, call
from tests.rules.told import (
    APPROVE,
    NEVER,
    Told,
    change,
    findings,
    glance,
    look,
    only,
    shell,
    told,
    words,
)

RULE = only(SameAnswer())
READ = look("a")


def clocked(name, n, *, state="running"):
    since = f"since {n // 60:02}:{n % 60:02}:00"
    return call(name, id=1, say=f"{state}\nqueue\nowner\n{since}")


# --- The numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(READ, id="a look"),
        pytest.param(glance("a"), id="a look with one line"),
        pytest.param(call("read_file", path="a", say=""), id="an empty answer"),
        pytest.param(change("a"), id="a change with a receipt"),
        pytest.param(shell("make"), id="a silent command"),
        pytest.param(call("", say="?"), id="a call without a name"),
        pytest.param(call("search", say=[{"type": "text", "text": "x"}]), id="content blocks"),
        pytest.param(call("search", say=None), id="a null answer"),
    ],
)
def test_the_third_equal_answer_warns_the_fifth_asks_and_the_sixth_call_is_held(step):
    assert told(RULE, [step] * 2) == NEVER
    assert told(RULE, [step] * 4) == Told(warn=3)
    assert told(RULE, [step] * 6) == Told(warn=3, ask=5, held=6)


@pytest.mark.parametrize("numbers", [{"ask": 18}, {"ask": 18, "ask_clock": 2}])
def test_equal_answers_are_asked_about_no_sooner_than_the_number_says(numbers):
    assert told(only(SameAnswer(**numbers)), [READ] * 19) == Told(warn=3, ask=18, held=19)


def test_a_poller_is_asked_about_at_the_20th_and_never_warned():
    poll = call("job_state", id=1, say="pending")
    policy = only(SameAnswer(), poll_tools=("job_state",))
    assert told(policy, [poll] * 19) == NEVER
    assert told(policy, [poll] * 21) == Told(ask=20, held=21)


@pytest.mark.parametrize(
    "helpers",
    [
        pytest.param([call("think", thought="It is not done yet.", say="Logged.")], id="a thought"),
        pytest.param([call("bash", command="sleep 20", say="")], id="a wait"),
        pytest.param(
            [
                call("bash", command="sleep 20", say=""),
                call("think", thought="It is not done yet.", say="Logged."),
            ],
            id="both",
        ),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_a_constant_helper_beside_a_poller_makes_no_loop(helpers, together):
    poll = call("job_state", id=1, say="pending")
    policy = only(SameAnswer(), poll_tools=("job_state",))
    lap = [poll, helpers] if together and len(helpers) > 1 else [poll, *helpers]
    assert told(policy, lap * 19) == NEVER
    assert told(policy, lap * 22).ask is not None


@pytest.mark.parametrize(
    ("helper", "ask"),
    [
        (call("bash", command="sleep 20 && tail log", say="waiting"), 30),
        (call("bash", command="sleep 20", say="killed"), 30),
        (READ, 10),
    ],
)
def test_a_call_that_looks_is_no_helper(helper, ask):
    poll = call("job_state", id=1, say="pending")
    policy = only(SameAnswer(), poll_tools=("job_state",))
    assert told(policy, [poll, helper] * 25).ask == ask


def test_a_thought_between_other_calls_than_pollers_is_a_repetition():
    thought = call("think", thought="I look again.", say="Logged.")
    assert told(RULE, [thought, *[look(word) for word in words(3)]] * 9).ask is not None
    lap = [thought, change("a"), thought, call("edit_file", path="b", say="failed", fails=True)]
    assert told(RULE, lap * 9).ask is not None


def test_reading_a_clock_is_asked_about_at_the_15th():
    steps = [clocked("check_job", n) for n in range(40)]
    assert told(RULE, steps[:14]) == NEVER
    assert told(RULE, steps[:16]) == Told(ask=15, held=16)


def test_polling_a_clock_is_asked_about_at_the_20th():
    policy = only(SameAnswer(), poll_tools=("job_state",))
    steps = [clocked("job_state", n) for n in range(40)]
    assert told(policy, steps) == Told(ask=20, held=21)


def test_a_change_that_tells_the_time_is_left_to_the_rule_of_unbroken_calls():
    assert told(RULE, [clocked("update_job", n) for n in range(40)]) == NEVER


def test_an_answer_that_changes_by_more_than_a_clock_starts_the_clocks_again():
    steps = [clocked("check_job", n, state="building") for n in range(14)]
    steps += [clocked("check_job", n) for n in range(14)]
    assert told(RULE, steps) == NEVER


# --- What counts as the same answer ------------------------------------------------------------


def test_a_changed_answer_starts_the_count_again():
    a, b = (call("search", q="x", say=say) for say in ("no", "yes"))
    assert told(RULE, [a, a, b, b, b, b, b]) == Told(warn=5, ask=7)


def test_two_answers_in_turn_are_not_seen():
    a, b = (call("search", q="x", say=say) for say in ("no", "yes"))
    assert told(RULE, [a, b] * 20) == NEVER


def test_a_number_that_moves_in_a_success_is_another_answer():
    assert told(RULE, [call("check_job", say=f"{n} %") for n in range(40)]) == NEVER


def test_a_number_that_moves_in_an_error_is_the_same_answer():
    steps = [change("x", say=f"line {n}: no match", fails=True) for n in range(6)]
    assert told(RULE, steps) == Told(warn=3, ask=5, held=6)


def test_a_clock_that_moves_in_an_error_is_the_same_answer():
    steps = [shell("make", say=f"failed after {n * 7}.5s", fails=True) for n in range(6)]
    assert told(RULE, steps) == Told(warn=3, ask=5, held=6)


def test_the_same_answer_of_different_calls_is_no_repetition():
    assert told(RULE, [change(word) for word in words(40)]) == NEVER


# --- Unknown answers ---------------------------------------------------------------------------


def test_unknown_answers_back_to_back_are_counted():
    assert told(RULE, [call("search", say=UNKNOWN)] * 6) == Told(warn=3, ask=5, held=6)


def test_unknown_answers_apart_are_not_counted():
    steps = [call("search", say=UNKNOWN), call("sleep", say="")]
    assert told(only(SameAnswer(), poll_tools=("sleep",)), steps * 9) == NEVER


def test_an_unknown_answer_between_equal_ones_is_no_rescue():
    steps = itertools.cycle([call("search", say="no"), call("search", say=UNKNOWN)])
    assert told(RULE, list(itertools.islice(steps, 6))) == Told(warn=3, ask=5, held=6)


# --- What clears -------------------------------------------------------------------------------

SLEEP = call("sleep", seconds=1, say="")


@pytest.mark.parametrize(
    ("other", "clears"),
    [
        pytest.param(look("b"), True, id="a look that says something new"),
        pytest.param(change("b"), True, id="a first change that succeeds"),
        pytest.param(shell("mv b c"), True, id="a silent command"),
        pytest.param(shell("b", say="b\nb b\nb b b\nb b b b"), True, id="a command with news"),
        pytest.param(
            change("b", say="b\nb b\nb b b\nb b b b", fails=True), True, id="a long new error"
        ),
        pytest.param([glance("b"), change("b")], True, id="a batch with a change"),
        pytest.param(glance("b"), False, id="a look with one line"),
        pytest.param({**READ, "args": {"path": "b"}}, False, id="a look that says nothing new"),
        pytest.param(change("b", say="no", fails=True), False, id="a change that fails"),
        pytest.param(shell("b", say=READ["say"]), False, id="a command without news"),
        pytest.param(SLEEP, False, id="a sleep"),
        pytest.param(change("b", say=UNKNOWN), False, id="a change with an unknown answer"),
        pytest.param([SLEEP, glance("b")], False, id="a batch without news"),
    ],
)
def test_what_makes_it_worth_asking_again(other, clears):
    steps = [READ] * 4 + [other] + [READ] * 4
    assert told(RULE, steps).ask == (None if clears else 6)


def test_a_change_that_was_made_before_clears_nothing():
    steps = [change("b"), *[READ] * 4, change("b"), READ]
    assert told(RULE, steps) == Told(warn=4, ask=7)


def test_a_look_with_a_changed_answer_clears():
    steps = [glance("b"), *[READ] * 4, {**look("c"), "args": {"path": "b"}}, *[READ] * 4]
    assert told(RULE, steps) == Told(warn=4)


def test_a_look_at_a_clock_clears_nothing():
    steps = [*(clocked("check_job", n) for n in range(2)), *[READ] * 4, clocked("check_job", 3)]
    assert told(RULE, [*steps, READ]) == Told(warn=5, ask=8)


def test_news_in_the_same_batch_clear():
    steps = [[READ, look(word)] for word in words(20)]
    assert told(RULE, steps) == NEVER


def test_a_user_turn_clears():
    assert told(RULE, [*[READ] * 4, HUMAN, *[READ] * 4]) == Told(warn=3)


def test_after_an_approval_the_count_starts_anew():
    steps = [*[READ] * 5, APPROVE, *[READ] * 4]
    assert [number for number, _, f in findings(RULE, steps) if f.action == 2] == [5]
    assert [number for number, _, f in findings(RULE, [*steps, READ]) if f.action == 2] == [5, 10]


# --- Batches -----------------------------------------------------------------------------------


def test_the_order_of_parallel_calls_does_not_matter():
    a, b = look("a"), look("b")
    assert told(RULE, [[a, b], [b, a]] * 3) == Told(warn=3, ask=5, held=6)


def test_calls_are_counted_whatever_batch_they_come_in():
    a, b, c = (look(word) for word in "abc")
    assert told(RULE, [[a, b, c], a, [c, a], [a, b], [b, a, c]]) == Told(warn=3, ask=5)


def test_equal_calls_in_one_batch_are_as_many():
    assert told(RULE, [[READ] * 4]) == Told(warn=1)
    assert told(RULE, [[READ] * 5]) == Told(ask=1)
    assert told(RULE, [[READ] * 3] * 3) == Told(warn=1, ask=2, held=3)


def test_news_in_the_same_batch_do_not_excuse_copies():
    assert told(RULE, [[*[READ] * 5, look("b")]]) == Told(ask=1)


def test_a_batch_with_one_looping_call_is_held():
    assert told(RULE, [*[READ] * 5, [look("b"), READ]]) == Told(warn=3, ask=5, held=6)


def test_another_call_is_not_held():
    assert told(RULE, [*[READ] * 5, look("b")]) == Told(warn=3, ask=5)


def test_24_calls_are_counted_at_once():
    assert told(RULE, [glance(word) for word in words(24)] * 5) == Told(warn=49, ask=97)
    assert told(RULE, [glance(word) for word in words(25)] * 5) == NEVER


def test_the_strongest_finding_of_a_batch_is_told():
    steps = [READ, READ, [READ, READ], [look("b"), READ]]
    assert [f.action for number, _, f in findings(RULE, [READ, *steps]) if number == 4] == [2]


# --- The finding -------------------------------------------------------------------------------


def test_a_finding_says_which_tool_how_often_and_since_when():
    steps = [look("b"), look("c"), *[READ] * 5]
    (_, _, warn), (_, _, again), (_, _, ask) = findings(RULE, steps)
    assert (warn.tools, warn.count, warn.threshold, warn.since) == (("read_file",), 3, 3, 3)
    assert (again.count, again.threshold, again.since) == (4, 3, 3)
    assert (ask.tools, ask.count, ask.threshold, ask.since) == (("read_file",), 5, 5, 3)
    assert warn.loop == ask.loop


def test_since_moves_with_a_changed_answer():
    a, b = (call("search", q="x", say=say) for say in ("no", "yes"))
    assert {f.since for _, _, f in findings(RULE, [a, a, b, b, b])} == {3}


# --- The policy --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "numbers",
    [{"warn": 6}, {"ask": 21}, {"warn": 4, "ask": 3}, {"ask_poller": 4}],
)
def test_numbers_that_fall_are_refused(numbers):
    with pytest.raises(ValidationError, match="warn <= ask <= ask_poller"):
        SameAnswer(**numbers)


@pytest.mark.parametrize("field", ["warn", "ask", "ask_poller", "ask_clock"])
def test_one_occurrence_is_no_repetition(field):
    with pytest.raises(ValidationError, match=field):
        SameAnswer(**{field: 1})


def test_equal_numbers_are_allowed():
    assert told(only(SameAnswer(warn=2, ask=2, ask_poller=2)), [READ] * 3) == Told(ask=2, held=3)
