"""What of the forms that LangChain and LangSmith write themselves is read, and what is not?"""

from __future__ import annotations

import json

import langsmith
import requests
from langchain_core.tracers import LangChainTracer

from langchain_loopguard.replay import replay
from tests.hosts import Counter, agent_graph, ask, counting_tool, repeating_model
from tests.replay.readers.test_stories import read_one, read_runs_in, read_text


def test_a_langchain_call_that_could_not_be_parsed_is_a_call(tmp_path):
    call = {"name": "f", "args": "{", "id": "1", "error": "e", "type": "invalid_tool_call"}
    value = [{"type": "ai", "data": {"content": "", "invalid_tool_calls": [call]}}]
    assert read_one(tmp_path, value).events[0]["calls"][0]["args"] == "{"


def test_the_guards_own_refusal_is_marked_and_not_counted(tmp_path):
    call = {"name": "f", "args": {}, "id": "1", "type": "tool_call"}
    refusal = {
        "content": "Stop that.",
        "tool_call_id": "1",
        "status": "error",
        "additional_kwargs": {"lc_source": "loop_guard"},
    }
    value = [
        {"type": "ai", "data": {"content": "", "tool_calls": [call]}},
        {"type": "tool", "data": refusal},
    ]
    run = read_one(tmp_path, value)
    assert run.events[0]["refused"] is True
    assert replay(run).steps[0].refused


def test_a_summary_that_a_framework_wrote_starts_no_turn(tmp_path):
    data = {"content": "Summary", "additional_kwargs": {"lc_source": "summarization"}}
    run = read_one(tmp_path, [{"type": "human", "data": data}])
    assert run.events == ()


def test_nothing_that_a_file_names_is_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')\n")
    value = {
        "lc": 1,
        "type": "constructor",
        "id": ["evil", "HumanMessage"],
        "kwargs": {"content": "x"},
    }
    [problem] = read_text(tmp_path, json.dumps([value]))
    assert "not a LangChain message" in problem.text


def test_a_secret_that_a_dump_asks_for_is_not_read_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "very-secret")
    secret = {"lc": 1, "type": "secret", "id": ["MY_KEY"]}
    message = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "x", "name": secret},
    }
    runs = read_text(tmp_path, json.dumps([message]))
    assert "very-secret" not in repr(runs)


def test_langsmith_tool_runs_alone_make_a_step_each(tmp_path):
    runs = [
        {"id": f"r{at}", "trace_id": "t", "parent_run_id": "t", "run_type": "tool",
         "name": "search", "start_time": f"2026-01-01T00:00:0{at}", "inputs": {"q": "a"},
         "outputs": {"output": "none"} if at else None, "error": None if at else "boom"}
        for at in (1, 0)
    ]  # fmt: skip
    [run] = read_text(tmp_path, json.dumps(runs))
    assert [step["results"][0].get("status") for step in run.steps] == ["error", None]


class Posted(requests.Session):
    """Keeps what LangSmith's client sends instead of sending it."""

    def __init__(self):
        super().__init__()
        self.runs = {}

    def request(self, method, url, *args, data=None, **options):
        if data:
            sent = json.loads(data)
            run = self.runs.setdefault(sent.get("id") or url.rpartition("/")[2], {})
            run.update({key: value for key, value in sent.items() if value is not None})
        response = requests.Response()
        response.status_code = 200
        return response


def test_what_a_real_tracer_sends_is_read(tmp_path):
    session = Posted()
    client = langsmith.Client(
        api_url="http://localhost:9", api_key="none", session=session, auto_batch_tracing=False
    )
    tracer = LangChainTracer(client=client, project_name="tests")
    graph = agent_graph(repeating_model(times=6), [counting_tool(Counter())])
    graph.invoke(ask(), {"callbacks": [tracer]})
    tracer.wait_for_futures()
    lines = [json.dumps(sent) for sent in session.runs.values()]
    [run] = read_text(tmp_path, "\n".join(lines), name="runs.jsonl")
    assert [event["type"] for event in run.events] == ["human", *["batch"] * 6]
    assert replay(run).ask.step == 5


def test_two_traces_are_two_runs(tmp_path):
    first = {"id": "a", "trace_id": "a", "run_type": "llm", "inputs": {}, "outputs": {}}
    runs = read_runs_in(tmp_path, json.dumps([first, {**first, "id": "b", "trace_id": "b"}]))
    assert [run.id for run in runs] == ["a", "b"]
