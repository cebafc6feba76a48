"""How does `loopguard compare` look?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from langchain_loopguard.cli.reading import (
    Dask,
    Jobs,
    PolicyName,
    Threads,
    policy_of,
    print_problems,
    printable,
    results_of,
    wide_console,
)
from langchain_loopguard.cli.tables import print_table
from langchain_loopguard.replay.compare import (
    Compared,
    CompareWork,
    Standing,
    first_fire,
    incident_run,
    systems,
)
from langchain_loopguard.replay.problems import Problem
from langchain_loopguard.replay.summary import Row, Totals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_loopguard.replay.run import Fire


def compare(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="As for `loopguard replay`.", show_default=False),
    ] = None,
    incident: Annotated[
        bool,
        typer.Option(
            "--incident", help="Compare on the incident that comes with the package instead."
        ),
    ] = False,
    policy: PolicyName = "default",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with every run.")
    ] = False,
    jobs: Jobs = None,
    thread: Threads = None,
    dask: Dask = None,
) -> None:
    """Tell what this guard and others would have done on the same runs, side by side.

    Exit code: 0, or 2 when a part of the input could not be read.
    """
    if incident == bool(paths):
        raise typer.BadParameter("give either paths or --incident")
    listed = systems(policy_of(policy), "loopguard" if policy == "default" else policy)
    work = CompareWork(listed)
    results: Iterable[Compared | Problem] = (
        [work(incident_run())]
        if incident
        else results_of(paths or [], work, jobs=jobs, threads=thread, dask=dask)
    )
    standings = [Standing(system) for system in listed]
    totals = Totals(keep=0)
    only: Compared | None = None
    if as_json:
        typer.echo('{"runs": [', nl=False)
    comma = ""
    for result in results:
        if isinstance(result, Problem):
            totals.add_problem(result)
            continue
        for standing, report in zip(standings, result.reports, strict=True):
            standing.add(report)
        only = result if totals.all.runs == 0 else None
        totals.add(Row(result.reports[0]))
        if as_json:
            typer.echo(f"{comma}\n{json.dumps(_as_dict(result, standings))}", nl=False)
            comma = ","
    if as_json:
        rest = {
            "systems": [standing.as_dict() for standing in standings],
            "problems": [problem.as_dict() for problem in totals.problems],
        }
        typer.echo(f"\n], {json.dumps(rest)[1:]}")
    else:
        _print(totals, standings, only)
    raise typer.Exit(2 if totals.exit_code == 2 else 0)  # noqa: PLR2004 - bad input


def _as_dict(result: Compared, standings: list[Standing]) -> dict[str, Any]:
    verdicts = {
        standing.system.name: {
            kind: fire.as_dict() if fire is not None else None
            for kind, fire in (("warn", one.warn), ("ask", one.ask), ("stop", one.stop))
        }
        for standing, one in zip(standings, result.reports, strict=True)
    }
    return {
        "source": result.source,
        "id": result.id,
        "outcome": result.outcome,
        "calls": result.calls,
        "systems": verdicts,
    }


def _print(totals: Totals, standings: list[Standing], only: Compared | None) -> None:
    console = wide_console()
    if only is not None:
        print_table(console, _one_run_table(only, standings))
        console.print(
            Text(
                "Calls count from 1; the last column counts them from 0, in the same order. Saved:"
                " the calls from the first one that would have been held back.",
                style="dim",
            )
        )
    elif totals.all.runs:
        print_table(console, _many_runs_table(totals, standings))
        console.print(
            Text(
                "Saved: the calls from the first batch that would have been held back. Solved: the"
                " runs that ended well, where an ask was most likely wrong.",
                style="dim",
            )
        )
    print_problems(console, totals)


def _one_run_table(run: Compared, standings: list[Standing]) -> Table:
    title = Text(printable(f"{run.source} · {run.id}: {run.calls:,} calls"))
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("guard")
    for name in ("warns at", "asks at", "stops at", "calls saved", "from 0"):
        table.add_column(name, justify="right")
    for standing, report in zip(standings, run.reports, strict=True):
        fires = (report.warn, report.ask, report.stop)
        cells = [*(_call(fire, 0) for fire in fires), f"{report.saved:,}", _from_zero(fires)]
        if not any(fires):
            cells = ["never" if standing.system.detects else "no detector", "-", "-", "0", "-"]
        fired = first_fire(report) is not None
        table.add_row(Text(standing.system.title, style="bold" if fired else ""), *cells)
    return table


def _from_zero(fires: tuple[Fire | None, ...]) -> str:
    return " / ".join(_call(fire, 1) for fire in fires)


def _call(fire: Fire | None, less: int) -> str:
    return "-" if fire is None else f"{fire.call - less:,}"


def _many_runs_table(totals: Totals, standings: list[Standing]) -> Table:
    title = f"{totals.all.runs:,} runs, {totals.all.calls:,} calls"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("guard")
    solved = standings[0].solved.runs
    names = ["warned", "asked", "stopped", "first ask (median call)", "calls saved"]
    if solved:
        names.append(f"asked in {solved:,} solved")
    for name in names:
        table.add_column(name, justify="right")
    for standing in standings:
        group = standing.all
        share = f" ({group.saved / group.calls:.1%})" if group.calls else ""
        median = standing.median_call
        cells = [f"{group.warned:,}", f"{group.asked:,}", f"{group.stopped:,}"]
        cells += ["-" if median is None else f"{median:,}", f"{group.saved:,}{share}"]
        if solved:
            cells.append(f"{standing.solved.asked:,}")
        if not standing.system.detects:
            cells = ["no detector", *("-" for _ in cells[1:])]
        table.add_row(standing.system.title, *cells)
    return table
