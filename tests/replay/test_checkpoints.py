"""Does a thread that LangGraph saved replay to the verdicts that were given live?"""

from __future__ import annotations

import json
import pickle
import sqlite3
import sys
import tempfile

import ormsgpack
import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from langchain_loopguard import LoopGuardPolicy, add_loop_guard
from langchain_loopguard.core.decision import Action
from langchain_loopguard.replay import Conversation, Problem, read_runs, replay
from tests.hosts import (
    agent_graph,
    ai_calls,
    ask,
    listed_model,
    repeating_model,
    thread,
)
from tests.replay.live import READ, SEARCH, emitted_live, live_run, tools


def read_thread(path, name="t1"):
    [run] = read_runs([str(path)], threads=frozenset({name}))
    assert isinstance(run, Conversation), run
    return run


def guarded(model, *, on_detected="interrupt", policy=None):
    """An agent, its tools and the guard's node between them."""
    bound = model.bind_tools([])
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [bound.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(tools()))
    builder.add_edge(START, "agent")
    return add_loop_guard(builder, on_detected=on_detected, policy=policy)


def asked_batches(graph, config, answer):
    """Run a turn, answer each question, and give the numbers of the batches asked about."""
    asked = []
    result = graph.invoke(ask(), config)
    while "__interrupt__" in result:
        asked.append(sum(bool(getattr(m, "tool_calls", None)) for m in result["messages"]))
        result = graph.invoke(Command(resume=answer), config)
    return asked


def held_batches(run, *actions):
    """The batches that the replay asks about before they run, or ends at."""
    found = replay(run).findings
    return sorted({one.step for one in found if one.before and one.action in actions})


@pytest.mark.parametrize("preset", ["seed", "signals", "pr_32089", "openclaw"])
def test_another_policy_replays_to_its_live_verdicts(preset, tmp_path):
    policy = LoopGuardPolicy.preset(preset)
    with SqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
        live = live_run([[SEARCH]] * 14, saver, policy=policy)
    assert emitted_live(replay(read_thread(tmp_path / "t.db"), policy)) == live


@pytest.mark.parametrize("answer", ["continue", "always", "stop", "Try something else."])
def test_what_a_person_answered_is_seen_in_the_replay(answer, tmp_path):
    """Two turns: each batch that was asked about live is asked about in the replay."""
    with SqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
        graph = guarded(repeating_model(times=13)).compile(checkpointer=saver)
        live = [*asked_batches(graph, thread("t1"), answer)]
        live += asked_batches(graph, thread("t1"), answer)
    assert live
    assert held_batches(read_thread(tmp_path / "t.db"), Action.ASK) == live


def test_a_refused_batch_is_seen_in_the_replay(tmp_path):
    with SqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
        graph = guarded(repeating_model(times=30), on_detected="refuse").compile(checkpointer=saver)
        graph.invoke(ask(), thread("t1"))
    run = read_thread(tmp_path / "t.db")
    report = replay(run)
    refused = [mark.number for mark in report.steps if mark.refused]
    assert report.stop is not None
    assert refused == held_batches(run, Action.ASK, Action.STOP)
    assert refused[-1] == report.stop.step == report.step_count


def test_threads_are_runs_of_their_own(tmp_path):
    with SqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
        graph = agent_graph(listed_model([SEARCH]), tools(), checkpointer=saver)
        for name in ("b", "a"):
            graph.invoke(ask(), thread(name))
    assert [run.id for run in read_runs([str(tmp_path / "t.db")])] == ["a", "b"]


def test_what_was_trimmed_from_the_state_is_still_read(tmp_path):
    def trim(_state):
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("short")]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent_graph(listed_model([SEARCH], [READ]), tools()))
    builder.add_node("trim", trim)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", "trim")
    with SqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke(ask(), thread("t1"))
        graph.invoke(ask(), thread("t1"))
    run = next(run for run in read_runs([str(tmp_path / "t.db")]) if run.id == "t1")
    names = [[call["name"] for call in batch["calls"]] for batch in run.steps]
    assert names == [["search"], ["read"]] * 2


def test_what_was_saved_at_the_end_alone_is_read(tmp_path):
    with SqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
        graph = agent_graph(listed_model([SEARCH], [READ]), tools(), checkpointer=saver)
        graph.invoke(ask(), thread("t1"), durability="exit")
        graph.invoke(ask(), thread("t1"))
    run = read_thread(tmp_path / "t.db")
    assert [event["type"] for event in run.events] == ["human", "batch", "batch"] * 2


def test_an_abandoned_branch_of_a_thread_is_left_out(tmp_path):
    with SqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
        graph = agent_graph(listed_model([SEARCH], [READ]), tools(), checkpointer=saver)
        graph.invoke(ask(), thread("t1"))
        history = graph.get_state_history(thread("t1"))
        after_search = next(s for s in history if s.next and len(s.values["messages"]) == 3)
        graph.invoke(None, after_search.config)
    run = read_thread(tmp_path / "t.db")
    assert [event["type"] for event in run.events] == ["human", "batch", "batch"]


def test_a_file_is_not_changed_by_reading_it(tmp_path):
    path = tmp_path / "t.db"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        agent_graph(listed_model([SEARCH]), tools(), checkpointer=saver).invoke(ask(), thread("t1"))
    before = path.read_bytes()
    read_thread(path)
    assert path.read_bytes() == before


def test_a_file_that_is_being_written_is_read(tmp_path):
    path = tmp_path / "t.db"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = agent_graph(listed_model([SEARCH]), tools(), checkpointer=saver)
        graph.invoke(ask(), thread("t1"))
        assert len(list(read_thread(path).steps)) == 1


# --- Bad files -----------------------------------------------------------------------------------


def problem_of(path):
    [problem] = read_runs([str(path)])
    assert isinstance(problem, Problem)
    return problem.text


def with_value(path, kind, value):
    """Write a thread whose only write has this value."""
    with SqliteSaver.from_conn_string(str(path)) as saver:
        agent_graph(listed_model([SEARCH]), tools(), checkpointer=saver).invoke(ask(), thread("t1"))
    db = sqlite3.connect(path)
    db.execute("UPDATE writes SET type = ?, value = ? WHERE channel = 'messages'", (kind, value))
    db.commit()
    db.close()


class Trap:
    """Writes a file when it is unpickled."""

    def __reduce__(self):
        return (sys.exit, ("unpickled",))


def test_a_pickled_value_is_not_opened(tmp_path):
    with_value(tmp_path / "t.db", "pickle", pickle.dumps(Trap()))
    assert "'pickle' are not read" in problem_of(tmp_path / "t.db")


def test_an_encrypted_value_is_said_to_be_one(tmp_path):
    with_value(tmp_path / "t.db", "msgpack+aes", b"x" * 40)
    assert "encrypted" in problem_of(tmp_path / "t.db")


def test_no_class_that_a_value_names_is_made(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')\n")
    named = ormsgpack.packb(["evil_module", "Thing", {"content": "x"}, "model_validate_json"])
    with_value(tmp_path / "t.db", "msgpack", ormsgpack.packb([ormsgpack.Ext(5, named)]))
    read_thread(tmp_path / "t.db")
    assert "evil_module" not in sys.modules


def test_a_broken_value_is_told(tmp_path):
    with_value(tmp_path / "t.db", "msgpack", b"\xc1\xff")
    assert "broken" in problem_of(tmp_path / "t.db")


def test_an_older_json_value_is_read(tmp_path):
    from langchain_core.load import dumpd

    message = ai_calls([SEARCH], 1)
    with_value(tmp_path / "t.db", "json", json.dumps([dumpd(message)]).encode())
    assert len(list(read_thread(tmp_path / "t.db").steps)) >= 1


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param(b"SQLite format 3\x00" + b"junk" * 2000, "SQLite cannot read it", id="junk"),
        pytest.param(None, "without LangGraph checkpoints", id="other tables"),
    ],
)
def test_a_file_without_threads_is_told(content, text, tmp_path):
    path = tmp_path / "t.db"
    if content is None:
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE other (a)")
        db.commit()
        db.close()
    else:
        path.write_bytes(content)
    assert text in problem_of(path)


def test_a_thread_that_is_not_there_is_told(tmp_path):
    with SqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
        agent_graph(listed_model([SEARCH]), tools(), checkpointer=saver).invoke(ask(), thread("t1"))
    [problem] = read_runs([str(tmp_path / "t.db")], threads=frozenset({"nope"}))
    assert "none of the threads" in problem.text


# --- Postgres ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def postgres():
    """A Postgres server of its own, in a folder."""
    pgserver = pytest.importorskip("pgserver", reason="needs the package pgserver")
    # Started by root, the server runs as somebody else, who can't enter pytest's folders.
    with tempfile.TemporaryDirectory() as folder:
        server = pgserver.get_server(folder)
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(scope="module")
def saved(postgres):
    """Two threads in Postgres, and what a live guard said about the first."""
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(postgres) as saver:
        saver.setup()
        script = [[SEARCH, READ]] * 8
        live_run(script, saver, name="t2", durability="exit")
        return live_run(script, saver)


@pytest.mark.slow
def test_a_thread_in_postgres_replays_to_the_live_verdicts(postgres, saved):
    assert emitted_live(replay(read_thread(postgres))) == saved


@pytest.mark.slow
def test_a_thread_in_postgres_that_was_saved_at_the_end_alone_is_read(postgres, saved):
    assert len(list(read_thread(postgres, "t2").steps)) == 8


@pytest.mark.slow
def test_a_source_in_postgres_is_named_without_its_password(postgres, saved):
    address = postgres.replace("postgres:@", "postgres:hush@")
    assert {"hush" in run.source for run in read_runs([address])} == {False}


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("postgresql://user:hush@127.0.0.1:1/none", id="nobody answers"),
        pytest.param("postgresql://user:hu:sh@host:port/none", id="not an address"),
    ],
)
def test_a_database_that_is_not_there_is_told_without_its_password(address):
    [problem] = read_runs([address])
    assert "hush" not in str(problem)
    assert "hu:sh" not in str(problem)
