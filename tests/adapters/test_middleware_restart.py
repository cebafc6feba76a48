"""Does the middleware reach the same verdict in another process?"""

from __future__ import annotations

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from langchain_loopguard.errors import InvalidResumeError
from tests.adapters.agents import guarded_agent
from tests.adapters.guarded import assert_complete
from tests.hosts import Counter, ask, counting_tool, repeating_model, thread

ANSWERS = ("continue", "stop", "text", "async")

# The process that asks: it is killed while the question is open.
ASKS = f"""
import os, signal, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from tests.adapters.agents import guarded_agent
from tests.hosts import Counter, ask, counting_tool, repeating_model, thread

with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    counter = Counter()
    graph = guarded_agent(repeating_model(), [counting_tool(counter)], saver=saver)
    for answer in {ANSWERS!r}:
        assert "__interrupt__" in graph.invoke(ask(), thread(answer))
    assert counter.total == 2 * {len(ANSWERS)}
print("asked", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def agent(saver, **model_options):
    counter = Counter()
    model = repeating_model(**model_options)
    return guarded_agent(model, [counting_tool(counter)], saver=saver), counter, model


def test_continue_runs_the_tool_once(left_behind):
    with SqliteSaver.from_conn_string(left_behind) as saver:
        graph, counter, _ = agent(saver, times=3)
        result = graph.invoke(Command(resume="continue"), thread("continue"))
    assert counter.total == 1
    assert "__interrupt__" not in result
    assert_complete(result["messages"])


def test_stop_runs_no_tool_and_calls_no_model(left_behind):
    with SqliteSaver.from_conn_string(left_behind) as saver:
        graph, counter, model = agent(saver)
        result = graph.invoke(Command(resume="stop"), thread("stop"))
    assert counter.total == 0
    assert model.requests == []
    assert result["messages"][-1].content.startswith("Stopped.")
    assert_complete(result["messages"])


def test_a_wrong_answer_leaves_the_question_open_for_a_third_process(left_behind):
    with SqliteSaver.from_conn_string(left_behind) as saver:
        graph, counter, _ = agent(saver)
        with pytest.raises(InvalidResumeError, match="Accepted are"):
            graph.invoke(Command(resume=3), thread("text"))
    with SqliteSaver.from_conn_string(left_behind) as saver:
        graph, counter, model = agent(saver)
        graph.invoke(Command(resume="use b"), thread("text"))
    assert counter.total == 0
    assert model.requests[0][-1].content == "use b"


async def test_an_asynchronous_process_goes_on_with_what_a_synchronous_one_asked(left_behind):
    async with AsyncSqliteSaver.from_conn_string(left_behind) as saver:
        graph, counter, _ = agent(saver)
        result = await graph.ainvoke(Command(resume="continue"), thread("async"))
    # The approved run and the two that a fresh count allows.
    assert counter.total == 3
    assert len(result["__interrupt__"]) == 1


def test_one_process_for_each_step_counts_as_one_for_all(tmp_path):
    def play(path_of):
        counter, shown = Counter(), []
        for number, step in enumerate((ask(), Command(resume="continue"), Command(resume="b"))):
            with SqliteSaver.from_conn_string(path_of(number)) as saver:
                graph = guarded_agent(repeating_model(), [counting_tool(counter)], saver=saver)
                asked = graph.invoke(step, thread("t"))["__interrupt__"]
                shown.append((counter.total, [item.value["findings"] for item in asked]))
                counts = graph.get_state(thread("t")).values["loop_guard"]
        return shown, counts["guard"]

    first = play(lambda number: str(tmp_path / "one.db"))
    assert [total for total, _ in first[0]] == [2, 5, 5]
    assert first == play(lambda number: str(tmp_path / "two.db"))
