"""The commands of `loopguard`; what a command does lives in a module of its own."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer
from rich.console import Console

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.cli.calibrate import calibrate, promote
from langchain_loopguard.cli.compare import compare
from langchain_loopguard.cli.options import reads_runs
from langchain_loopguard.cli.replay import replay, report, score

_WIDEST = 100
"""Columns to use at most; longer lines are hard to read."""

app = typer.Typer(
    help="Stop an agent that repeats the same tool calls.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            number = version("langchain-loopguard")
        except PackageNotFoundError:
            number = "(run from its source, not installed)"
        typer.echo(f"langchain-loopguard {number}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Hold the options that stand before a command."""


@app.command()
def demo(
    answer: Annotated[
        str | None,
        typer.Option(
            "--answer",
            metavar="stop|continue|always|TEXT",
            help="Answer every question with this instead of asking. Any text but the three words"
            " goes to the model. Away from a terminal the answer is 'stop'.",
        ),
    ] = None,
    pace: Annotated[
        float,
        typer.Option(
            "--pace", metavar="SECONDS", min=0.0, max=1.0, help="Wait after each call, to watch."
        ),
    ] = 0.0,
) -> None:
    """Let an agent run into a loop, first without the guard, then with it."""
    # LangGraph takes longer to load than the other commands to run.
    from langchain_loopguard.cli.demo import Teller, run_demo  # noqa: PLC0415

    if answer is not None and not answer.strip():
        raise typer.BadParameter("give stop, continue or a text", param_hint="--answer")
    console = Console(highlight=False)
    console.width = min(console.width, _WIDEST)
    on_terminal = console.is_terminal and sys.stdin.isatty()
    if answer is None and not on_terminal:
        answer = "stop"
    try:
        run_demo(
            Teller(console, answer=answer, pace=pace if on_terminal else 0.0), LoopGuardPolicy()
        )
    except (KeyboardInterrupt, EOFError):
        console.print("\nLeft before the end.")
        raise typer.Exit(130) from None


for _command in (replay, compare, report, score, calibrate):
    reads_runs(app)(_command)
app.command()(promote)
