"""What the commands share that read past runs: their options, the progress bar, the tables."""

from __future__ import annotations

import inspect
import json
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias, TypeVar, get_type_hints

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from langchain_loopguard.langchain.masks import mask_secrets, visible
from langchain_loopguard.policy import named_policy
from langchain_loopguard.replay.conversation import Problem, WorkError
from langchain_loopguard.replay.work import work_on_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from langchain_loopguard import LoopGuardPolicy
    from langchain_loopguard.replay.conversation import Conversation
    from langchain_loopguard.replay.totals import Problems

T = TypeVar("T")

OUTCOMES = {"success": "solved", "fail": "failed", "unknown": "outcome unknown"}
"""What the commands and the page call the outcomes."""

_SHOWN = 20
"""Problems and names that are listed; the rest is counted."""

_WIDEST = 160
"""Columns of a table away from a terminal."""

AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the result as one JSON object.")
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]
Unattended: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--unattended",
        help="Refuse each step at which a person would be asked, and end at the first stop, as"
        " where nobody can be asked.",
    ),
]
ShowContent: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--show-content",
        help="Show arguments and results of the calls. Known shapes of secrets are masked.",
    ),
]
Share: TypeAlias = Annotated[
    float,
    typer.Option(
        "--max-false-ask", help="The share of good runs that may be interrupted, e.g. 0.01."
    ),
]
Confidence: TypeAlias = Annotated[
    float, typer.Option("--confidence", help="How sure that has to be.")
]


@dataclass(frozen=True)
class Options:
    """What each command takes that reads past runs."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Files, directories, patterns, - for the standard input, or the address of a"
            " Postgres checkpointer. The format is found by the content.",
            show_default=False,
        ),
    ] = None
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="NAME|FILE", help="A preset's name, or a policy file."),
    ] = "default"
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Processes to use; one a core by default."),
    ] = None
    thread: Annotated[
        list[str] | None,
        typer.Option(
            "--thread", metavar="ID", help="Of a checkpointer, only this thread. May be repeated."
        ),
    ] = None
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask", metavar="ADDRESS", help="Work on this Dask cluster, e.g. tcp://host:8786."
        ),
    ] = None

    @property
    def inputs(self) -> list[str]:
        """The paths.

        Raises:
            typer.BadParameter: If there are none.
        """
        if not self.paths:
            raise typer.BadParameter("give at least one path", param_hint="PATH")
        return self.paths

    def load_policy(self) -> LoopGuardPolicy:
        """Load the policy.

        Raises:
            typer.BadParameter: If there is none of that name, or the file holds none.
        """
        try:
            policy = named_policy(self.policy)
        except OSError as error:
            text = f"{self.policy}: {error.strerror or error}"
            raise typer.BadParameter(text, param_hint="--policy") from error
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--policy") from error
        if not policy.rules:
            text = f"the policy {printable(self.policy)} has no rules: it finds no loop"
            typer.echo(f"loopguard: {text}", err=True)
        return policy

    def results(self, work: Callable[[Conversation], T], problems: Problems) -> Iterator[T]:
        """Do work on every run behind a progress bar; what can't be read goes to `problems`.

        Raises:
            typer.Exit: With 2 when the work can't be done, with 130 when it is interrupted.
        """
        inputs, wanted = self.inputs, frozenset(self.thread or ())
        try:
            with _progress(inputs) as move:
                results = work_on_runs(
                    inputs, work, jobs=self.jobs, dask=self.dask, threads=wanted, progress=move
                )
                for result in results:
                    if isinstance(result, Problem):
                        problems.add(result)
                    else:
                        yield result
        except WorkError as error:
            fail(str(error))
        except ModuleNotFoundError as error:
            if self.dask is None:
                raise
            need_extra("--dask", error.name or "", "fleet")
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


def reads_runs(app: typer.Typer) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command whose first parameter is `Options`, which typer sees as its fields."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        hints = get_type_hints(Options, include_extras=True)
        shared = [
            inspect.Parameter(
                one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hint
            )
            for one in fields(Options)
            if (hint := hints[one.name])
        ]

        def run(**given: Any) -> None:
            options = Options(**{one.name: given.pop(one.name) for one in shared})
            function(options, **given)

        parameters = [*shared, *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__doc__ = function.__doc__
        app.command(function.__name__)(run)
        return function

    return add


@contextmanager
def _progress(paths: list[str]) -> Iterator[Callable[[int], object]]:
    console = Console(stderr=True)
    sizes = [Path(path).stat().st_size for path in paths if Path(path).is_file()]
    packed = any(path.endswith((".gz", ".bz2", ".xz")) for path in paths)
    total = sum(sizes) if len(sizes) == len(paths) and not packed else None
    columns = (SpinnerColumn(), TextColumn("reading"), BarColumn(), DownloadColumn())
    # A thread of its own would stand in the way of forking.
    bar = Progress(
        *columns,
        console=console,
        transient=True,
        auto_refresh=False,
        disable=not console.is_terminal,
    )
    task = bar.add_task("", total=total)

    def move(size: int) -> None:
        bar.update(task, advance=size, refresh=True)

    with bar:
        yield move


def fail(text: str) -> NoReturn:
    """End with 2 and a line that says why."""
    typer.echo(f"loopguard: {text}", err=True)
    raise typer.Exit(2)


def need_extra(what: str, package: str, extra: str) -> NoReturn:
    """End with 2 since a package isn't installed."""
    fail(
        f"{what} needs {package}, which isn't installed: pip install 'langchain-loopguard[{extra}]'"
    )


def check_share(value: float, option: str) -> None:
    """Refuse a share that is not above 0 and below 1."""
    if not 0 < value < 1:
        raise typer.BadParameter("must be above 0 and below 1", param_hint=option)


def end(problems: Problems, runs: int, *, code: int = 0) -> NoReturn:
    """End with 2 when a part of the input was not read, or no run was found, else with `code`."""
    raise typer.Exit(2 if problems.bad or not runs else code)


def printable(text: str) -> str:
    """Make text of unknown origin safe to print: no secrets, no control characters."""
    return visible(mask_secrets(text))


def read_through(
    rows: Iterable[Any], rest: Callable[[], dict[str, Any]], *, as_json: bool, start: str = ""
) -> None:
    """Read all runs; with `as_json` print one JSON object with them as they come.

    So no list of them is kept. `rest` gives what stands behind them, `start` is what stands before.
    """
    if not as_json:
        for _ in rows:
            pass
        return
    typer.echo(f'{{{start}"runs": [', nl=False)
    comma = ""
    for row in rows:
        typer.echo(f"{comma}\n{json.dumps(row)}", nl=False)
        comma = ","
    typer.echo(f"\n], {json.dumps(rest())[1:]}")


def console_for_tables() -> Console:
    """Make a console; away from a terminal it is as wide as tables need."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _WIDEST)
    return console


def table_of(title: str, *columns: str, texts: Iterable[str] = ("",)) -> Table:
    """Make a table; a name in `texts` is a column of texts, any other one of numbers."""
    table = Table(title=Text(printable(title)), title_justify="left", box=None, pad_edge=False)
    for name in columns:
        # Folded, not cut: nothing is lost on a narrow terminal.
        table.add_column(
            name, justify="left" if name in texts else "right", overflow="fold", min_width=3
        )
    return table


def note(console: Console, text: str, style: str = "dim") -> None:
    """Print a line or two beside a table."""
    console.print(Text(text, style=style), soft_wrap=style != "dim")


def percent_of(part: int, whole: int) -> str:
    """Write a count and its share."""
    return f"{part:,} ({part / whole:.1%})" if whole else f"{part:,}"


def duration(seconds: float | None) -> str:
    """Write a time as a person says it."""
    if seconds is None:
        return ""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def print_problems(console: Console, problems: Problems, runs: int, without_calls: int = 0) -> None:
    """List what was not read, equal problems once, by name."""
    if problems.bad:
        what = "One part" if problems.bad == 1 else f"{problems.bad:,} parts"
        note(console, f"{what} of the input could not be read:", "bold red")
        _list(console, problems.lines(), problems.different)
    if problems.ignored:
        what = "One file" if problems.ignored == 1 else f"{problems.ignored:,} files"
        note(console, f"{what} in the directories held no run of a known format:", "bold")
        _list(console, problems.ignored_names, problems.ignored)
    if without_calls:
        what = "One run" if without_calls == 1 else f"{without_calls:,} runs"
        note(console, f"{what} made no call.")
    if not runs and not problems.bad:
        note(console, "No run was found.", "bold red")


def _list(console: Console, lines: list[str], count: int) -> None:
    for line in lines[:_SHOWN]:
        note(console, f"  {printable(line)}", "")
    if count > _SHOWN:
        note(console, f"  and {count - _SHOWN:,} more")
