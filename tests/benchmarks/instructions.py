"""How many instructions does a guard add to a step of an agent?

The agents of `agents`, with a tool that does nothing. On a machine that is shared, times swing by
more than a guard costs; the number of instructions hardly does, so it tells a change of one in a
hundred. It says nothing of the processor's caches: what runs seldom takes longer than that.

Valgrind counts (its tool `cachegrind`; `apt install valgrind`). Two runs of different length are
counted, each in a process of its own, and their difference is that of the steps between them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from rich.table import Table

from tests.benchmarks.agents import PAIRS, build_agent, model

STEPS = (20, 60)
"""Of the short run and of the long one."""

_COUNT = re.compile(r"I\s+refs:\s+([\d,]+)")


def measure(*, quick: bool = False) -> list[dict[str, Any]]:
    """Measure everything this file asks; gives a row for each guard, none without valgrind."""
    if shutil.which("valgrind") is None:
        return []
    trios = dict(list(PAIRS.items())[: 1 if quick else None])
    wanted = {(name.split(",")[0], what) for name, trio in trios.items() for what in trio}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = dict(zip(wanted, pool.map(lambda one: _a_step(*one), wanted), strict=True))
    rows = []
    for name, trio in trios.items():
        guard, empty, none = (counts[name.split(",")[0], what] for what in trio)
        rows.append({"guard": name, "instructions": guard, "empty": empty, "none": none})
    return rows


def _a_step(host: str, variant: str) -> float:
    short, long = (_counted(host, variant, steps) for steps in STEPS)
    return (long - short) / (STEPS[1] - STEPS[0])


def _counted(host: str, variant: str, steps: int) -> int:
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    command += [sys.executable, "-m", "tests.benchmarks.instructions", host, variant, str(steps)]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = _COUNT.search(done.stderr)
    if found is None:
        raise ValueError(f"valgrind gave no count: {done.stderr[-500:]}")
    return int(found[1].replace(",", ""))


def _run(host: str, variant: str, steps: int) -> None:
    agent, handlers = build_agent(host, variant, model(steps, lambda: None), 0.0)
    config: Any = {"callbacks": handlers, "recursion_limit": 10 * steps + 50}
    agent.invoke({"messages": [HumanMessage("go")]}, config)


def tables(found: list[dict[str, Any]]) -> list[Table]:
    """Show what was measured."""
    table = Table("agent, guard", "thousands a step", "over empty", "over none")
    table.title = "Guarded over unguarded, a tool that does nothing: instructions"
    if not found:
        table.caption = "valgrind is not installed"
    for row in found:
        table.add_row(
            row["guard"],
            f"{row['instructions'] / 1000:,.0f}",
            *(f"{row['instructions'] / row[other]:.3f}" for other in ("empty", "none")),
        )
    return [table]


__all__ = ["measure", "tables"]

if __name__ == "__main__":
    _run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
