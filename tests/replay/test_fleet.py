"""Does a Dask cluster give the results that one machine gives?"""

from __future__ import annotations

import json
import os
import signal

import pytest
from typer.testing import CliRunner

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.cli.app import app
from langchain_loopguard.replay import work_on_runs
from langchain_loopguard.replay.sources import Source
from langchain_loopguard.replay.totals import ReplayWork
from tests.replay.made_runs import repeating
from tests.replay.stories import TOLD

dask = pytest.importorskip("dask", reason="needs the extra fleet")
distributed = pytest.importorskip("distributed", reason="needs the extra fleet")
fleet = pytest.importorskip("langchain_loopguard.replay.fleet")

# Its own clean-up is noisy when a worker is killed.
pytestmark = pytest.mark.filterwarnings("ignore")

WORK = ReplayWork(LoopGuardPolicy())


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Files of every kind of work: cut into blocks, whole, packed, and bad."""
    folder = tmp_path_factory.mktemp("inputs")
    lines = []
    for at in range(400):
        told = repeating(4 + at % 7, name=f"run {at}").to_dict()
        if at % 5 == 0:
            del told["id"]  # Named after its line then, wherever that is in its block.
        lines.append(json.dumps(told) if at % 40 else "garbage")
    (folder / "a.jsonl").write_text("\n".join(lines))
    (folder / "b.jsonl").write_text(TOLD["Claude Code"].text)
    (folder / "c.json").write_text(TOLD["OpenAI chat"].text)
    (folder / "d.json").write_bytes(b"\x00\x01binary")
    return [str(folder), str(folder / "none.jsonl")]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(fleet, "BLOCK", 30_000)


@pytest.fixture(scope="module")
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    # A scheduler that wants a result of a lost worker tries to reach it for so long.
    patience = dask.config.set({"distributed.comm.timeouts.connect": "2s"})
    with patience, distributed.LocalCluster(**options, silence_logs=50) as started:
        yield started


def test_a_cluster_that_loses_a_worker_gives_the_results_of_one_machine(
    inputs, small_blocks, cluster
):
    alone = list(work_on_runs(inputs, WORK, jobs=1))
    results = []
    for result in work_on_runs(inputs, WORK, dask=cluster.scheduler_address):
        if len(results) == 50:
            os.kill(cluster.workers[0].process.pid, signal.SIGKILL)
        results.append(result)
    assert results == alone
    assert len(results) > 400


def test_the_command_gives_the_same_on_a_cluster(inputs, small_blocks, cluster):
    here = CliRunner().invoke(app, ["replay", "--json", *inputs])
    there = CliRunner().invoke(
        app, ["replay", "--json", *inputs, "--dask", cluster.scheduler_address]
    )
    assert json.loads(there.output) == json.loads(here.output)
    assert there.exit_code == here.exit_code == 2


def test_a_cluster_that_is_not_there_is_told_in_one_line(inputs, monkeypatch):
    monkeypatch.setattr(fleet, "_PATIENCE", "1s")
    done = CliRunner().invoke(app, ["replay", *inputs, "--dask", "tcp://127.0.0.1:1"])
    assert done.exit_code == 2
    assert "no Dask cluster answers at tcp://127.0.0.1:1" in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 1000])
@pytest.mark.parametrize("content", [b"ab\ncd\n\nefg\n", b"ab\ncd", b"\n\n\n", b"abcdefghijk"])
def test_blocks_hold_every_line_once(content, size, tmp_path, monkeypatch):
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    source = Source(str(path), "x", size=len(content))
    held = []
    monkeypatch.setattr(fleet.Lines, "read", lambda lines: iter(held.extend(lines.lines) or []))
    first = 1
    for start in range(0, len(content), size):
        block = fleet.Block(source, start, min(start + size, len(content)), first)
        block.read()
        first += block.count_lines()
    lines = list(enumerate(content.splitlines(keepends=True), 1))
    assert held == [one for one in lines if one[1].strip()]
    assert first - 1 == len(lines) or content.endswith(b"\n")
