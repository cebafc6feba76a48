"""How much does `import langchain_loopguard` add to `import langchain_core.messages`?

Each time in a new interpreter, of which the start itself is not counted, and with bytecode, as an
installed package has it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from rich.table import Table

GOAL = 60.0
"""Milliseconds of the processor."""

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
    return {"least": min(times), "median": statistics.median(times), "goal": GOAL}


def _added(bytecode: str) -> float:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", _TIMER]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    return float(done.stdout) * 1000


def tables(found: dict[str, Any]) -> list[Table]:
    """Show what was measured."""
    table = Table("least", "median", "goal", "")
    table.title = "What importing the package adds (milliseconds)"
    met = "yes" if found["least"] <= found["goal"] else "[bold]no[/bold]"
    table.add_row(*(f"{found[name]:.1f}" for name in ("least", "median", "goal")), met)
    return [table]
