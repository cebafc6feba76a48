"""`loopguard replay`, `report` and `score`: what the guard would have done on past runs."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from langchain_loopguard.cli.options import (
    OUTCOMES,
    AsJson,
    Force,
    Options,
    ShowContent,
    Unattended,
    console_for_tables,
    duration,
    end,
    note,
    percent_of,
    print_problems,
    printable,
    read_through,
    table_of,
)
from langchain_loopguard.cli.output import target_of, write_whole
from langchain_loopguard.policy import files_of
from langchain_loopguard.replay.report import MOST_RUNS, Page, draw_run
from langchain_loopguard.replay.score import Scores, score_alone
from langchain_loopguard.replay.totals import ReplayWork, Totals, names_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from langchain_loopguard.replay.verdicts import Fire, ReplayReport


def replay(
    options: Options,
    as_json: AsJson = False,
    top: Annotated[
        int, typer.Option("--top", min=0, help="Runs to list, those with the most calls saved.")
    ] = 20,
    unattended: Unattended = False,
    show_content: ShowContent = False,
) -> None:
    """Tell what the guard would have done on past runs.

    Exit code: 0 no loop, 1 a loop, 2 a part of the input could not be read.
    """
    work = ReplayWork(options.load_policy(), unattended=unattended, show_content=show_content)
    totals = Totals(keep=top)

    def rows() -> Iterator[dict[str, Any]]:
        for row in options.results(work, totals.problems):
            totals.add(row)
            yield row.as_dict()

    start = f'"policy": {json.dumps(options.policy)}, '
    read_through(rows(), totals.as_dict, as_json=as_json, start=start)
    if not as_json:
        _print_totals(totals, options.policy)
    end(totals.problems, totals.all.runs, code=1 if totals.all.asked else 0)


def _print_totals(totals: Totals, policy: str) -> None:
    console = console_for_tables()
    if totals.top:
        _print_runs(console, totals)
    if totals.all.runs:
        _print_groups(console, totals, policy)
        note(
            console,
            "Calls count from 1; a step is all calls of one AI message. Saved: the calls from the"
            " first step that would have been stopped before it ran.",
        )
    print_problems(console, totals.problems, totals.all.runs, totals.all.without_calls)


def _print_runs(console: Console, totals: Totals) -> None:
    reports = [row.report for row in totals.top]
    names = [printable(name) for name in names_of(reports)]
    extra = [name for name in ("tokens", "seconds") if any(getattr(r, name) for r in reports)]
    heads = ["time" if name == "seconds" else name for name in extra]
    columns = ("calls", *heads, "warns at", "asks at", "stops at", "saved")
    texts = ("run", "outcome", "why")
    table = table_of("Runs with a loop", "run", "outcome", *columns, "why", texts=texts)
    for name, report in zip(names, reports, strict=True):
        fires = (report.warn, report.ask, report.stop)
        table.add_row(
            Text(name),
            OUTCOMES.get(report.outcome, ""),
            f"{report.calls:,}",
            *(_spent(report, one) for one in extra),
            *(_at(fire) for fire in fires),
            Text(f"{report.saved:,}", style="bold green" if report.saved else ""),
            Text(printable(report.why)),
        )
    console.print(table)
    more = totals.all.asked - len(reports)
    if more:
        note(console, f"and {more:,} more (--top, --json)")
    for name, row in zip(names, totals.top, strict=True):
        if row.shown is not None:
            note(console, name, "bold")
            for call in row.shown:
                text = f"  {call['tool']} {call['arguments']} -> {call['result']}"
                note(console, printable(text), "")


def _spent(report: ReplayReport, name: str) -> str:
    if name == "seconds":
        return duration(report.seconds)
    return "" if report.tokens is None else f"{report.tokens:,}"


def _at(fire: Fire | None) -> str:
    if fire is None:
        return "-"
    return f"{fire.call:,}" if fire.call == fire.step else f"{fire.call:,} (step {fire.step:,})"


def _print_groups(console: Console, totals: Totals, policy: str) -> None:
    title = f"What the policy {policy} would have done"
    table = table_of(title, "", "runs", "calls", "warned", "asked", "stopped", "calls saved")
    groups = {"all": totals.all}
    if len(totals.by_outcome) > 1 or "unknown" not in totals.by_outcome:
        known = {OUTCOMES[name]: totals.by_outcome.get(name) for name in OUTCOMES}
        groups.update({name: group for name, group in known.items() if group is not None})
    for name, one in groups.items():
        counts = (one.runs, one.calls, one.warned, one.asked, one.stopped)
        table.add_row(name, *(f"{count:,}" for count in counts), percent_of(one.saved, one.calls))
    console.print(table)


def report(
    options: Options,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")
    ] = Path("report.html"),
    force: Force = False,
    unattended: Unattended = False,
    show_content: ShowContent = False,
    most: Annotated[
        int,
        typer.Option(
            "--max-runs", min=1, help="Runs to list, those with the most to tell. All are counted."
        ),
    ] = MOST_RUNS,
) -> None:
    """Write one page that shows what the guard would have done, call by call.

    The page is one file that loads nothing and sends nothing. Ends with 0, or with 2 when a part
    of the input could not be read; the rest is in the page.
    """
    policy = options.load_policy()
    target = target_of(output, [*options.inputs, *files_of(options.policy)], force=force)
    work = partial(draw_run, policy=policy, unattended=unattended, content=show_content)
    page = Page(printable(Path(options.policy).name), show_content, most)
    for drawn in options.results(work, page.problems):
        page.add(drawn)
    if page.all.runs:
        write_whole(target, page.render(), output)
        typer.echo(f"{output}: {page.summary()}")
    print_problems(console_for_tables(), page.problems, page.all.runs)
    end(page.problems, page.all.runs)


def score(
    options: Options,
    as_json: AsJson = False,
    top: Annotated[
        int, typer.Option("--top", min=0, help="Runs to list, those with the lowest scores.")
    ] = 20,
    least: Annotated[
        float | None,
        typer.Option("--least", min=0, max=1, help="End with 1 if a run's score is lower."),
    ] = None,
) -> None:
    """Score past runs: 1 has no loop, 0 is nothing but a loop.

    The score is the share of steps that were not wasted: a wasted one comes after the first
    warning and brought nothing. Exit code: 0, 1 as --least says, 2 a part of the input could not
    be read.
    """
    scores = Scores(top)
    work = partial(score_alone, policy=options.load_policy())

    def rows() -> Iterator[dict[str, Any]]:
        for made in options.results(work, scores.problems):
            scores.add(made)
            yield made.as_dict()

    read_through(rows(), scores.as_dict, as_json=as_json)
    if not as_json:
        _print_scores(scores)
    low = least is not None and scores.runs > 0 and scores.minimum < least
    end(scores.problems, scores.runs, code=1 if low else 0)


def _print_scores(scores: Scores) -> None:
    console = console_for_tables()
    if scores.lowest:
        columns = ("run", "score", "steps", "wasted", "why")
        table = table_of("Runs with the lowest scores", *columns, texts=("run", "why"))
        names = names_of([one.report for one in scores.lowest])
        for name, one in zip(names, scores.lowest, strict=True):
            told = (f"{one.value:.2f}", f"{one.steps:,}", f"{one.wasted:,}")
            table.add_row(Text(printable(name)), *told, Text(printable(one.report.why)))
        console.print(table)
    if scores.runs:
        note(console, f"Mean score {scores.mean:.3f} of {scores.runs:,} runs.", "bold")
    print_problems(console, scores.problems, scores.runs)
