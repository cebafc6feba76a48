"""Does an answer that one call took hold for the others in the next process?"""

from __future__ import annotations

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from langchain_loopguard import LoopGuardCallbackHandler, LoopGuardPolicy
from tests.faults.test_handler_restarts import (
    APPROVE,
    REJECT,
    SEARCH,
    every_host,
    fresh,
    graph_of,
)
from tests.hosts import (
    GRAPHS,
    Counter,
    ask,
    assert_valid_history,
    counting_tool,
    listed_model,
    repeating_model,
    thread,
)


class DiesOnce(AgentMiddleware):
    """Fails at the second call of the third batch, the first time that it is on."""

    on = False

    def _check(self, request) -> None:
        if self.on and request.tool_call["id"].endswith("_1"):
            self.on = False
            raise ConnectionError("the process died")

    def wrap_tool_call(self, request, handler):
        self._check(request)
        return handler(request)

    async def awrap_tool_call(self, request, handler):
        self._check(request)
        return await handler(request)


TWO = (SEARCH, ("search", {"q": "b"}))
MIXED = {"decisions": [APPROVE, REJECT]}
every_answer = pytest.mark.parametrize(
    ("answer", "runs"),
    [("continue", 2), ("stop", 0), ("Use the archive.", 0), (MIXED, 1)],
    ids=["continue", "stop", "text", "mixed"],
)
every_form = pytest.mark.parametrize("by_id", [False, True], ids=["plain", "by-id"])


def check_end(state, ran, answer, runs) -> None:
    messages = state.values["messages"]
    assert state.next == ()
    assert_valid_history(messages)
    assert ran.total == 4 + runs
    last = messages[-1].content
    assert last.startswith("Stopped.") if answer == "stop" else last == "done"
    refused = [m.content for m in messages if isinstance(m, ToolMessage)][4 + runs :]
    assert len(refused) == 2 - runs
    if answer == "Use the archive.":
        assert set(refused) == {answer}


def dying(saver=None, native_async=False):
    """Build an agent of which one call can die; its calls start one by one."""
    ran, dies = Counter(), DiesOnce()
    graph = GRAPHS["create_agent"](
        listed_model(TWO, TWO, TWO),
        [counting_tool(ran, native_async=native_async)],
        checkpointer=saver or InMemorySaver(),
        middleware=[dies],
    )
    return graph.with_config(max_concurrency=1), ran, dies


@every_answer
@every_form
def test_an_answer_that_one_call_took_holds_for_the_others_in_the_next_process(answer, runs, by_id):
    graph, ran, dies = dying()
    asked = graph.invoke(ask(), fresh())["__interrupt__"]
    dies.on = True
    resume = {asked[0].id: answer} if by_id else answer
    with pytest.raises(ConnectionError):
        graph.invoke(Command(resume=resume), fresh())
    assert "__interrupt__" not in graph.invoke(None, fresh())
    check_end(graph.get_state(fresh()), ran, answer, runs)


@every_answer
@every_form
async def test_so_it_does_with_a_saver_that_cannot_be_read_from_a_handler(
    tmp_path, answer, runs, by_id
):
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        graph, ran, dies = dying(saver, native_async=True)
        asked = (await graph.ainvoke(ask(), fresh()))["__interrupt__"]
        dies.on = True
        resume = {asked[0].id: answer} if by_id else answer
        with pytest.raises(ConnectionError):
            await graph.ainvoke(Command(resume=resume), fresh())
        result = await graph.ainvoke(None, fresh())
        assert "__interrupt__" not in result
        check_end(await graph.aget_state(fresh()), ran, answer, runs)


@every_form
def test_the_handler_that_asked_learns_what_another_one_did_with_a_part_of_the_batch(by_id):
    graph, ran, dies = dying()
    first = fresh()
    asked = graph.invoke(ask(), first)["__interrupt__"]
    dies.on = True
    resume = {asked[0].id: "stop"} if by_id else "stop"
    with pytest.raises(ConnectionError):
        graph.invoke(Command(resume=resume), fresh())
    assert "__interrupt__" not in graph.invoke(None, first)
    check_end(graph.get_state(first), ran, "stop", 0)


@every_host
def test_a_question_holds_where_the_next_process_would_not_have_asked(host):
    # It has another policy, so it finds nothing; a person was asked all the same.
    ran = Counter()
    graph = graph_of(host, repeating_model(times=4), ran)
    first = graph.invoke(ask(), fresh())["__interrupt__"][0].value

    def other() -> dict:
        return thread("t", LoopGuardCallbackHandler(LoopGuardPolicy(), fail_open=False))

    assert graph.invoke(None, other())["__interrupt__"][0].value == first
    assert ran.total == 2
    result = graph.invoke(Command(resume="stop"), other())
    assert ran.total == 2
    assert result["messages"][-1].content.startswith("Stopped.")
