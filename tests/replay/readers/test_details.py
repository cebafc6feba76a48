"""What older and rarer forms of a format tell, which the samples don't hold."""

from __future__ import annotations

import json

import pytest

from langchain_loopguard.replay.conversation import Conversation, Problem
from langchain_loopguard.replay.readers import read_values
from tests.replay.readers.samples import SAMPLES
from tests.replay.readers.test_samples import counts, read


def lines(*values):
    return list(read_values(list(enumerate(values, 1)), "f"))


def document(value):
    return list(read_values([(1, value)], "f", unit="value"))


def codex(kind, **payload):
    return {"timestamp": "t", "type": kind, "payload": payload}


def ran(call_id):
    call = codex(
        "response_item", type="function_call", name="shell", arguments="{}", call_id=call_id
    )
    output = json.dumps({"output": "x", "metadata": {"exit_code": 1, "duration_seconds": 0.1}})
    done = codex("response_item", type="function_call_output", call_id=call_id, output=output)
    return [call, done]


def test_codex_without_events_counts_what_the_user_said_and_not_the_harness():
    def said(text):
        content = [{"type": "input_text", "text": text}]
        return codex("response_item", type="message", role="user", content=content)

    harness = said("<environment_context>\n</environment_context>")
    [run] = lines(codex("session_meta", id="s"), harness, said("find it"), *ran("c"))
    assert [event["type"] for event in run.events] == ["human", "batch"]


def test_an_older_result_of_codex_has_its_exit_code_as_json():
    [run] = lines(codex("session_meta", id="s"), *ran("c"))
    assert run.events[0]["results"] == [{"id": "c", "content": "x", "status": "error"}]


def test_a_forked_session_of_codex_is_one_run_with_what_it_repeats():
    runs = lines(
        codex("session_meta", id="new", forked_from_id="old"), codex("session_meta", id="old"),
        *ran("c"), *ran("d"),
    )  # fmt: skip
    assert [(run.id, run.calls) for run in runs] == [("new", 2)]


def test_sessions_of_codex_in_one_file_stay_apart():
    runs = lines(codex("session_meta", id="a"), *ran("c"), codex("session_meta", id="b"), *ran("c"))
    assert [(run.id, run.calls) for run in runs] == [("a", 1), ("b", 1)]


def record(message_id, kind="gemini", **more):
    return {"id": message_id, "timestamp": "t", "type": kind, "content": "x", **more}


def calls(*ids):
    return {"toolCalls": [{"id": i, "name": "f", "args": {}, "status": "success"} for i in ids]}


GEMINI = {"sessionId": "s", "projectHash": "p", "startTime": "t", "lastUpdated": "t"}


def test_an_older_session_of_gemini_cli_is_one_object():
    session = {**GEMINI, "messages": [record("u", "user"), record("m", **calls("a", "b"))]}
    assert counts(document(session))[:4] == (1, 1, 1, 2)


def test_what_gemini_cli_rewound_is_not_counted():
    told = [record("u", "user"), record("m", **calls("a")), {"$rewindTo": "m"}]
    [run] = lines(GEMINI, *told, record("n", **calls("b")))
    assert [call["id"] for step in run.steps for call in step["calls"]] == ["b"]


def test_a_retry_prompt_of_pydantic_ai_1_is_a_failed_result():
    call = {"part_kind": "tool-call", "tool_name": "f", "args": "{}", "tool_call_id": "c"}
    retry = {"part_kind": "retry-prompt", "tool_name": "f", "content": "no", "tool_call_id": "c"}
    [run] = document([{"kind": "response", "parts": [call]}, {"kind": "request", "parts": [retry]}])
    assert run.events[0]["results"] == [{"id": "c", "content": "no", "status": "error"}]


def test_code_that_autogen_runs_is_a_call():
    block = {"code": "print(1)", "language": "python"}
    made = {"type": "CodeGenerationEvent", "source": "a", "content": "x", "code_blocks": [block]}
    done = {"type": "CodeExecutionEvent", "source": "a", "result": {"exit_code": 1, "output": "no"}}
    [run] = document([made, done])
    assert counts([run]) == (1, 0, 1, 1, 1, 1)


@pytest.mark.parametrize(
    ("result", "steps"),
    [
        pytest.param("[f(a=1), g(b='x')]", [["f", "g"]], id="text of a list"),
        pytest.param([{"f": '{"a": 1}'}], [["f"]], id="a call as an object"),
        pytest.param([["[f(a=1)]"], ["[g()]"]], [["f"], ["g"]], id="turns of texts"),
        pytest.param([[["f(a=1)"], ["math.g()"]]], [["f"], ["math.g"]], id="steps of a turn"),
        pytest.param("I can't do that.", [], id="words"),
    ],
)
def test_calls_of_bfcl_are_read_without_a_log(result, steps):
    value = {"id": "t", "result": result, "input_token_count": 1, "latency": 1}
    [run] = document(value)
    assert [[call["name"] for call in step["calls"]] for step in run.steps] == steps


def test_sub_agents_of_claude_code_are_runs_of_their_own():
    values = SAMPLES["Claude stream-json"].values
    inner = [{**value, "parent_tool_use_id": "c1"} for value in values]
    runs = lines(*values, *inner)
    assert [(run.id, run.calls) for run in runs] == [("s1", 4), ("s1/c1", 4)]


def test_pairs_of_an_older_evaluation_of_openhands_are_events():
    history = [
        [{"action": "run", "args": {"command": "ls"}, "source": "agent"},
         {"observation": "run", "content": "a", "extras": {"exit_code": 1}}],
    ]  # fmt: skip
    [run] = document({"instance_id": "i", "history": history})
    assert (run.id, *counts([run])) == ("i", 1, 0, 1, 1, 1, 1)


def test_a_broken_line_between_two_sessions_tears_neither():
    values = SAMPLES["Cursor"].values
    other = [{**value, "session_id": "s2"} for value in values]
    found = lines(*values, {"nothing": 1}, *other)
    runs = [one for one in found if isinstance(one, Conversation)]
    assert [(run.id, run.calls) for run in runs] == [("s1", 4), ("s2", 4)]
    assert sum(isinstance(one, Problem) for one in found) == 1


def test_a_real_log_that_breaks_off_tells_what_it_has():
    [run] = lines(*SAMPLES["Codex exec"].values[:-3])
    assert run.calls == counts(read(SAMPLES["Codex exec"])).calls
