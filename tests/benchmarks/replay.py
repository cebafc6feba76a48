"""How many recorded steps a second does the guard read?

The open corpus, in memory: `langchain_loopguard.replay.replay` as `loopguard replay` calls it,
with the report on each run, and the guard alone. On one processor; the command uses all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.table import Table

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.replay import Conversation, replay
from tests.conversations import load, read_through


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Measure everything this file asks."""
    runs = [Conversation.from_dict(run) for run in load("corpus")]
    policy = LoopGuardPolicy()
    steps = sum(1 for run in runs for _ in run.batches)
    works: dict[str, Callable[[Conversation], Any]] = {
        "replay with its report": lambda run: replay(run, policy),
        "the guard alone": lambda run: read_through(run.events, policy),
    }
    rates = {}
    for name, work in works.items():
        seconds = min(_seconds(work, runs) for _ in range(2 if quick else 7))
        rates[name] = {"steps_a_second": steps / seconds, "runs_a_second": len(runs) / seconds}
    return {"runs": len(runs), "steps": steps, "rates": rates}


def _seconds(work: Callable[[Conversation], Any], runs: Sequence[Conversation]) -> float:
    begun = time.process_time()
    for run in runs:
        work(run)
    return time.process_time() - begun


def tables(found: dict[str, Any]) -> list[Table]:
    """Show what was measured."""
    table = Table("", "steps a second", "runs a second")
    table.title = f"{found['runs']:,} recorded runs with {found['steps']:,} steps"
    for name, rate in found["rates"].items():
        table.add_row(name, f"{rate['steps_a_second']:,.0f}", f"{rate['runs_a_second']:,.0f}")
    return [table]


__all__ = ["measure", "tables"]
