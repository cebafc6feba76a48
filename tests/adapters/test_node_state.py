"""Is the node a pure function of the state: across processes, forks, replays, trims, threads?"""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt

from langchain_loopguard.node import LoopGuardNode, LoopGuardState, add_loop_guard
from tests.adapters.guarded import (
    SEED,
    WIRINGS,
    assert_complete,
    assert_requests_complete,
    builder_for,
)
from tests.hosts import (
    Counter,
    ScriptedChatModel,
    ai_calls,
    ask,
    counting_tool,
    repeating_model,
    thread,
)

every_wiring = pytest.mark.parametrize("build", WIRINGS.values(), ids=WIRINGS)
with_counts = pytest.mark.parametrize(
    "build",
    [build for name, build in WIRINGS.items() if name != "by-hand-folding"],
    ids=[name for name in WIRINGS if name != "by-hand-folding"],
)


def looping(build, **options):
    counter = Counter()
    model = repeating_model()
    return build(model, [counting_tool(counter)], **options), counter, model


# The process that asks: it is killed while the question is open.
ASKS = """
import os, signal, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from tests.adapters.guarded import WIRINGS
from tests.hosts import Counter, ask, counting_tool, repeating_model, thread

with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    for name, build in WIRINGS.items():
        counter = Counter()
        graph = build(repeating_model(), [counting_tool(counter)], saver=saver)
        for answer in ("continue", "stop", "text"):
            result = graph.invoke(ask(), thread(f"{name}-{answer}"))
            assert "__interrupt__" in result
        assert counter.total == 6
print("asked", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


class TestAnotherProcess:
    @every_wiring
    def test_continues_and_runs_the_tool_once(self, build, left_behind):
        with SqliteSaver.from_conn_string(left_behind) as saver:
            counter = Counter()
            graph = build(repeating_model(times=3), [counting_tool(counter)], saver=saver)
            config = thread(f"{name_of(build)}-continue")
            result = graph.invoke(Command(resume="continue"), config)
        assert counter.total == 1
        assert "__interrupt__" not in result
        assert_complete(result["messages"])

    @every_wiring
    def test_stops_without_running_the_tool(self, build, left_behind):
        with SqliteSaver.from_conn_string(left_behind) as saver:
            graph, counter, _ = looping(build, saver=saver)
            result = graph.invoke(Command(resume="stop"), thread(f"{name_of(build)}-stop"))
        assert counter.total == 0
        assert_complete(result["messages"])
        assert result["messages"][-1].content.startswith("Stopped.")

    @every_wiring
    def test_takes_a_wrong_answer_and_then_a_right_one(self, build, left_behind):
        with SqliteSaver.from_conn_string(left_behind) as saver:
            graph, counter, model = looping(build, saver=saver)
            config = thread(f"{name_of(build)}-text")
            with pytest.raises(ValueError, match="Accepted are"):
                graph.invoke(Command(resume=3), config)
        with SqliteSaver.from_conn_string(left_behind) as saver:
            graph, counter, model = looping(build, saver=saver)
            graph.invoke(Command(resume="use b"), config)
        assert counter.total == 0
        assert model.requests[0][-1].content == "use b"

    @every_wiring
    def test_counts_nothing_twice(self, build, tmp_path):
        # One process for each step gives the same runs and the same counts as one for all.
        def play(savers):
            counter, results = Counter(), []
            steps = [ask(), Command(resume="continue"), Command(resume="use b")]
            for number, step in enumerate(steps):
                with SqliteSaver.from_conn_string(savers(number)) as saver:
                    graph = build(repeating_model(), [counting_tool(counter)], saver=saver)
                    results.append(graph.invoke(step, thread("t")))
                    results.append(counter.total)
            kept = results[-2].get("loop_guard") or {}
            shown = [r if isinstance(r, int) else question(r) for r in results]
            return shown, kept.get("guard")

        first = play(lambda number: str(tmp_path / "one.db"))
        assert first[0][1::2] == [2, 5, 5]
        assert first == play(lambda number: str(tmp_path / "two.db"))


def question(result):
    return [asked.value["findings"] for asked in result["__interrupt__"]]


def name_of(build):
    return next(name for name, known in WIRINGS.items() if known is build)


class TestTimeTravel:
    @every_wiring
    def test_a_fork_from_before_the_loop_counts_from_there(self, build):
        graph, counter, _ = looping(build)
        graph.invoke(ask(), thread("t"))
        history = list(graph.get_state_history(thread("t")))
        # The oldest state in which the agent has spoken once.
        early = next(
            state
            for state in reversed(history)
            if [m.type for m in state.values.get("messages", ())] == ["human", "ai"]
        )
        counter.runs.clear()
        result = graph.invoke(None, early.config)
        assert "__interrupt__" in result
        assert counter.total == 2

    @every_wiring
    def test_a_replay_of_the_question_asks_the_same_again(self, build):
        graph, counter, _ = looping(build)
        first = graph.invoke(ask(), thread("t"))
        asking = graph.get_state(thread("t")).config
        for _ in range(3):
            again = graph.invoke(None, asking)
            assert question(again) == question(first)
        assert counter.total == 2
        graph.invoke(Command(resume="continue"), thread("t"))
        assert counter.total == 5

    @every_wiring
    def test_a_question_asked_again_may_be_answered_differently(self, build):
        graph, counter, _ = looping(build)
        graph.invoke(ask(), thread("t"))
        asking = graph.get_state(thread("t")).config
        graph.invoke(Command(resume="continue"), asking)
        assert counter.total == 5
        graph.invoke(None, asking)
        stopped = graph.invoke(Command(resume="stop"), thread("t"))
        assert counter.total == 5
        assert_complete(stopped["messages"])

    def test_the_host_gives_a_saved_answer_again_at_a_checkpoint_that_was_passed(self):
        # LangGraph's doing, with any interrupt: the second answer is not looked at. The question
        # must be replayed first, as above.
        given = []

        def asks(state):
            given.append(interrupt("?"))

        builder = StateGraph(MessagesState)
        builder.add_node("asks", asks)
        builder.add_node("next", lambda state: None)
        builder.add_edge(START, "asks")
        builder.add_edge("asks", "next")
        graph = builder.compile(checkpointer=InMemorySaver())
        graph.invoke(ask(), thread("t"))
        asking = graph.get_state(thread("t")).config
        graph.invoke(Command(resume="continue"), asking)
        graph.invoke(Command(resume="stop"), asking)
        assert given == ["continue", "continue"]

    @every_wiring
    def test_a_node_run_again_on_the_same_state_gives_the_same(self, build):
        graph, _, _ = looping(build)
        graph.invoke(ask(), thread("t"))
        for state in graph.get_state_history(thread("t")):
            if state.values.get("messages") and not state.interrupts:
                node = LoopGuardNode(SEED, on_detected="refuse")
                before = copy.deepcopy(state.values)
                first, second = node(state.values), node(state.values)
                assert first.goto == second.goto
                assert first.update == second.update
                assert state.values == before

    def test_an_edit_of_the_state_by_hand_before_the_tools_run_is_run(self):
        graph, counter, _ = looping(WIRINGS["owned"])
        builder = builder_for(repeating_model(times=1), [counting_tool(counter)])
        add_loop_guard(builder, policy=SEED)
        graph = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["tools"])
        graph.invoke(ask(), thread("t"))
        last = graph.get_state(thread("t")).values["messages"][-1]
        call = {**last.tool_calls[0], "args": {"q": "other"}}
        edited = last.model_copy(update={"tool_calls": [call]})
        graph.update_state(thread("t"), {"messages": [edited]}, as_node="agent")
        while graph.get_state(thread("t")).next:
            graph.invoke(None, thread("t"))
        assert counter.runs == [("search", {"q": "other"})]


class TestShortenedHistories:
    @with_counts
    @pytest.mark.parametrize("keep", [1, 2, 3])
    def test_a_trimmed_history_hides_no_loop(self, build, keep):
        # The agent forgets all but the last messages before it speaks.
        def respond(messages):
            return ai_calls([("search", {"q": "a"})], f"{messages[-1].id}")

        counter = Counter()
        model = ScriptedChatModel(respond=respond)
        graph = build_trimming(build, model, [counting_tool(counter)], keep)
        result = graph.invoke(ask(), thread("t"))
        assert "__interrupt__" in result
        assert counter.total == 2

    @with_counts
    def test_a_summary_in_place_of_the_history_hides_no_loop(self, build):
        def respond(messages):
            return ai_calls([("search", {"q": "a"})], f"{messages[-1].id}")

        counter = Counter()
        model = ScriptedChatModel(respond=respond)
        graph = build_trimming(build, model, [counting_tool(counter)], None)
        result = graph.invoke(ask(), thread("t"))
        assert "__interrupt__" in result
        assert counter.total == 2
        # The summary is no user turn: it carries `lc_source`.
        assert result["messages"][0].additional_kwargs == {"lc_source": "summarization"}

    @with_counts
    def test_a_person_who_said_go_on_is_not_asked_at_once_after_a_trim(self, build):
        def respond(messages):
            return ai_calls([("search", {"q": "a"})], f"{messages[-1].id}")

        counter = Counter()
        model = ScriptedChatModel(respond=respond)
        graph = build_trimming(build, model, [counting_tool(counter)], 2)
        graph.invoke(ask(), thread("t"))
        graph.invoke(Command(resume="continue"), thread("t"))
        assert counter.total == 5

    @with_counts
    def test_a_trimmed_history_makes_no_loop_of_new_answers(self, build):
        def respond(messages):
            return ai_calls([("search", {"q": "a"})], f"{messages[-1].id}")

        counter = Counter()
        model = ScriptedChatModel(respond=respond)
        graph = build_trimming(build, model, [counting_tool(counter, answer=str)], 3)
        with pytest.raises(RecursionError):
            graph.invoke(ask(), thread("t", recursion_limit=40))
        assert counter.total > 5


def build_trimming(build, model, tools, keep):
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


def test_a_hundred_threads_of_a_hundred_turns_share_no_count():
    # Every thread makes the same hundred calls and then repeats the last one: a shared count
    # would ask earlier, a lost one later.
    # One node is agent and tools, and keeps the history short: both for speed.
    def work(state):
        last = state["messages"][-1]
        turn = int(last.id) + 1 if isinstance(last, AIMessage) else 1
        answer = ai_calls([("search", {"q": str(min(turn, 98))})], turn)
        answer.id = str(turn)
        answers = [
            ToolMessage("nothing", tool_call_id=call["id"])
            for call in getattr(last, "tool_calls", ())
        ]
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), last, *answers, answer]}

    builder = StateGraph(LoopGuardState)
    builder.add_node("work", work)
    builder.add_node("guard", LoopGuardNode(SEED, agent="work", tools="work"))
    builder.add_edge(START, "work")
    builder.add_edge("work", "guard")
    graph = builder.compile(checkpointer=InMemorySaver())

    def play(number):
        config = thread(str(number), recursion_limit=400)
        return graph.invoke(ask(), config, durability="exit")

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(play, range(100)))
    for result in results:
        assert len(result["__interrupt__"]) == 1
        assert result["messages"][-1].id == "100"


def test_requests_stay_complete_over_a_long_conversation():
    graph, _, model = looping(WIRINGS["owned"])
    for value in (ask(), "continue", "use b", ask("other"), "stop", ask("last"), {"type": "stop"}):
        graph.invoke(
            value if isinstance(value, dict) and "messages" in value else Command(resume=value),
            thread("t"),
        )
    assert_requests_complete(model)
    assert_complete(graph.get_state(thread("t")).values["messages"])
