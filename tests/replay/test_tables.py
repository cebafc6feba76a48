"""Are rows grouped to runs, whatever their order and however many files they stand in?"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from pyarrow import parquet

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.replay import Conversation, Problem, read_runs, rows, tables, work_on_runs
from langchain_loopguard.replay.totals import ReplayWork
from tests.benchmarks import parquet_runs
from tests.replay.made_runs import repeating
from tests.replay.readers.handmade import langfuse_rows, langsmith_bulk
from tests.replay.stories import STEPS, story, told

WORK = ReplayWork(LoopGuardPolicy())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of four files with 200 runs, each run's rows in no order, some in two files."""
    monkeypatch.setattr(parquet_runs, "RUNS_A_FILE", 50)
    parquet_runs.write(tmp_path / "export", 200)
    return str(tmp_path / "export")


@pytest.fixture
def dealt(monkeypatch):
    """Tables are dealt out from a few kilobytes on."""
    monkeypatch.setattr(tables, "SMALL", 20_000)


def by_id(runs):
    runs = list(runs)
    assert runs
    assert [run for run in runs if isinstance(run, Problem)] == []
    return {run.id: run.events for run in runs}


def test_every_run_of_a_folder_is_whole(folder):
    runs = list(read_runs([folder]))
    assert len(by_id(runs)) == len(runs) == 200
    assert {run.calls for run in runs} == {2}


def test_runs_that_are_dealt_out_are_those_that_are_read_at_once(folder, monkeypatch):
    at_once = by_id(read_runs([folder]))
    monkeypatch.setattr(tables, "SMALL", 20_000)
    assert by_id(read_runs([folder])) == at_once


def test_the_order_of_rows_does_not_matter(tmp_path, folder, dealt):
    rows = [row for path in sorted(Path(folder).iterdir()) for row in read_rows(path)]
    random.Random(2).shuffle(rows)
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "one.parquet", row_group_size=40)
    assert by_id(read_runs([str(tmp_path / "one.parquet")])) == by_id(read_runs([folder]))


def read_rows(path):
    return parquet.read_table(path).to_pylist()


def test_other_processes_read_the_same(folder, dealt, monkeypatch):
    monkeypatch.setattr("langchain_loopguard.replay.work._ALONE_SECONDS", 0)
    assert list(work_on_runs([folder], WORK, jobs=2)) == list(work_on_runs([folder], WORK, jobs=1))


def test_no_more_bytes_are_done_than_the_files_have(folder, dealt):
    done = []
    list(work_on_runs([folder], WORK, jobs=1, progress=done.append))
    size = sum(path.stat().st_size for path in Path(folder).iterdir())
    assert size / 3 < sum(done) <= size


def test_files_named_one_by_one_are_one_table(folder):
    paths = [str(path) for path in sorted(Path(folder).iterdir())]
    assert by_id(read_runs(paths)) == by_id(read_runs([folder]))


@pytest.mark.slow
def test_an_address_is_read(folder, dealt):
    store = fsspec.filesystem("memory")
    for path in Path(folder).iterdir():
        store.pipe(f"/export/{path.name}", path.read_bytes())
    assert by_id(read_runs(["memory://export/*.parquet"])) == by_id(read_runs([folder]))


def test_nothing_is_left_in_the_temporary_folder(folder, dealt, tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    runs = read_runs([folder])
    next(runs)
    assert list((tmp_path / "scratch").iterdir())
    runs.close()
    assert list((tmp_path / "scratch").iterdir()) == []


def spans():
    """The story as the rows of a Phoenix table."""
    rows = []
    for at, step in enumerate(step for step in STEPS if not isinstance(step, str)):
        rows.append({"name": "chat", "start_time": 10 * at, "end_time": 10 * at + 1})
        rows[-1]["attributes.openinference.span.kind"] = "LLM"
        for call_id, name, args, text, bad in step:
            rows.append({
                "name": name, "start_time": 10 * at + 2, "end_time": 10 * at + 9,
                "status_code": "ERROR" if bad else "OK",
                "attributes.openinference.span.kind": "TOOL", "attributes.tool.name": name,
                "attributes.tool_call.id": call_id, "attributes.input.value": str(args),
                "attributes.output.value": text,
            })  # fmt: skip
    return [{"context.trace_id": "t", "context.span_id": str(n), **r} for n, r in enumerate(rows)]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(langsmith_bulk, id="LangSmith bulk export"),
        pytest.param(langfuse_rows, id="Langfuse observations"),
        pytest.param(spans, id="Phoenix spans"),
    ],
)
def test_the_rows_of_a_store_are_the_story(rows, tmp_path):
    made = rows()
    columns = {key: None for row in made for key in row}
    parquet.write_table(
        pa.Table.from_pylist([columns | row for row in made]), tmp_path / "x.parquet"
    )
    [run] = read_runs([str(tmp_path / "x.parquet")])
    assert isinstance(run, Conversation), run
    steps = [one for one in told(run) if one != ("human",)]
    assert [len(one) for one in steps] == [len(one) for one in story() if one != ("human",)]


def test_tables_with_other_columns_are_apart(folder, tmp_path):
    rows = langfuse_rows()
    parquet.write_table(pa.Table.from_pylist(rows), Path(folder) / "z.parquet")
    assert len(list(read_runs([folder]))) == 201


def test_a_run_a_row_needs_no_trace(tmp_path, dealt):
    rows = [repeating(3, name=f"run {at}").to_dict() for at in range(300)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet", row_group_size=50)
    assert len(by_id(read_runs([str(tmp_path / "x.parquet")]))) == 300


def test_many_rows_without_a_trace_are_refused(tmp_path, dealt):
    rows = [{"role": "user", "content": f"{at} and other words"} for at in range(9000)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    [problem] = read_runs([str(tmp_path / "x.parquet")])
    assert "read without a column trace_id or traceId" in problem.text


def test_rows_without_a_value_for_their_trace_are_read(folder, tmp_path):
    rows = read_rows(Path(folder) / "0000.parquet")
    for row in rows[:1]:
        row["trace_id"] = None
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    assert len(list(read_runs([str(tmp_path / "x.parquet")]))) >= 50


def test_a_file_that_is_none_is_told_and_the_others_are_read(folder):
    (Path(folder) / "0002.parquet").write_bytes(b"PAR1 and no more")
    runs = list(read_runs([folder]))
    [problem] = [run for run in runs if isinstance(run, Problem)]
    assert problem.source.endswith("0002.parquet")
    assert sum(isinstance(run, Conversation) for run in runs) >= 150


def test_a_table_without_rows_is_told(tmp_path):
    parquet.write_table(pa.table({"trace_id": pa.array([], pa.string())}), tmp_path / "x.parquet")
    [problem] = read_runs([str(tmp_path / "x.parquet")])
    assert problem.text == "a table without rows"


@pytest.mark.parametrize("size", ["_LARGEST_RUN", "MAX_MEMORY"])
def test_one_endless_trace_is_refused(size, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, size, 50_000)
    monkeypatch.setattr(tables, "SMALL", 20_000)
    row = langsmith_bulk()[0]
    parquet.write_table(pa.Table.from_pylist([row] * 3000), tmp_path / "x.parquet")
    [problem] = [one for one in read_runs([str(tmp_path / "x.parquet")]) if "MB" in one.text]
    assert "not read" in problem.text


def test_a_text_that_is_written_once_for_every_row_does_not_fill_the_memory(tmp_path):
    """A dictionary of one text of 4 MB, and 100,000 rows: 400 GB."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), ["x" * 2**22])
    names = {"trace_id": pa.array(["t"] * 100_000), "id": pa.array(["i"] * 100_000)}
    parquet.write_table(pa.table({**names, "inputs": text}), tmp_path / "x.parquet")
    [problem] = read_runs([str(tmp_path / "x.parquet")])
    assert "not read" in problem.text


def test_without_pyarrow_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    [problem] = read_runs([folder])
    assert "langchain-loopguard[parquet]" in problem.text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_loses_a_worker_groups_the_same_runs(folder, dealt):
    dask = pytest.importorskip("dask", reason="needs the extra fleet")
    distributed = pytest.importorskip("distributed", reason="needs the extra fleet")
    alone = list(work_on_runs([folder], WORK, jobs=1))
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    patience = dask.config.set({"distributed.comm.timeouts.connect": "2s"})
    with patience, distributed.LocalCluster(**options, silence_logs=50) as cluster:
        results = []
        for result in work_on_runs([folder], WORK, dask=cluster.scheduler_address):
            if len(results) == 20:
                os.kill(cluster.workers[0].process.pid, signal.SIGKILL)
            results.append(result)
    assert results == alone
    assert len(results) == 200
