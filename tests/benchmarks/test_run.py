"""Does the command that measures still run, and are the calls that it measures no loop?"""

from __future__ import annotations

import json
import sys

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from langchain_loopguard import LoopGuard
from tests.benchmarks import agents, checkpoints, core, peers, run, startup
from tests.benchmarks.made import SIZES, made
from tests.evaluation.tables import with_blocks, written_blocks

TEXT = run.README.read_text(encoding="utf-8")
BLOCKS = written_blocks(TEXT)


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


def test_the_documents_turns_are_those_of_the_command():
    found = {"turns": agents.most_turns(), "ratios": []}
    assert BLOCKS["turns"] == agents.blocks(found)["turns"]


def test_the_documents_times_have_the_commands_form():
    rows = [line.strip("| ").split(" | ") for line in BLOCKS["times"].splitlines()[2:]]
    ratios = [
        {"guard": guard, "over": over, "goal": goal, "ratio": float(row[2].strip("*"))}
        for row, ((guard, over), goal) in zip(rows, agents.PAIRS.items(), strict=True)
    ]
    assert BLOCKS["times"] == agents.blocks({"turns": {}, "ratios": ratios})["times"]


def test_the_command_rewrites_its_blocks_and_nothing_else(tmp_path, monkeypatch):
    found = {"turns": {"graph": 3}, "ratios": [], "steps": 1, "ms_a_step": {}}
    written = tmp_path / "README.md"
    written.write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr(run, "README", written)
    monkeypatch.setattr(run, "_apart", lambda *_: found)
    assert run.main(["--only", "agents", "--write-docs"]) == 0
    text = written.read_text(encoding="utf-8")
    assert written_blocks(text) == agents.blocks(found)
    assert with_blocks(text, BLOCKS) == TEXT
