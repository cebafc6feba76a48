"""Do the parts that the foreign rules share do what they say?"""

import pytest

from langchain_loopguard.core.answers import Answer
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.rules.harnesses.cycles import (
    laps_at_end,
    repeating_tail,
    shortest_cycle,
)
from langchain_loopguard.core.rules.harnesses.error_texts import (
    says_bad_arguments,
    says_no_such_tool,
)
from langchain_loopguard.core.rules.harnesses.keys import fingerprint, is_empty, set_key
from langchain_loopguard.core.rules.harnesses.ladder import rung
from langchain_loopguard.core.rules.harnesses.memory import Memory
from tests.core.plays import call, run


@pytest.mark.parametrize(
    ("items", "period", "length", "laps"),
    [
        ("", 1, 0, 0),
        ("a", 2, 0, 0),
        ("a", 1, 1, 1),
        ("ab", 1, 1, 1),
        ("ab", 2, 2, 1),
        ("baa", 1, 2, 2),
        ("babab", 2, 5, 2),
        ("xbabab", 2, 5, 2),
        ("ababab", 2, 6, 3),
        ("abcabc", 3, 6, 2),
        ("abcabd", 3, 3, 1),
    ],
)
def test_the_tail_that_repeats(items, period, length, laps):
    assert (repeating_tail(items, period), laps_at_end(items, period)) == (length, laps)


def test_the_shortest_cycle_wins():
    assert shortest_cycle("aaaa", (1, 2), 2) == 1


def test_without_a_cycle_there_is_no_period():
    assert shortest_cycle("abcd", (1, 2, 3), 2) == 0


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, None),
        (2, (Action.WARN, 2)),
        (3, None),
        (4, (Action.ASK, 4)),
        (5, (Action.ASK, 4)),
        (6, (Action.STOP, 6)),
        (9, (Action.STOP, 6)),
    ],
)
def test_a_count_climbs_the_ladder(count, expected):
    assert rung(count, notes=(2,), ask_at=4, stop_at=6) == expected


MISSING = [
    "Error: nope is not a valid tool, try one of [bash].",
    "Unknown tool: nope",
    "Tool 'nope' not found",
    'The tool "nope" does not exist.',
    "Model tried to call unavailable tool 'nope'",
    "No such tool: nope",
]
WRONG = [
    "2 validation errors for bash",
    "SchemaError: missing key",
    "Invalid arguments for tool bash",
    "missing required parameter 'path'",
]


@pytest.mark.parametrize("text", MISSING)
def test_an_error_that_names_a_missing_tool(text):
    answer = Answer(text, error=True)
    assert (says_no_such_tool(answer), says_bad_arguments(answer)) == (True, False)


@pytest.mark.parametrize("text", WRONG)
def test_an_error_that_names_bad_arguments(text):
    answer = Answer(text, error=True)
    assert (says_no_such_tool(answer), says_bad_arguments(answer)) == (False, True)


@pytest.mark.parametrize("text", ["file not found", "permission denied", "", "the tool broke"])
def test_another_error(text):
    answer = Answer(text, error=True)
    assert (says_no_such_tool(answer), says_bad_arguments(answer)) == (False, False)


@pytest.mark.parametrize("text", [*MISSING, *WRONG])
def test_a_success_is_no_error_whatever_it_says(text):
    answer = Answer(text, error=False)
    assert (says_no_such_tool(answer), says_bad_arguments(answer)) == (False, False)


@pytest.mark.parametrize(("before", "read"), [(1_988, True), (1_989, False)])
def test_only_the_beginning_of_an_error_is_read(before, read):
    text = "." * before + "unknown tool"
    assert says_no_such_tool(Answer(text, error=True)) is read


@pytest.mark.parametrize(("before", "read"), [(1_988, True), (1_989, False)])
def test_only_the_beginning_of_an_error_is_read_for_arguments(before, read):
    text = "." * before + "schema error"
    assert says_bad_arguments(Answer(text, error=True)) is read


@pytest.mark.parametrize("written", [b"null", b"{}", b"[]", b'""'])
def test_what_counts_as_no_arguments(written):
    assert is_empty(written)


@pytest.mark.parametrize("written", [b"0", b"false", b'{"a":null}', b'" "'])
def test_what_counts_as_arguments(written):
    assert not is_empty(written)


def test_a_fingerprint_has_48_bits():
    prints = [fingerprint(n) for n in range(1_000)]
    assert 2**47 < max(prints) < 2**48


def test_where_a_part_ends_counts():
    assert fingerprint("ab", "c") != fingerprint("a", "bc")


def test_a_set_of_calls_has_no_order_and_no_repeats():
    assert set_key([3, 1, 3]) == set_key([1, 3])


def test_a_memory_forgets_what_was_touched_first():
    memory = Memory(2, 1)
    for key in (1, 2, 1, 3):
        memory.put(key, [key])
    assert [memory.get(key) for key in (1, 2, 3)] == [[1], None, [3]]


def test_a_memory_keeps_its_order_in_the_state():
    memory, loaded = Memory(2, 2), Memory(2, 2)
    for key in (2**48 - 1, 1):
        memory.put(key, [key, 7])
    loaded.load_state(memory.to_state())
    loaded.put(5, [5, 5])
    assert [loaded.get(key) for key in (2**48 - 1, 1, 5)] == [None, [1, 7], [5, 5]]


def test_a_state_keeps_48_signs_of_a_tools_name():
    guard = LoopGuard(LoopGuardPolicy.preset("gemini_cli"))
    run(guard, call("é" * 60))
    assert guard.to_state()["rules"]["gemini_cli"][1][1][0][2] == "?" * 48


def test_a_held_finding_names_eight_tools():
    guard = LoopGuard(LoopGuardPolicy.preset("takt"))
    for _ in range(2):
        run(guard, [call(f"tool{n}", say="boom", fails=True) for n in range(10)])
    held = guard.to_state()["rules"]["takt"][0]
    assert held[6] == [f"tool{n}" for n in range(8)]
