"""Has a changing call a ceiling, whatever it answers?"""

import json

import pytest
from pydantic import ValidationError

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.rules import UnbrokenCall
from tests.core.plays import HUMAN, UNKNOWN, call, run
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

RULE = only(UnbrokenCall())


def grow(n, *, name="insert"):
    """The n-th time an accepted insert is made: the file that it shows grows."""
    return call(name, at=2, text="x", say="\n".join(f"{k} x" for k in range(n + 2)))


GROWING = [grow(n) for n in range(60)]


# --- The numbers ------------------------------------------------------------------------------


def test_a_change_is_held_at_the_10th_though_its_answer_grows():
    assert told(RULE, GROWING[:9]) == NEVER
    assert told(RULE, GROWING[:10]) == Told(ask=10, held=10)


def test_a_shell_command_is_held_at_the_20th():
    steps = [{**grow(n), "name": "bash"} for n in range(20)]
    assert told(RULE, steps[:19]) == NEVER
    assert told(RULE, steps) == Told(ask=20, held=20)


def test_a_batch_with_a_shell_command_has_the_limit_of_shells():
    steps = [[change("x"), shell("x")] for _ in range(20)]
    assert told(RULE, steps) == Told(ask=20, held=20)


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(RULE, id="reading"),
        pytest.param(only(UnbrokenCall(), read_only_tools=("read_file",)), id="declared"),
    ],
)
def test_reading_has_no_ceiling(policy):
    assert told(policy, [look("a")] * 60) == NEVER


def test_a_poller_has_no_ceiling():
    policy = only(UnbrokenCall(), poll_tools=("job_state",))
    assert told(policy, [call("job_state", say=f"step {n}") for n in range(60)]) == NEVER


@pytest.mark.parametrize(
    "beside", [glance("b"), call("sleep", say="")], ids=["a look", "a sleep beside"]
)
def test_a_batch_that_also_reads_has_a_ceiling(beside):
    assert told(RULE, [[beside, change("x")]] * 10) == Told(ask=10, held=10)


def test_an_unknown_answer_makes_no_difference():
    assert told(RULE, [change("x", say=UNKNOWN)] * 10) == Told(ask=10, held=10)


# --- What breaks a run -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "breaks"),
    [
        pytest.param(look("b"), True, id="a look that says something new"),
        pytest.param(change("b"), True, id="another change for the first time"),
        pytest.param(shell("b"), True, id="a silent command"),
        pytest.param(glance("b"), False, id="a look with one line"),
        pytest.param(call("sleep", say=""), False, id="a sleep"),
        pytest.param(call("think", thought="hm", say="Logged."), False, id="a thought"),
        pytest.param(change("b", say="no", fails=True), False, id="a change that fails"),
    ],
)
def test_what_breaks_a_run(other, breaks):
    steps = [*GROWING[:9], other, *GROWING[9:18]]
    assert told(RULE, steps) == (NEVER if breaks else Told(ask=11, held=11))


def test_its_own_news_break_no_run():
    # Each answer of the insert is new, which is what the ceiling is for.
    assert told(RULE, GROWING).held == 10


def test_a_change_that_was_made_before_breaks_no_run():
    # The first lap breaks the first one's run, so it is the other's that is held.
    assert told(RULE, [change("a"), change("b")] * 10) == Told(ask=20, held=20)


def test_a_user_turn_breaks_a_run():
    assert told(RULE, [*GROWING[:9], HUMAN, *GROWING[9:18]]) == NEVER


def test_after_an_approval_the_count_starts_anew():
    steps = [*GROWING[:10], APPROVE, *GROWING[10:20]]
    assert [number for number, _, _ in findings(RULE, steps)] == [10, 20]


# --- Batches -----------------------------------------------------------------------------------


def test_the_order_of_a_batch_does_not_matter():
    a, b = change("a"), change("b")
    assert told(RULE, [[a, b], [b, a]] * 5) == Told(ask=10, held=10)


def test_a_batch_of_two_equal_calls_is_another_batch():
    assert told(RULE, [*[change("x")] * 9, [change("x")] * 2]) == NEVER


def test_eight_failing_changes_in_turn_are_counted_and_nine_are_not():
    fails = [change(word, say="no", fails=True) for word in words(9)]
    assert told(RULE, fails[:8] * 10).held == 9 * 8 + 1
    assert told(RULE, fails * 10) == NEVER


# --- The finding -------------------------------------------------------------------------------


def test_a_finding_says_which_tools_how_often_and_since_when():
    batch = [change("a"), shell("b"), change("c")]
    (_, _, found), *_ = findings(RULE, [look("a"), *[batch] * 20])
    assert (found.tools, found.count, found.threshold, found.since) == (
        ("edit_file", "bash"),
        20,
        20,
        2,
    )


# --- The policy --------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["ask", "ask_shell"])
def test_a_ceiling_of_one_is_refused(field):
    with pytest.raises(ValidationError, match=field):
        UnbrokenCall(**{field: 1})


# --- New words ----------------------------------------------------------------------------------


def presses(count, *, every=1, name="press"):
    """A button pressed so often; each page, or every so many, has words of its own."""
    pages = words(count)
    return [call(name, button="next", say=f"page {n}\n{pages[n // every]}") for n in range(count)]


def test_pages_turned_by_a_button_have_a_higher_ceiling():
    assert told(RULE, presses(19)) == NEVER
    assert told(RULE, presses(25)) == Told(ask=20, held=20)


def test_so_has_a_shell_command_that_prints_something_new():
    assert told(RULE, presses(39, name="bash")) == NEVER
    assert told(RULE, presses(45, name="bash")) == Told(ask=40, held=40)


def test_new_words_in_less_than_half_of_the_answers_are_too_few():
    assert told(RULE, presses(25, every=2)) == Told(ask=20, held=20)
    assert told(RULE, presses(25, every=3)).ask == 10


def test_clocks_and_numbers_are_no_new_words():
    steps = [call("press", say=f"step {n} took {n} ms\nat 12:00:{n:02}") for n in range(25)]
    assert told(RULE, steps) == Told(ask=10, held=10)


def test_errors_say_nothing_new():
    steps = [call("press", say=f"no {word}", fails=True) for word in words(25)]
    assert told(RULE, steps) == Told(ask=10, held=10)


def test_what_was_new_is_part_of_the_state():
    policy, pages = only(UnbrokenCall()), presses(25)
    guard = LoopGuard(policy)
    asked = []
    for page in pages:
        guard = LoopGuard.from_state(policy, json.loads(json.dumps(guard.to_state())))
        asked.append(run(guard, page)[0][1].action is Action.ASK)
    assert asked.index(True) == 19


@pytest.mark.parametrize("more", [[1, 2], [-1], ["1"]])
def test_a_count_of_new_words_that_is_none_is_refused(more):
    rule = UnbrokenCall().build()
    rule.load_state([["1f", 3, 1]])
    with pytest.raises(ValueError, match=r"unpack|count"):
        rule.load_state([["1f", 3, 1, *more]])
