"""Is a tool found that fails again and again with the same error?"""

import pytest
from pydantic import ValidationError

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.rules import SameError
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

RULE = only(SameError())


def rejected(n, *, name="edit_file", say=None):
    """The n-th edit, another one each time, rejected with one error but for its numbers."""
    return call(name, text="x" * n, say=say or f"line {n * 7}: no match", fails=True)


FAILS = [rejected(n) for n in range(40)]


def asks(policy, steps):
    return [(n, when) for n, when, f in findings(policy, steps) if f.action >= Action.ASK]


# --- The numbers ------------------------------------------------------------------------------


def test_the_4th_failure_warns_the_8th_asks_and_the_next_call_of_the_tool_is_held():
    assert told(RULE, FAILS[:3]) == NEVER
    assert told(RULE, FAILS[:7]) == Told(warn=4)
    assert told(RULE, FAILS[:9]) == Told(warn=4, ask=8, held=9)


def test_the_same_call_is_counted_like_another():
    assert told(RULE, [FAILS[1]] * 9) == Told(warn=4, ask=8, held=9)


# --- What is the same error --------------------------------------------------------------------


@pytest.mark.parametrize(
    "say",
    [
        pytest.param(lambda n: f"line {n}: no match", id="numbers"),
        pytest.param(lambda n: f"no match after {n}.5 s", id="a duration"),
        pytest.param(lambda n: f"no match at 0x7f{n:010x}", id="an address"),
        pytest.param(lambda n: f"no match for {'xyz' * (n + 1)}", id="an argument"),
        pytest.param(lambda n: [{"type": "text", "text": f"line {n}"}], id="content blocks"),
    ],
)
def test_errors_are_equal_but_for(say):
    steps = [call("edit", text="xyz" * (n + 1), say=say(n), fails=True) for n in range(9)]
    assert told(RULE, steps) == Told(warn=4, ask=8, held=9)


def test_an_error_that_names_the_missing_tool_is_one_error():
    steps = [call("nope", q=word, say="nope is not a tool", fails=True) for word in words(9)]
    assert told(RULE, steps) == Told(warn=4, ask=8, held=9)


def test_other_words_are_another_error():
    steps = [call("edit", n=n, say=f"no {word}", fails=True) for n, word in enumerate(words(40))]
    assert told(RULE, steps) == NEVER


def test_the_same_error_of_another_tool_is_another_error():
    steps = [rejected(n, name=f"edit_{word}") for n, word in enumerate(words(40))]
    assert told(RULE, steps) == NEVER


def test_two_errors_in_turn_are_counted_each():
    steps = [rejected(n, say="bad indent" if n % 2 else "no match") for n in range(20)]
    assert told(RULE, steps) == Told(warn=7, ask=15, held=16)


def test_what_reads_like_an_error_but_is_none_is_not_counted():
    steps = [call("edit", n=n, say=f"Error: line {n}") for n in range(40)]
    assert told(RULE, steps) == NEVER


# --- Batches -----------------------------------------------------------------------------------


def test_failures_of_one_batch_are_one():
    assert told(RULE, [FAILS[:6]] * 3) == NEVER
    assert told(RULE, [FAILS[:6]] * 9) == Told(warn=4, ask=8, held=9)


def test_of_two_errors_of_a_tool_in_a_batch_the_first_is_counted():
    batch = [rejected(1, say="no match"), rejected(2, say="bad indent")]
    found = findings(RULE, [*[batch] * 3, rejected(3, say="bad indent")])
    assert found == []
    assert told(RULE, [*[batch] * 3, rejected(3, say="no match")]) == Told(warn=4)


def test_every_failing_tool_of_a_batch_is_counted():
    a, b = rejected(1, name="edit_file"), rejected(1, name="open_file")
    found = findings(RULE, [*[a] * 4, *[[a, b], [b, a]] * 2])
    assert {(n, f.tools, f.count) for n, _, f in found if f.action == Action.ASK} == {
        (8, ("edit_file",), 8)
    }


def test_a_tool_that_failed_and_succeeded_in_one_batch_succeeded():
    both = [rejected(1), change("x")]
    assert told(RULE, [*FAILS[:7], both, *FAILS[7:14]]) == Told(warn=4)


# --- What clears -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "clears"),
    [
        pytest.param(glance("x", name="edit_file"), True, id="a success of the tool"),
        pytest.param(change("y", name="write_file"), True, id="a first change elsewhere"),
        pytest.param(shell("mv a b"), True, id="a silent command"),
        pytest.param(shell("ls", say=look("b")["say"]), False, id="a command that shows something"),
        pytest.param(look("b"), False, id="a look that says something new"),
        pytest.param(change("y", name="open", say="no", fails=True), False, id="another failure"),
        pytest.param(rejected(99, say="bad indent"), False, id="another error of the tool"),
        pytest.param(call("edit_file", text="y", say=UNKNOWN), False, id="an unknown answer"),
        pytest.param(call("sleep", say=""), False, id="a sleep"),
    ],
)
def test_what_clears_a_streak(other, clears):
    steps = [*FAILS[:7], other, *FAILS[7:14]]
    assert told(RULE, steps).ask == (None if clears else 9)


def test_a_change_that_was_made_before_clears_nothing():
    steps = [change("y", name="write_file"), *FAILS[:7], change("y", name="write_file"), FAILS[8]]
    assert told(RULE, steps).ask == 10


def test_a_success_clears_every_error_of_the_tool():
    steps = [rejected(n, say="bad indent" if n % 2 else "no match") for n in range(14)]
    assert told(RULE, [*steps, change("x"), *steps[:6]]) == Told(warn=7)


def test_the_success_of_another_tool_that_reads_clears_nothing():
    steps = [step for n in range(8) for step in (FAILS[n], look(words(8)[n]))]
    assert told(RULE, steps).ask == 15


def test_sixteen_errors_are_counted_at_once():
    tools = words(17)
    sixteen = [call(f"edit_{word}", say="no", fails=True) for word in tools[:16]]
    seventeen = [*sixteen, call(f"edit_{tools[16]}", say="no", fails=True)]
    assert told(RULE, sixteen * 8).ask == 16 * 7 + 1
    assert told(RULE, seventeen * 8) == NEVER


# --- User turns and approval -------------------------------------------------------------------


def test_a_user_turn_clears_what_was_not_flagged():
    assert told(RULE, [*FAILS[:7], HUMAN, *FAILS[7:14]]) == Told(warn=4)


def test_a_flagged_error_is_asked_about_at_its_second_failure_after_a_user_turn():
    assert asks(RULE, [*FAILS[:8], HUMAN, FAILS[8]]) == [(8, "!")]
    assert asks(RULE, [*FAILS[:8], HUMAN, *FAILS[8:10]]) == [(8, "!"), (10, "!")]


def test_a_flagged_error_that_stays_away_for_a_turn_is_forgotten():
    assert asks(RULE, [*FAILS[:8], HUMAN, look("a"), HUMAN, *FAILS[8:15]]) == [(8, "!")]


def test_a_success_after_the_user_turn_ends_the_probation():
    assert asks(RULE, [*FAILS[:8], HUMAN, change("x"), *FAILS[8:15]]) == [(8, "!")]


def test_with_an_ask_of_one_a_user_turn_clears_all():
    rule = only(SameError(warn=1, ask=1))
    assert asks(rule, [FAILS[0], HUMAN, look("a", name="edit_file")]) == [(1, "!")]


def test_after_an_approval_the_count_starts_anew():
    steps = [*FAILS[:8], APPROVE, *FAILS[8:16]]
    assert asks(RULE, steps) == [(8, "!"), (16, "!")]


# --- The question ------------------------------------------------------------------------------


def test_other_arguments_meet_the_question_once_and_after_a_refusal_are_let_through():
    guard = LoopGuard(RULE)
    for step in FAILS[:8]:
        run(guard, step)
    actions = []
    for word in "abc":
        decision = guard.check([{"name": "edit_file", "args": {"text": word}, "id": "1"}])
        guard.refuse(decision)
        actions.append(decision.action)
    assert actions == [Action.ASK, Action.ALLOW, Action.ALLOW]


def test_arguments_that_failed_before_are_held_each_time():
    guard = LoopGuard(RULE)
    for step in FAILS[:8]:
        run(guard, step)
    actions = []
    for _ in range(4):
        decision = guard.check([{"name": "edit_file", "args": FAILS[2]["args"], "id": "1"}])
        guard.refuse(decision)
        actions.append(decision.action)
    assert actions == [Action.ASK, Action.ASK, Action.ASK, Action.STOP]


def test_another_tool_is_not_held():
    assert asks(RULE, [*FAILS[:8], look("a")]) == [(8, "!")]


def test_one_tool_of_a_batch_is_enough_to_hold_it():
    assert asks(RULE, [*FAILS[:8], [look("a"), FAILS[8]]])[1] == (9, "?")


# --- The finding -------------------------------------------------------------------------------


def test_a_finding_says_which_tool_how_often_and_since_when():
    found = findings(RULE, [look("a"), *FAILS[:9]])
    assert [(f.tools, f.count, f.threshold, f.since) for n, when, f in found if n in (5, 9)] == [
        (("edit_file",), 4, 4, 2),
        (("edit_file",), 8, 8, 2),
    ]
    assert len({f.loop for _, _, f in found}) == 1


# --- The policy --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "named"),
    [({"warn": 9}, "warn and ask must not fall"), ({"warn": 0}, "warn"), ({"ask": 0}, "ask")],
)
def test_numbers_out_of_order_are_refused(numbers, named):
    with pytest.raises(ValidationError, match=named):
        SameError(**numbers)


# --- Tools that only read -----------------------------------------------------------------------


def dead(word):
    return call("fetch_page", url=word, say="403 forbidden", fails=True)


def test_dead_links_between_searches_that_find_something_are_no_loop():
    steps = [step for word in words(30) for step in (look(word, name="search"), dead(word))]
    assert told(RULE, steps) == NEVER


def test_dead_links_between_searches_that_find_nothing_new_are():
    steps = [step for word in words(30) for step in (look("a", name="search"), dead(word))]
    assert told(RULE, steps).ask is not None


def test_edits_that_are_rejected_between_looks_are_a_loop_all_the_same():
    steps = [step for n, word in enumerate(words(30)) for step in (look(word), rejected(n))]
    assert told(RULE, steps).ask == 16


def test_what_reads_is_part_of_the_state():
    policy, steps = RULE, [dead(word) for word in words(7)]
    guard = LoopGuard(policy)
    for step in steps:
        run(guard, step)
    guard = LoopGuard.from_state(policy, guard.to_state())
    run(guard, look("found", name="search"))
    assert run(guard, dead("one more"))[1][1].action is Action.ALLOW
