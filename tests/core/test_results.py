"""Is every result matched with its call, read, and compared without what changes by itself?"""

from types import SimpleNamespace

import pytest
from langchain_core.messages import ToolMessage

from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import Policy
from langchain_loopguard.core.results import tells_of_failure
from tests.core.odd import HOSTILE, HostileDict, HostileText


def read(results, calls=None, **options):
    guard = LoopGuard(Policy(**options))
    calls = calls or [{"name": "t", "args": {"path": "src/a.py"}, "id": "1"}]
    record = guard.check(calls).record
    guard.record_results(record, results)
    return record.results


def one(content, status="success", **options):
    return read([{"tool_call_id": "1", "content": content, "status": status}], **options)[0]


# --- Matching -------------------------------------------------------------------------------------

A, B = ({"name": "t", "args": {}, "id": given} for given in ("a", "b"))
NO_ID = {"name": "t", "args": {}}


def says(text, given=None):
    return {"id": given, "content": text}


@pytest.mark.parametrize(
    ("calls", "results", "texts"),
    [
        pytest.param([A, B], [says("1", "a"), says("2", "b")], ["1", "2"], id="in order"),
        pytest.param([A, B], [says("2", "b"), says("1", "a")], ["1", "2"], id="in any order"),
        pytest.param([A, B], [says("2", "b")], [None, "2"], id="one is missing"),
        pytest.param([A], [says("1", "a"), says("2", "a")], ["2"], id="the last of two counts"),
        pytest.param([A], [says("1", "z")], [None], id="of another call"),
        pytest.param([NO_ID, NO_ID], [says("1"), says("2")], ["1", "2"], id="by place"),
        pytest.param([NO_ID, NO_ID], [says("1")], [None, None], id="too few for places"),
        pytest.param([A, A], [says("1", "a"), says("2", "a")], ["1", "2"], id="a shared id"),
        pytest.param([A, NO_ID], [says("2"), says("1", "a")], ["1", "2"], id="one without an id"),
        pytest.param([A], [], [None], id="no results"),
        pytest.param([A], None, [None], id="nothing"),
    ],
)
def test_results_find_their_calls(calls, results, texts):
    found = read(results, calls)
    assert [None if given is None else given.text.decode() for given in found] == texts


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("text", b"text"),
        ("", b""),
        ([{"type": "text", "text": "a"}, "b"], b"a\nb"),
        ([{"type": "image", "data": "x"}], b'{"data":"x","type":"image"}'),
        ({"b": 1, "a": 2}, b'{"a":2,"b":1}'),
        (None, b"null"),
        pytest.param(HostileText("text"), b"text", id="hostile"),
        pytest.param("\ud800", b"\xed\xa0\x80", id="a lone surrogate"),
    ],
)
def test_any_content_has_a_text(content, text):
    assert one(content).text == text


def test_messages_and_objects_are_read_like_mappings():
    message = ToolMessage("boom", tool_call_id="1", status="error")
    bare = SimpleNamespace(content="boom", tool_call_id="1")
    (read_message,), (read_bare,) = read([message]), read([bare])
    assert (read_message.text, read_message.failed) == (b"boom", True)
    assert (read_bare.text, read_bare.failed) == (b"boom", False)


@pytest.mark.parametrize("make", [*HOSTILE.values(), HostileDict, lambda: 5, lambda: "text"])
def test_a_result_that_can_not_be_read_is_missing(make):
    assert read([make()]) == (None,)


# --- Failures -------------------------------------------------------------------------------------

FAILURES = [
    "Error: no such table",
    "ValueError: bad",
    "json.decoder.JSONDecodeError: bad",
    "ToolException('bad')",
    'Traceback (most recent call last):\n  File "a.py"',
    '{"error": "bad"}',
    '{"isError": true, "content": []}',
    '{"is_error":true}',
    '{"ok": false}',
    '{"success" : false, "n": 1}',
    '{"exitCode": 1}',
    '{"exit_code": "127"}',
    '{"returncode": -9}',
    '{"return_code": 2, "stdout": ""}',
    "exit code: 1",
    "[exit status 2]",
    '{"output": "{\\"error\\": \\"bad\\"}"}',
    '[{"type": "text", "text": "Error: bad"}]',
    "x" * 5000 + "\nexit code: 1",
]

SUCCESSES = [
    "",
    "0 errors",
    "no error",
    '{"error": null}',
    '{"error": ""}',
    '{"error": false}',
    '{"ok": true}',
    '{"exit_code": 0}',
    "exit code: 0",
    "def handle(): raise ValueError",
    "Errors: none",
    "class MyError: pass",
    "x" * 500 + " Error: in the middle " + "x" * 500,
    "Blocked by policy",
    "bash: foo: command not found",
]


@pytest.mark.parametrize("text", FAILURES)
def test_a_text_tells_of_a_failure(text):
    assert tells_of_failure(text.encode())
    assert one(text, status=None).failed


@pytest.mark.parametrize("text", SUCCESSES)
def test_a_text_tells_of_no_failure(text):
    assert not tells_of_failure(text.encode())


@pytest.mark.parametrize(
    ("text", "status", "says", "failed"),
    [
        ("fine", "error", None, True),
        ("fine", "error", False, True),
        ("Error: bad", "success", None, True),
        ("Error: bad", "success", False, False),
        ("Wrong flag!", "success", True, True),
        ("Wrong flag!", None, None, False),
    ],
)
def test_the_status_goes_first_then_the_policys_word_then_the_text(text, status, says, failed):
    assert one(text, status, is_failure=lambda name, content: says).failed is failed


@pytest.mark.parametrize("says", [lambda *_: 1 / 0, lambda *_: "no", lambda *_: None])
def test_where_the_policys_word_is_none_the_text_tells(says):
    assert [one(text, is_failure=says).failed for text in ("text", "Error: bad")] == [False, True]


# --- The form in which results are compared -------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "other", "status", "same"),
    [
        ("done at 12:03", "done at 14:59", "success", True),
        ("3 rows", "4 rows", "success", False),
        ("failed at line 3", "failed at line 4", "error", True),
        ("no file a.py", "no file b.py", "error", False),
        ("no such file: src/a.py", "no such file: src/a.py", "error", True),
        ("x" * 1100 + "1", "x" * 1100 + "2", "success", True),
        ("x" * 1100 + "a", "x" * 1100 + "b", "success", False),
        ("x\n" * 40 + "1", "x\n" * 40 + "2", "success", True),
    ],
)
def test_the_form_leaves_out_what_changes_by_itself(text, other, status, same):
    assert (one(text, status).form == one(other, status).form) is same
    assert (one(text, status).digest == one(other, status).digest) is (text == other)


def test_an_error_is_compared_without_the_calls_own_words():
    calls = [{"name": "t", "args": {"path": f"src/{name}.py"}, "id": name} for name in "ab"]
    given = [
        {"id": name, "content": f"t: no file src/{name}.py", "status": "error"} for name in "ab"
    ]
    first, second = read(given, calls)
    assert first.form == second.form == b"t: no file ~"
