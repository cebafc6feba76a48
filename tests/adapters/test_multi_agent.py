"""Which guard catches agents that hand over to each other for ever?

They are caught where their messages meet:

- The callback handler, on the call of the whole graph: in a swarm and under a supervisor.
- `LoopGuardMiddleware` in each agent of a swarm: the agents share their messages. Not under
  `langgraph-supervisor`, whose supervisor takes no middleware, and whose workers see one handover.
- `LoopGuardPolicy.seed()` looks for one batch that follows itself, so it misses the handovers:
  the default policy is needed.

Sub-agents that work side by side have conversations of their own, so equal calls in several of
them are no loop.
"""

from __future__ import annotations

import itertools
import json

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from langchain_loopguard import (
    LoopDetectedError,
    LoopGuardCallbackHandler,
    LoopGuardMiddleware,
)
from langchain_loopguard.langchain.history import Reader
from langchain_loopguard.langchain.options import Options
from tests.adapters.guarded import SEED
from tests.hosts import (
    MODES,
    Counter,
    ScriptedChatModel,
    agent_as_tool,
    agent_graph,
    ai_calls,
    ask,
    assert_valid_history,
    counting_tool,
    drive,
    listed_model,
    thread,
)

pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent has been moved")


def handing_over(to, times=None):
    """Make a model that hands over to another agent, for ever or until it was done `times`."""

    def respond(messages):
        spoken = sum(isinstance(message, AIMessage) for message in messages)
        if times is not None and spoken >= times:
            return AIMessage(content="done")
        return ai_calls([(f"transfer_to_{to}", {})], f"{to}{spoken}")

    return ScriptedChatModel(respond=respond)


def swarm(guards=lambda: (), times=None):
    """Build two agents that hand over to each other."""
    langgraph_swarm = pytest.importorskip("langgraph_swarm")

    def agent(name, other):
        tools = [langgraph_swarm.create_handoff_tool(agent_name=other)]
        model = handing_over(other, times)
        return create_agent(model, tools, name=name, middleware=guards())

    agents = [agent("alice", "bob"), agent("bob", "alice")]
    builder = langgraph_swarm.create_swarm(agents, default_active_agent="alice")
    return builder.compile(checkpointer=InMemorySaver())


def supervised(times=None, report=lambda: "I can't do that."):
    """Build a supervisor that hands the same work over, to an agent that reports."""
    langgraph_supervisor = pytest.importorskip("langgraph_supervisor")
    worker = create_agent(
        ScriptedChatModel(respond=lambda _: AIMessage(content=report())),
        [],
        name="worker",
    )
    builder = langgraph_supervisor.create_supervisor([worker], model=handing_over("worker", times))
    return builder.compile(checkpointer=InMemorySaver())


TEAMS = {"swarm": swarm, "supervisor": supervised}

GUARDED = {
    "swarm-callback": lambda **options: (swarm(), [LoopGuardCallbackHandler(**options)]),
    "supervisor-callback": lambda **options: (supervised(), [LoopGuardCallbackHandler(**options)]),
    "swarm-middleware": lambda **options: (swarm(lambda: [LoopGuardMiddleware(**options)]), []),
}

guarded = pytest.mark.parametrize("team", GUARDED)


@pytest.mark.parametrize("mode", MODES)
@guarded
async def test_agents_that_hand_over_for_ever_are_asked_about_once(team, mode):
    graph, handlers = GUARDED[team]()

    outcome = await drive(graph, mode, ask(), thread("t", *handlers))

    assert len({item.id for item in outcome.interrupts}) == 1
    question = outcome.interrupts[0].value
    assert {tool.split("_")[0] for tool in question["findings"][0]["tools"]} == {"transfer"}


@guarded
def test_a_stop_ends_the_whole_team_and_leaves_a_valid_history(team):
    graph, handlers = GUARDED[team]()
    graph.invoke(ask(), thread("t", *handlers))

    result = graph.invoke(Command(resume="stop"), thread("t", *handlers))

    assert "__interrupt__" not in result
    assert result["messages"][-1].content.startswith("Stopped.")
    assert_valid_history(result["messages"])


@guarded
def test_after_a_continue_a_whole_new_loop_is_needed(team):
    graph, handlers = GUARDED[team]()
    first = graph.invoke(ask(), thread("t", *handlers))

    second = graph.invoke(Command(resume="continue"), thread("t", *handlers))

    asked = [result["__interrupt__"][0].value["findings"][0] for result in (first, second)]
    assert asked[1]["threshold"] > asked[0]["threshold"]
    assert len(second["messages"]) >= len(first["messages"]) + 8


@pytest.mark.parametrize("team", TEAMS)
def test_after_a_continue_in_another_process_a_whole_new_loop_is_needed(team):
    graph = TEAMS[team]()
    first = graph.invoke(ask(), thread("t", LoopGuardCallbackHandler()))

    second = graph.invoke(Command(resume="continue"), thread("t", LoopGuardCallbackHandler()))

    assert len(second["messages"]) >= len(first["messages"]) + 16


@guarded
def test_with_raise_the_run_ends_in_the_error(team):
    graph, handlers = GUARDED[team](on_detected="raise")

    with pytest.raises(LoopDetectedError):
        graph.invoke(ask(), thread("t", *handlers))


@pytest.mark.parametrize("team", TEAMS)
def test_a_few_handovers_are_left_alone(team):
    handler = LoopGuardCallbackHandler()

    result = TEAMS[team](times=4).invoke(ask(), thread("t", handler))

    assert "__interrupt__" not in result
    assert result["messages"][-1].content == "done"


VILLAINS = (
    "Ash Bane Crow Dirk Edge Fang Grim Hex Imp Jinx Knave Loki Mara Nox Ogre Pike Quill Raven "
    "Shade Thorn"
).split()
PLACES = (
    "attic barn cave den estuary forest garden hall inn jungle keep lake mill nest orchard port "
    "quarry ruin swamp"
).split()


def reports(say):
    """Run a supervisor that hands over 20 times, to a worker that says `say(n)` the n-th time."""
    turn = itertools.count()
    told = []
    graph = supervised(times=80, report=lambda: say(next(turn)))
    config = thread("t", LoopGuardCallbackHandler(notify=told.append), recursion_limit=500)
    return graph.invoke(ask(), config), told


def test_a_worker_that_reports_something_new_each_time_is_left_alone():
    result, told = reports(lambda n: f"The hero meets {VILLAINS[n % 20]} in the {PLACES[n % 19]}.")
    assert result["messages"][-1].content == "done"
    assert told == []


def test_reports_that_go_round_are_a_loop():
    result, _ = reports(lambda n: f"It failed at {n}:00:00 in part {'abc'[n % 3]}.")
    assert result["__interrupt__"]


def test_whose_calls_came_last_is_part_of_the_state():
    result, _ = reports(lambda n: f"The hero meets {VILLAINS[n % 20]} in the {PLACES[n % 19]}.")
    options, messages = Options(), result["messages"]
    reader = Reader(options)
    for end in range(1, len(messages)):
        reader = Reader.from_state(options, json.loads(json.dumps(reader.to_state())))
        revealed = reader.read(messages[:end])
        assert revealed is None or not revealed.findings


@pytest.mark.parametrize("team", TEAMS)
def test_each_handover_is_counted_and_told_once(team):
    told = []
    handler = LoopGuardCallbackHandler(notify=told.append)

    result = TEAMS[team]().invoke(ask(), thread("t", handler))

    batches = [message for message in result["messages"] if getattr(message, "tool_calls", ())]
    texts = [decision.to_person for decision in told]
    # The batch that is asked about is still in its agent's own state.
    assert handler.stats()["checked"] in {len(batches), len(batches) + 1}
    assert len(texts) == len(set(texts))


def test_the_seed_policy_misses_handovers():
    handler = LoopGuardCallbackHandler(SEED)

    with pytest.raises(GraphRecursionError):
        swarm().invoke(ask(), thread("t", handler, recursion_limit=30))

    assert handler.stats()["asked"] == 0


# --- Side by side -----------------------------------------------------------------------------

WORKERS = 6


def side_by_side(guards=lambda: ()):
    """Build an agent that sends equal work to many sub-agents at once.

    Each of them makes the same call and gets the same answer.
    """
    counter = Counter()
    search = counting_tool(counter)
    worker = agent_graph(listed_model([("search", {"q": "a"})]), [search], middleware=guards())
    calls = [("task", {"q": f"part {number}"}) for number in range(WORKERS)]
    boss = agent_graph(
        listed_model(calls),
        [agent_as_tool(worker)],
        checkpointer=InMemorySaver(),
        middleware=guards(),
    )
    return boss, counter


@pytest.mark.parametrize("mode", MODES)
async def test_parallel_sub_agents_never_add_up_for_the_handler(mode):
    boss, counter = side_by_side()
    handler = LoopGuardCallbackHandler()

    outcome = await drive(boss, mode, ask(), thread("t", handler))

    assert not outcome.interrupts
    assert counter.of("search") == WORKERS
    assert handler.stats()["warned"] == 0


@pytest.mark.parametrize("mode", MODES)
async def test_parallel_sub_agents_never_add_up_for_the_middleware(mode):
    guards = []

    def guard():
        guards.append(LoopGuardMiddleware())
        return [guards[-1]]

    boss, counter = side_by_side(guard)

    outcome = await drive(boss, mode, ask(), thread("t"))

    assert not outcome.interrupts
    assert counter.of("search") == WORKERS
    assert sum(one.stats()["warned"] for one in guards) == 0


@pytest.mark.parametrize("mode", MODES)
async def test_parallel_branches_of_one_graph_never_add_up(mode):
    from langgraph.graph import END, START, MessagesState, StateGraph

    counter = Counter()
    handler = LoopGuardCallbackHandler()
    builder = StateGraph(MessagesState)
    for number in range(WORKERS):
        worker = agent_graph(listed_model([("search", {"q": "a"})]), [counting_tool(counter)])
        builder.add_node(f"worker_{number}", worker)
        builder.add_edge(START, f"worker_{number}")
        builder.add_edge(f"worker_{number}", END)
    graph = builder.compile(checkpointer=InMemorySaver())

    outcome = await drive(graph, mode, ask(), thread("t", handler))

    assert not outcome.interrupts
    assert counter.of("search") == WORKERS
    assert handler.stats()["warned"] == 0


def test_one_looping_sub_agent_of_many_is_found():
    def respond(messages):
        human = next(m for m in messages if isinstance(m, HumanMessage))
        spoken = sum(isinstance(message, AIMessage) for message in messages)
        if human.content != "part 0" and spoken:
            return AIMessage(content="done")
        return ai_calls([("search", {"q": "a"})], spoken)

    worker = agent_graph(ScriptedChatModel(respond=respond), [counting_tool(Counter())])
    calls = [("task", {"q": f"part {number}"}) for number in range(WORKERS)]
    boss = agent_graph(listed_model(calls), [agent_as_tool(worker)], checkpointer=InMemorySaver())
    handler = LoopGuardCallbackHandler()

    result = boss.invoke(ask(), thread("t", handler))

    assert len(result["__interrupt__"]) == 1
    assert result["__interrupt__"][0].value["findings"][0]["tools"] == ["search"]
