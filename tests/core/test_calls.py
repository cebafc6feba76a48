"""Are a call's parts read whatever it is, and which calls are one call?"""

from types import SimpleNamespace

import pytest

from langchain_loopguard.core.calls import call_arguments, call_id, call_name
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import IGNORED_ARGUMENTS, Policy
from tests.core.odd import HOSTILE, HostileDict, HostileText


def identity(name, arguments, declared=None, **options):
    guard = LoopGuard(Policy(**options))
    guard.declare(name, declared)
    return guard.check([{"name": name, "args": arguments, "id": "1"}]).record.calls[0].identity


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        ({"name": "ls", "args": {"p": 1}, "id": "7"}, ("ls", {"p": 1}, "7")),
        (SimpleNamespace(name="ls", args={}, id="7"), ("ls", {}, "7")),
        ({}, ("", None, None)),
        ({"name": 5, "args": "x", "id": 5}, ("", "x", None)),
        ({"name": "\ud800", "id": ""}, ("\\ud800", None, None)),
        ({"name": HostileText("ls"), "id": HostileText("7")}, ("ls", None, "7")),
        (None, ("", None, None)),
        ("ls", ("", "ls", None)),
        ([1, 2], ("", [1, 2], None)),
    ],
)
def test_the_parts_of_any_call_are_read(call, parts):
    assert (call_name(call), call_arguments(call), call_id(call)) == parts


@pytest.mark.parametrize("make", [*HOSTILE.values(), HostileDict])
def test_a_hostile_call_has_no_name(make):
    assert (call_name(make()), call_id(make())) == ("", None)


SAME = [
    pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="order of keys"),
    pytest.param({"c": "ls -la"}, {"c": " ls  -la\n"}, id="white space"),
    pytest.param({"c": "ls -la"}, {"c": "ls\t-la"}, id="a tab"),
    pytest.param({"c": "echo 'a'"}, {"c": 'echo "a"'}, id="quotes"),
    pytest.param({"c": "it's"}, {"c": "it\u2019s"}, id="typographic quotes"),
    pytest.param({"c": "ls"}, {"c": "l\u200bs\ufeff"}, id="zero-width characters"),
    pytest.param({"c": "a b"}, {"c": "a\u00a0b"}, id="a space that does not break"),
    *[
        pytest.param({"c": 1, name: "this"}, {"c": 1, name: "that"}, id=name)
        for name in IGNORED_ARGUMENTS
    ],
    pytest.param({"c": 1, "reason": "x"}, {"c": 1}, id="with and without a reason"),
]

DIFFERENT = [
    pytest.param({"c": "ls"}, {"c": "pwd"}, id="another value"),
    pytest.param({"c": 1}, {"d": 1}, id="another key"),
    pytest.param({"c": 1}, {"c": 1.0}, id="a float"),
    pytest.param({"c": 1, "notes": "this"}, {"c": 1, "notes": "that"}, id="another free text"),
    pytest.param({"reason": "this"}, {"reason": "that"}, id="a reason alone"),
    pytest.param({"reason": "this", "why": "x"}, {"reason": "that"}, id="prose alone"),
    pytest.param({"c": "LS"}, {"c": "ls"}, id="another case"),
    pytest.param("ls", "pwd", id="bare texts"),
    pytest.param(None, {}, id="no arguments"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_makes_no_other_call(one, other):
    assert identity("bash", one) == identity("bash", other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_makes_another_call(one, other):
    assert identity("bash", one) != identity("bash", other)


def test_another_tool_is_another_call():
    assert identity("bash", {"c": 1}) != identity("sh", {"c": 1})


@pytest.mark.parametrize("name", ["transfer_to_billing", "Transfer_To_Billing"])
def test_a_handoff_is_one_call_whatever_its_reason(name):
    assert identity(name, {"reason": "this"}) == identity(name, {"reason": "that"})


def test_a_policy_names_the_arguments_that_are_left_out():
    one, other = {"c": 1, "why": "x", "note": "a"}, {"c": 1, "why": "x", "note": "b"}
    assert identity("bash", one) != identity("bash", other)
    assert identity("bash", one, ignored_arguments=["note"]) == identity(
        "bash", other, ignored_arguments=["note"]
    )
    assert identity("bash", {"c": 1, "why": "x"}, ignored_arguments=()) != identity(
        "bash", {"c": 1, "why": "y"}, ignored_arguments=()
    )


@pytest.mark.parametrize(
    ("declared", "one", "other", "same"),
    [
        (["command"], {"command": "ls", "n": 1}, {"command": "ls", "n": 2}, True),
        (["command"], {"command": "ls", "n": 1}, {"command": "pwd", "n": 1}, False),
        (["reason"], {"reason": "a", "n": 1}, {"reason": "b", "n": 1}, False),
        (["missing"], {"n": 1}, {"n": 2}, False),
    ],
)
def test_a_tool_declares_what_identifies_its_calls(declared, one, other, same):
    metadata = {"loop_guard": {"identity": declared}}
    assert (identity("t", one, metadata) == identity("t", other, metadata)) is same


def test_a_step_is_known_by_its_calls_in_any_order():
    calls = [{"name": "a", "args": {}}, {"name": "b", "args": {}}]
    one, other = (LoopGuard().check(given).record for given in (calls, calls[::-1]))
    assert one.identity == other.identity
