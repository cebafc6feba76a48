"""What do the commands share that read past runs: options, a progress bar, the list of problems?"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeAlias, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn
from rich.text import Text

from langchain_loopguard.policy_file import named_policy
from langchain_loopguard.replay.parallel import WorkError, work_on_runs
from langchain_loopguard.replay.redact import mask_secrets
from langchain_loopguard.replay.streams import is_packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.replay.conversation import Conversation
    from langchain_loopguard.replay.problems import Problem
    from langchain_loopguard.replay.summary import Totals

T = TypeVar("T")

SHOWN_PROBLEMS = 20
"""Problems that are listed; the rest is counted."""

_REFRESH_SECONDS = 0.1

Paths: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Files, directories, patterns, - for the standard input, or the address of a"
        " Postgres checkpointer. The format is found by the content.",
        show_default=False,
    ),
]
PolicyName: TypeAlias = Annotated[
    str,
    typer.Option("--policy", metavar="NAME|FILE", help="A preset's name, or a policy file."),
]
Jobs: TypeAlias = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Processes to use; one a core by default."),
]
Threads: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--thread", metavar="ID", help="Of a checkpointer, only this thread. May be repeated."
    ),
]
Dask: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dask", metavar="ADDRESS", help="Work on this Dask cluster, e.g. tcp://host:8786."
    ),
]


def policy_of(name: str) -> LoopGuardPolicy:
    """Give the policy of the command line.

    Raises:
        typer.BadParameter: If there is none of that name, or the file holds none.
    """
    try:
        policy = named_policy(name)
    except OSError as error:
        text = f"{name}: {error.strerror or error}"
        raise typer.BadParameter(text, param_hint="--policy") from error
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--policy") from error
    if not policy.rules:
        typer.echo(
            f"loopguard: the policy {printable(name)} has no rules: it finds no loop", err=True
        )
    return policy


def printable(text: str) -> str:
    """Make text of unknown origin safe to print: no secrets, no control characters."""
    return "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in mask_secrets(text)
    )


def results_of(
    paths: Sequence[str],
    work: Callable[[Conversation], T],
    *,
    jobs: int | None,
    threads: Sequence[str] | None,
    dask: str | None,
) -> Iterator[T | Problem]:
    """Do work on every run, here or on a cluster, behind a progress bar on a terminal.

    Raises:
        typer.Exit: With 2 when the work can't be done, with 130 when it is interrupted.
    """
    wanted = frozenset(threads or ())
    try:
        with _progress(paths) as told:
            run = partial(work_on_runs, paths, work, jobs=jobs, threads=wanted, progress=told)
            if dask is not None:
                run = _on_cluster(dask, paths, work, wanted, told)
            yield from run()
    except WorkError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _on_cluster(
    address: str,
    paths: Sequence[str],
    work: Callable[[Conversation], T],
    threads: frozenset[str],
    told: Callable[[int], None],
) -> partial[Iterator[T | Problem]]:
    try:
        from langchain_loopguard.replay.fleet import (  # noqa: PLC0415 - an extra
            work_on_cluster,
        )
    except ModuleNotFoundError as error:
        _fail(
            f"--dask needs {error.name}, which isn't installed: "
            "pip install 'langchain-loopguard[fleet]'"
        )
    return partial(work_on_cluster, address, paths, work, threads=threads, progress=told)


def _fail(text: str) -> NoReturn:
    typer.echo(f"loopguard: {text}", err=True)
    raise typer.Exit(2)


@contextmanager
def _progress(paths: Sequence[str]) -> Iterator[Callable[[int], None]]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _size: None
        return
    total = _total(paths)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        console=console,
        transient=True,
        auto_refresh=False,  # Its thread would stand in the way of forking.
    )
    task = bar.add_task("reading", total=total)
    done, shown = 0, 0.0

    def told(size: int) -> None:
        nonlocal done, shown
        done += size
        bar.update(task, completed=done, description=f"{done / 2**20:,.1f} MB")
        if time.monotonic() - shown > _REFRESH_SECONDS:
            shown = time.monotonic()
            bar.refresh()

    with bar:
        yield told


def _total(paths: Sequence[str]) -> int | None:
    """Add the sizes of plain files up; `None` where they do not say how much there is to read."""
    total = 0
    for path in paths:
        file = Path(path)
        if not file.is_file() or is_packed(path):
            return None
        total += file.stat().st_size
    return total


def print_problems(console: Console, totals: Totals) -> None:
    """List what could not be read."""
    if totals.bad:
        what = "One part" if totals.bad == 1 else f"{totals.bad:,} parts"
        console.print(Text(f"{what} of the input could not be read:", style="bold red"))
        for problem in totals.problems[:SHOWN_PROBLEMS]:
            console.print(Text(f"  {printable(str(problem))}"), soft_wrap=True)
        if totals.bad > SHOWN_PROBLEMS:
            console.print(Text(f"  and {totals.bad - SHOWN_PROBLEMS:,} more"))
    if totals.ignored:
        what = "One file" if totals.ignored == 1 else f"{totals.ignored:,} files"
        console.print(Text(f"{what} in the directories held no run of a known format."))
    if not totals.all.runs and not totals.bad:
        console.print(Text("No run was found.", style="bold red"))


def wide_console() -> Console:
    """Make a console for tables; away from a terminal as wide as they need."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)
    return console
