"""Does the command that measures still run, and are the calls that it measures no loop?"""

from __future__ import annotations

import json
import sys

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from langchain_loopguard import LoopGuard
from tests.benchmarks import agents, checkpoints, core, peers, run, startup
from tests.benchmarks.made import SIZES, made


@pytest.mark.slow
def test_it_prints_a_table_and_writes_the_figures(tmp_path, capsys):
    file = tmp_path / "figures.json"
    assert run.main(["--quick", "--only", "startup", "--json", str(file)]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert set(found) == {"machine", "startup"}
    assert found["startup"]["goal"] == startup.GOAL
    assert "milliseconds" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("question", [agents, checkpoints, core])
def test_every_question_makes_a_table(question):
    (table,) = question.tables(question.measure(quick=True))
    assert table.row_count >= 3


@pytest.mark.parametrize("guard", checkpoints.GUARDS)
def test_nothing_is_found_in_the_run_that_is_weighed(guard, caplog):
    events = checkpoints.chosen()["the median run"]
    checkpoints.play(checkpoints.Run(events), checkpoints.GUARDS[guard][0], InMemorySaver())
    assert not caplog.records


def test_a_peer_that_is_not_installed_is_said_to_be(monkeypatch):
    monkeypatch.setitem(sys.modules, "agentbelt_loop", None)
    peer = next(peer for peer in peers.PEERS if peer.package == "agentbelt-loop")
    assert peers.one(peer, quick=True) == {"installed": False}


@pytest.mark.parametrize(("arguments", "result"), SIZES.values(), ids=SIZES)
def test_calls_have_the_size_that_is_said(arguments, result):
    for item in made(2, arguments, result, 99_999):
        assert 0.9 * arguments <= len(json.dumps(item.call["args"])) <= 1.1 * arguments
        assert len(item.result) == result


def test_the_guard_finds_nothing_in_what_is_measured():
    guard = LoopGuard()
    for item in made(500, 100, 200):
        decision = guard.check([item.call])
        result = {"tool_call_id": item.call["id"], "content": item.result}
        assert not decision.findings
        assert not guard.record_results(decision.record, [result]).findings
