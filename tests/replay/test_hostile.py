"""Files that are made to do harm: a clear line, little memory, little time."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys

import pytest

from tests.replay.made_runs import repeating

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

MB = 2**20
WRITES = (
    "create table writes(thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx,"
    " channel, type, value);"
)
PEAK = """
import re, resource, sys
from langchain_loopguard.cli import main
try: main()
finally:
    # Not the resource usage of this process: it counts what the one before `exec` had.
    own = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    print((int(own) + used[1].ru_maxrss) // 1024, seconds, file=sys.stderr)
"""

# Pieces, each with how often it stands; made only where they are written, since they are large.
BOMBS = {
    "lists": ([(b'{"messages": [', 1), (b"[],", 40 * MB), (b"0]}", 1)], "MB of memory|128 MB"),
    "a list of lists": ([(b"[", 1), (b"[],", 130 * MB), (b"0]", 1)], "no run in its first 10,000"),
    "one item": ([(b"[[", 1), (b'{"a":1},', 12 * MB), (b"0]]", 1)], "too large"),
    "one text": ([(b'["', 1), (b"a", 900 * MB), (b'"]', 1)], "too large"),
    "blank lines": ([(b"\n", 900 * MB)], "blank lines in a row"),
    "one blank line": ([(b" ", 1200 * MB)], "not read on"),
    "lines of lists": (
        [(b'{"role":"user","content":[', 1), (b"[],", MB), (b"0]}\n", 1)] * 40,
        "memory",
    ),
    "a number": ([(b'{"messages": ', 1), (b"1", 50 * MB), (b"}", 1)], "a number that is too large"),
    "a number in a list": ([(b"[", 1), (b"1", 50 * MB), (b"]", 1)], "too large"),
}


def write(file, pieces):
    """Write pieces, each so often, a megabyte at a time."""
    for piece, times in pieces:
        block = piece * min(times, MB)
        for _ in range(times // MB):
            file.write(block)
        file.write(piece * (times % MB))


def replayed(path):
    """Exit code, output, megabytes and seconds of processor time of a replay."""
    command = [sys.executable, "-c", PEAK, "replay", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    *_, megabytes, seconds = done.stderr.split()
    return done.returncode, done.stdout, int(megabytes), float(seconds)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_little_memory_and_time(name, tmp_path):
    pieces, texts = BOMBS[name]
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        write(file, pieces)
    code, output, megabytes, seconds = replayed(path)
    assert code == 2
    assert any(text in output for text in texts.split("|"))
    assert megabytes < 1000
    assert seconds < 30


def test_a_small_text_that_grows_in_memory_is_refused(tmp_path):
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"messages": [' + b"[]," * (4 * MB) + b"0]}"))
    code, output, megabytes, _ = replayed(path)
    assert (code, "MB of memory" in output, megabytes < 400) == (2, True, True)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        pytest.param(
            "create view checkpoints as with recursive t(n) as (select 1 union all"
            " select n + 1 from t) select n as thread_id, '' as checkpoint_ns from t;",
            "a view in place of a table",
            id="a view without end",
        ),
        pytest.param(
            "create table checkpoints(thread_id, checkpoint_ns generated always as"
            " (hex(zeroblob(30000000))));",
            "columns that are worked out",
            id="a column that is worked out",
        ),
    ],
)
def test_a_database_that_never_ends_is_refused(table, text, tmp_path):
    path = tmp_path / "bomb.sqlite"
    with sqlite3.connect(path) as db:
        db.executescript(WRITES + table)
    code, output, _, seconds = replayed(path)
    assert (code, text in output, seconds < 20) == (2, True, True)


def test_pipes_and_devices_in_a_folder_are_skipped_with_a_line(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    (tmp_path / "run.jsonl").write_text(json.dumps(repeating(3).to_dict()) + "\n")
    code, output, _, _ = replayed(tmp_path)
    assert code == 0
    assert "pipe.jsonl: a pipe, skipped" in output
    assert "zero.jsonl: a device, skipped" in output


def test_a_device_that_is_named_is_refused():
    code, output, _, _ = replayed("/dev/zero")
    assert (code, "a device" in output) == (2, True)
