"""How does the demo look on a terminal?

Everything printed is read from the runs: which script is the headline, what was asked, what was
saved. With another policy the same code tells another story.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from langchain_loopguard.demo.agent import run_guarded, run_unguarded
from langchain_loopguard.demo.scripts import failing_call, incident
from langchain_loopguard.langchain.cost import times_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, RenderableType

    from langchain_loopguard.demo.agent import Ran, RunLog
    from langchain_loopguard.demo.scripts import Script
    from langchain_loopguard.policy import LoopGuardPolicy

_TRACE_LINES = 6
_QUESTIONS_TOLD = 3


class Teller:
    """Prints the demo, and asks on a terminal.

    Attributes:
        console: Where to print.
        answer: The answer to every question; `None` asks the person at the terminal.
        pace: Seconds to wait after each call.
    """

    def __init__(self, console: Console, *, answer: str | None, pace: float = 0.0) -> None:
        self.console = console
        self.answer = answer
        self.pace = pace
        self._questions = 0

    def heading(self, text: str) -> None:
        """Print a section's heading."""
        self.console.print()
        self.console.rule(Text(text, style="bold"), align="left", style="dim")

    def say(self, text: str, style: str = "") -> None:
        """Print a paragraph, as it is."""
        self._print(Text(text, style=style))

    def _print(self, what: RenderableType) -> None:
        self.console.print(Padding(what, (0, 0, 0, 2), expand=False))

    def trace(self, log: RunLog) -> None:
        """Print the run's last calls, and how often their result had come before."""
        table = Table.grid(padding=(0, 2))
        table.add_column(justify="right", style="dim", no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis")
        table.add_column()
        for ran in log.ran[-_TRACE_LINES:]:
            table.add_row(str(ran.number), escape(ran.command), _novelty(ran))
        self._print(table)

    def progress(self, label: str, total: int) -> tuple[Progress, Callable[[Ran], None]]:
        """Make a progress bar for a run, and the function that moves it."""
        bar = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("[dim]{task.fields[command]}", table_column=None),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        task = bar.add_task(label, total=total, command="")

        def move(ran: Ran) -> None:
            bar.update(task, completed=ran.number, command=escape(ran.command))
            if self.pace:
                time.sleep(self.pace)

        return bar, move

    def ask(self, payload: dict[str, Any], before: int) -> str:
        """Show an interrupt and its choices, and return the answer."""
        self._questions += 1
        shown = self._questions <= _QUESTIONS_TOLD
        if shown or self.answer is None:
            self._show(payload, before)
        elif self._questions == _QUESTIONS_TOLD + 1:
            self.say("Further questions are answered alike and not shown.")
        if self.answer is not None:
            if shown:
                self.say(f"> {self.answer}", style="bold")
            return self.answer
        return self._read()

    def _show(self, payload: dict[str, Any], before: int) -> None:
        calls = [_call_text(request) for request in payload["action_requests"]]
        body = Text("\n").join([Text(str(payload["message"])), Text(), *map(Text, calls)])
        title = f"[bold]interrupt: call {before} is stopped"
        self.console.print()
        self.console.print(Panel(body, title=title, title_align="left", border_style="yellow"))
        if self._questions == 1 or self.answer is None:
            choices = Table.grid(padding=(0, 2))
            for choice in payload["choices"]:
                choices.add_row(Text(choice["value"], style="bold"), Text(choice["label"]))
            choices.add_row(Text("TEXT", style="bold"), Text(payload["free_text"]))
            self._print(choices)

    def _read(self) -> str:
        while True:
            answer = self.console.input("  [bold]> ").strip()
            if answer:
                return answer
            self.say("Type continue, always, stop, or a text for the model.")

    def saved(self, unguarded: RunLog, guarded: RunLog) -> None:
        """Print both runs side by side."""
        table = Table(box=None, padding=(0, 2), pad_edge=False)
        table.add_column("")
        for name in ("without", "with", "saved"):
            table.add_column(name, justify="right")
        rows = (
            ("tool calls", len(unguarded.ran), len(guarded.ran)),
            ("model calls", unguarded.model_calls, guarded.model_calls),
            ("characters sent to the model", unguarded.characters, guarded.characters),
        )
        for name, without, with_guard in rows:
            saved = without - with_guard
            style = "bold green" if saved > 0 else ""
            table.add_row(name, f"{without:,}", f"{with_guard:,}", Text(f"{saved:,}", style=style))
        self._print(table)


def run_demo(teller: Teller, policy: LoopGuardPolicy) -> None:
    """Run the scripts with and without the guard, and tell what happened.

    The incident is the headline when the policy catches it. When it doesn't, the demo says so,
    and shows one failing call in a row instead.

    Args:
        teller: Prints and asks.
        policy: The guard's policy in the guarded runs.
    """
    teller.say(
        "A LangGraph agent with a scripted chat model. The graph, the guard and the interrupt are"
        " real; no command is run and nothing leaves this machine."
    )
    script = incident()
    unguarded = _tell_unguarded(teller, script)
    guarded = _tell_guarded(teller, script, policy)
    if not guarded.asked:
        teller.say(_not_caught(script))
        script = failing_call()
        unguarded = _tell_unguarded(teller, script)
        guarded = _tell_guarded(teller, script, policy)
        if not guarded.asked:
            teller.say("Not caught either: this policy finds no loop in the demo.")
            return
    teller.heading("What was saved")
    teller.saved(unguarded, guarded)


def _tell_unguarded(teller: Teller, script: Script) -> RunLog:
    teller.heading(f"{script.title}, without the guard")
    teller.say(script.story)
    bar, move = teller.progress("without", len(script.calls))
    with bar:
        log = run_unguarded(script, move)
    teller.trace(log)
    teller.say(
        f"{len(log.ran)} calls ran; these are the last. The run ended because the script did."
    )
    return log


def _tell_guarded(teller: Teller, script: Script, policy: LoopGuardPolicy) -> RunLog:
    teller.heading(f"{script.title}, with the guard")
    teller.say(f"The policy's rules: {_rules(policy)}.")
    bar, move = teller.progress("with", len(script.calls))

    def ask(payload: dict[str, Any], before: int) -> str:
        # A live display and a prompt can't share the terminal.
        bar.stop()
        answer = teller.ask(payload, before)
        bar.start()
        return answer

    with bar:
        log = run_guarded(script, policy, move, ask)
    if log.warned:
        teller.say(f"Warned {times_of(len(log.warned))}, first after call {log.warned[0]}.")
    if log.asked:
        teller.say(f"Asked {times_of(len(log.asked))}; {len(log.ran)} calls ran. The last message:")
        teller.say(log.final_text, style="italic")
    return log


def _not_caught(script: Script) -> str:
    text = f"Not caught: all {len(script.calls)} calls ran."
    if all(one.command != other.command for one, other in pairwise(script.calls)):
        text += " No two calls in a row are equal, so a rule that compares neighbours is blind."
    return f"{text} Next, a plainer loop."


def _rules(policy: LoopGuardPolicy) -> str:
    return ", ".join(config.rule for config in policy.rules) or "none"


def _novelty(ran: Ran) -> str:
    return f"this result came {times_of(ran.seen)} before" if ran.seen else "a new result"


def _call_text(request: dict[str, Any]) -> str:
    args = ", ".join(f"{key}={value!r}" for key, value in request["args"].items())
    return f"{request['name']}({args})"
