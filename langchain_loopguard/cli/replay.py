"""How does `loopguard replay` look?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from langchain_loopguard.cli.reading import (
    Dask,
    Jobs,
    Paths,
    PolicyName,
    Threads,
    policy_of,
    print_problems,
    printable,
    results_of,
    wide_console,
)
from langchain_loopguard.cli.tables import print_table
from langchain_loopguard.replay.problems import Problem
from langchain_loopguard.replay.summary import ReplayWork, Row, Totals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from langchain_loopguard.replay.run import Fire, ReplayReport
    from langchain_loopguard.replay.summary import Group

_OUTCOMES = {"success": "solved", "fail": "failed", "unknown": "outcome unknown"}


def replay(
    paths: Paths,
    policy: PolicyName = "default",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with every run.")
    ] = False,
    top: Annotated[
        int, typer.Option("--top", min=0, help="Runs to list, those with the most calls saved.")
    ] = 20,
    unattended: Annotated[
        bool,
        typer.Option(
            "--unattended",
            help="Refuse what would be asked about, and end at the first stop, as where nobody"
            " can be asked.",
        ),
    ] = False,
    show_content: Annotated[
        bool,
        typer.Option(
            "--show-content",
            help="Show the calls that would be asked about. Known shapes of secrets are masked.",
        ),
    ] = False,
    jobs: Jobs = None,
    thread: Threads = None,
    dask: Dask = None,
) -> None:
    """Tell what the guard would have done on past runs.

    Exit code: 0 no loop, 1 a loop, 2 a part of the input could not be read.
    """
    work = ReplayWork(policy_of(policy), unattended=unattended, show_content=show_content)
    results = results_of(paths, work, jobs=jobs, threads=thread, dask=dask)
    totals = Totals(keep=top)
    if as_json:
        _print_json(results, totals, policy)
    else:
        for result in results:
            _count(totals, result)
        _print_tables(totals, policy)
    raise typer.Exit(totals.exit_code)


def _count(totals: Totals, result: Row | Problem) -> None:
    if isinstance(result, Problem):
        totals.add_problem(result)
    else:
        totals.add(result)


def _print_json(results: Iterable[Row | Problem], totals: Totals, policy: str) -> None:
    """Print the runs as they come, so that no list of them is kept."""
    typer.echo(f'{{"policy": {json.dumps(policy)}, "runs": [', nl=False)
    comma = ""
    for result in results:
        _count(totals, result)
        if isinstance(result, Row):
            typer.echo(f"{comma}\n{json.dumps(result.as_dict())}", nl=False)
            comma = ","
    problems = json.dumps([problem.as_dict() for problem in totals.problems])
    typer.echo(f'\n], "problems": {problems}, "summary": {json.dumps(totals.as_dict())}}}')


def _print_tables(totals: Totals, policy: str) -> None:
    console = wide_console()
    if totals.top:
        console.print(_runs_table(totals))
        more = totals.all.asked - len(totals.top)
        if more:
            console.print(Text(f"and {more:,} more (--top, --json)", style="dim"))
        for row in totals.top:
            _print_content(console, row)
    if totals.all.runs:
        print_table(console, _totals_table(totals, policy))
        console.print(
            Text(
                "Numbers of calls count from 1; a batch is all calls of one message. Saved: the"
                " calls from the first batch that would have been held back.",
                style="dim",
            )
        )
    print_problems(console, totals)


def _runs_table(totals: Totals) -> Table:
    table = Table(title="Runs with a loop", title_justify="left", box=None, pad_edge=False)
    table.add_column("run", overflow="fold", ratio=3)
    table.add_column("outcome", min_width=len("unknown"))
    for name in ("calls", "warns at", "asks at", "stops at", "saved"):
        table.add_column(name, justify="right")
    table.add_column("found", overflow="fold", ratio=2)
    for row in totals.top:
        report = row.report
        table.add_row(
            Text(printable(f"{report.source} · {report.id}")),
            _OUTCOMES.get(report.outcome, ""),
            f"{report.calls:,}",
            *(_at(fire) for fire in (report.warn, report.ask, report.stop)),
            Text(f"{report.saved:,}", style="bold green" if report.saved else ""),
            Text(printable(_found(report))),
        )
    return table


def _at(fire: Fire | None) -> str:
    if fire is None:
        return "-"
    if fire.call == fire.batch:
        return f"{fire.call:,}"
    return f"{fire.call:,} (batch {fire.batch:,})"


def _found(report: ReplayReport) -> str:
    """Name the finding that asked first."""
    first = next((found for found in report.findings if found.action.name in {"ASK", "STOP"}), None)
    return f"{first.rule}: {', '.join(first.tools)}" if first is not None else ""


def _print_content(console: Console, row: Row) -> None:
    if row.shown is None:
        return
    console.print(Text(printable(f"{row.report.source} · {row.report.id}"), style="bold"))
    for call in row.shown:
        text = f"  {call['tool']} {call['arguments']} -> {call['answer']}"
        console.print(Text(printable(text)), soft_wrap=True)


def _totals_table(totals: Totals, policy: str) -> Table:
    title = Text(f"What the policy {printable(policy)} would have done")
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for name in ("runs", "calls", "warned", "asked", "stopped", "calls saved"):
        table.add_column(name, justify="right")
    groups = {"all": totals.all}
    if len(totals.by_outcome) > 1 or "unknown" not in totals.by_outcome:
        for outcome, name in _OUTCOMES.items():
            if outcome in totals.by_outcome:
                groups[name] = totals.by_outcome[outcome]
    for name, group in groups.items():
        table.add_row(name, *_cells(group))
    return table


def _cells(group: Group) -> list[str]:
    share = f" ({group.saved / group.calls:.1%})" if group.calls else ""
    counts = (group.runs, group.calls, group.warned, group.asked, group.stopped)
    return [*(f"{count:,}" for count in counts), f"{group.saved:,}{share}"]
