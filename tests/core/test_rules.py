"""What does each rule find, what clears it, and what does it leave alone?"""

from itertools import count

import pytest

from langchain_loopguard.core.rules import Ceiling, Cycle, Error, InVain, Repeat, Stall
from tests.core.story import HUMAN, LINES, NEVER, UNKNOWN, Said, call, said

LOOK = call("read_file", path="a", say=LINES)
RUN = call("bash", command="make", say="make: *** [all] Error 2")


def news(tool="read_file"):
    """A step that says something new each time."""
    number = next(_numbers)
    words = "".join("abcdefghij"[int(digit)] for digit in str(number))
    return call(tool, n=number, say=f"{words} one\n{words} two\n{words} three")


_numbers = count(1)


def mixed(*makers, rounds):
    """Steps in turn; a function makes a step of its own for each round."""
    return [one() if callable(one) else one for _ in range(rounds) for one in makers]


def rows(*given):
    return [pytest.param(steps, expected, id=name) for name, steps, expected in given]


# --- repeat ---------------------------------------------------------------------------------------

WAITING = call("get_job", id=7, say='{"status": "pending"}')


@pytest.mark.parametrize(
    ("steps", "expected"),
    rows(
        ("the same result", [LOOK] * 9, Said(4, 5, 6)),
        ("the same failure", [call(x=1, say="boom", fails=True)] * 9, Said(4, 5, 6)),
        ("the same receipt of a change", [call("edit", x=1, say="ok")] * 9, Said(4, 5, 6)),
        ("no result at all", [call(x=1, say=UNKNOWN)] * 9, Said(4, 5, 6)),
        ("four equal calls are not asked about", [LOOK] * 4, Said(4)),
        (
            "two calls a step count twice, but where it said something new",
            [[LOOK, LOOK]] * 4,
            Said(None, 3, 4),
        ),
        (
            "at any distance",
            mixed(LOOK, *[call("read_file", path=n, say=LINES) for n in "bcd"], rounds=9),
            Said(13, 17, 21),
        ),
        (
            "another result each time",
            [call("read_file", path="a", say=f"n = {n}") for n in range(40)],
            NEVER,
        ),
        ("news that another tool read excuses a look", mixed(LOOK, news, rounds=30), NEVER),
        (
            "news that another tool read makes a command slower",
            mixed(RUN, news, rounds=30),
            Said(7, 23, 25),
        ),
        (
            "a change excuses a command",
            mixed(RUN, lambda: call("edit", n=next(_numbers), say="ok"), rounds=30),
            NEVER,
        ),
        ("a turn clears", [*[LOOK] * 4, HUMAN] * 6, Said(4)),
        ("waiting has patience and no warning", [WAITING] * 25, Said(None, 20, 21)),
        (
            "an unknown job's error has none",
            [call("get_job", say="no", fails=True)] * 9,
            Said(4, 5, 6),
        ),
    ),
)
def test_repeat(steps, expected):
    assert said(*steps, rules=(Repeat(),)) == expected


@pytest.mark.parametrize(
    ("options", "declared", "expected"),
    [
        ({"poll_tools": ["read_file"]}, {}, Said(None, 20, 21)),
        ({"tool_limits": {"read_file": 2}}, {}, Said(None, 2, 3)),
        ({"tool_limits": {"read_file": 30}}, {}, Said(None, 30, 31)),
        ({}, {"read_file": {"loop_guard": {"poller": True}}}, Said(None, 20, 21)),
        ({}, {"read_file": {"loop_guard": {"limit": 3}}}, Said(None, 3, 4)),
    ],
)
def test_repeat_by_a_tools_own_limit(options, declared, expected):
    found = said(*[LOOK] * 40, rules=(Repeat(),), declared=declared, **options)
    assert found == expected


def test_a_refund_is_held_before_the_second_equal_one_runs():
    found = said(*[call("refund", order=5, say="refunded")] * 3, tool_limits={"refund": 2})
    assert found.held == 2


# --- stall ----------------------------------------------------------------------------------------


def reads(*names, say=LINES):
    return [call("read_file", path=name, say=say) for name in names]


@pytest.mark.parametrize(
    ("steps", "expected"),
    rows(
        ("other calls with one result", reads(*range(12)), Said(6, 9, 10)),
        ("a cycle of twelve steps", reads(*range(12)) * 2, Said(6, 9, 10)),
        (
            "one look between others that bring news",
            mixed(LOOK, news, rounds=20),
            NEVER,
        ),
        (
            "steps that may have done something count nothing",
            mixed(LOOK, lambda: call(n=next(_numbers), say=f"r{next(_numbers)}"), rounds=20),
            NEVER,
        ),
        (
            "the first look after a change is free",
            [*mixed(RUN, lambda: call("edit", n=next(_numbers), say="ok"), rounds=20)],
            NEVER,
        ),
        ("waiting is not asked about", [WAITING] * 25, NEVER),
        ("a turn clears", [*reads(*range(5)), HUMAN] * 5, NEVER),
    ),
)
def test_stall(steps, expected):
    assert said(*steps, rules=(Stall(),)) == expected


def test_stall_leaves_a_step_of_another_tool_alone():
    steps = [*reads(*range(9)), call("search", q="x", say=LINES)]
    assert said(*steps, rules=(Stall(),)).held is None


# --- ceiling --------------------------------------------------------------------------------------


def counting(tool, times, word="row"):
    return [call(tool, x=1, say=f"{word} {n}") for n in range(times)]


def worded(tool, times):
    return [{**news(tool), "args": {"x": 1}} for _ in range(times)]


@pytest.mark.parametrize(
    ("steps", "expected"),
    rows(
        ("a change whose result counts up", counting("edit", 60), Said(held=10)),
        ("a shell whose result counts up", counting("bash", 60), Said(held=20)),
        ("a tool of no known kind", counting("frobnicate", 60), Said(held=50)),
        ("a tool that reads", counting("read_file", 60), Said(held=50)),
        ("a change in new words", worded("edit", 60), Said(held=10)),
        ("a shell in new words", worded("bash", 60), Said(held=20)),
        (
            "a change with other work between",
            mixed(call("edit", x=1, say="ok"), news, rounds=30),
            NEVER,
        ),
        (
            "any call with other work between",
            mixed(call("edit", x=1, say="ok"), news, rounds=60),
            Said(held=99),
        ),
        ("a turn clears", [*counting("edit", 9), HUMAN] * 9, NEVER),
    ),
)
def test_ceiling(steps, expected):
    assert said(*steps, rules=(Ceiling(),)) == expected


def test_a_declared_poller_has_no_ceiling():
    found = said(*counting("job", 500), rules=(Ceiling(),), poll_tools=["job"])
    assert found == NEVER


def test_a_tool_that_may_be_repeated_has_the_last_ceiling_only():
    declared = {"edit": {"idempotentHint": True}}
    assert said(*counting("edit", 60), rules=(Ceiling(),), declared=declared) == Said(held=50)


# --- error ----------------------------------------------------------------------------------------


def fails(text, tool="api", **arguments):
    return call(tool, say=text, fails=True, n=next(_numbers), **arguments)


@pytest.mark.parametrize(
    ("steps", "expected"),
    rows(
        ("other arguments", [fails("refused") for _ in range(12)], Said(5, 8, 9)),
        ("other numbers", [fails(f"line {n}: bad") for n in range(12)], Said(5, 8, 9)),
        (
            "the call's own words",
            [fails(f"no file {w}.py", path=f"{w}.py") for w in "abcdefghijkl" for w in [w * 3]],
            Said(5, 8, 9),
        ),
        (
            "made-up tools",
            [fails(f"tool{w} is no tool", f"tool{w}") for w in "abcdefghijkl"],
            Said(5, 8, 9),
        ),
        ("only the text tells", [call(n=n, say="Error: bad") for n in range(12)], Said(5, 8, 9)),
        ("another error each time", [fails(w * 3) for w in "abcdefghijkl"], NEVER),
        ("a success with news clears", mixed(lambda: fails("no"), news, rounds=20), NEVER),
        (
            "a known success does not",
            [LOOK, *mixed(lambda: fails("no"), LOOK, rounds=12)],
            Said(10, 16, 18),
        ),
        (
            "an error that says to try again",
            [fails("rate limit exceeded") for _ in range(25)],
            Said(None, 20, 21),
        ),
        ("a turn clears", [*[fails("no") for _ in range(4)], HUMAN] * 9, NEVER),
    ),
)
def test_error(steps, expected):
    assert said(*steps, rules=(Error(),)) == expected


def test_error_leaves_a_call_of_another_tool_alone():
    steps = [*[fails("no") for _ in range(8)], call("search", say="x")]
    assert said(*steps, rules=(Error(),)) == Said(5, 8)


# --- in vain --------------------------------------------------------------------------------------


def guesses(tool, times, text="nothing found", different=99):
    return [call(tool, q=n % different, say=text) for n in range(times)]


@pytest.mark.parametrize(
    ("steps", "expected"),
    rows(
        ("a search that finds nothing", guesses("search", 20), Said(11, 16, 17)),
        ("receipts are only warned of", guesses("log_expense", 40), Said(11)),
        ("guesses made again", guesses("submit_flag", 20, different=6), Said(None, 9, 10)),
        ("other results", [call("search", q=n, say=f"hit {n}") for n in range(30)], NEVER),
        ("long results", guesses("search", 20, LINES), NEVER),
        ("silence", guesses("bash", 40, ""), NEVER),
        (
            "news clears",
            mixed(lambda: call("search", q=next(_numbers), say="none"), news, rounds=30),
            NEVER,
        ),
        (
            "a change by another tool clears",
            mixed(
                lambda: call("search", q=next(_numbers), say="none"),
                lambda: call("edit", q=next(_numbers), say=""),
                rounds=30,
            ),
            NEVER,
        ),
    ),
)
def test_in_vain(steps, expected):
    assert said(*steps, rules=(InVain(),)) == expected


# --- cycle ----------------------------------------------------------------------------------------


def lap(length, tool="look", say=lambda n: f"n = {n}"):
    return [call(tool, at=place, say=say(next(_numbers))) for place in range(length)]


@pytest.mark.parametrize("length", range(2, 9))
def test_six_equal_rounds_are_a_cycle_whatever_they_answer(length):
    steps = [step for _ in range(9) for step in lap(length)]
    assert said(*steps, rules=(Cycle(),)) == Said(held=6 * length)


@pytest.mark.parametrize(
    ("steps", "expected"),
    rows(
        ("one call alone", lap(1) * 40, NEVER),
        ("nine steps", [step for _ in range(9) for step in lap(9)], NEVER),
        ("five rounds", [step for _ in range(5) for step in lap(2)], NEVER),
        (
            "half the steps say something in words",
            mixed(LOOK, lambda: {**news(), "args": {}}, rounds=20),
            NEVER,
        ),
        ("it waits", mixed(LOOK, WAITING, rounds=20), NEVER),
        ("a turn clears", [*[step for _ in range(5) for step in lap(2)], HUMAN] * 4, NEVER),
    ),
)
def test_cycle_leaves_alone(steps, expected):
    assert said(*steps, rules=(Cycle(),)) == expected


# --- What the default does not find ---------------------------------------------------------------

KNOWN_MISSES = rows(
    (
        "several kinds of errors in turn are found late",
        [fails(["disk full", "no permission", "bad port"][n % 3]) for n in range(12)],
        Said(8, 11, 12),
    ),
    ("results in other words each time", worded("frobnicate", 49), NEVER),
    (
        "one kind of failure after another, told by prose only",
        [call("api", n=n, say=f"{'abcdefgh'[n % 8] * 3} is not allowed here") for n in range(16)],
        NEVER,
    ),
    (
        "a wrong guess that is new each time",
        [call("submit", flag=f"f{n}", say="Wrong flag!") for n in range(40)],
        Said(11),
    ),
    (
        "one script with random output, 19 times",
        [call("bash", command="./roll", say=f"{n * 7919 % 97}") for n in range(19)],
        NEVER,
    ),
    (
        "a long result with a word of its own",
        [call(page=1, say="word " * 300 + news()["say"]) for _ in range(19)],
        NEVER,
    ),
    (
        "a result with a token of its own",
        [call(page=1, say=f"request_id: q{n}x7\nno entries") for n in range(19)],
        NEVER,
    ),
    (
        "a receipt that repeats what was asked",
        [call("submit", flag=f"flag{n}x", say=f"flag{n}x is wrong") for n in range(40)],
        NEVER,
    ),
    (
        "a turn that a program sends",
        [*[LOOK] * 3, HUMAN] * 20,
        NEVER,
    ),
)


@pytest.mark.parametrize(("steps", "expected"), KNOWN_MISSES)
def test_what_is_not_found(steps, expected):
    assert said(*steps) == expected


STOPPED_WRONGLY = rows(
    (
        "a button pressed, and what is there counted",
        mixed(
            call("click", on="more", say="Clicked"),
            lambda: call("count", say=f"{next(_numbers)} posts"),
            rounds=6,
        ),
        Said(None, None, 12),
    ),
    (
        "a test that fails after edits that fail",
        mixed(RUN, lambda: fails("no match", "edit"), rounds=6),
        Said(7, 9, 11),
    ),
    (
        "a countdown",
        [call("get_queue", id=1, say=f"{20 - n} minutes left") for n in range(6)],
        Said(4, 5, 6),
    ),
    (
        "an error whose numbers are the news",
        [call("rollout", say=f"{n} of 9 replicas ready", fails=True) for n in range(6)],
        Said(4, 5, 6),
    ),
    (
        "commands that differ in white space",
        [call("bash", command=f"indent {' ' * n}", say="left as it was") for n in range(6)],
        Said(4, 5, 6),
    ),
    (
        "waiting without a sign of it, ten equal looks",
        [call("get_build", id=1, say="stage 2 of 5")] * 10,
        Said(4, 5, 6),
    ),
    (
        "a counter pressed ten times",
        counting("create", 12, "quantity"),
        Said(held=10),
    ),
    (
        "fifteen honest searches without a hit",
        guesses("search", 16),
        Said(11, 16),
    ),
)


@pytest.mark.parametrize(("steps", "expected"), STOPPED_WRONGLY)
def test_what_may_be_stopped_wrongly(steps, expected):
    assert said(*steps) == expected
