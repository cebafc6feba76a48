"""Is a looping sub-agent of a deep agent stopped, each on its own counts?"""

from __future__ import annotations

import subprocess
import sys

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_loopguard import LoopDetectedError, LoopGuardMiddleware, guard_subagents
from tests.adapters.guarded import SEED, assert_complete, assert_requests_complete
from tests.hosts import (
    Counter,
    ScriptedChatModel,
    agent_graph,
    ai_calls,
    ask,
    counting_tool,
    drive,
    every_mode,
    repeating_model,
    thread,
    turns_since_human,
)

deepagents = pytest.importorskip("deepagents")

SEARCH = ("search", {"q": "a"})
RESEARCHER = {"name": "researcher", "description": "Looks things up.", "system_prompt": "Search."}
KINDS = ("researcher", "general-purpose")
every_kind = pytest.mark.parametrize("kind", KINDS)


def task(text, kind="researcher"):
    return ("task", {"description": f"TASK {text}", "subagent_type": kind})


def team(batches, times=None):
    """Make one model for all: the main agent hands out `batches`, a sub-agent only searches.

    Args:
        batches: The main agent's batches.
        times: How often a sub-agent searches before it reports, for ever without it.
    """

    def respond(messages):
        turn = turns_since_human(messages)
        asked = [m for m in messages if isinstance(m, HumanMessage)][-1].text
        if not asked.startswith("TASK"):
            return ai_calls(batches[turn], turn) if turn < len(batches) else AIMessage("done")
        return AIMessage("report") if turn == times else ai_calls([SEARCH], turn)

    return ScriptedChatModel(respond=respond)


def deep_agent(model, *, answer="error: 503", subagents=(RESEARCHER,), saver=None, **options):
    counter = Counter()
    guard = LoopGuardMiddleware(**{"policy": SEED, **options})
    graph = deepagents.create_deep_agent(
        model,
        tools=[counting_tool(counter, "search", answer, native_async=True)],
        middleware=[guard],
        subagents=guard_subagents(subagents, guard),
        checkpointer=InMemorySaver() if saver is None else saver or None,
    )
    return graph, counter


def config(name="t"):
    return thread(name, recursion_limit=400)


class TestALoopingSubAgent:
    @every_kind
    @every_mode
    async def test_is_asked_about_at_the_root(self, kind, mode):
        model = team([[task("a", kind)]])
        graph, counter = deep_agent(model)
        outcome = await drive(graph, mode, ask(), config())
        assert len(outcome.interrupts) == 1
        assert outcome.interrupts[0].value["action_requests"][0]["name"] == "search"
        assert counter.total == 2
        outcome = await drive(graph, mode, Command(resume="stop"), config())
        assert counter.total == 2
        assert "Stopped. The agent called search" in outcome.messages[-2].content
        assert outcome.messages[-1].content == "done"
        assert_complete(outcome.messages)
        assert_requests_complete(model)

    @every_mode
    async def test_goes_on_where_it_was_when_a_person_says_so(self, mode):
        graph, counter = deep_agent(team([[task("a")]], times=3))
        await drive(graph, mode, ask(), config())
        outcome = await drive(graph, mode, Command(resume="continue"), config())
        assert counter.total == 3
        assert outcome.messages[-2].content == "report"

    def test_takes_a_text_instead_of_an_answer(self):
        model = team([[task("a")]])
        graph, counter = deep_agent(model)
        graph.invoke(ask(), config())
        graph.invoke(Command(resume="use the cache"), config())
        assert counter.total == 4
        told = [m.content for request in model.requests for m in request]
        assert "use the cache" in told

    @every_kind
    @every_mode
    async def test_is_refused_where_nobody_is_asked(self, kind, mode):
        graph, counter = deep_agent(team([[task("a", kind)]]), on_detected="refuse", saver=False)
        outcome = await drive(graph, mode, ask(), config())
        assert counter.total == 2
        assert outcome.messages[-1].content == "done"
        assert_complete(outcome.messages)

    def test_wraps_up_with_what_it_found(self):
        def respond(messages):
            if "not run" in str(messages[-1].content):
                return AIMessage("so far nothing")
            return base.respond(messages)

        base = team([[task("a")]])
        graph, counter = deep_agent(ScriptedChatModel(respond=respond), on_detected="wrap_up")
        result = graph.invoke(ask(), config())
        assert counter.total == 2
        assert result["messages"][-2].content == "so far nothing"

    def test_ends_the_whole_run_in_an_error_and_the_thread_can_go_on(self):
        model = team([[task("a")]])
        graph, counter = deep_agent(model, on_detected="raise")
        with pytest.raises(LoopDetectedError, match="search 3 times"):
            graph.invoke(ask(), config())
        assert counter.total == 2
        model.respond = lambda messages: AIMessage("fine")
        assert graph.invoke(ask("never mind"), config())["messages"][-1].content == "fine"
        assert_requests_complete(model)


class TestSubAgentsSideBySide:
    @every_mode
    async def test_never_add_up(self, mode):
        # Each searches twice, which is allowed; together they search eight times.
        batch = [task(str(number), KINDS[number % 2]) for number in range(4)]
        graph, counter = deep_agent(team([batch], times=2))
        outcome = await drive(graph, mode, ask(), config())
        assert outcome.interrupts == ()
        assert counter.total == 8
        assert_complete(outcome.messages)

    @every_mode
    async def test_are_asked_about_one_by_one(self, mode):
        graph, counter = deep_agent(team([[task("a"), task("b")]]))
        outcome = await drive(graph, mode, ask(), config())
        assert len(outcome.interrupts) == 2
        assert counter.total == 4
        answers = {asked.id: "stop" for asked in outcome.interrupts}
        outcome = await drive(graph, mode, Command(resume=answers), config())
        assert counter.total == 4
        assert outcome.messages[-1].content == "done"
        assert_complete(outcome.messages)

    def test_start_anew_with_every_task(self):
        graph, counter = deep_agent(team([[task("a")], [task("b")], [task("c")]], times=2))
        assert "__interrupt__" not in graph.invoke(ask(), config())
        assert counter.total == 6


class TestTheMainAgent:
    @every_mode
    async def test_that_hands_out_the_same_task_for_ever_is_asked_about(self, mode):
        graph, counter = deep_agent(team([[task("a")]] * 9, times=1))
        outcome = await drive(graph, mode, ask(), config())
        assert outcome.interrupts[0].value["action_requests"][0]["name"] == "task"
        assert counter.total == 2

    def test_whose_answers_are_too_long_for_its_messages_is_asked_about(self):
        # Each is put into a file that is named for the call.
        graph, counter = deep_agent(repeating_model(), answer="a line\n" * 20_000, policy=None)
        assert "__interrupt__" in graph.invoke(ask(), config())
        assert counter.total < 8
        answer = graph.get_state(config()).values["messages"][2]
        assert answer.tool_call_id in answer.text

    def test_keeps_its_counts_to_itself(self):
        graph, _ = deep_agent(team([[task("a")]], times=1))
        result = graph.invoke(ask(), config())
        assert "loop_guard" not in result
        assert graph.get_state(config()).values["loop_guard"]["guard"]["steps"] == 1

    def test_without_the_helper_leaves_its_sub_agents_unguarded(self):
        # Why there is a helper.
        counter = Counter()
        graph = deepagents.create_deep_agent(
            team([[task("a")]], times=9),
            tools=[counting_tool(counter, "search", "error: 503")],
            middleware=[LoopGuardMiddleware(SEED)],
            subagents=[RESEARCHER],
            checkpointer=InMemorySaver(),
        )
        assert "__interrupt__" not in graph.invoke(ask(), config())
        assert counter.total == 9

    @pytest.mark.filterwarnings("ignore:The feature .forked subagents. is in beta")
    def test_is_inherited_from_by_a_fork_that_counts_on_its_own(self):
        fork = {"name": "researcher", "description": "Looks things up.", "mode": "fork"}

        def respond(messages):
            turn = turns_since_human(messages)
            forked = "TASK" in [m for m in messages if isinstance(m, HumanMessage)][-1].text
            if forked:
                return AIMessage("report") if turn == 2 else ai_calls([SEARCH], f"f{turn}")
            # The main agent searches once, hands out, and searches once more.
            steps = [[SEARCH], [task("a"), task("b")], [SEARCH]]
            return ai_calls(steps[turn], turn) if turn < 3 else AIMessage("done")

        graph, counter = deep_agent(ScriptedChatModel(respond=respond), subagents=[fork])
        result = graph.invoke(ask(), config())
        assert "__interrupt__" not in result
        assert counter.total == 6


class TestTheHelper:
    def names(self, subagents):
        return [(agent["name"], [m.name for m in agent["middleware"]]) for agent in subagents]

    def test_adds_the_guard_to_every_sub_agent_and_to_the_general_purpose_one(self):
        assert self.names(guard_subagents([RESEARCHER])) == [
            ("researcher", ["LoopGuardMiddleware"]),
            ("general-purpose", ["LoopGuardMiddleware"]),
        ]

    @pytest.mark.parametrize(
        ("given", "text"),
        [
            pytest.param(("x",), "subagents: must be a list of sub-agents, not 'x'", id="text"),
            pytest.param((None,), "subagents: must be a list of sub-agents, not None", id="none"),
            pytest.param((RESEARCHER,), "subagents: must be a list of sub-agents", id="one"),
            pytest.param(([5],), "subagents: must hold mappings.*not 5", id="a number"),
            pytest.param(
                ([], 5), "guard: must be a LoopGuardMiddleware or None, not 5", id="guard"
            ),
        ],
    )
    def test_refuses_what_is_wrong_and_names_the_field(self, given, text):
        with pytest.raises(ValueError, match=text):
            guard_subagents(*given)

    def test_leaves_what_it_was_given_alone(self):
        given = {**RESEARCHER, "middleware": []}
        guard_subagents([given])
        assert given["middleware"] == []

    def test_keeps_a_guard_that_is_there(self):
        own = LoopGuardMiddleware(SEED)
        guarded = guard_subagents([{**RESEARCHER, "middleware": [own]}], general_purpose=False)
        assert guarded[0]["middleware"] == [own]

    def test_keeps_a_general_purpose_sub_agent_that_is_listed(self):
        mine = {**RESEARCHER, "name": "general-purpose"}
        guarded = guard_subagents([mine])
        assert len(guarded) == 1
        assert guarded[0]["system_prompt"] == "Search."

    def test_passes_on_a_sub_agent_that_was_made_elsewhere_and_says_so(self, caplog):
        runnable = agent_graph(repeating_model(), [])
        compiled = {"name": "made", "description": "x", "runnable": runnable}
        remote = {"name": "remote", "description": "x", "graph_id": "g"}
        guarded = guard_subagents([compiled, remote], general_purpose=False)
        assert guarded == [compiled, remote]
        assert [r.args[0] for r in caplog.records] == ["made", "remote"]

    def test_without_deepagents_needs_no_deepagents_for_the_listed_ones(self):
        done = without_deepagents("[{'name': 'a'}], general_purpose=False")
        assert (done.returncode, done.stdout.strip()) == (0, "1")

    def test_without_deepagents_the_general_purpose_one_is_an_error_that_says_what_to_do(self):
        done = without_deepagents("[]")
        assert done.returncode != 0
        assert done.stderr.strip().endswith(
            "general_purpose: needs deepagents, which isn't installed: pip install deepagents"
        )


def without_deepagents(arguments):
    """Call `guard_subagents` in a process that can't import deepagents."""
    code = (
        "import sys\n"
        "sys.modules['deepagents'] = None\n"
        "from langchain_loopguard import guard_subagents\n"
        f"print(len(guard_subagents({arguments})))"
    )
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
