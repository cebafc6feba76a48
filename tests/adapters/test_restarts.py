"""Is the verdict the same in another process, in a fork, and with a shortened history?"""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from langchain_loopguard.adapters import gate
from langchain_loopguard.langchain.errors import InvalidResumeError
from tests.adapters.agents import WAYS, every_way, looping
from tests.adapters.guarded import SEED, assert_complete, assert_requests_complete
from tests.hosts import (
    Counter,
    ScriptedChatModel,
    ai_calls,
    ask,
    counting_tool,
    repeating_model,
    thread,
)

SEARCH = ("search", {"q": "a"})
NODES = {name: build for name, build in WAYS.items() if name != "middleware"}
COUNTED = {name: build for name, build in NODES.items() if name != "by-hand-folding"}


def question(result):
    return [one.value["findings"] for one in result.get("__interrupt__", ())]


@every_way
def test_another_process_carries_an_answer_out_once(build, tmp_path):
    path = str(tmp_path / "saved.db")
    for value, runs, models in (("continue", 3, 1), ("stop", 2, 0), ("use b", 2, 1)):
        with SqliteSaver.from_conn_string(path) as saver:
            graph, counter, _ = looping(build, saver=saver, model=repeating_model(times=3))
            assert question(graph.invoke(ask(), thread(value)))
        with SqliteSaver.from_conn_string(path) as saver:
            graph, again, model = looping(build, saver=saver, model=repeating_model(times=3))
            with pytest.raises(InvalidResumeError):
                graph.invoke(Command(resume=3), thread(value))
        with SqliteSaver.from_conn_string(path) as saver:
            graph, again, model = looping(build, saver=saver, model=repeating_model(times=3))
            result = graph.invoke(Command(resume=value), thread(value))
        assert (counter.total + again.total, len(model.requests)) == (runs, models)
        assert_complete(result["messages"])
        assert_requests_complete(model)


@every_way
async def test_an_asynchronous_process_goes_on_with_what_a_synchronous_one_asked(build, tmp_path):
    path = str(tmp_path / "saved.db")
    with SqliteSaver.from_conn_string(path) as saver:
        looping(build, saver=saver)[0].invoke(ask(), thread("t"))
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        graph, counter, _ = looping(build, saver=saver)
        assert question(await graph.ainvoke(Command(resume="continue"), thread("t")))
    assert counter.total > 2


@every_way
def test_one_process_for_each_input_counts_as_one_for_all(build, tmp_path):
    def play(path_of):
        counter, shown = Counter(), []
        inputs = [ask(), *(Command(resume=value) for value in ("continue", "continue", "b"))]
        for number, value in enumerate(inputs):
            with SqliteSaver.from_conn_string(path_of(number)) as saver:
                graph = build(repeating_model(), [counting_tool(counter)], saver=saver)
                result = graph.invoke(value, thread("t", recursion_limit=200))
                shown.append((counter.total, question(result)))
        return shown

    fresh = play(lambda _: str(tmp_path / "fresh.db"))
    assert all(asked for _, asked in fresh)
    graph, counter, _ = looping(build)
    kept = []
    for value in (ask(), *(Command(resume=value) for value in ("continue", "continue", "b"))):
        result = graph.invoke(value, thread("t", recursion_limit=200))
        kept.append((counter.total, question(result)))
    assert kept == fresh


@every_way
@pytest.mark.parametrize("policy", [None, "seed"])
def test_a_reader_in_memory_decides_as_one_that_is_read_anew(build, policy, monkeypatch):
    seen = []
    for kept in (True, False):
        if not kept:
            monkeypatch.setattr(gate._Kept, "has_read", lambda *_: False)
        options = {"policy": SEED if policy else None}
        graph, counter, model = looping(build, **options)
        result = graph.invoke(ask(), thread("t", recursion_limit=200))
        runs = [(counter.total, question(result))]
        for value in ("continue", "no", "stop"):
            result = graph.invoke(Command(resume=value), thread("t", recursion_limit=200))
            runs.append((counter.total, question(result)))
        seen.append((runs, [[m.text for m in request] for request in model.requests]))
    assert seen[0] == seen[1]


class TestTimeTravel:
    @every_way
    def test_a_fork_from_before_the_loop_counts_from_there(self, build):
        graph, counter, _ = looping(build)
        graph.invoke(ask(), thread("t"))
        early = next(
            state
            for state in reversed(list(graph.get_state_history(thread("t"))))
            if [m.type for m in state.values.get("messages", ())] == ["human", "ai"]
        )
        counter.runs.clear()
        assert question(graph.invoke(None, early.config))
        assert counter.total == 2

    @every_way
    def test_a_question_can_be_replayed_and_answered_differently(self, build):
        graph, counter, _ = looping(build)
        first = graph.invoke(ask(), thread("t"))
        asking = graph.get_state(thread("t")).config
        for _ in range(3):
            assert question(graph.invoke(None, asking)) == question(first)
        assert counter.total == 2
        graph.invoke(Command(resume="continue"), asking)
        runs = counter.total
        assert runs > 2
        graph.invoke(None, asking)
        stopped = graph.invoke(Command(resume="stop"), thread("t"))
        assert counter.total == runs
        assert_complete(stopped["messages"])

    @pytest.mark.parametrize("build", NODES.values(), ids=NODES)
    def test_an_edit_of_the_state_by_hand_is_what_runs(self, build):
        graph, counter, _ = looping(build)
        graph.invoke(ask(), thread("t"))
        last = graph.get_state(thread("t")).values["messages"][-1]
        edited = last.model_copy(
            update={"tool_calls": [{**last.tool_calls[0], "args": {"q": "z"}}]}
        )
        graph.update_state(thread("t"), {"messages": [edited]}, as_node="agent")
        graph.invoke(None, thread("t"))
        assert counter.runs[2][1] == {"q": "z"}


def trimming(build, model, tools, keep):
    """Build a graph whose agent shortens the messages: the last `keep`, or a summary (`None`)."""

    def agent(state):
        messages = state["messages"]
        if keep is None and len(messages) > 1:
            summary = HumanMessage("so far", additional_kwargs={"lc_source": "summarization"})
            at = max(i for i, m in enumerate(messages) if isinstance(m, AIMessage))
            kept = [summary, *messages[at:]]
        else:
            kept = messages[-(keep or 1) :]
            while isinstance(kept[0], ToolMessage):
                kept = messages[-len(kept) - 1 :]
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept, model.invoke(kept)]}

    return build(model, tools, agent_node=agent)


@pytest.mark.parametrize("build", COUNTED.values(), ids=COUNTED)
@pytest.mark.parametrize("keep", [1, 2, 3, None])
def test_a_shortened_history_hides_no_loop_and_forgets_no_answer(build, keep):
    counter = Counter()
    model = ScriptedChatModel(respond=lambda messages: ai_calls([SEARCH], f"{messages[-1].id}"))
    graph = trimming(build, model, [counting_tool(counter)], keep)
    assert question(graph.invoke(ask(), thread("t")))
    assert counter.total == 2
    assert question(graph.invoke(Command(resume="continue"), thread("t")))
    assert counter.total > 4


@pytest.mark.parametrize("build", [WAYS["owned-schema"], WAYS["by-hand-schema"]])
@pytest.mark.parametrize("odd", [[], "x", {}, {"v": 1}, {"v": 2, "guard": 3}, {"v": "2"}])
def test_odd_counts_are_counted_anew_and_later_ones_left_alone(build, odd):
    graph, counter, _ = looping(build)
    assert question(graph.invoke({**ask(), "loop_guard": odd}, thread("t")))
    assert counter.total == 2
    for later in ({"v": 99}, {"v": 2, "guard": {"v": 99}}):
        graph, counter, _ = looping(build, model=repeating_model(times=5))
        result = graph.invoke({**ask(), "loop_guard": later}, thread("t"))
        assert counter.total == 5
        assert result["loop_guard"] == later
