"""Are the parts of odd tool calls read without raising?"""

from types import SimpleNamespace

import pytest

from langchain_loopguard.core.calls import call_arguments, call_id, call_name, read_call
from tests.core.odd import HOSTILE, HostileText


def test_the_parts_of_a_tool_call_are_read():
    call = {"name": "bash", "args": {"command": "ls"}, "id": "c1", "type": "tool_call"}
    assert (call_name(call), call_arguments(call), call_id(call)) == (
        "bash",
        {"command": "ls"},
        "c1",
    )


def test_the_parts_of_an_object_are_its_attributes():
    call = SimpleNamespace(name="bash", args={"command": "ls"}, id="c1")
    assert (call_name(call), call_arguments(call), call_id(call)) == (
        "bash",
        {"command": "ls"},
        "c1",
    )


@pytest.mark.parametrize("make", [dict, SimpleNamespace, *HOSTILE.values()])
def test_a_call_without_parts_has_no_name_no_arguments_and_no_id(make):
    call = make()
    assert (call_name(call), call_arguments(call), call_id(call)) == ("", None, None)


@pytest.mark.parametrize("call", ["rm -rf", b"x", 7, 1.5, ["a"], ("a",), {"a"}, frozenset("a")])
def test_a_bare_value_is_its_own_argument(call):
    assert (call_name(call), call_arguments(call), call_id(call)) == ("", call, None)


@pytest.mark.parametrize("name", [None, 5, b"bash", ["bash"], object()])
def test_a_name_that_is_not_text_is_empty(name):
    assert call_name({"name": name}) == ""


def test_a_name_is_not_normalised():
    assert call_name({"name": " Straße\u0130 "}) == " Straße\u0130 "


def test_a_lone_surrogate_in_a_name_is_written_as_its_escape():
    assert call_name({"name": "a\ud800"}) == "a\\ud800"


@pytest.mark.parametrize("read", [call_name, lambda call: call_id({"id": call["name"]})])
def test_text_of_another_class_is_read_as_plain_text(read):
    found = read({"name": HostileText("bash")})
    assert type(found) is str
    assert str.__eq__(found, "bash")


@pytest.mark.parametrize("found", [None, "", 7, b"c1", ["c1"]])
def test_an_id_that_is_empty_or_not_text_is_no_id(found):
    assert call_id({"id": found}) is None


@pytest.mark.parametrize(
    "call",
    [
        {"name": "bash", "args": {"command": "ls"}, "id": "c1"},
        {"name": "bash", "args": None, "id": None},
        {"name": "é", "args": 5, "id": "c1"},
        {"name": None, "id": 5},
        {},
        "text",
    ],
)
def test_the_parts_read_at_once_are_the_parts_read_one_by_one(call):
    assert read_call(call) == (call_name(call), call_arguments(call), call_id(call))
