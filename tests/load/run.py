"""How does a guard do with a thousand users at once, and with a million batches?

    python -m tests.load.run

runs everything, each part in a process of its own, and prints two tables; it takes some two
hours. The exit status is 1 if a verdict was wrong or something was left over.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.load.crowd import WAYS, crowd, guards
from tests.load.soak import KINDS, soak

_FEWER = {"handler-chains": 10, "handler-agents": 20}
"""A chain with a model costs some ten times as much as a tool, an agent twice that, so there are
fewer of them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is asked for; gives the exit status."""
    options = _parse(argv)
    if options.part:
        part = options.part.split("/")
        done = (
            crowd(part[1], part[2], options.users, options.steps)
            if part[0] == "crowd"
            else soak(part[1], options.batches // _FEWER.get(part[1], 1))
        )
        more = {"growth": done.growth} if part[0] == "soak" else {}
        sys.stdout.write(json.dumps({**dataclasses.asdict(done), **more}) + "\n")
        return int(bool(done.wrong or done.left))
    crowds = [
        _apart(f"crowd/{guard}/{way}", options)
        for guard in (options.guard or guards())
        for way in (options.way or WAYS)
        if not options.soaks
    ]
    soaks = [_apart(f"soak/{kind}", options) for kind in KINDS if not options.crowds]
    _show(crowds, soaks)
    return int(any(done["wrong"] or done["left"] for done in [*crowds, *soaks]))


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.load.run", description=__doc__)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batches", type=int, default=1_000_000)
    parser.add_argument("--guard", action="append", choices=guards())
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--crowds", action="store_true", help="no soaks")
    parser.add_argument("--soaks", action="store_true", help="no crowds")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _apart(part: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run a part in a process of its own."""
    numbers = [f"--{name}={getattr(options, name)}" for name in ("users", "steps", "batches")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.load.run", "--part", part, *numbers],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stderr.write(f"{part}: {done.stdout.strip()[:300] or done.stderr[-2000:]}\n")
    return json.loads(done.stdout)


def _show(crowds: Sequence[dict[str, Any]], soaks: Sequence[dict[str, Any]]) -> None:
    console = Console(width=120)
    if crowds:
        table = Table(
            "guard",
            "way",
            "users x steps",
            "s",
            "steps/s",
            "peak MB",
            "kept MB",
            "wrong",
            "left over",
            title="Everybody at once",
        )
        for done in crowds:
            steps = done["users"] * done["steps"]
            table.add_row(
                done["guard"],
                done["way"],
                f"{done['users']} x {done['steps']}",
                f"{done['seconds']:.0f}",
                f"{steps / done['seconds']:.0f}",
                f"{done['peak']:.0f}",
                f"{done['kept']:.1f}",
                str(len(done["wrong"])),
                str(done["left"] or "nothing"),
            )
        console.print(table)
    if soaks:
        table = Table(
            "what",
            "batches",
            "s",
            "us a batch, first, last",
            "MB, by window",
            "growth MB",
            "state B",
            "wrong",
            "left over",
            title="Without end",
        )
        for done in soaks:
            table.add_row(
                done["kind"],
                f"{done['batches']:,}",
                f"{done['seconds']:.0f}",
                f"{done['costs'][0]:.1f} {done['costs'][-1]:.1f}",
                " ".join(f"{value:.0f}" for value in done["memory"]),
                f"{done['growth']:.2f}",
                str(done["state"] or "-"),
                str(len(done["wrong"])),
                str(done["left"] or "nothing"),
            )
        console.print(table)
    for done in [*crowds, *soaks]:
        for fault in done["wrong"][:5]:
            console.print(f"[red]{done.get('guard', done.get('kind'))}[/]: {fault}", markup=True)


if __name__ == "__main__":
    sys.exit(main())
