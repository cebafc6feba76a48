"""Is reading on by numbers found when it brings the same answer each time?"""

import pytest
from pydantic import ValidationError

from langchain_loopguard.core.rules import SameNumbers
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

RULE = only(SameNumbers())


def page(n, say="No more pages.", *, name="get_page", **args):
    return call(name, page=n, say=say, **args)


PAGES = [page(n) for n in range(60)]


# --- The numbers ------------------------------------------------------------------------------


def test_the_15th_page_with_the_same_answer_asks_and_the_next_is_held():
    assert told(RULE, PAGES[:14]) == NEVER
    assert told(RULE, PAGES[:16]) == Told(ask=15, held=16)


def test_numbers_inside_text_are_numbers():
    dates = [call("search", date=f"2025-05-{n:02}", say="[]") for n in range(16)]
    assert told(RULE, dates) == Told(ask=15, held=16)


def test_one_and_the_same_number_is_counted_too():
    assert told(RULE, PAGES[:1] * 16) == Told(ask=15, held=16)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([glance(word) for word in words(40)], id="words that differ"),
        pytest.param([call("get_page", of="x", say="none")] * 40, id="no numbers at all"),
        pytest.param([page(n, f"row {n}") for n in range(40)], id="another answer each time"),
        pytest.param([page(n, "") for n in range(40)], id="empty answers"),
        pytest.param([page(n, " \n") for n in range(40)], id="blank answers"),
        pytest.param([page(n, fails=True) for n in range(40)], id="errors"),
        pytest.param([page(n, UNKNOWN) for n in range(40)], id="unknown answers"),
        pytest.param([page(n, name="set_page") for n in range(40)], id="changes"),
        pytest.param([page(n, name="bash") for n in range(40)], id="shell commands"),
        pytest.param([page(n, name="wait") for n in range(40)], id="waiting"),
        pytest.param([[page(n), page(n)] for n in range(40)], id="batches of two"),
        pytest.param(
            [call("get_page", **{word: 1}, say="none") for word in words(40)],
            id="names of arguments that differ",
        ),
    ],
)
def test_what_is_not_counted(steps):
    assert told(RULE, steps) == NEVER


def test_several_numbers_may_move_at_once():
    steps = [call("get_page", a=n, b=9 - n % 9, say="none") for n in range(16)]
    assert told(RULE, steps) == Told(ask=15, held=16)


def test_an_answer_that_says_something_new_is_not_counted_but_its_repeats_are():
    steps = [page(n, "No rows.\nPage is empty.\nTry another.") for n in range(17)]
    assert told(RULE, steps) == Told(ask=16, held=17)


# --- What clears -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "clears"),
    [
        pytest.param(look("b"), True, id="a look that says something new"),
        pytest.param(look("b", n=1), True, id="such a look with numbers"),
        pytest.param(change("b"), True, id="a change that succeeds"),
        pytest.param(shell("b"), True, id="a silent command"),
        pytest.param([look("b"), look("c")], True, id="a batch with news"),
        pytest.param(page(99, "Page 99"), True, id="a page with another answer"),
        pytest.param(glance("b"), False, id="a look with one line"),
        pytest.param([glance("b"), glance("c")], False, id="a batch without news"),
        pytest.param(change("b", say="no", fails=True), False, id="a change that fails"),
        pytest.param(page(99, UNKNOWN), False, id="a page with an unknown answer"),
        pytest.param(page(99, "boom", fails=True), False, id="a page with an error"),
        pytest.param(page(99, ""), False, id="a page with an empty answer"),
        pytest.param(call("sleep", seconds=5, say=""), False, id="a sleep"),
        pytest.param(call("search", q=7, say="none"), False, id="another look with numbers"),
    ],
)
def test_what_clears_the_count(other, clears):
    steps = [*PAGES[:14], other, *PAGES[20:34]]
    assert told(RULE, steps).ask == (None if clears else 16)


def test_a_single_page_is_forgotten_for_another_look():
    steps = [page(1), *(call("search", date=n, say="[]") for n in range(16))]
    assert told(RULE, steps) == Told(ask=16, held=17)


def test_a_user_turn_clears():
    assert told(RULE, [*PAGES[:14], HUMAN, *PAGES[14:28]]) == NEVER


def test_after_an_approval_the_count_starts_anew():
    steps = [*PAGES[:15], APPROVE, *PAGES[15:30]]
    assert [(n, when) for n, when, _ in findings(RULE, steps)] == [(15, "!"), (30, "!")]


def test_another_look_is_not_held():
    assert told(RULE, [*PAGES[:15], call("search", q=7, say="none")]) == Told(ask=15)


def test_a_batch_of_several_is_not_held():
    assert told(RULE, [*PAGES[:15], PAGES[15:17]]) == Told(ask=15)


# --- The finding -------------------------------------------------------------------------------


def test_a_finding_says_which_tool_how_often_and_since_when():
    (_, _, found), (_, _, held), _ = findings(RULE, [look("a"), *PAGES[:16]])
    assert (found.tools, found.count, found.threshold, found.since) == (("get_page",), 15, 15, 2)
    assert (held.count, held.loop) == (15, found.loop)


# --- The policy --------------------------------------------------------------------------------


def test_one_page_is_no_repetition():
    with pytest.raises(ValidationError, match="ask"):
        SameNumbers(ask=1)
