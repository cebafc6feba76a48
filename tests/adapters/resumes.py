"""What does a person answer, in which forms, and what comes of it with a node or a middleware?"""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command

from tests.adapters.guarded import assert_complete, assert_requests_complete
from tests.hosts import ScriptedChatModel, ai_calls, ask, thread

_SEARCH = ("search", {"q": "a"})

RESUMES = [
    # value, tool runs after the resume (2 before it), whether the run then asks again
    pytest.param("continue", 5, id="continue"),
    pytest.param(True, 5, id="true"),
    pytest.param({"type": "continue"}, 5, id="type-continue"),
    pytest.param({"decisions": [{"type": "approve"}]}, 5, id="hitl-approve"),
    pytest.param([{"type": "accept", "args": None}], 5, id="inbox-accept"),
    pytest.param("stop", 2, id="stop"),
    pytest.param(False, 2, id="false"),
    pytest.param({"type": "stop"}, 2, id="type-stop"),
    pytest.param([{"type": "ignore", "args": None}], 2, id="inbox-ignore"),
    pytest.param("use b", 2, id="text"),
    pytest.param({"type": "feedback", "message": "use b"}, 2, id="type-feedback"),
    pytest.param({"decisions": [{"type": "reject", "message": "use b"}]}, 2, id="hitl-reject"),
    pytest.param({"decisions": [{"type": "reject"}]}, 2, id="hitl-reject-bare"),
    pytest.param({"decisions": [{"type": "respond", "message": "4"}]}, 2, id="hitl-respond"),
    pytest.param([{"type": "response", "args": "use b"}], 2, id="inbox-response"),
    pytest.param(
        {"decisions": [{"type": "edit", "edited_action": {"name": "search", "args": {"q": "b"}}}]},
        5,
        id="hitl-edit",
    ),
    pytest.param(
        [{"type": "edit", "args": {"action": "search", "args": {"q": "b"}}}], 5, id="inbox-edit"
    ),
]


def with_remark(graph, value, how):
    """Answer the open question, and say something too, in the same command or before."""
    remark = {"messages": [HumanMessage("be brief")]}
    if how == "before it":
        graph.update_state(thread("t"), remark)
        remark = None
    return graph.invoke(Command(resume=value, update=remark), thread("t"))


def check_answer_beside_remark(build, value, how, runs):
    """See that an answer is carried out though a remark stands beside it; `build` is `looping`."""

    def respond(messages):
        asked = [message.content for message in messages if isinstance(message, HumanMessage)]
        if "be brief" in asked:
            return AIMessage(content="done")
        return ai_calls([_SEARCH], len(messages))

    graph, counter, model = build(model=ScriptedChatModel(respond=respond))
    graph.invoke(ask(), thread("t"))
    result = with_remark(graph, value, how)
    assert counter.total == runs
    assert_complete(result["messages"])
    assert_requests_complete(model)
    assert "be brief" in [message.content for message in result["messages"]]
    last = result["messages"][-1].content
    assert last.startswith("Stopped.") if value == "stop" else last == "done"
