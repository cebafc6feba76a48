"""How many guarded runs survive that they are killed, and where are they killed?

    python -m tests.faults.run --runs 200

runs that many trials over all adapters and stores and prints a table; the exit status is 1 if
one of them did not survive. `--number` runs one scenario again.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.faults.scenarios import scenario
from tests.faults.stores import STORES, available, opened, postgres
from tests.faults.trials import ANY_TIME, STAGES, Trial, forked, in_turns, trial
from tests.faults.worker import adapters


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trials; gives the exit status."""
    options = _parse(argv)
    # A file in the place of memory is read once, so it can't be shared.
    stores = [s for s in options.store or available() if not (options.turns and s == "memory")]
    guards = options.adapter or adapters()
    # All adapters first, each in another store, then all of them in the next store.
    cells = [
        (adapter, stores[(at + round_) % len(stores)])
        for round_ in range(len(stores))
        for at, adapter in enumerate(guards)
    ]
    numbers = [options.number] if options.number is not None else range(options.runs)
    begun = time.monotonic()
    trials: list[Trial] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-")))
        if options.keep:
            folder = Path(options.keep)
            folder.mkdir(parents=True)
        where = _places(stack, folder, {store for _, store in cells})
        # What is loaded now is shared with every process and need not be looked at again.
        gc.collect()
        gc.freeze()
        for at, number in enumerate(numbers):
            these = cells if options.number is not None else [cells[at % len(cells)]]
            for adapter, store in these:
                number_ = options.seed * 1_000_000 + number
                if options.turns:
                    durability = scenario(number_, adapter).durability
                    done = Trial(adapter, store, number_, durability)
                    done.faults = in_turns(adapter, store, number_, where[store], folder)
                else:
                    done = trial(adapter, store, number_, where[store], folder)
                trials.append(done)
                if options.json:
                    sys.stdout.write(json.dumps(dataclasses.asdict(done)) + "\n")
                    sys.stdout.flush()
    if not options.json:
        _show(trials, time.monotonic() - begun)
    return int(any(done.faults for done in trials))


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.run", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="how many trials, over all cells")
    parser.add_argument("--seed", type=int, default=0, help="other scenarios and other kills")
    parser.add_argument("--number", type=int, help="one scenario, in every cell")
    parser.add_argument("--adapter", action="append", choices=adapters())
    parser.add_argument("--store", action="append", choices=STORES)
    parser.add_argument("--turns", action="store_true", help="two processes by turns, no kills")
    parser.add_argument("--json", action="store_true", help="a line for each trial, no table")
    parser.add_argument("--keep", metavar="FOLDER", help="where the logs are to stay")
    return parser.parse_args(argv)


def _places(stack: ExitStack, folder: Path, stores: set[str]) -> dict[str, str]:
    """Make the stores' databases, in other processes: this one must have no threads."""
    where = {store: str(folder / f"{store}.db") for store in STORES}
    if "sqlite" in stores:

        def make() -> None:
            with opened("sqlite", where["sqlite"]) as saver:
                saver.setup()

        forked(make, folder / "setup.err")
    if stores & {"postgres", "async-postgres"}:
        uri = stack.enter_context(postgres(folder / "postgres"))
        where.update({"postgres": uri, "async-postgres": uri})
    return where


def _show(trials: Sequence[Trial], seconds: float) -> None:
    console = Console(width=120)
    kills = Counter(stage for done in trials for stage in done.kills)
    by_cell: dict[str, dict[str, list[Trial]]] = defaultdict(lambda: defaultdict(list))
    for done in trials:
        by_cell[done.adapter][done.store].append(done)
    stores = [store for store in STORES if any(store in row for row in by_cell.values())]
    table = Table("adapter", *stores, "questions", "stops", "run twice by the host")
    for adapter, row in sorted(by_cell.items()):
        all_of_it = [done for cell in row.values() for done in cell]
        cells = [f"{_survived(row[store])} of {len(row[store])}" for store in stores]
        table.add_row(
            adapter,
            *cells,
            str(sum(done.questions for done in all_of_it)),
            str(sum(done.stops for done in all_of_it)),
            str(sum(done.twice for done in all_of_it)),
        )
    console.print(table)
    console.print(
        f"{_survived(trials)} of {len(trials)} runs survived {kills.total()} kills "
        f"in {seconds:.0f} s: "
        + ", ".join(f"{kills[stage]} {stage}" for stage in (*STAGES, ANY_TIME))
    )
    twice: Counter[str] = Counter()
    for done in trials:
        twice[done.durability] += done.twice
    console.print(
        "Calls run twice because the process died before the host had saved the answer, by "
        "durability: " + ", ".join(f"{name} {n}" for name, n in sorted(twice.items()))
    )
    for done in trials:
        for fault in done.faults:
            console.print(f"[red]{done.adapter} {done.store} {done.number}[/]: ", end="")
            console.print(fault, markup=False, highlight=False)


def _survived(trials: Sequence[Trial]) -> int:
    return sum(not done.faults for done in trials)


if __name__ == "__main__":
    sys.exit(main())
