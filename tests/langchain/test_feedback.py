"""Is what the guard did written as feedback to LangSmith? The client is real up to HTTP."""

from __future__ import annotations

import json
import uuid
from urllib.parse import urlsplit

import requests
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langsmith import Client

from langchain_loopguard import LoopGuardMiddleware
from langchain_loopguard.langchain.feedback import LangSmithFeedback
from tests.hosts import Counter, agent_graph, ask, counting_tool, listed_model


class Border(requests.adapters.BaseAdapter):
    """Answers in LangSmith's place and keeps what was posted."""

    def __init__(self, status=200):
        super().__init__()
        self.posted = []
        self.status = status

    def send(self, request, **_options):
        path = urlsplit(request.url).path
        if request.method == "POST" and path.endswith("/feedback"):
            self.posted.append(json.loads(request.body))
        answer = requests.Response()
        answer.status_code = self.status if path.endswith("/feedback") else 200
        answer._content = b"{}"
        answer.request, answer.url = request, request.url
        return answer

    def close(self):
        pass


def run_with(border):
    client = Client(
        api_url="http://langsmith.invalid", api_key="none", auto_batch_tracing=False,
        session=requests.Session(),
    )  # fmt: skip
    client.session.mount("http://", border)
    feedback = LangSmithFeedback(client, session_id=uuid.uuid4())
    runs = RunCollectorCallbackHandler()
    search = counting_tool(Counter(), "search", "error: 503")
    model = listed_model(*[[("search", {"q": "a"})]] * 9)
    guard = LoopGuardMiddleware(on_detected="warn")
    graph = agent_graph(model, [search], middleware=[guard])
    graph.invoke(ask(), {"callbacks": [feedback, runs]})
    feedback.flush()
    return runs.traced_runs[0]


def nested(run):
    return [str(run.id), *(one for child in run.child_runs for one in nested(child))]


def test_each_event_is_feedback_on_a_run_of_the_trace():
    border = Border()
    root = run_with(border)
    assert border.posted
    for sent in border.posted:
        assert (sent["key"], sent["score"], sent["value"]) == ("loop_guard", 0.5, "warned")
        assert "search" in sent["comment"]
        assert sent["run_id"] in nested(root)


def test_feedback_holds_rules_and_counts_and_no_argument():
    border = Border()
    run_with(border)
    [first, *_] = border.posted
    assert first["feedback_source"]["metadata"]["findings"][0]["rule"] == "repeat"
    assert '"q"' not in json.dumps(border.posted)


def test_a_server_that_refuses_disturbs_no_agent(caplog):
    root = run_with(Border(status=403))
    assert root.outputs["messages"][-1].text == "done"
    assert "no feedback was sent to LangSmith" in caplog.text
