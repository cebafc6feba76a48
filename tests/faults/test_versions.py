"""Is a state that another release wrote read, or let alone?"""

from __future__ import annotations

import copy
import json
import logging
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from langchain_loopguard import GuardStateError, LoopGuardPolicy
from langchain_loopguard.langchain.counts import VERSION
from langchain_loopguard.langchain.history import Reader
from langchain_loopguard.langchain.options import Options
from langchain_loopguard.node import LoopGuardState
from tests.adapters.guarded import owned
from tests.faults.make_states import CONVERSATIONS, POLICIES, messages_of, step
from tests.faults.worker import adapters
from tests.hosts import Counter, agent_graph, ask, counting_tool, repeating_model, thread

STATES = sorted((Path(__file__).parent / "states").glob("v*/*.json"))
OLD = [path for path in STATES if path.parent.name != f"v{VERSION}"]
READ = [path for path in STATES if path not in OLD]
every_state = pytest.mark.parametrize("path", READ, ids=[path.stem for path in READ])
SEED = LoopGuardPolicy.seed()
STATEFUL = [name for name in ("node", "node-schema", "middleware") if name in adapters()]


def test_there_are_states_of_every_version():
    assert {path.parent.name for path in STATES} == {f"v{n}" for n in range(1, VERSION + 1)}


@pytest.mark.parametrize("path", OLD, ids=[f"{p.parent.name}-{p.stem}" for p in OLD])
def test_a_state_of_an_old_version_is_refused_by_its_number(path):
    for state in json.loads(path.read_text())["states"]:
        with pytest.raises(GuardStateError, match=f"version {path.parent.name[1:]}"):
            Reader.from_state(Options(), state)


@every_state
def test_a_stored_state_goes_on_as_the_release_that_wrote_it_did(path):
    stored = json.loads(path.read_text())
    parts = messages_of(CONVERSATIONS[stored["conversation"]])
    options = Options(policy=POLICIES[stored["policy"]])
    for at, state in enumerate(stored["states"]):
        # The messages up to here, as they stood in the thread; refusals are told by the state.
        history: list[BaseMessage] = [message for part in parts[: at + 1] for message in part]
        reader = Reader.from_state(options, state)
        said = [step(reader, history, part) for part in parts[at + 1 :]]
        assert said == stored["said"][at + 1 :], f"from part {at}"


@every_state
def test_a_stored_state_is_left_as_it_was_by_reading_it(path):
    stored = json.loads(path.read_text())
    before = copy.deepcopy(stored)
    for state in stored["states"]:
        Reader.from_state(Options(policy=POLICIES[stored["policy"]]), state)
    assert stored == before


def guarded(adapter, saver, **options):
    """Build a guarded agent whose model repeats itself; gives it and what ran."""
    ran = Counter()
    tools = [counting_tool(ran)]
    model = repeating_model(times=options.pop("times", None))
    if adapter == "middleware":
        from langchain_loopguard.middleware import LoopGuardMiddleware

        guard = LoopGuardMiddleware(SEED, **options)
        return agent_graph(model, tools, checkpointer=saver, middleware=[guard]), ran
    if adapter == "node-schema":
        options["schema"] = LoopGuardState
    return owned(model, tools, saver=saver, **options), ran


def counts(saver, name):
    """Give the guard's counts as the store has them."""
    config = {"configurable": {"thread_id": name}}
    return saver.get_tuple(config).checkpoint["channel_values"].get("loop_guard")


def rewrite(saver, name, change):
    """Change the values of a thread's last checkpoint in the store."""
    kept = saver.get_tuple({"configurable": {"thread_id": name}})
    checkpoint = copy.deepcopy(kept.checkpoint)
    change(checkpoint["channel_values"])
    saver.put(kept.parent_config or kept.config, checkpoint, kept.metadata, {})


@pytest.fixture
def saver(tmp_path):
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        yield saver


@pytest.mark.parametrize("adapter", STATEFUL)
@pytest.mark.parametrize(
    "path", [p for p in READ if p.stem == "seed-repeat"], ids=lambda path: path.parent.name
)
def test_a_checkpoint_with_a_stored_state_goes_on_from_its_counts(adapter, path, saver):
    # Two batches of the conversation were counted by the release that wrote the state.
    state = json.loads(path.read_text())["states"][2]
    messages = [m for part in messages_of(CONVERSATIONS["repeat"])[:3] for m in part]
    graph, ran = guarded(adapter, saver)
    graph.update_state(thread("t"), {"messages": messages}, as_node="tools")
    rewrite(saver, "t", lambda values: values.update(loop_guard=state))
    result = graph.invoke(None, thread("t"))
    assert result["__interrupt__"][0].value["findings"][0]["count"] == 3
    assert ran.total == 0


def newer_reader(values):
    values["loop_guard"]["v"] = 99


def newer_guard(values):
    values["loop_guard"]["guard"]["v"] = 99


@pytest.mark.parametrize("adapter", STATEFUL)
@pytest.mark.parametrize("change", [newer_reader, newer_guard])
class TestANewerState:
    def threads(self, adapter, saver, change, **options):
        graph, _ = guarded(adapter, saver, times=1)
        for name in ("a", "b", "c"):
            graph.invoke(ask(), thread(name))
            rewrite(saver, name, change)
        return guarded(adapter, saver, times=5, **options)

    def test_lets_the_agent_go_on_unguarded(self, adapter, change, saver):
        graph, ran = self.threads(adapter, saver, change)
        result = graph.invoke(ask("more"), thread("a"))
        assert result["messages"][-1].content == "done"
        assert ran.total == 5

    def test_is_named_in_one_log_line_for_each_thread(self, adapter, change, saver, caplog):
        graph, _ = self.threads(adapter, saver, change)
        with caplog.at_level(logging.DEBUG, "langchain_loopguard"):
            for name in ("a", "b", "c"):
                graph.invoke(ask("more"), thread(name))
        lines = [r for r in caplog.records if r.name.startswith("langchain_loopguard")]
        assert [line.levelno for line in lines] == [logging.ERROR] * 3
        assert all("99" in line.getMessage() and not line.exc_info for line in lines)

    def test_is_left_for_the_release_that_wrote_it(self, adapter, change, saver):
        graph, _ = self.threads(adapter, saver, change)
        before = counts(saver, "a")
        graph.invoke(ask("more"), thread("a"))
        assert counts(saver, "a") == before

    def test_is_an_error_where_faults_are_to_be_seen(self, adapter, change, saver):
        graph, ran = self.threads(adapter, saver, change, fail_open=False)
        with pytest.raises(ValueError, match="99"):
            graph.invoke({"messages": [HumanMessage("more")]}, thread("a"))
        assert ran.total == 0
