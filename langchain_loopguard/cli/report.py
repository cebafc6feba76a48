"""How does `loopguard report` write its page?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from langchain_loopguard.cli.output import Force, target_of, write_whole
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
from langchain_loopguard.policy_file import files_of
from langchain_loopguard.replay.problems import Problem
from langchain_loopguard.replay.report import MOST_RUNS, Page
from langchain_loopguard.replay.summary import Totals
from langchain_loopguard.replay.timeline import DrawWork


def report(
    paths: Paths,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")
    ] = Path("report.html"),
    force: Force = False,
    policy: PolicyName = "default",
    unattended: Annotated[
        bool,
        typer.Option("--unattended", help="As for `loopguard replay`."),
    ] = False,
    show_content: Annotated[
        bool,
        typer.Option(
            "--show-content",
            help="Put arguments and answers into the page. Known shapes of secrets are masked.",
        ),
    ] = False,
    most: Annotated[
        int,
        typer.Option(
            "--max-runs", min=1, help="Runs to list, those with the most to tell. All are counted."
        ),
    ] = MOST_RUNS,
    jobs: Jobs = None,
    thread: Threads = None,
    dask: Dask = None,
) -> None:
    """Write one page that shows what the guard would have done, call by call.

    The page is one file that loads nothing and sends nothing. Ends with 0, or with 2 when a part
    of the input could not be read; the rest is in the page.
    """
    chosen = policy_of(policy)
    target = target_of(output, [*paths, *files_of(policy)], force=force)
    work = DrawWork(chosen, unattended=unattended, content=show_content)
    page = Page(policy=printable(Path(policy).name), content=show_content, most=most)
    totals = Totals(keep=0)
    for drawn in results_of(paths, work, jobs=jobs, threads=thread, dask=dask):
        if isinstance(drawn, Problem):
            totals.add_problem(drawn)
        else:
            page.add(drawn)
    page.bad = totals.bad
    console = wide_console()
    if page.runs:
        try:
            write_whole(target, page.render())
        except OSError as error:
            typer.echo(f"loopguard: {output}: {error.strerror or error}", err=True)
            raise typer.Exit(2) from None
        typer.echo(f"{output}: {page.summary()}")
    totals.all.runs = page.runs
    print_problems(console, totals)
    raise typer.Exit(2 if totals.bad or not page.runs else 0)
