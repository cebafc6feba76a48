"""Are results those of one process, whatever the number of processes, and is nothing read ahead?"""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from langchain_loopguard.replay import WorkError, replay, texts, work_on_runs
from tests.replay.made_runs import repeating


def line_of(name):
    return json.dumps(repeating(3, name=name).to_dict()).encode() + b"\n"


@pytest.fixture
def many(tmp_path):
    """A file of many runs, some bad lines between them."""
    lines = [line_of(f"run {at}") if at % 50 else b"garbage\n" for at in range(900)]
    path = tmp_path / "many.jsonl"
    path.write_bytes(b"".join(lines))
    return str(path)


def test_results_do_not_depend_on_the_number_of_processes(many, monkeypatch):
    monkeypatch.setattr("langchain_loopguard.replay.work._ALONE_SECONDS", 0)
    monkeypatch.setattr(texts, "_PIECE", 50_000)
    work = partial(replay, steps=False)
    alone = list(work_on_runs([many], work, jobs=1))
    assert list(work_on_runs([many], work, jobs=3)) == alone
    assert len(alone) == 900


def die(run):
    """Work that takes its process down, as the system does when memory runs out."""
    os._exit(9)


def test_a_lost_process_is_told(many, monkeypatch):
    monkeypatch.setattr("langchain_loopguard.replay.work._ALONE_SECONDS", -1)
    # The first piece is worked on here.
    (first := Path(many).with_name("first.jsonl")).write_bytes(b'{"events": 1}\n')
    with pytest.raises(WorkError, match="a worker process ended"):
        list(work_on_runs([str(first), many], die, jobs=2))


def test_all_bytes_are_told_as_done(many, monkeypatch):
    monkeypatch.setattr("langchain_loopguard.replay.work._ALONE_SECONDS", 0)
    done = []
    list(work_on_runs([many], replay, jobs=2, progress=done.append))
    assert sum(done) == Path(many).stat().st_size


def test_the_rest_of_the_input_is_not_read_ahead(many, monkeypatch):
    """Memory would grow with the input."""
    monkeypatch.setattr("langchain_loopguard.replay.work._ALONE_SECONDS", 0)
    monkeypatch.setattr(texts, "_PIECE", 20_000)
    cut = []
    pieces = texts._line_pieces
    counted = lambda *args: (cut.append(1) or one for one in pieces(*args))  # noqa: E731
    monkeypatch.setattr(texts, "_line_pieces", counted)
    results = work_on_runs([many], replay, jobs=2)
    next(results)
    assert len(cut) <= 2
    for _ in range(200):
        next(results)
    assert len(cut) <= 20
    results.close()
