"""Is an error that a tool returns as text taken for one, and nothing else?"""

import pytest

from langchain_loopguard import (
    LoopDetectedError,
    LoopGuardCallbackHandler,
    LoopGuardMiddleware,
    LoopGuardPolicy,
)
from langchain_loopguard.failures import looks_failed, says_it_failed
from langchain_loopguard.replay import Conversation, replay
from tests.adapters.guarded import owned
from tests.hosts import Counter, agent_graph, ask, counting_tool, listed_model, thread

ERRORS = [
    "Error: not found",
    "Error: no such file",
    "  \n Error: x",
    "ERROR:root:x",
    "Error! x",
    "[ERROR] x",
    "<error>not found</error>",
    "**Error**: x",
    "\u274c Error: x",
    "Error 404: x",
    "error TS2304: Cannot find name",
    "HTTP 403 Forbidden",
    "HTTP Error 404: Not Found",
    "An error occurred: x",
    "Error executing tool x",
    "Error from server (NotFound): pods",
    "error at line 120: ';' expected",
    "ValueError: bad",
    "ValueError('bad')",
    "TimeoutError()",
    "openai.RateLimitError: Error code: 429",
    "AccessDenied: request rejected",
    "Traceback (most recent call last):\n",
    "Failed to apply patch",
    "Unable to find x",
    "Could not find x",
    "Cannot open x",
    "Permission denied",
    "fatal: not a git repository",
    "No such file or directory: 'a'",
    "ls: cannot access 'x': No such file or directory",
    "bash: foo: command not found",
    "Unknown tool: x",
    "Tool 'x' does not exist.",
    "Invalid input: x",
    '{"error": "x"}',
    '{"error": {"code": 4}}',
    '{"success": false, "message": "x"}',
    "{'ok': False, 'error': 'x'}",
    '{"status": "error", "message": "x"}',
    "Error creating the file",
    ["", " ", "Error: x"],
    [{"type": "text", "text": "Error: x"}],
    [{"type": "image"}, {"type": "text", "text": "Error: x"}],
]
ANSWERS = [
    "",
    "ok",
    "0 errors",
    "Errors: 0",
    "Error: none",
    "Error: 0, Warning: 3",
    "error(s): 0",
    "error: 0.13",
    "Error: 2.67%",
    "root_mean_squared_error: 3.13",
    "Error: None\nOutput: 3.14",
    "Error: \nOutput: 42",
    "Error: 0 errors, 2 warnings in a.py",
    "Error: no errors found",
    "Error: OK",
    "Failed to parse: 0\nParsed: 20",
    "Could not find any issues in x.",
    "Cannot be undone: deleted x",
    "Access denied for bob from now on.",
    "Status: denied",
    "Note: no such file x, created it.",
    "rsync: skipped x: permission denied for 0 files",
    "HTTP 404 https://example.com",
    "on_error: continue",
    ".error: hover",
    "console.error('x')",
    "AppError::Db(e) =>",
    "TypeError",
    "- error: red",
    '{"error": ""}',
    '{"error": {"code": 0, "message": "success"}}',
    '{"error": "OK", "data": 1}',
    '{"success": false, "dry_run": true}',
    "Error-free: written",
    "Error rate: 5%",
    "Error budget: 5",
    "Error handling in Python",
    "All about errors: a page",
    "1. Error: common causes",
    "error_log.txt",
    "error.py:1: x",
    "errors.py\nmain.py",
    "exception_handler.py: def",
    "src/a.py:12: raise X(No such file)",
    "class ValueError(Exception): pass",
    "ValueError",
    "Exceptional work",
    "Failed: 0, passed: 12",
    "Failed tests: 3",
    "failure modes of x",
    "fatal attraction",
    "Invalid",
    "Cannotbe",
    "Could nothing",
    "Result: permission granted",
    "Note: file saved",
    '{"error": null, "data": 1}',
    '{"error": "", "data": 1}',
    '{"error": false}',
    '{"errors": [], "data": 1}',
    '{"error": []}',
    '{"success": true}',
    '{"ok": true}',
    None,
    7,
    [{"type": "image"}],
    [None, 3],
]


@pytest.mark.parametrize("text", ERRORS)
def test_what_opens_like_an_error_is_one(text):
    assert says_it_failed(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_what_does_not_is_none(text):
    assert not says_it_failed(text)


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        pytest.param("Error: not found", True, id="opens with error"),
        pytest.param('{"error": "x"}', True, id="an error object"),
        pytest.param("x\nTraceback (most recent call last):\n", True, id="a traceback"),
        pytest.param("bash: foo: command not found", True, id="a shell's complaint"),
        pytest.param("ValueError: bad", True, id="an exception"),
        pytest.param([{"type": "text", "text": "error: x"}], True, id="a block"),
        pytest.param("errors.py\nmain.py", False, id="a file's name"),
        pytest.param("0 errors", False, id="a count"),
        pytest.param("All about errors: a page", False, id="a page about errors"),
        pytest.param("", False, id="nothing"),
        pytest.param(None, False, id="no content"),
        pytest.param([{"type": "image"}], False, id="an image"),
    ],
)
def test_of_an_answer_without_a_status_more_is_taken_for_a_failure(text, failed):
    assert looks_failed(text) is failed


# --- On the hosts -------------------------------------------------------------------------------

STEPS = [[("edit_file", {"q": word * 2})] for word in "abcdefghijklmnopqrst"]
OFF = LoopGuardPolicy(failures_in_text=False)


def handler(model, tools, policy):
    guard = LoopGuardCallbackHandler(policy, on_detected="raise")
    return agent_graph(model, tools).with_config(callbacks=[guard])


def node(model, tools, policy):
    return owned(model, tools, policy=policy, on_detected="raise")


def middleware(model, tools, policy):
    guard = LoopGuardMiddleware(policy, on_detected="raise")
    return agent_graph(model, tools, middleware=[guard])


def runs_of(host, answer, policy):
    """How many of the twenty calls run."""
    counter = Counter()
    graph = host(listed_model(*STEPS), [counting_tool(counter, "edit_file", answer)], policy)
    config = thread("1", recursion_limit=200)
    del config["callbacks"]
    try:
        graph.invoke(ask(), config)
    except LoopDetectedError as error:
        assert error.count == 8  # noqa: PT017 - most runs raise nothing
    return counter.total


@pytest.mark.parametrize("host", [handler, node, middleware])
@pytest.mark.parametrize(
    ("answer", "policy", "runs"),
    [
        pytest.param("Error: old text not found.", None, 8, id="an error as text"),
        pytest.param("Error: old text not found.", OFF, 20, id="where that is switched off"),
        pytest.param("Edited.", None, 20, id="a receipt"),
        pytest.param(
            "Error: old text not found.",
            LoopGuardPolicy(poll_tools=("edit_file",)),
            20,
            id="of a tool that waits",
        ),
    ],
)
def test_errors_as_text_are_counted_like_errors(host, answer, policy, runs):
    assert runs_of(host, answer, policy) == runs


@pytest.mark.parametrize(
    "answer",
    [
        "Error: old text not found.",
        [{"type": "text", "text": "Error: old text not found."}],
    ],
)
def test_errors_as_text_of_calls_without_a_model_are_counted_too(answer):
    counter = Counter()
    tool = counting_tool(counter, "edit_file", lambda _: answer)
    agent = tool.with_config(
        callbacks=[LoopGuardCallbackHandler(scope="handler", on_detected="raise")]
    )
    for [(_, args)] in STEPS[:8]:
        agent.invoke(args)
    with pytest.raises(LoopDetectedError):
        agent.invoke({"q": "ii"})
    assert counter.total == 8


def test_a_shell_command_that_waits_may_find_nothing_for_a_while():
    counter = Counter()
    told = "ls: cannot access 'out': No such file or directory"
    steps = [[("bash", {"q": f"sleep {n} && ls out"})] for n in range(30, 44)]
    graph = middleware(listed_model(*steps), [counting_tool(counter, "bash", told)], None)
    graph.invoke(ask(), {"recursion_limit": 200})
    assert counter.total == 14


@pytest.mark.parametrize("given", [["a"], {"a": 1}, 7, None, ""])
@pytest.mark.parametrize("tool", ["edit_file", "wait"])
def test_an_id_of_any_kind_takes_no_replay_down(given, tool):
    call = {"id": given, "name": tool, "args": {}}
    result = {"id": given, "content": "Error: x", "status": "success"}
    event = {"type": "batch", "calls": [call], "results": [result]}
    report = replay(Conversation.from_dict({"events": [event] * 3}))
    assert report.calls == 3
