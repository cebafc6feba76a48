"""How fast is a folder of Parquet files replayed, and in how much memory?

    python -m tests.benchmarks.parquet_runs FOLDER --runs 1000000 --jobs 2

writes the folder if it isn't there (LangSmith's bulk export: a run of two calls is three rows, in
no order, every twentieth trace goes on in the next file), replays it, and prints the rate and the
memory of all processes together. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import threading
import time
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.replay import Problem, work_on_runs
from langchain_loopguard.replay.totals import ReplayWork

RUNS_A_FILE = 50_000
NAMES = "id trace_id parent_run_id run_type name start_time end_time inputs outputs error".split()


def rows_of(at):
    """The rows of one run: its root with all messages, and a row for each tool."""
    trace = f"{(at * 2654435761) % 2**64:016x}{at:016x}"
    calls = [("search", {"q": f"topic {at} {n}"}, f"{n} results for topic {at}") for n in range(2)]
    messages = [{"role": "user", "content": f"What is topic {at}?"}]
    rows = []
    for n, (name, args, text) in enumerate(calls):
        given = {"id": f"c{n}", "type": "function"}
        given["function"] = {"name": name, "arguments": json.dumps(args)}
        messages.append({"role": "assistant", "content": "", "tool_calls": [given]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
        output = json.dumps({"output": {"tool_call_id": f"c{n}", "content": text}})
        start = f"2026-11-30T10:{n:02}:00.000000"
        key = f"{trace}-{n}"
        rows.append((key, trace, trace, "tool", name, start, start, json.dumps(args), output, None))
    start, end = "2026-11-30T10:00:00.000000", "2026-11-30T10:05:00.000000"
    state = json.dumps({"messages": messages})
    rows.append((trace, trace, None, "chain", "agent", start, end, "{}", state, None))
    return rows


def write(folder, runs):
    """Write the folder; returns its bytes."""
    folder.mkdir(parents=True)
    dice = random.Random(1)
    late = []
    for number, first in enumerate(range(0, runs, RUNS_A_FILE)):
        rows, late = late, []
        for at in range(first, min(first + RUNS_A_FILE, runs)):
            made = rows_of(at)
            if at % 20 == 0 and first + RUNS_A_FILE < runs:
                late.append(made.pop())
            rows += made
        dice.shuffle(rows)
        columns = dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))
        path = folder / f"{number:04}.parquet"
        parquet.write_table(pa.table(columns), path, row_group_size=50_000, compression="zstd")
    return sum(path.stat().st_size for path in folder.iterdir())


class Memory(threading.Thread):
    """Adds up the memory of this process and those that it started, five times a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak = self.alone = 0

    def run(self):
        while True:
            sizes = [resident(pid) for pid in (os.getpid(), *children(os.getpid()))]
            self.peak, self.alone = max(self.peak, sum(sizes)), max(self.alone, *sizes)
            time.sleep(0.2)


def children(pid):
    """The processes that one started, and those that these did."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(one) for one in (task / "children").read_text().split()]
    return [one for child in found for one in (child, *children(child))]


def resident(pid):
    """Megabytes of a process that are its own, 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if not options.folder.exists():
        print(f"written: {write(options.folder, options.runs) / 2**20:,.0f} MB")
    memory = Memory()
    memory.start()
    begun = time.monotonic()
    runs = calls = problems = 0
    work = ReplayWork(LoopGuardPolicy())
    for result in work_on_runs([str(options.folder)], work, jobs=options.jobs):
        if isinstance(result, Problem):
            problems += 1
            continue
        runs, calls = runs + 1, calls + result.report.calls
        if runs == 1 or runs % 100_000 == 0:
            spent = time.monotonic() - begun
            print(f"{runs:>9,} runs {spent:6.1f} s, peak so far {memory.peak:,.0f} MB", flush=True)
    spent = time.monotonic() - begun
    print(f"{runs:,} runs, {calls:,} calls, {problems} problems in {spent:.1f} s:", end=" ")
    print(f"{runs / spent:,.0f} runs/s; {memory.peak:,.0f} MB, one process {memory.alone:,.0f} MB")
    # The clock of a busy machine says little: what the processes took does.
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    print(f"{cpu:.1f} s of processor time, {runs / cpu:,.0f} runs/s of each core")


if __name__ == "__main__":
    main()
