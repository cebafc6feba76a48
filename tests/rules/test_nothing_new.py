"""Are steps that bring nothing new counted, whatever they are?"""

import pytest
from pydantic import ValidationError

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.rules import NothingNew
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

RULE = only(NothingNew())
READ = look("a")
TEXT = READ["say"]
POLLERS = only(NothingNew(), poll_tools=("job_state",))


def clocked(name, n, state="running"):
    since = f"since {n // 60:02}:{n % 60:02}:00"
    return call(name, id=state, say=f"{state}\nqueue\nowner\n{since}")


# --- The numbers ------------------------------------------------------------------------------


def test_the_4th_step_without_news_warns_the_8th_asks_and_its_repeat_is_held():
    assert told(RULE, [READ] * 4) == NEVER  # the first brought something
    assert told(RULE, [READ] * 8) == Told(warn=5)
    assert told(RULE, [READ] * 10) == Told(warn=5, ask=9, held=10)


@pytest.mark.parametrize("period", [1, 2, 3, 6, 7, 12, 30])
def test_a_cycle_of_any_period_is_asked_about_8_steps_into_its_second_lap(period):
    lap = [look(word) for word in words(period)]
    assert told(RULE, lap * 12) == Told(warn=period + 4, ask=period + 8, held=period + 9)


@pytest.mark.parametrize("size", [1, 2, 6])
def test_batches_are_counted_not_calls(size):
    batch = [look(word) for word in words(size)]
    assert told(RULE, [batch, batch[::-1]] * 5) == Told(warn=5, ask=9, held=10)


def test_ever_new_spellings_with_one_answer_are_found():
    spellings = [shell(word, say=TEXT) for word in words(20)]
    assert told(RULE, [shell("a", say=TEXT), *spellings]) == Told(warn=5, ask=9, held=10)


# --- What counts, what clears, what does neither ------------------------------------------------


@pytest.mark.parametrize(
    ("other", "clears"),
    [
        pytest.param(look("b"), True, id="a look that says something new"),
        pytest.param(change("b"), True, id="a first change that succeeds"),
        pytest.param(call("frobnicate", say=""), True, id="an unknown tool that succeeds"),
        pytest.param(shell("b", say="b\nb b\nb b b\nb b b b"), True, id="a command with news"),
        pytest.param(
            look("b", fails=True), True, id="a look that fails with a long error not seen before"
        ),
        pytest.param({**READ, "say": "x\ny y\nz z z\nu"}, True, id="the same look, answer changed"),
        pytest.param([READ, look("b")], True, id="a batch with one new answer"),
        pytest.param(glance("b"), False, id="a look with one line"),
        pytest.param(shell("mv b c"), False, id="a silent command"),
        pytest.param(change("b", say="no", fails=True), False, id="a first short error"),
        pytest.param(look("b", name="search", lines=0), False, id="an empty look"),
        pytest.param(call("search", q="b", say=UNKNOWN), False, id="a first unknown answer"),
        pytest.param(call("sleep", say=""), False, id="a sleep"),
    ],
)
def test_what_clears_the_count(other, clears):
    steps = [*[READ] * 8, other, *[READ] * 6]
    asked = {n for n, _, f in findings(RULE, steps) if f.action == Action.ASK}
    assert bool(asked) is not clears


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        pytest.param({**READ, "args": {"path": "z"}}, False, id="a first look with known lines"),
        pytest.param(call("read_file", path="a", say=UNKNOWN), True, id="an unknown answer again"),
        pytest.param(shell("z", say=TEXT), True, id="a command with known lines"),
        pytest.param(call("search", say=TEXT, fails=True), True, id="an error with known lines"),
        pytest.param([READ, glance("z")], False, id="with a first look with one line beside"),
        pytest.param(glance("z"), False, id="a first look with one line"),
    ],
)
def test_what_counts(other, counts):
    steps = [*[READ] * 8, other]
    assert told(RULE, steps).ask == (9 if counts else None)


def test_a_second_short_error_counts_whoever_fails():
    steps = [*[READ] * 7, shell("a", say="no such", fails=True)]
    assert told(RULE, [*steps, READ]).ask is None
    assert told(RULE, [*steps, change("x", say="no such", fails=True), READ]).ask == 10


def test_what_cannot_be_read_counts_neither_way():
    links = [call("fetch", url=word, say="not found", fails=True) for word in words(40)]
    assert told(RULE, links) == NEVER
    assert told(RULE, [*[READ] * 8, links[0], READ]).ask == 10


def test_a_number_that_moves_in_an_error_is_no_news():
    fails = [shell(f"x{n}", say=f"a\nb\nc\nline {n}: no", fails=True) for n in range(12)]
    assert told(RULE, fails) == Told(warn=5, ask=9, held=10)


def test_a_number_that_moves_in_a_success_is_news():
    assert told(RULE, [call("check_job", say=f"a\nb\nc\n{n} %") for n in range(40)]) == NEVER


def test_a_long_answer_is_known_as_a_whole():
    long = look("a", lines=200)
    assert told(RULE, [long] * 10) == Told(warn=5, ask=9, held=10)
    other = {**long, "say": long["say"][:-1]}
    assert told(RULE, [long] * 8 + [other] + [long] * 4) == Told(warn=5)


def test_a_user_turn_clears():
    assert told(RULE, [*[READ] * 8, HUMAN, *[READ] * 8]) == Told(warn=5)


def test_after_an_approval_the_count_starts_anew():
    steps = [*[READ] * 9, APPROVE, *[READ] * 8]
    asks = [(n, when) for n, when, f in findings(RULE, steps) if f.action == Action.ASK]
    assert asks == [(9, "!"), (17, "!")]


# --- Work by shell -----------------------------------------------------------------------------


def test_two_steps_after_a_silent_command_may_bring_nothing():
    edits = [shell(f"sed -i {word}") for word in words(20)]
    test, lint, view = (shell(word, say=look(word)["say"]) for word in ("pytest", "ruff", "cat"))
    checked_twice = [step for edit in edits for step in (edit, test, lint)]
    checked_thrice = [step for edit in edits for step in (edit, test, lint, view)]
    assert told(RULE, checked_twice) == NEVER
    assert told(RULE, checked_thrice).ask == 4 + 8 * 4  # one in four counts, but for the first lap


def test_a_command_without_news_gives_nothing_free():
    steps = [READ, *(shell(word, say=TEXT) for word in words(8))]
    assert told(RULE, steps).ask == 9


def test_a_repeated_silent_command_gives_nothing_free():
    assert told(RULE, [shell("true")] * 11) == Told(warn=7, ask=11)  # 1 + 2 free + 8


def test_a_user_turn_takes_back_what_was_free():
    steps = [shell("a"), HUMAN, *[READ] * 9]
    assert told(RULE, steps) == Told(warn=6, ask=10)


# --- Waiting -----------------------------------------------------------------------------------


def test_polling_counts_for_nothing():
    poll = call("job_state", say="a\nb\nc\npending")
    assert told(POLLERS, [poll] * 60) == NEVER
    assert told(POLLERS, [poll, *[READ] * 8, poll, poll, READ]) == Told(warn=6, ask=12)


def test_a_poll_beside_another_call_counts():
    poll = call("job_state", say="a\nb\nc\npending")
    assert told(POLLERS, [[poll, READ]] * 10) == Told(warn=5, ask=9, held=10)


def test_reading_a_clock_counts_for_nothing():
    assert told(RULE, [clocked("check_job", n) for n in range(60)]) == NEVER


def test_a_clock_between_changes_made_again_counts():
    # Nobody waits who makes the same edit again and again, though each look says another time.
    steps = [
        step
        for n in range(0, 20, 2)
        for step in (change("x"), clocked("check_job", n), clocked("check_job", n + 1))
    ]
    # Counted are the edits from batch 4 on and the looks between them: 1, 4, 7, 10.
    assert told(RULE, steps) == Told(warn=7, ask=13, held=14)


def test_clocks_before_news_are_forgotten():
    steps = [change("x"), *(clocked("check_job", n) for n in range(12)), look("b"), change("x")]
    assert told(RULE, steps) == NEVER


# --- The question ------------------------------------------------------------------------------


def test_a_batch_that_never_ran_meets_the_question_once():
    steps = [*[READ] * 9, glance("b"), glance("c"), glance("d")]
    held = [n for n, when, f in findings(RULE, steps) if when == "?"]
    assert held == [10]


def test_after_a_refusal_the_next_new_batch_is_let_through():
    guard = LoopGuard(RULE)
    for _ in range(9):
        run(guard, READ)
    first = guard.check([{"name": "search", "args": {"q": "b"}, "id": "1"}])
    guard.refuse(first)
    second = guard.check([{"name": "search", "args": {"q": "c"}, "id": "2"}])
    assert (first.action, second.action) == (Action.ASK, Action.ALLOW)


def test_what_ran_before_is_held_each_time():
    guard = LoopGuard(RULE)
    for _ in range(9):
        run(guard, READ)
    for action in (Action.ASK, Action.ASK, Action.ASK, Action.STOP):
        decision = guard.check([{"name": "read_file", "args": READ["args"], "id": "1"}])
        assert decision.action is action
        guard.refuse(decision)


def test_the_question_is_open_again_when_the_let_through_brought_nothing():
    steps = [*[READ] * 9, look("a", name="view"), look("a", name="open"), look("a", name="get")]
    steps = [{**step, "say": TEXT} for step in steps]
    held = [n for n, when, f in findings(RULE, steps) if when == "?"]
    assert held == [10, 11, 12]


# --- The finding -------------------------------------------------------------------------------


def test_a_finding_names_the_tools_in_order_and_the_batch_where_it_began():
    a, b = look("a"), look("b", name="search")
    steps = [change("x"), [b, a], a, b, *[a] * 7]
    found = next(f for _, _, f in findings(RULE, steps) if f.action == Action.ASK)
    assert (found.tools, found.count, found.threshold, found.since) == (
        ("read_file", "search"),
        8,
        8,
        3,
    )


def test_a_finding_names_at_most_eight_tools_each_cut_at_64_letters():
    batch = [look(word, name=f"{word}{'x' * 100}") for word in words(12)]
    found = findings(RULE, [batch] * 9)[-1][2]
    assert [len(tool) for tool in found.tools] == [48] * 8


def test_a_count_that_begins_again_names_only_its_own_tools():
    steps = [*[look("a")] * 7, *[look("b", name="search")] * 9]
    assert findings(RULE, steps)[-1][2].tools == ("search",)


# --- The policy --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "named"),
    [
        ({"warn": 9}, "warn and ask must not fall"),
        ({"warn": 0}, "warn"),
        ({"ask": 0}, "ask"),
        ({"after_work": -1}, "after_work"),
    ],
)
def test_numbers_out_of_order_are_refused(numbers, named):
    with pytest.raises(ValidationError, match=named):
        NothingNew(**numbers)


def test_equal_numbers_are_allowed():
    assert told(only(NothingNew(warn=1, ask=1)), [READ] * 3) == Told(ask=2, held=3)


# --- First looks --------------------------------------------------------------------------------


def checks(count, **more):
    """Looks at so many places, which all show the same."""
    places = [{**look("a"), "args": {"path": word}, **more} for word in words(count)]
    return [look("a"), *places]


def test_a_first_look_that_finds_what_is_known_counts_half():
    assert told(RULE, checks(15)) == Told(warn=9)
    assert told(RULE, checks(30)) == Told(warn=9, ask=17, held=18)


def test_looking_at_the_same_place_again_counts_whole():
    assert told(RULE, [look("a")] * 12) == Told(warn=5, ask=9, held=10)


def test_a_first_look_beside_a_known_one_counts_whole():
    steps = [[look("a"), check] for check in checks(15)]
    assert told(RULE, steps).ask == 9


def test_news_between_makes_the_next_first_look_the_first():
    first = checks(40)
    steps = [step for n in range(20) for step in (*first[2 * n : 2 * n + 1], look(f"new {n}"))]
    assert told(RULE, steps) == NEVER


def test_a_state_without_looks_is_read():
    rule = NothingNew().build()
    state = rule.to_state()
    del state["looks"]
    rule.load_state(state)
    assert rule.to_state()["looks"] == 0


# --- Thoughts -----------------------------------------------------------------------------------


def thoughts(n, name="sequentialthinking"):
    return [call(name, thought=word, say=f"thought {at}") for at, word in enumerate(words(n))]


def test_25_thoughts_in_a_row_ask_and_the_next_is_held_but_not_what_acts_on_them():
    assert told(RULE, thoughts(24)) == NEVER
    assert told(RULE, thoughts(26)) == Told(ask=25, held=26)
    assert told(RULE, [*thoughts(25), shell("make"), *thoughts(24)]) == Told(ask=25)


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(look("b"), id="news"),
        pytest.param(glance("b"), id="what counts neither way"),
        pytest.param([call("think", thought="x"), glance("b")], id="a thought beside something"),
        pytest.param(HUMAN, id="a user turn"),
    ],
)
def test_thoughts_with_anything_between_are_no_row(between):
    assert told(RULE, [*thoughts(24), between, *thoughts(24)]) == NEVER


def test_what_is_said_of_thoughts():
    (number, when, finding), *_ = findings(RULE, [glance("a"), *thoughts(25)])
    assert (number, when) == (26, "!")
    assert (finding.tools, finding.count, finding.threshold) == (("sequentialthinking",), 25, 25)
    assert finding.since == 2
    assert "25 thoughts in a row" in finding.to_person
    # Held, it is told of the same row.
    held = findings(RULE, thoughts(26))[-2:]
    assert [(when, f.since, f.loop) for _, when, f in held] == [
        ("?", 1, "nothing_new:thoughts"),
        ("!", 1, "nothing_new:thoughts"),
    ]


def test_thoughts_go_on_after_an_approval():
    steps = [*thoughts(25), APPROVE, *thoughts(24)]
    assert told(RULE, steps) == Told(ask=25)
