"""Does the command that measures still run, and say what it should?"""

from __future__ import annotations

import json
import sys

import pytest

from tests.benchmarks import agents, checkpoints, core, instructions, peers, run
from tests.benchmarks.made import SIZES, made


def test_it_prints_tables_and_writes_the_figures(tmp_path, capsys):
    file = tmp_path / "figures.json"
    assert run.main(["--quick", "--only", "checkpoints", "--json", str(file)]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert set(found) == {"machine", "checkpoints"}
    assert {row["guard"] for row in found["checkpoints"]} == {"node", "middleware"}
    assert "Bytes saved a step" in capsys.readouterr().out


def test_agents_are_set_against_empty_ones_and_bare_ones():
    rows = agents.measure(quick=True, rounds=1, steps=(1,), hosts=("ToolNode graph, node",))
    assert {row["way"] for row in rows} == {"invoke", "ainvoke"}
    for row in rows:
        assert row["over_empty"]["cpu"] > 0
        assert row["over_none"]["clock"] > 0
    assert [table.row_count for table in agents.tables(rows)] == [2, 2]


@pytest.mark.parametrize("guard", ["node", "middleware"])
def test_nothing_is_found_in_the_run_that_is_weighed(guard, caplog):
    for events in checkpoints.chosen().values():
        checkpoints.SAVERS["InMemorySaver"](checkpoints.Run(events), guard)
    assert not caplog.records


def test_a_peer_that_is_not_installed_is_said_to_be(monkeypatch):
    monkeypatch.setitem(sys.modules, "agentbelt_loop", None)
    peer = next(peer for peer in peers.PEERS if peer.package == "agentbelt-loop")
    assert peers.one(peer, quick=True) == {"installed": False}


@pytest.mark.parametrize(("arguments", "answer"), SIZES.values(), ids=SIZES)
def test_calls_have_the_size_that_is_said(arguments, answer):
    for item in made(2, arguments, answer, 99_999):
        assert 0.9 * arguments <= len(json.dumps(item.call["args"])) <= 1.1 * arguments
        assert len(item.answer) == answer


def test_no_two_calls_have_a_word_in_common():
    one, other = (set(item.answer.split()) for item in made(2, 100, 200))
    assert not one & other


def test_the_guard_finds_nothing_in_what_is_measured():
    guard = core.LoopGuard()
    for item in made(500, 100, 200):
        decision = guard.check([item.call])
        assert not decision.findings
        assert not guard.record_results(decision.record, [item.result]).findings


def test_without_valgrind_there_is_a_table_that_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert instructions.measure() == []
    (table,) = instructions.tables([])
    assert (table.row_count, table.caption) == (0, "valgrind is not installed")


def test_instructions_are_those_of_the_steps_between_two_runs(tmp_path, monkeypatch):
    stub = tmp_path / "valgrind"
    stub.write_text('#!/bin/sh\nshift 8\necho "==7== I   refs:      $1,000" >&2\n')
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    (guard,) = instructions.measure(quick=True)
    assert (guard["instructions"], guard["none"]) == (1000, 1000)
    assert instructions.tables([guard])[0].row_count == 1
