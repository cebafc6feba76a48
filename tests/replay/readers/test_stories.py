"""Is a run the same run, whatever it is written down in?"""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pytest

from langchain_loopguard.replay import Conversation, Problem, read_runs, replay
from langchain_loopguard.replay.readers.swe_agent import tool_of
from tests.conversations import DATA
from tests.replay.stories import TOLD, claude_code, own, story, told

SAMPLES = Path(__file__).parents[1] / "samples"


def read_text(folder, text, name="run.json"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return list(read_runs([str(path)]))


def read_one(folder, value):
    """Read a document that holds one run."""
    [run] = read_runs_in(folder, json.dumps(value))
    return run


def read_runs_in(folder, text):
    """Read the runs of a text, without the word that some of them hold nothing."""
    return [one for one in read_text(folder, text) if isinstance(one, Conversation)]


@pytest.mark.parametrize("name", TOLD)
def test_every_format_tells_the_same_run(name, tmp_path):
    [run] = read_text(tmp_path, TOLD[name].text)
    assert told(run) == story()


@pytest.mark.parametrize("name", TOLD)
def test_the_outcome_is_the_one_the_source_tells(name, tmp_path):
    [run] = read_text(tmp_path, TOLD[name].text)
    assert run.outcome == TOLD[name].outcome


@pytest.mark.parametrize("name", ["OpenAI chat", "Claude Code", "LangChain: dumpd"])
def test_the_format_is_found_by_content_not_by_name(name, tmp_path):
    [run] = read_text(tmp_path, TOLD[name].text, name="notes.txt")
    assert told(run) == story()


@pytest.mark.parametrize("name", [name for name, one in TOLD.items() if len(one.lines or [1]) == 1])
def test_several_runs_of_a_format_stay_apart(name, tmp_path):
    values = TOLD[name].lines or [TOLD[name].document]
    text = json.dumps(values[0]) + "\n"
    runs = read_text(tmp_path, text * 3, name="runs.jsonl")
    assert [told(run) for run in runs] == [story()] * 3


@pytest.mark.parametrize("name", TOLD)
def test_a_run_without_results_is_read(name, tmp_path):
    """What a crash leaves behind: the last calls have no answer."""

    def without(value):
        if isinstance(value, list):
            return [without(item) for item in value if not answers_c4(item)]
        if isinstance(value, dict):
            return {key: without(item) for key, item in value.items()}
        return value

    def answers_c4(item):
        if not isinstance(item, dict):
            return False
        keys = ("tool_call_id", "tool_use_id")
        data = item.get("data") or item.get("kwargs") or item
        if isinstance(data, dict) and any(data.get(key) == "c4" for key in keys):
            return True
        is_output = item.get("type") == "function_call_output" or item.get("role") == "tool"
        return is_output and (item.get("call_id") or item.get("id")) == "c4"

    shape = TOLD[name]
    if shape.lines is None:
        text = json.dumps(without(shape.document))
    else:
        text = "".join(json.dumps(without(line)) + "\n" for line in without(shape.lines))
    [run] = read_text(tmp_path, text)
    last = run.events[-1]
    assert [call["id"] for call in last["calls"]] == ["c4"]


def test_a_real_session_has_the_steps_that_are_known_of_it():
    """The corpus tells the same session, read by other means."""
    [run] = read_runs([str(SAMPLES / "claude_code.jsonl")])
    with lzma.open(DATA / "corpus.jsonl.xz", "rt", encoding="utf-8") as lines:
        known = next(
            run for run in map(json.loads, lines) if run["source"] == "claude-code-samples"
        )
    expected = [
        [(call["id"], call["name"]) for call in event["calls"]]
        for event in known["events"]
        if event["type"] == "batch"
    ]
    assert [[(c["id"], c["name"]) for c in step["calls"]] for step in run.steps] == expected


def test_a_real_session_has_the_failures_that_are_known_of_it():
    [run] = read_runs([str(SAMPLES / "claude_code.jsonl")])
    failed = [r["id"] for step in run.steps for r in step["results"] if r["status"] == "error"]
    assert failed == ["toolu_01VxHLh4HsmsrUMmdpduxkbU"]


def test_what_the_harness_says_starts_no_turn(tmp_path):
    lines = [*claude_code(), {"type": "system", "sessionId": "session-1", "subtype": "x"}]
    compact = {
        "type": "user",
        "sessionId": "session-1",
        "isCompactSummary": True,
        "message": {"role": "user", "content": "This session is continued."},
    }
    [run] = read_text(tmp_path, "\n".join(map(json.dumps, [*lines, compact])))
    assert sum(event["type"] == "human" for event in run.events) == 2


def test_a_sub_agent_is_a_run_of_its_own(tmp_path):
    side = [
        {**line, "isSidechain": True, "agentId": "a1", "uuid": f"s{line.get('uuid')}"}
        for line in claude_code()[1:]
    ]
    runs = read_text(tmp_path, "\n".join(map(json.dumps, [*claude_code(), *side])))
    assert [(run.id, told(run)) for run in runs] == [
        ("session-1", story()),
        ("session-1/a1", story()),
    ]


def test_sessions_that_follow_each_other_stay_apart(tmp_path):
    other = [{**line, "sessionId": "session-2"} for line in claude_code()[1:]]
    runs = read_text(tmp_path, "\n".join(map(json.dumps, [*claude_code(), *other])))
    assert [run.id for run in runs] == ["session-1", "session-2"]


def test_a_line_that_a_resumed_session_repeats_counts_once(tmp_path):
    [run] = read_text(tmp_path, "\n".join(map(json.dumps, [*claude_code(), *claude_code()[1:]])))
    assert told(run) == story()


def test_a_trajectory_is_a_step_for_each_action(tmp_path):
    run = read_one(
        tmp_path,
        {
            "environment": "swe_main",
            "trajectory": [
                {"action": "open src/a.py 10\n", "observation": "[File: src/a.py]", "thought": "x"},
                {"action": "edit 1:2\nx = 1\nend_of_edit", "observation": "Error: bad indent"},
                {"action": "submit", "observation": None},
                {"action": "", "observation": ""},
            ],
            "history": [],
            "info": {"exit_status": "submitted", "submission": "diff"},
        },
    )
    assert [
        (step["calls"][0]["name"], [result.get("status") for result in step["results"]])
        for step in run.steps
    ] == [("open", [None]), ("edit", [None]), ("submit", [])]


def _made(call_id):
    function = {"arguments": '{"file_name":"a.py"}', "name": "find_file"}
    return {"function": function, "id": call_id, "type": "function"}


def test_a_demonstration_of_swe_agent_has_its_history_alone(tmp_path):
    run = read_one(
        tmp_path,
        {
            "history": [
                {"role": "system", "content": "s", "agent": "main"},
                {"role": "assistant", "content": "x", "action": "ls", "is_demo": True},
                {"role": "user", "content": "Fix it", "agent": "main"},
                {
                    "role": "assistant",
                    "content": "Let us look.",
                    "action": "find_file a.py",
                    "tool_calls": [_made("call_1")],
                },
                {"role": "tool", "content": "Found 1 matches", "tool_call_ids": ["call_1"]},
                {"role": "assistant", "tool_calls": [_made("call_2"), _made("call_3")]},
                {"role": "tool", "content": "one", "tool_call_ids": ["call_2"]},
                {"role": "tool", "content": "two", "tool_call_ids": ["call_3"]},
                {"role": "assistant", "content": "Run it.", "action": "python a.py\n"},
                {"role": "user", "content": "8.2\n(Open file: n/a)\nbash-$"},
                {"role": "assistant", "content": "Done.", "action": ""},
            ],
        },
    )
    assert [event["type"] for event in run.events] == ["human", "batch", "batch", "batch"]
    assert [(step["calls"][0]["name"], step["calls"][0]["args"]) for step in run.steps] == [
        ("find_file", {"file_name": "a.py"}),
        ("find_file", {"file_name": "a.py"}),
        ("python", {"action": "python a.py\n"}),
    ]
    assert [[answer["id"] for answer in step["results"]] for step in run.steps] == [
        ["call_1"],
        ["call_2", "call_3"],
        ["step_8"],
    ]


def test_a_trajectory_of_mini_swe_agent_has_its_commands(tmp_path):
    def says(command):
        return {"role": "assistant", "content": "x", "extra": {"actions": [{"command": command}]}}

    run = read_one(
        tmp_path,
        {
            "info": {"exit_status": "Submitted"},
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "Fix it"},
                says("ls"),
                {"role": "user", "content": "<returncode>0</returncode>\n<output>a</output>"},
                says("false"),
                {"role": "user", "content": "<returncode>1</returncode>\n<output></output>"},
            ],
            "trajectory_format": "mini-swe-agent-1.1",
        },
    )
    assert [step["calls"][0]["args"] for step in run.steps] == [
        {"command": "ls"},
        {"command": "false"},
    ]


@pytest.mark.parametrize(
    ("action", "tool"),
    [
        pytest.param("scroll_down", "scroll_down", id="a command"),
        pytest.param("  ls -la /x\n", "ls", id="a program"),
        pytest.param("cd x && ls", "bash", id="two programs"),
        pytest.param("python - <<EOF\nprint(1)\nEOF", "bash", id="several lines"),
        pytest.param("edit 3:4\nx\nend_of_edit", "edit", id="a command with a block"),
        pytest.param("# look\nls", "ls", id="after a comment"),
        pytest.param("./run.sh", "bash", id="a path"),
    ],
)
def test_the_tool_of_an_action_is_its_first_word(action, tool):
    assert tool_of(action) == tool


def test_tau2_calls_of_the_simulated_user_are_none_of_the_agent(tmp_path):
    messages = [
        {
            "role": "user",
            "content": None,
            "tool_calls": [{"id": "u1", "name": "x"}],
            "requestor": "user",
        },
        {"role": "tool", "id": "u1", "content": "ok", "requestor": "user", "error": False},
    ]
    run = read_one(tmp_path, [{"id": "s", "messages": messages, "reward_info": None}])
    assert list(run.steps) == []


def test_arguments_that_are_no_json_are_kept_as_text(tmp_path):
    call = {"id": "1", "function": {"name": "f", "arguments": '{"broken": '}}
    run = read_one(tmp_path, [{"role": "assistant", "content": "", "tool_calls": [call]}])
    assert run.events[0]["calls"][0]["args"] == '{"broken": '


def test_responses_tools_that_openai_runs_itself_have_their_result_in_the_call(tmp_path):
    item = {"type": "mcp_call", "id": "m1", "name": "look", "arguments": "{}", "output": "seen"}
    run = read_one(tmp_path, {"input": "go", "output": [item]})
    assert run.events[1]["results"][0]["content"] == "seen"


ODD = [
    {"events": 5},
    {"events": [1]},
    {"events": [{"type": "batch"}]},
    {"events": [{"type": "batch", "calls": [{}], "results": 7}]},
    {"messages": [{"role": "assistant", "tool_calls": "x"}]},
    {"messages": [{"role": "assistant", "tool_calls": [1, {"function": 3}]}]},
    {"messages": [{"role": "tool", "tool_call_id": {}, "content": 1}]},
    {"messages": [{"role": "user", "content": {"a": 1}}, 5, None]},
    {"messages": [{"role": "assistant", "content": [1, {"type": "tool_use"}]}]},
    {"traj": [1, 2], "reward": "x"},
    {"run_type": "llm", "id": 1, "inputs": []},
    {"run_type": "llm", "id": 1, "outputs": {"generations": [[]]}},
    {"info": {}, "messages": []},
    {"info": {}, "messages": [{"info": {"role": "assistant"}, "parts": [{"type": "tool"}]}]},
    {"info": 3, "messages": [{"info": 4, "parts": 5}]},
    {"trajectory": [{"action": 3}]},
    {"lc": 1, "type": "constructor", "id": ["x", "AIMessage"], "kwargs": {"content": {"a": 1}}},
    {"type": "ai", "data": {"tool_calls": 3}},
    {"type": "function_call", "id": None, "arguments": "{"},
    {"type": "user", "sessionId": 3, "message": {"content": [3]}},
    {"type": "assistant", "sessionId": "a", "message": {"content": [{"type": "tool_use"}]}},
    None,
    5,
    [],
    [[]],
    {},
]


@pytest.mark.parametrize("value", ODD, ids=lambda value: json.dumps(value)[:60])
def test_an_odd_value_is_read_or_told_as_a_problem(value, tmp_path):
    found = read_text(tmp_path, json.dumps(value))
    assert found
    for one in found:
        assert isinstance(one, Conversation | Problem)
        if isinstance(one, Conversation):
            replay(one)


@pytest.mark.parametrize("value", ODD, ids=lambda value: json.dumps(value)[:60])
def test_the_runs_around_an_odd_line_are_read(value, tmp_path):
    lines = [own(), value, own()]
    found = read_text(tmp_path, "\n".join(map(json.dumps, lines)), name="runs.jsonl")
    runs = [told(run) for run in found if isinstance(run, Conversation) and run.id == "own-1"]
    assert runs == [story()] * 2


def test_a_gzipped_file_is_read(tmp_path):
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress(TOLD["own form"].text.encode()))
    assert [told(run) for run in read_runs([str(path)])] == [story()]
