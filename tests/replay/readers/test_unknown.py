"""Is a call of an unknown form a problem with its place, and never a call that is not there?"""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from langchain_loopguard.replay.conversation import Conversation, ConversationError, Problem
from langchain_loopguard.replay.readers import format_of, read_values
from langchain_loopguard.replay.readers.inspect_ai import samples_in
from tests.replay.readers.samples import FORMATS, SAMPLES, Sample
from tests.replay.readers.test_samples import read
from tests.replay.stories import told

USER = {"role": "user", "content": "find it"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def assistant(**more):
    return {"role": "assistant", "content": "", **more}


def one(sample):
    """What is read of one value."""
    return list(read_values([(1, sample)], "f", unit="value"))


MESSAGES = {
    "a function without a name": [USER, assistant(tool_calls=[{"function": {"args": {}}}])],
    "calls under a key of another software": [USER, assistant(toolCalls=[{"name": "f"}])],
    "calls that are texts": [USER, assistant(tool_calls=["f()"])],
    "a call that is no object": [USER, assistant(tool_calls=[CALL, 3])],
    "a block of an unknown kind": [USER, assistant(content=[{"type": "tool_call", "name": "f"}])],
    "a part with a call of its own": [USER, assistant(content=[{"toolRequest": {"name": "f"}}])],
    "an item of an unknown kind": [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "teleport_call", "call_id": "d", "to": "x"},
    ],
    "one message that is none": [USER, assistant(tool_calls=[CALL]), 5],
}


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("held", [False, True], ids=["a list", "a request"])
def test_messages_with_a_call_of_an_unknown_form_are_a_problem(name, held):
    found = one({"messages": MESSAGES[name]} if held else MESSAGES[name])
    assert any(isinstance(found_one, Problem) for found_one in found)
    assert len(found) == 1 or not held


def test_the_problem_says_which_message():
    [problem] = one(MESSAGES["calls under a key of another software"])
    assert "message 2" in str(problem)
    assert "toolCalls" in str(problem)


def _changed(name, old, new):
    """A sample whose JSON has one word replaced by another."""
    sample = SAMPLES[name]
    text = json.dumps(sample.values)
    assert old in text
    return Sample(sample.format, json.loads(text.replace(old, new)), sample.count)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        pytest.param("Codex", '"type": "function_call"', '"type": "new_call"', id="Codex"),
        pytest.param("Codex exec", "command_execution", "teleport", id="Codex exec"),
        pytest.param("Cursor", "bashToolCall", "toolCallId", id="Cursor"),
        pytest.param("ATIF", '"tool_calls"', '"function_calls"', id="ATIF"),
        pytest.param("ATIF", '"function_name"', '"name"', id="ATIF, no name"),
        pytest.param("AgentDojo", '"function"', '"fn"', id="AgentDojo"),
        pytest.param("pydantic-ai", '"tool_name"', '"tool"', id="pydantic-ai"),
        pytest.param("Bedrock", '"name"', '"tool"', id="Bedrock"),
        pytest.param("Gemini contents", '"functionCall"', '"toolCall"', id="Gemini"),
        pytest.param("Gemini CLI", '"name"', '"tool"', id="Gemini CLI"),
        pytest.param("AutoGen", '"name"', '"tool"', id="AutoGen"),
        pytest.param("smolagents", '"name"', '"tool"', id="smolagents"),
        pytest.param("inspect_ai", '"function"', '"fn"', id="inspect_ai"),
        pytest.param("Vercel", '"type": "tool-call"', '"type": "tool-request"', id="Vercel"),
        pytest.param("AG2", '"function"', '"fn"', id="AG2"),
        pytest.param("OpenHands SDK", '"tool_name"', '"tool"', id="OpenHands SDK"),
    ],
)
def test_a_format_that_changed_is_a_problem_and_not_a_run_without_calls(name, old, new):
    found = read(_changed(name, old, new))
    assert any(isinstance(found_one, Problem) for found_one in found)
    assert not any(isinstance(run, Conversation) and not run.calls for run in found)


def test_pairs_of_a_time_and_a_message_are_messages():
    pairs = [[at, message] for at, message in enumerate([USER, assistant(tool_calls=[CALL])])]
    [run] = one({"messages": pairs})
    assert [event["type"] for event in run.events] == ["human", "batch"]


def test_an_object_with_events_that_are_not_ours_goes_to_the_next_reader():
    messages = [USER, assistant(tool_calls=[CALL])]
    value = {"events": [{"type": "click"}], "messages": messages}
    assert format_of(value).name == "OpenAI chat"


def test_what_a_request_says_may_be_called_is_no_call():
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    [run] = one({"tools": tools, "tool_choice": "auto", "messages": [USER, assistant(content="x")]})
    assert run.calls == 0


def test_a_trajectory_whose_actions_are_text_is_a_problem():
    step = {"step_id": 1, "source": "agent", "message": "ls", "observation": {"results": [{}]}}
    [problem] = one({"schema_version": "ATIF-v1.2", "agent": {}, "steps": [step]})
    assert "only those are read" in str(problem)


# An .eval file is a zip archive, whose samples are compressed with zstd.


def _archive(method, *, text=None):
    held = SAMPLES["inspect_ai"].values[0]["samples"]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("header.json", "{}")
        for sample in held:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, text or json.dumps(sample))
    file.seek(0)
    return file


def test_the_samples_of_an_archive_are_those_of_the_json_log():
    texts = list(samples_in(_archive(zipfile.ZIP_DEFLATED), 2**20))
    runs = [run for at, text in enumerate(texts, 1) for run in one_line(at, json.loads(text))]
    assert [(run.id, run.outcome) for run in runs] == [
        ("sample 1, epoch 1", "success"),
        ("sample 2, epoch 1", "fail"),
    ]


def one_line(number, value):
    return list(read_values([(number, value)], "f"))


def test_a_sample_that_unpacks_to_more_than_is_allowed_is_refused():
    with pytest.raises(ConversationError, match="more than 1 MB"):
        list(samples_in(_archive(zipfile.ZIP_DEFLATED, text=" " * (2 * 2**20)), 2**20))


def test_a_real_eval_file_holds_the_same_runs_as_the_json_log():
    with (FORMATS / "inspect_ai.eval").open("rb") as file:
        samples = [json.loads(text) for text in samples_in(file, 2**20)]
    runs = [run for at, sample in enumerate(samples, 1) for run in one_line(at, sample)]
    log = read(SAMPLES["inspect_ai"])
    assert [(run.id, run.outcome, told(run)) for run in runs] == [
        (run.id, run.outcome, told(run)) for run in log
    ]


def test_a_bomb_within_a_real_eval_file_is_refused():
    file = io.BytesIO((FORMATS / "inspect_ai.eval").read_bytes())
    with pytest.raises(ConversationError, match="more than"):
        list(samples_in(file, 2**12))


def test_a_file_that_is_no_archive_is_an_error():
    with pytest.raises(ConversationError, match="zip archive"):
        list(samples_in(io.BytesIO(b"PK\x03\x04 and nothing"), 2**20))


# What a shell command of Cursor gave back.

SHELL = {"exitCode": 0, "stdout": "a", "stderr": "", "executionTime": 12}


KEPT = {"exitCode": 2, "stdout": "a", "stderr": ""}
MCP = {"content": "x", "isError": True}


@pytest.mark.parametrize(
    ("result", "content", "failed"),
    [
        pytest.param({"success": SHELL}, {**KEPT, "exitCode": 0}, False, id="without its time"),
        pytest.param({"success": {**SHELL, "exitCode": 2}}, KEPT, True, id="an exit code"),
        pytest.param({"failure": {"exitCode": 2}}, {"exitCode": 2}, True, id="a failure"),
        pytest.param({"permissionDenied": {"error": 1}}, {"error": 1}, True, id="a refusal"),
        pytest.param({"success": MCP}, MCP, True, id="an MCP tool that failed"),
    ],
)
def test_the_result_of_a_call_of_cursor_says_whether_it_failed(result, content, failed):
    line = {"type": "tool_call", "session_id": "s", "call_id": "c"}
    call = {"shellToolCall": {"args": {"command": "ls"}}}
    done = {"shellToolCall": {"args": {"command": "ls"}, "result": result}}
    lines = [
        {**line, "subtype": "started", "tool_call": call},
        {**line, "subtype": "completed", "tool_call": done},
    ]
    [run] = read_values(list(enumerate(lines, 1)), "f")
    status = "error" if failed else "success"
    assert run.events[0]["results"] == [{"id": "c", "content": content, "status": status}]


def test_what_codex_adds_to_a_result_does_not_make_equal_ones_differ():
    [run] = read(SAMPLES["Codex"])
    first, *_, last = (step["results"][0]["content"] for step in run.steps)
    assert first == last == "Process exited with code 0\nOutput:\na\n"


def test_the_process_ids_that_gemini_cli_adds_do_not_make_equal_results_differ():
    def contents(pid):
        response = {"output": f"Output: a\nExit Code: 0\nProcess Group PGID: {pid}"}
        part = {"functionResponse": {"name": "run_shell_command", "response": response}}
        call = {"functionCall": {"name": "run_shell_command", "args": {"command": "ls"}}}
        return [{"role": "model", "parts": [call]}, {"role": "user", "parts": [part]}]

    [run] = one({"contents": [*contents(1), *contents(2)]})
    first, second = (step["results"][0]["content"] for step in run.steps)
    assert first == second == {"output": "Output: a\nExit Code: 0\n"}


def test_ui_messages_that_tell_no_steps_have_a_step_for_each_call():
    parts = [
        {"type": "tool-search", "toolCallId": f"c{at}", "state": "output-available",
         "input": {"q": "x"}, "output": "none"}
        for at in range(3)
    ]  # fmt: skip
    [run] = one([{"id": "1", "role": "user", "parts": []}, {"role": "assistant", "parts": parts}])
    assert [len(step["calls"]) for step in run.steps] == [1, 1, 1]
