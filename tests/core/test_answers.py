"""What did a call get back, and which answer belongs to which call?"""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage

from langchain_loopguard.core.answers import Answer, encode_text, match_results
from tests.core.odd import HOSTILE, HostileDict, HostileText


def error(text, name="edit", arguments=None):
    answer = Answer(text, error=True)
    answer.mask_arguments(name, arguments)
    return answer


# --- The text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("plain", b"plain", id="text"),
        pytest.param("grün", "grün".encode(), id="not ascii"),
        pytest.param("a\ud800", b"a\xed\xa0\x80", id="a lone surrogate"),
        pytest.param([{"type": "text", "text": "a"}, "b"], b"a\nb", id="content blocks"),
        pytest.param([{"type": "image", "url": "u"}], b'{"type":"image","url":"u"}', id="an image"),
        pytest.param([{"text": 5}, 6], b'{"text":5}\n6', id="blocks without text"),
        pytest.param([], b"", id="no blocks"),
        pytest.param({"a": 1}, b'{"a":1}', id="a JSON value"),
        pytest.param(None, b"null", id="null"),
        pytest.param(7, b"7", id="a number"),
    ],
)
def test_the_text_of_an_answer(content, text):
    assert Answer(content, error=False).text == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x", "x "),
        ("null", None),
        ("7", 7),
        ("a", [{"type": "text", "text": "a"}]),
        (["a", "b"], ["a\nb"]),
        ("\ud800", "\\ud800"),
        ({"a": 1}, '{"a":1}'),
    ],
)
def test_answers_that_differ_have_another_digest(one, other):
    assert Answer(one, error=False).digest != Answer(other, error=False).digest


@given(st.text())
def test_any_text_can_be_encoded_and_texts_that_differ_stay_apart(text):
    assert encode_text(text).decode("utf-8", "surrogatepass") == text


# --- What is masked -----------------------------------------------------------------------------


def test_a_clock_is_masked_for_comparison_and_stays_in_the_text():
    one, other = (Answer(f"done in {n}s", error=False) for n in (1, 2))
    assert one.masked_digest == other.masked_digest
    assert one.digest != other.digest
    assert one.masked is one.masked  # worked out once


def test_numbers_are_masked_in_an_error_only():
    one, other = (Answer(f"line {n}", error=True) for n in (1, 20))
    assert one.error_digest == other.error_digest
    assert one.masked_digest != other.masked_digest


def test_what_the_call_said_is_masked_in_its_error():
    assert error("no such file: a.py", arguments={"path": "a.py"}).masked == b"no such file: ~"


def test_a_longer_argument_is_masked_before_one_that_is_part_of_it():
    arguments = {"name": "file", "path": "dir/file.py"}
    assert error("no dir/file.py, no file", arguments=arguments).masked == b"no ~, no ~"


def test_the_name_of_the_tool_is_masked():
    assert error("frobnicate is not a tool", name="frobnicate").masked == b"~ is not a tool"


@pytest.mark.parametrize(
    ("arguments", "masked"),
    [
        pytest.param("a.py", b"no ~", id="a bare value"),
        pytest.param(None, b"no a.py", id="none"),
        pytest.param({"n": 5, "of": ["a.py"]}, b"no a.py", id="values that are no text"),
        pytest.param({"path": "no"}, b"no a.py", id="two letters"),
        pytest.param({"path": ".py"}, b"no a~", id="three letters"),
        pytest.param({"path": ""}, b"no a.py", id="no letters"),
    ],
)
def test_which_arguments_are_masked(arguments, masked):
    assert error("no a.py", name="x", arguments=arguments).masked == masked


@pytest.mark.parametrize(("size", "masked"), [(4096, b"no ~"), (4097, b"no " + b"x" * 4097)])
def test_an_argument_of_more_than_4096_letters_is_not_masked(size, masked):
    assert error("no " + "x" * size, arguments={"text": "x" * size}).masked == masked


def test_the_16_longest_texts_are_masked():
    words = [f"<{'x' * n}>" for n in range(2, 18)]
    text = " ".join(words)
    assert error(text, name="", arguments=dict(enumerate(words))).masked == b" ".join([b"~"] * 16)
    more = {**dict(enumerate(words)), "longer": "y" * 40}
    assert error(text, name="", arguments=more).masked == b" ".join([b"<xx>", *[b"~"] * 15])


def test_an_argument_that_is_not_utf_8_is_masked():
    assert error("no a\ud800b", arguments={"path": "a\ud800b"}).masked == b"no ~"


@pytest.mark.parametrize(
    "make",
    [
        lambda: HostileDict(a=1),
        lambda: {"a": HostileText("abcd")},
        lambda: {"a": HOSTILE["class"]()},
        lambda: HostileText("abcd"),
        HOSTILE["object"],
        HOSTILE["class"],
    ],
)
def test_hostile_arguments_are_not_masked(make):
    assert error("no a.py", arguments=make()).masked == b"no a.py"


# --- Which answer belongs to which call ---------------------------------------------------------


def result(content, call_id=None, key="tool_call_id", **more):
    return {"content": content, **({} if call_id is None else {key: call_id}), **more}


def contents(ids, results):
    return [None if found is None else found.text.decode() for found in match_results(ids, results)]


@pytest.mark.parametrize(
    ("ids", "results", "expected"),
    [
        pytest.param(["1"], [result("a", "1")], ["a"], id="by id"),
        pytest.param(["1"], [result("a", "1", key="id")], ["a"], id="by the other key"),
        pytest.param(
            ["1", "2"], [result("b", "2"), result("a", "1")], ["a", "b"], id="by id, in any order"
        ),
        pytest.param(["1"], [result("a", "2")], [None], id="another id"),
        pytest.param(["1", "2"], [result("a", "2")], [None, "a"], id="one is missing"),
        pytest.param(["1"], [], [None], id="no results"),
        pytest.param(["1"], None, [None], id="no list of results"),
        pytest.param(["1"], [result("a", "1"), result("b", "1")], ["b"], id="the last counts"),
        pytest.param(["1"], [result("a")], ["a"], id="one without an id"),
        pytest.param([None], [result("a")], ["a"], id="neither has an id"),
        pytest.param([None], [result("a", "1")], [None], id="a result for a call without an id"),
        pytest.param(
            [None, None], [result("a"), result("b")], ["a", "b"], id="without ids, by position"
        ),
        pytest.param(["1", "2"], [result("a"), result("b")], ["a", "b"], id="results without ids"),
        pytest.param(
            ["1", "1"], [result("a", "1"), result("b", "1")], ["a", "b"], id="a shared id"
        ),
        pytest.param(
            ["1", "1", "2"],
            [result("c", "2"), result("a", "1"), result("b", "1")],
            ["a", "b", "c"],
            id="a shared id and an own one",
        ),
        pytest.param(["1", "1"], [result("a", "1")], [None, None], id="too few for a shared id"),
        pytest.param(
            ["1", "2"], [result("a", "1"), result("b")], ["a", "b"], id="one left on each side"
        ),
        pytest.param(
            ["1", "2"],
            [result("a", "1"), result("b"), result("c")],
            ["a", None],
            id="too many left",
        ),
        pytest.param(
            ["1", "2"],
            [result("a", "1"), result("b", "9"), result("c", "2")],
            ["a", "c"],
            id="one for another batch",
        ),
        pytest.param(
            ["1", "2"], [result("a", "1"), {"tool_call_id": "2"}], ["a", None], id="no content"
        ),
        pytest.param(["1"], [result("a", "")], ["a"], id="an empty id is none"),
        pytest.param(["1"], [result("a", 1)], ["a"], id="an id that is no text is none"),
    ],
)
def test_which_answer_belongs_to_which_call(ids, results, expected):
    assert contents(ids, results) == expected


def test_a_message_and_an_object_are_read_like_a_mapping():
    message = ToolMessage("boom", tool_call_id="1", status="error")
    thing = SimpleNamespace(content="fine", tool_call_id="2")
    one, other = match_results(["1", "2"], [message, thing])
    assert (one.text, one.error, other.text, other.error) == (b"boom", True, b"fine", False)


@pytest.mark.parametrize(
    ("status", "fails"), [("error", True), ("success", False), (None, False), (True, False)]
)
def test_an_answer_is_an_error_by_its_status_alone(status, fails):
    (found,) = match_results(["1"], [result("Error: no", "1", status=status)])
    assert found.error is fails


@pytest.mark.parametrize("make", [dict, object, SimpleNamespace, *HOSTILE.values()])
@pytest.mark.parametrize("others", [[], [result("b", "2")]])
def test_an_odd_result_is_an_unknown_answer(make, others):
    ids = ["1", "2"][: 1 + len(others)]
    assert contents(ids, [make(), *others]) == [None, *(other["content"] for other in others)]


@pytest.mark.parametrize("make", [lambda: HostileText("1"), HOSTILE["object"], HOSTILE["class"]])
def test_a_result_with_a_hostile_id_has_none(make):
    assert contents(["1"], [SimpleNamespace(content="a", tool_call_id=make())]) == ["a"]


@pytest.mark.parametrize("make", [lambda: HostileText("a"), *HOSTILE.values()])
def test_hostile_content_is_an_answer_or_unknown(make):
    (found,) = match_results(["1"], [result(make(), "1")])
    assert found is None or isinstance(found.digest, int)
