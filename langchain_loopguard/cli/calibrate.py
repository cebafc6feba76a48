"""`loopguard calibrate` and `promote`: how sure it is that few good runs are interrupted."""

from __future__ import annotations

import importlib.util
import json
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from langchain_loopguard.cli.options import (
    AsJson,
    Confidence,
    Force,
    Options,
    Share,
    check_share,
    console_for_tables,
    end,
    fail,
    need_extra,
    note,
    print_problems,
    printable,
    table_of,
)
from langchain_loopguard.cli.output import target_of, write_whole
from langchain_loopguard.langchain.cost import number_of
from langchain_loopguard.policy import files_of, policy_text
from langchain_loopguard.replay.calibrate import (
    FACTORS,
    Calibration,
    CalibrationError,
    Calibrator,
    Grid,
    measure,
    runs_needed,
)
from langchain_loopguard.replay.labels import LabelError, read_labels
from langchain_loopguard.replay.promote import Promotion
from langchain_loopguard.replay.streams import UNPACK_ERRORS, lines_of, open_bytes, unpacked
from langchain_loopguard.replay.totals import Problems

if TYPE_CHECKING:
    from rich.table import Table

    from langchain_loopguard.replay.labels import Labels


def calibrate(
    options: Options,
    label: Annotated[
        Path | None,
        typer.Option(
            "--label",
            metavar="FILE",
            help='What runs are: JSON lines {"id": "...", "label": "loop|benign|unclear"} or CSV'
            " with the columns id and label. Both may name a source.",
        ),
    ] = None,
    max_false_ask: Share = 0.01,
    confidence: Confidence = 0.95,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The policy file to write.")
    ] = Path("loopguard-policy.json"),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Propose thresholds that interrupt few good runs of your own, and say how sure that is.

    Good runs are those that ended in success, or are labelled benign. Ends with 0 when a policy
    was written, with 1 when the runs are too few or no policy can be shown to be good enough,
    with 2 when a part of the input could not be read.
    """
    _check(max_false_ask, confidence, "calibrate")
    read = [*options.inputs, *([str(label)] if label else ()), *files_of(options.policy)]
    target = target_of(output, read, force=force)
    labels = _labels(label)
    try:
        grid = Grid(options.load_policy())
    except CalibrationError as error:
        raise typer.BadParameter(str(error), param_hint="--policy") from error
    calibrator = Calibrator(grid, allowed=max_false_ask, confidence=confidence)
    problems, runs = Problems(), 0
    for measured in options.results(partial(measure, grid=grid, labels=labels), problems):
        runs += 1
        calibrator.add(measured)
    result = calibrator.result()
    if result.policy is not None:
        write_whole(target, policy_text(result.policy), output)
    if as_json:
        typer.echo(json.dumps({**result.as_dict(), "problems": problems.as_dicts()}))
    else:
        _print(result, output, len(labels.keys() - result.labels))
        print_problems(console_for_tables(), problems, runs)
    end(problems, runs, code=0 if result.policy is not None else 1)


def _check(max_false_ask: float, confidence: float, command: str) -> None:
    check_share(max_false_ask, "--max-false-ask")
    check_share(confidence, "--confidence")
    if importlib.util.find_spec("scipy") is None:
        need_extra(command, "scipy", "calibrate")


def _labels(file: Path | None) -> Labels:
    try:
        return {} if file is None else read_labels(file)
    except (LabelError, OSError) as error:
        text = f"{file}: {error.strerror or error}" if isinstance(error, OSError) else str(error)
        raise typer.BadParameter(text, param_hint="--label") from error


def _print(result: Calibration, output: Path, unused: int) -> None:
    console = console_for_tables()
    counts = f"{result.good:,} good, {result.loops:,} labelled as loops, {result.others:,} others"
    lines = [f"Runs: {counts}."]
    if result.doubles:
        lines.append(
            f"{number_of(result.doubles, 'run')} left out: the same happened in another one."
        )
    if unused:
        lines.append(f"{unused:,} of the labels name no run that was read.")
    for line in lines:
        note(console, line, "")
    if result.rows:
        console.print(_table(result))
    lines = _verdict(result, output)
    if result.asked_about:
        lines.append("Good runs that the policy it started from interrupts:")
        lines += [f"  {printable(name)}" for name in result.asked_about]
        text = "Look at them with `loopguard report`: one that holds a loop is no good run."
        lines.append(text)
    for line in lines:
        note(console, line, "")


def _verdict(result: Calibration, output: Path) -> list[str]:
    allowed, sure = _percent(result.allowed), f"{100 * result.confidence:.4g} % confidence"
    proposal, needed = result.proposal, number_of(result.needed, "good run")
    if proposal is not None:
        caught = f" It catches {proposal.loops:,} of {result.loops:,} labelled loops."
        return [
            f"Proposed: {result.change}.",
            f"It interrupts {proposal.asked:,} of {number_of(result.tested, 'good run')} it was"
            f" tested on: of runs like these at most {_percent(proposal.bound)}, with {sure}."
            + (caught if result.loops else ""),
            f"Written to {output}. To use it: LoopGuardPolicy.from_file({str(output)!r})",
        ]
    if not result.good:
        return [
            "There is no good run. A run is good when its outcome is success, or when it is",
            "labelled benign (--label FILE).",
            f"{needed} are needed to show that at most {allowed} are asked",
            "about. Nothing was written.",
        ]
    if not result.rows:
        # Rounded up, so that the share that is named can be shown.
        smallest = math.ceil(result.smallest * 1000) / 1000
        return [
            f"Too few good runs: {result.good:,}. To show that at most {allowed} of them are asked",
            f"about, with {sure}, {result.needed:,} are needed, and then only if none is asked",
            "about. Nothing was written.",
            f"So many can show {_percent(smallest)} at best: --max-false-ask {smallest}",
        ]
    loosest = result.rows[0]
    more = runs_needed(result.allowed, loosest.asked, result.confidence)
    return [
        f"No policy can be shown to interrupt at most {allowed} of good runs: even with every",
        f"number {FACTORS[0]:g} times as high, {loosest.asked:,} of {result.tested:,} are",
        "interrupted. Nothing was written.",
        f"With so many, {number_of(more, 'good run')} would be needed.",
    ]


def _table(result: Calibration) -> Table:
    table = table_of(
        "From the loosest policy down, one rule one step tighter in each row",
        "tightened",
        f"asked of {result.tested:,} good",
        "upper bound",
        "holds",
        f"caught of {result.loops:,} loops",
        f"asked of {result.others:,} others",
        "calls saved",
        "",
        texts=("tightened", "holds", ""),
    )
    for at, row in enumerate(result.rows):
        notes = [("started from", at == result.start), ("proposed", at == result.chosen)]
        style = "bold green" if at == result.chosen else "" if row.holds else "dim"
        table.add_row(
            row.rung.change or f"every number times {FACTORS[0]:g}",
            f"{row.asked:,}",
            _percent(row.bound),
            "yes" if row.holds else "no",
            *(f"{count:,}" for count in (row.loops, row.others, row.saved)),
            ", ".join(text for text, is_so in notes if is_so),
            style=style,
        )
    return table


def promote(
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG", help="Logs of the mode observe, as JSON lines.")
    ],
    max_false_ask: Share = 0.01,
    confidence: Confidence = 0.95,
    as_json: AsJson = False,
) -> None:
    """Tell from an observing guard's log whether asking would have stopped good work.

    Ends with 0 when it can be shown that at most the allowed share of good conversations would
    have been interrupted, with 1 when not, with 2 when a part of the log could not be read.
    """
    _check(max_false_ask, confidence, "promote")
    found = Promotion(max_false_ask, confidence)
    problems = Problems()
    for log in logs:
        try:
            with open_bytes(log) as file:
                found.read(lines_of(unpacked(file)[0]), log)
        except UNPACK_ERRORS as error:
            fail(f"{log}: {getattr(error, 'strerror', None) or error}")
    for problem in found.problems:
        problems.add(problem)
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
    else:
        console = console_for_tables()
        for line in _promotion(found):
            console.print(Text(line), soft_wrap=True)
        print_problems(console, problems, len(found.threads))
    end(problems, len(found.threads), code=0 if found.holds else 1)


def _promotion(found: Promotion) -> list[str]:
    good, (caught, failed) = len(found.good), found.caught
    allowed, sure = _percent(found.allowed), f"{100 * found.confidence:.4g} % confidence"
    lines = [
        f"{number_of(len(found.threads), 'conversation')}: {good:,} ended well, {failed:,} failed.",
        f"Of the {good:,} that ended well, {found.asked:,} would have been interrupted:",
        f"of conversations like these at most {_percent(found.bound)}, with {sure}.",
    ]
    lines += [f"  {count:,} because of {printable(why)}" for why, count in found.reasons[:10]]
    if failed:
        lines.append(f"Of the {failed:,} that failed, {caught:,} would have been interrupted.")
    if found.holds:
        lines.append(f"That is within the {allowed} allowed: the guard may ask.")
    else:
        lines.append(
            f"That is more than the {allowed} allowed: go on observing. With {found.asked:,}"
            f" interrupted, {number_of(found.needed, 'conversation')} that ended well would be"
            " enough."
        )
    return lines


def _percent(share: float) -> str:
    """Write a share; a bound is never rounded down."""
    return f"{math.ceil(share * 10_000 - 1e-9) / 100:.4g} %"
