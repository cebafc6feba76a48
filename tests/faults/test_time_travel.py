"""Does a branch of a thread have its own counts, in real stores?

The scenarios' models and tools answer the same each time, so a thread that is taken back to any
of its checkpoints must come to the same end again, with the same questions on the way.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command

from langchain_loopguard import LoopDetectedError, LoopGuardCallbackHandler, LoopGuardPolicy
from langchain_loopguard.node import LoopGuardState
from tests.adapters.guarded import by_hand, owned
from tests.faults.stores import opened
from tests.faults.worker import adapters
from tests.hosts import (
    Counter,
    agent_graph,
    ask,
    counting_tool,
    listed_model,
    thread,
    tool_node_graph,
)

SEED = LoopGuardPolicy.seed()
SEARCH = ("search", {"q": "a"})
WRITE = ("write", {"q": "a"})
SCRIPT = [[SEARCH], [WRITE], *[[SEARCH]] * 7, [WRITE]]
every_adapter = pytest.mark.parametrize("adapter", adapters())
every_store = pytest.mark.parametrize("store", ["sqlite", "postgres"])


@pytest.fixture
def saver(store, tmp_path, request):
    where = str(tmp_path / "threads.db")
    if store == "postgres":
        where = request.getfixturevalue("postgres_uri")
    with opened(store, where) as saver:
        yield saver


class Agent:
    """A guarded agent that plays the script, and what it ran."""

    def __init__(self, adapter: str, saver: Any, thread_id: str, script=SCRIPT) -> None:
        self.ran = Counter()
        tools = [counting_tool(self.ran), counting_tool(self.ran, "write", "ok")]
        model = listed_model(*script)
        options: dict[str, Any] = {"policy": SEED, "fail_open": False}
        handlers = []
        if adapter.startswith("node"):
            build = by_hand if adapter == "node-folding" else owned
            if adapter == "node-schema":
                options["schema"] = LoopGuardState
            self.graph = build(model, tools, saver=saver, **options)
        elif adapter == "middleware":
            from langchain_loopguard.middleware import LoopGuardMiddleware

            guard = LoopGuardMiddleware(**options)
            self.graph = agent_graph(model, tools, checkpointer=saver, middleware=[guard])
        else:
            handlers = [LoopGuardCallbackHandler(**options)]
            host = agent_graph if adapter == "handler-agent" else tool_node_graph
            self.graph = host(model, tools, checkpointer=saver)
        self.config = thread(thread_id, *handlers)

    def play(self, value: Any, answer: Any, start: Any = None) -> tuple[list[Any], list[Any]]:
        """Run to the end of the turn; gives the questions and the last messages."""
        questions = []
        config = self.config
        if start is not None:
            config = {**config, "configurable": start["configurable"]}
        try:
            result = self.graph.invoke(value, config)
            while result.get("__interrupt__"):
                asked = result["__interrupt__"][0]
                questions.append(asked.value["findings"])
                result = self.graph.invoke(Command(resume=answer), self.config)
        except LoopDetectedError as error:
            # How a handler ends a run in which the same loop was refused three times.
            questions.append(str(error))
        messages = self.graph.get_state(self.config).values["messages"]
        return questions, [plain(message) for message in messages]

    def history(self) -> list[Any]:
        return list(self.graph.get_state_history(self.config))


def plain(message: Any) -> tuple[Any, ...]:
    calls = [(call["name"], call["args"]) for call in getattr(message, "tool_calls", ())]
    return message.type, message.content, calls


@every_store
@every_adapter
@pytest.mark.parametrize("answer", ["continue", "Use the archive."])
def test_a_thread_taken_back_anywhere_comes_to_the_same_end(adapter, saver, answer):
    first = Agent(adapter, saver, f"{adapter} {answer}")
    questions, messages = first.play(ask(), answer)
    assert len(questions) >= 2
    states = first.history()
    assert len(states) > 15
    # The oldest holds no message yet, so there is nothing to go on with.
    for state in states[1:-2:5]:
        again = Agent(adapter, saver, f"{adapter} {answer}")
        asked, came = again.play(None, answer, start=state.config)
        assert came == messages
        assert asked == questions[len(questions) - len(asked) :]


@every_store
@every_adapter
@pytest.mark.parametrize("fresh", [False, True], ids=["same-guard", "fresh-guard"])
def test_two_branches_of_a_thread_are_counted_apart(adapter, saver, fresh):
    name = f"branches {adapter} {fresh}"
    agent = Agent(adapter, saver, name, [[SEARCH]] * 6)

    def guarded() -> Agent:
        return Agent(adapter, saver, name, [[SEARCH]] * 6) if fresh else agent

    asked = agent.graph.invoke(ask(), agent.config)["__interrupt__"][0].value["findings"]
    main = agent.graph.get_state(agent.config).config
    assert agent.ran.total == 2
    # A branch from where the call had been made once and its answer had come.
    early = next(state for state in agent.history() if len(state.values.get("messages", ())) == 3)
    branch = guarded()
    before = branch.ran.total
    config = {**branch.config, "configurable": early.config["configurable"]}
    result = branch.graph.invoke(None, config)
    assert result["__interrupt__"][0].value["findings"] == asked
    assert branch.ran.total == before + 1
    # And back on the branch that was left, where the same is asked as before.
    back = guarded()
    before = back.ran.total
    config = {**back.config, "configurable": main["configurable"]}
    result = back.graph.invoke(None, config)
    assert result["__interrupt__"][0].value["findings"] == asked
    assert back.ran.total == before


@every_store
@every_adapter
def test_a_user_turn_in_a_branch_clears_the_counts_of_that_branch_only(adapter, saver, request):
    if adapter == "node-folding":
        # A branch's new input behind a tool's result looks like a message that a node wrote.
        reason = "without a channel for its counts a node sees no input of a run"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    name = f"turn {adapter}"
    agent = Agent(adapter, saver, name, [[SEARCH]] * 3)
    agent.graph.invoke(ask(), agent.config)
    main = agent.graph.get_state(agent.config).config
    states = agent.history()
    # Both searches have their answers, and the agent is about to make the third.
    before = next(
        state
        for state in states
        if len(state.values.get("messages", ())) == 5
        and not isinstance(state.values["messages"][-1], AIMessage)
    )
    branch = Agent(adapter, saver, name, [[SEARCH]] * 2)
    config = {**branch.config, "configurable": before.config["configurable"]}
    result = branch.graph.invoke(ask("other"), config)
    assert "__interrupt__" not in result
    assert branch.ran.total == 2
    back = Agent(adapter, saver, name, [[SEARCH]] * 3)
    config = {**back.config, "configurable": main["configurable"]}
    assert "__interrupt__" in back.graph.invoke(None, config)
    assert back.ran.total == 0
