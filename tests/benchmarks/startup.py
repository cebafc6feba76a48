"""How much does `import langchain_loopguard` add to `import langchain_core.messages`?

Each time in a new interpreter, of which the start itself is not counted, and with bytecode, as an
installed package has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any

from rich.table import Table

from tests.benchmarks.timing import cost

GOAL = 60.0
"""Milliseconds."""

_TIMER = """
import time
import langchain_core.messages
start = time.process_time()
import langchain_loopguard
print(time.process_time() - start)
"""


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Measure everything this file asks."""
    with tempfile.TemporaryDirectory() as bytecode:
        _added(bytecode)
        times = [_added(bytecode) for _ in range(3 if quick else 15)]
    return {**cost(times)._asdict(), "goal": GOAL}


def _added(bytecode: str) -> float:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", _TIMER],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=environment,
    )
    return float(done.stdout) * 1000


def tables(found: dict[str, Any]) -> list[Table]:
    """Show what was measured."""
    table = Table("least", "median", "goal", "")
    table.title = "What importing the package adds (milliseconds)"
    table.add_row(
        f"{found['least']:.1f}",
        f"{found['median']:.1f}",
        f"{found['goal']:.0f}",
        "yes" if found["least"] <= found["goal"] else "[bold]no[/bold]",
    )
    return [table]


__all__ = ["GOAL", "measure", "tables"]
