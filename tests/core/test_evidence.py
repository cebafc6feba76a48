"""Does each step bring what the table says, and is it known what waits?"""

import pytest

from langchain_loopguard.core.evidence import TABLE, Progress, Said
from tests.core.story import HUMAN, LINES, UNKNOWN, brought, call

KINDS = {"reads": "read_file", "unknown": "frobnicate", "shell": "bash", "changes": "edit_file"}

LONG = "many words " * 120

OTHER = "first words\nsecond words\nthird words"

WAYS = {
    # What was said before -> what is said now, by call A. Each way leads to one row of the table.
    Said.NEW_LONG: ([], LINES, "NNNN"),
    Said.NEW_SHORT: ([], "fresh", "OOON"),
    Said.KNOWN_LONG: ([("B", LINES)], LINES, "XXXX"),
    Said.RECEIPT: ([("B", "ok")], "ok", "OOON"),
    Said.MOVED: ([("B", f"{LONG} 1")], f"{LONG} 2", "NNNN"),
    Said.NEW_ERROR: ([], "!boom", "OOOO"),
    Said.KNOWN_ERROR: ([("B", "!boom")], "!boom", "XXXX"),
    Said.MISSING: ([], UNKNOWN, "OOOO"),
}

WAYS_OF_A_KNOWN_CALL = {
    Said.NEW_LONG: ([("A", OTHER)], LINES, "NNNN"),
    Said.NEW_SHORT: ([("A", "one")], "two", "NNNN"),
    Said.KNOWN_LONG: ([("A", OTHER), ("B", LINES)], LINES, "XXXX"),
    Said.RECEIPT: ([("A", "one"), ("B", "ok")], "ok", "XXXX"),
    Said.AGAIN: ([("A", "ok")], "ok", "XXXX"),
    Said.MOVED: ([("A", f"{LONG} 1")], f"{LONG} 2", "OOOO"),
    Said.NEW_ERROR: ([("A", "ok")], "!boom", "OOOO"),
    Said.KNOWN_ERROR: ([("A", "!boom")], "!boom", "XXXX"),
    Said.MISSING: ([("A", "ok")], UNKNOWN, "XXXX"),
}

ROWS = [
    pytest.param(row, way, kind, id=f"{row.value}, {known} call, {kind}")
    for known, ways in (("new", WAYS), ("known", WAYS_OF_A_KNOWN_CALL))
    for row, way in ways.items()
    for kind in KINDS
]


def told(tool, letter, text):
    fails = isinstance(text, str) and text.startswith("!")
    return call(tool, x=letter, say=text[1:] if fails else text, fails=fails)


@pytest.mark.parametrize(("row", "way", "kind"), ROWS)
def test_a_call_brings_what_the_table_says(row, way, kind):
    before, text, expected = way
    tool = KINDS[kind]
    last = brought(*[told(tool, *one) for one in before], told(tool, "A", text))[-1]
    letter = dict(zip(KINDS, expected, strict=True))[kind]
    assert last.calls[0].said is row
    assert last.progress is {"N": Progress.NEW, "O": Progress.OPEN, "X": Progress.NONE}[letter]


def test_the_table_has_no_other_row():
    assert {*WAYS, *WAYS_OF_A_KNOWN_CALL} == set(TABLE) == set(Said)


def test_a_step_brought_the_best_of_its_calls():
    known, fresh = call("read_file", x=1, say=LINES), call("read_file", x=2, say=OTHER)
    assert brought(known, [known, fresh])[-1].progress is Progress.NEW


@pytest.mark.parametrize("say", ["fresh", LINES])
def test_a_thought_is_open_whatever_it_says(say):
    assert brought(call("think", x=1, say=say))[-1].progress is Progress.OPEN


def test_a_turn_forgets_what_was_seen():
    step = call("read_file", x=1, say=LINES)
    assert [one.progress for one in brought(step, step, HUMAN, step)] == [2, 0, 2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("a\nb\nc", "c\na\nb", id="lines in another order"),
        pytest.param("a\nb\nc at 12:03:07", "a\nb\nc at 14:00:59", id="another time"),
        pytest.param("a \n\n  b\nc", "a\nb\nc\n", id="white space at a line's ends"),
    ],
)
def test_results_that_say_the_same_are_one(one, other):
    steps = [call("read_file", x=1, say=say) for say in (one, other)]
    assert brought(*steps)[-1].calls[0].said is Said.AGAIN


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("1. ash\n2. birch\n3. cedar", "1. cedar\n2. ash\n3. birch", Said.KNOWN_LONG),
        ("- ash\n- birch", "* birch\n* ash", Said.RECEIPT),
        ('[{"id": "ash"}, {"id": "birch"}]', '[{"id": "birch"}, {"id": "ash"}]', Said.RECEIPT),
        ('[{"id": "ash"}]', '[{"id": "cedar"}]', Said.NEW_SHORT),
    ],
)
def test_a_list_in_another_order_says_nothing_new(one, other, said):
    found = brought(call("search", q=1, say=one), call("search", q=2, say=other))
    assert found[-1].calls[0].said is said


def test_a_frame_of_a_tool_says_nothing():
    framed = [f"[exit code 0]\n[cwd /app]\n[user app]\n{word}" for word in ("ok", "yes", "ok")]
    steps = [call("frobnicate", x=n, say=say) for n, say in enumerate(framed)]
    assert [one.progress for one in brought(*steps)] == [2, 1, 1]
    assert brought(*steps)[-1].calls[0].is_receipt


@pytest.mark.parametrize(
    ("step", "changed_by"),
    [
        pytest.param(call("edit", x=1, say="ok"), {"edit"}, id="a change"),
        pytest.param(call("bash", x=1, say="ok"), {"bash"}, id="a shell's first success"),
        pytest.param(call("read", x=1, say=LINES), set(), id="reading"),
        pytest.param(call("edit", x=1, say="ok", fails=True), set(), id="a failed change"),
    ],
)
def test_a_success_of_a_tool_that_does_not_only_read_may_have_changed_something(step, changed_by):
    assert brought(step)[-1].changed_by == changed_by


@pytest.mark.parametrize(
    ("say", "in_words"), [("row 1", False), ("row two", True), ("row 1\nand two", True)]
)
def test_news_in_numbers_alone_is_not_in_words(say, in_words):
    assert brought(call(x=1, say="row 0"), call(x=1, say=say))[-1].in_words is in_words


# --- Waiting --------------------------------------------------------------------------------------

WAITS = (
    '{"status": "pending"}',
    "state: in_progress",
    "The build is running.",
    "still processing",
    "Queued",
    "phase=ContainerCreating",
    "not ready",
    "Too many requests, retry after 30 s",
    "Rate limit exceeded",
    "try again in a minute",
    "results are not yet available",
    *[f"phase is {word}" for word in "provisioning starting compiling scheduled".split()],
    *[f"state: {word}" for word in "building deploying waiting initializing creating".split()],
)

DOES_NOT_WAIT = (
    "done",
    "the pending invoices are listed below",
    "running shoes: 12 pairs",
    "status: complete",
    "3 failed",
)


@pytest.mark.parametrize("say", WAITS)
def test_a_result_may_say_that_something_needs_time(say):
    assert brought(call(x=1, say=say))[-1].waits


@pytest.mark.parametrize("say", DOES_NOT_WAIT)
def test_words_that_only_look_like_waiting_are_none(say):
    assert not brought(call(x=1, say=say))[-1].waits


@pytest.mark.parametrize(
    ("say", "waits"),
    [("rate limit exceeded", True), ("try again later", True), ("Error: status: pending", False)],
)
def test_an_error_waits_only_when_it_says_to_try_again(say, waits):
    assert brought(call(x=1, say=say, fails=True))[-1].waits is waits


@pytest.mark.parametrize(
    ("tool", "arguments", "waits"),
    [
        ("bash", {"command": "sleep 60 && ls"}, True),
        ("python", {"code": "time.sleep(5)"}, True),
        ("pwsh", {"c": "Start-Sleep -Seconds 5"}, True),
        ("wait", {}, True),
        ("bash", {"command": "man sleep"}, False),
        ("book", {"hotel": "Sleep Inn 24"}, False),
        ("join_wait_list", {"id": 7}, False),
    ],
)
def test_a_call_waits_by_its_tool_or_by_a_sleep_in_its_arguments(tool, arguments, waits):
    assert brought(call(tool, say="x y", **arguments))[-1].waits is waits


def test_what_was_waited_for_is_looked_at_with_patience_until_something_happens():
    wait, look = call("wait", say="waited"), call("get_job", id=1, say="no result yet")
    work = call("edit", x=1, say="ok")
    found = brought(look, wait, look, look, work, look)
    assert [one.waits for one in found] == [False, True, True, True, True, False]
