"""How does `loopguard calibrate` look?"""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

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
from langchain_loopguard.cli.tables import print_table
from langchain_loopguard.policy_file import files_of, policy_text
from langchain_loopguard.replay.calibrate import (
    FACTORS,
    CalibrationError,
    Calibrator,
    Grid,
    MeasureWork,
    runs_needed,
)
from langchain_loopguard.replay.labels import LabelError, read_labels
from langchain_loopguard.replay.problems import Problem
from langchain_loopguard.replay.summary import Totals

if TYPE_CHECKING:
    from rich.console import Console

    from langchain_loopguard.replay.calibrate import Calibration, Row
    from langchain_loopguard.replay.labels import Labels


def calibrate(
    paths: Paths,
    label: Annotated[
        Path | None,
        typer.Option(
            "--label",
            metavar="FILE",
            help='What runs are: JSON lines {"id": "...", "label": "loop|benign|unclear"} or CSV'
            " with the columns id and label. Both may name a source.",
        ),
    ] = None,
    max_false_ask: Annotated[
        float,
        typer.Option(
            "--max-false-ask", help="The share of good runs that may be asked about, e.g. 0.01."
        ),
    ] = 0.01,
    confidence: Annotated[
        float, typer.Option("--confidence", help="How sure that has to be.")
    ] = 0.95,
    policy: PolicyName = "default",
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The policy file to write.")
    ] = Path("loopguard-policy.json"),
    force: Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON object.")
    ] = False,
    jobs: Jobs = None,
    thread: Threads = None,
    dask: Dask = None,
) -> None:
    """Propose thresholds that ask about few good runs of your own, and say how sure that is.

    Good runs are those that ended in success, or are labelled benign. Ends with 0 when a policy
    was written, with 1 when the runs are too few or no policy can be shown to be good enough,
    with 2 when a part of the input could not be read.
    """
    _share(max_false_ask, "--max-false-ask")
    _share(confidence, "--confidence")
    _need_scipy()
    read = [*paths, *([str(label)] if label else ()), *files_of(policy)]
    target = target_of(output, read, force=force)
    labels = _labels(label)
    grid = _grid(policy)
    calibrator = Calibrator(grid, allowed=max_false_ask, confidence=confidence)
    totals = Totals(keep=0)
    work = MeasureWork(grid, labels)
    for measured in results_of(paths, work, jobs=jobs, threads=thread, dask=dask):
        if isinstance(measured, Problem):
            totals.add_problem(measured)
        else:
            totals.all.runs += 1
            calibrator.add(measured)
    result = calibrator.result()
    _write(result, output, target)
    if as_json:
        problems = [problem.as_dict() for problem in totals.problems]
        typer.echo(json.dumps({**result.as_dict(), "problems": problems}))
    else:
        console = wide_console()
        _print(console, result, output, unused=len(labels.keys() - result.labels))
        print_problems(console, totals)
    if totals.bad or not totals.all.runs:
        raise typer.Exit(2)
    raise typer.Exit(0 if result.policy is not None else 1)


def _share(value: float, option: str) -> None:
    if not 0 < value < 1:
        raise typer.BadParameter("must be above 0 and below 1", param_hint=option)


def _need_scipy() -> None:
    if importlib.util.find_spec("scipy") is None:
        typer.echo(
            "loopguard: calibrate needs scipy, which isn't installed: "
            "pip install 'langchain-loopguard[calibrate]'",
            err=True,
        )
        raise typer.Exit(2)


def _grid(policy: str) -> Grid:
    try:
        return Grid(policy_of(policy))
    except CalibrationError as error:
        raise typer.BadParameter(str(error), param_hint="--policy") from error


def _write(result: Calibration, output: Path, target: Path) -> None:
    if result.policy is None:
        return
    try:
        write_whole(target, policy_text(result.policy))
    except OSError as error:
        typer.echo(f"loopguard: {output}: {error.strerror or error}", err=True)
        raise typer.Exit(2) from None


def _labels(file: Path | None) -> Labels:
    if file is None:
        return {}
    try:
        return read_labels(file)
    except LabelError as error:
        raise typer.BadParameter(str(error), param_hint="--label") from error
    except OSError as error:
        text = f"{file}: {error.strerror or error}"
        raise typer.BadParameter(text, param_hint="--label") from error


def _print(console: Console, result: Calibration, output: Path, *, unused: int) -> None:
    counts = f"{result.good:,} good, {result.loops:,} labelled as loops, {result.others:,} others"
    console.print(Text(f"Runs: {counts}."))
    if result.doubles:
        console.print(Text(f"{_runs(result.doubles)} left out: the same happened in another one."))
    if unused:
        console.print(Text(f"{unused:,} of the labels name no run that was read."))
    if result.rows:
        console.print()
        print_table(console, _ladder_table(result))
        console.print()
        print_table(console, _alone_table(result))
    console.print()
    for line in _verdict(result, output):
        console.print(Text(line), soft_wrap=True)
    if result.asked_about:
        console.print(Text("Good runs that the policy it started from asks about:"))
        for name in result.asked_about:
            console.print(Text(f"  {printable(name)}"), soft_wrap=True)
        console.print(
            Text("Look at them with `loopguard report`: one that holds a loop is no good run."),
            soft_wrap=True,
        )


def _verdict(result: Calibration, output: Path) -> list[str]:
    allowed, sure = _percent(result.allowed), f"{100 * result.confidence:.4g} % confidence"
    proposal = result.proposal
    if proposal is not None:
        changed = _change(result)
        loops = f" It catches {proposal.loops:,} of {result.loops:,} labelled loops."
        return [
            f"Proposed: {changed}.",
            f"It asks about {proposal.asked:,} of {_runs(result.tested, 'good')} it was tested on:"
            f" of runs like these at most {_percent(proposal.bound)}, with {sure}."
            + (loops if result.loops else ""),
            f"Written to {output}. To use it: LoopGuardPolicy.from_file({str(output)!r})",
        ]
    if not result.good:
        what = (
            "There is no good run. A run is good when its outcome is success, or when it is"
            " labelled benign (--label FILE)."
        )
        needed = f"{_runs(result.needed, 'good')} are needed to show that at most {allowed} are"
        return [what, f"{needed} asked about. Nothing was written."]
    if not result.enough:
        # Rounded up, so that the share that is named can be shown.
        smallest = math.ceil(result.smallest * 1000) / 1000
        needed = (
            f"To show that at most {allowed} of them are asked about, with {sure},"
            f" {result.needed:,} are needed, and then only if none is asked about."
        )
        best = f"So many can show {_percent(smallest)} at best: --max-false-ask {smallest}"
        return [f"Too few good runs: {result.good:,}. {needed} Nothing was written.", best]
    loosest = result.rows[0]
    what = (
        f"No policy can be shown to ask about at most {allowed} of good runs: even with every"
        f" number {FACTORS[0]:g} times as high, {loosest.asked:,} of {result.tested:,} are asked"
        " about. Nothing was written."
    )
    more = runs_needed(result.allowed, loosest.asked, result.confidence)
    return [what, f"With so many, {_runs(more, 'good')} would be needed."]


def _change(result: Calibration) -> str:
    """Say how the proposal differs from the policy it started from."""
    assert result.proposal is not None  # noqa: S101 - the caller looked
    parts = []
    default = FACTORS.index(1.0)
    levels = result.proposal.rung.levels
    for (rule, cells), level in zip(result.alone.items(), levels, strict=True):
        if cells[level][0] != cells[default][0]:
            parts.append(f"{rule} {cells[default][0]} -> {cells[level][0]}")
    return "; ".join(parts) or "the policy as it is"


def _ladder_table(result: Calibration) -> Table:
    title = "From the loosest policy down, one rule one step tighter in each row"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("tightened")
    table.add_column(f"asked of {result.tested:,} good", justify="right")
    table.add_column("upper bound", justify="right")
    table.add_column("holds")
    table.add_column(f"caught of {result.loops:,} loops", justify="right")
    table.add_column(f"asked of {result.others:,} others", justify="right")
    table.add_column("calls saved", justify="right")
    table.add_column("")
    for at, row in enumerate(result.rows):
        table.add_row(*_ladder_cells(row), _note(result, at), style=_style(result, at))
    return table


def _ladder_cells(row: Row) -> tuple[str, ...]:
    return (
        row.rung.change or f"every number times {FACTORS[0]:g}",
        f"{row.asked:,}",
        _percent(row.bound),
        "yes" if row.holds else "no",
        f"{row.loops:,}",
        f"{row.others:,}",
        f"{row.saved:,}",
    )


def _note(result: Calibration, at: int) -> str:
    notes = ["started from"] if at == result.start else []
    if at == result.chosen:
        notes.append("proposed")
    return ", ".join(notes)


def _style(result: Calibration, at: int) -> str:
    if at == result.chosen:
        return "bold green"
    return "" if result.rows[at].holds else "dim"


def _alone_table(result: Calibration) -> Table:
    title = "Each rule alone: its numbers, good runs asked about | labelled loops caught"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("rule")
    for factor in FACTORS:
        table.add_column(f"x {factor:g}", justify="right")
    for rule, cells in result.alone.items():
        names = f"{rule} ({'/'.join(result.numbers[rule])})"
        table.add_row(names, *(f"{numbers}  {good:,}|{loops:,}" for numbers, good, loops in cells))
    return table


def _percent(share: float) -> str:
    """Write a share; a bound is never rounded down."""
    return f"{math.ceil(share * 10_000 - 1e-9) / 100:.4g} %"


def _runs(count: int, kind: str = "") -> str:
    return " ".join(filter(None, (f"{count:,}", kind, "run" if count == 1 else "runs")))
