"""`loopguard compare`: this guard and others on the same runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from langchain_loopguard.cli.options import (
    AsJson,
    Options,
    console_for_tables,
    end,
    note,
    percent_of,
    print_problems,
    read_through,
    table_of,
)
from langchain_loopguard.replay.compare import CompareWork, Standing, incident_run, systems
from langchain_loopguard.replay.totals import Problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from langchain_loopguard.replay.compare import System
    from langchain_loopguard.replay.verdicts import Fire, ReplayReport

_AS_OF = "as of"


def compare(
    options: Options,
    incident: Annotated[
        bool,
        typer.Option(
            "--incident", help="Compare on the incident that comes with the package instead."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell what this guard and others would have done on the same runs, side by side.

    Exit code: 0, or 2 when a part of the input could not be read.
    """
    if incident == bool(options.paths):
        raise typer.BadParameter("give either paths or --incident")
    named = "loopguard" if options.policy == "default" else options.policy
    work = CompareWork(systems(options.load_policy(), named))
    standings = [Standing(system) for system in work.systems]
    problems = Problems()
    last: tuple[ReplayReport, ...] = ()

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal last
        runs = [work(incident_run())] if incident else options.results(work, problems)
        for last in runs:
            for standing, report in zip(standings, last, strict=True):
                standing.add(report)
            yield _as_dict(last, standings)

    def rest() -> dict[str, Any]:
        listed = [standing.as_dict() for standing in standings]
        return {"systems": listed, "problems": problems.as_dicts()}

    read_through(rows(), rest, as_json=as_json)
    if not as_json:
        _print(standings, problems, last)
    end(problems, standings[0].all.runs)


def _as_dict(reports: tuple[ReplayReport, ...], standings: list[Standing]) -> dict[str, Any]:
    told = {name: getattr(reports[0], name) for name in ("source", "id", "outcome", "calls")}
    verdicts = {
        standing.system.name: {
            kind: fire.as_dict() if (fire := getattr(report, kind)) is not None else None
            for kind in ("warn", "ask", "stop")
        }
        for standing, report in zip(standings, reports, strict=True)
    }
    return {**told, "systems": verdicts}


def _print(standings: list[Standing], problems: Problems, last: tuple[ReplayReport, ...]) -> None:
    console = console_for_tables()
    runs = standings[0].all.runs
    saved = "Saved: the calls from the first step that would have been stopped before it ran."
    if runs == 1:
        console.print(_one_run_table(standings, last))
        counted = "Calls count from 1; the last column counts them from 0, in the same order."
        note(console, f"{counted} {saved}")
    elif runs:
        console.print(_many_runs_table(standings))
        solved = "Solved: the runs that ended well, where an ask was most likely wrong."
        note(console, f"{saved} {solved}")
    print_problems(console, problems, runs)


def _one_run_table(standings: list[Standing], reports: tuple[ReplayReport, ...]) -> Table:
    run = reports[0]
    title = f"{run.source} · {run.id}: {run.calls:,} calls"
    columns = ("guard", "warns at", "asks at", "stops at", "calls saved", "from 0", _AS_OF)
    table = table_of(title, *columns, texts=("guard", _AS_OF))
    for standing, report in zip(standings, reports, strict=True):
        fires = (report.warn, report.ask, report.stop)
        from_zero = " / ".join(_call(fire, 1) for fire in fires)
        cells = [*(_call(fire, 0) for fire in fires), f"{report.saved:,}", from_zero]
        if not any(fires):
            cells = ["never" if standing.system.detects else "no detector", "-", "-", "0", "-"]
        style = "" if report.first_fire is None else "bold"
        table.add_row(Text(standing.system.title, style=style), *cells, _as_of(standing.system))
    return table


def _as_of(system: System) -> str:
    """Name the version whose rules were re-told, and when they were read."""
    return f"{system.source}, read {system.read}" if system.source else ""


def _call(fire: Fire | None, less: int) -> str:
    return "-" if fire is None else f"{fire.call - less:,}"


def _many_runs_table(standings: list[Standing]) -> Table:
    own = standings[0]
    columns = ["warned", "asked", "stopped", "first ask (median call)", "calls saved"]
    if own.solved.runs:
        columns.append(f"asked in {own.solved.runs:,} solved")
    title = f"{own.all.runs:,} runs, {own.all.calls:,} calls"
    table = table_of(title, "guard", *columns, _AS_OF, texts=("guard", _AS_OF))
    for standing in standings:
        one, median = standing.all, standing.median_call
        cells = [f"{count:,}" for count in (one.warned, one.asked, one.stopped)]
        cells += ["-" if median is None else f"{median:,}", percent_of(one.saved, one.calls)]
        if own.solved.runs:
            cells.append(f"{standing.solved.asked:,}")
        if not standing.system.detects:
            cells = ["no detector", *("-" for _ in cells[1:])]
        table.add_row(standing.system.title, *cells, _as_of(standing.system))
    return table
