"""Does one changing call go on and on, whatever it answers?

A changed answer is not always progress: 7 of 39 labelled loops repeat one accepted insert 16 to
34 times, and the file grows with each. So a call that changes something has a ceiling. Reading
has none: 13 times `scroll_down` is no loop.

The ceiling is higher where the answers say something new, not only in their numbers and clocks:
pressing `next`, stepping through a debugger, taking the next job off a queue. A file that grows
by one insert prints lines that were there before, under new numbers.

The run of a batch is broken by progress of another batch; a helper in between that brings
nothing (`sleep`, `think`) does not break it.

What it does not see: a repeated change with a look between that shows something new each time,
and two changes in turn whose answers both grow. Pressing `next` and looking at the page, and a
game of few moves, look the same. What it takes for a loop though it may be none: a button that
is pressed for the 20th time; a tool declared as a poller is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core import stored
from langchain_loopguard.core.decision import Action, Finding
from langchain_loopguard.core.rules.base import Rule, RuleConfig

if TYPE_CHECKING:
    from langchain_loopguard.core.batch import Batch, Outcome

_MAX_BATCHES = 8
"""Batches counted at once, oldest out first."""


class UnbrokenCall(RuleConfig):
    """The same changing batch, unbroken. Counts include the first occurrence."""

    needs_progress: ClassVar[bool] = True

    rising: ClassVar = (("ask", "ask_shell"),)

    rule: Literal["unbroken_call"] = "unbroken_call"

    ask: int = Field(default=10, ge=2)
    """The loop is detected.

    Measured: good runs go up to 3, loops of one insert to 16 and more. 7 to 15 ask about the same
    runs, on average 4.20 to 5.40 batches after the first repeat; 5 asks about a benign case, 20
    misses a labelled loop. Of the invented shapes, 9 asks about a poll from 10 to 100 % through
    a tool that does not say that it reads."""

    ask_shell: int = Field(default=20, ge=2)
    """The same for shells, whose calls may well only look: a poll through `bash`.

    Measured: good runs go up to 3, whatever the tool; 15 to 20 give the same figures, with 21 a
    case is asked about too late."""

    new_words: int = Field(default=2, ge=1)
    """How many times as high the ceiling is where at least half of the repeats were answered with
    new words.

    Measured: on the runs no number makes a difference. Of the invented shapes, 1 asks about twelve
    good ones (pages turned by a button, jobs taken off a queue, steps through a debugger, a log
    that grows) and finds three loops in ever new words in time that 2 finds later; 3 is as 2."""

    def build(self) -> Rule:
        """Make fresh counters."""
        return _UnbrokenCallRule(self)


class _UnbrokenCallRule:
    def __init__(self, config: UnbrokenCall) -> None:
        self._config = config
        # Key of the batch -> [count, number of the batch where it began, how often it was
        # answered with new words]
        self._runs: dict[int, list[int]] = {}

    def check(self, batch: Batch) -> Finding | None:
        for traits in batch.traits:
            if not (traits[0] or traits[2]):  # Read-only or a poller, by place for speed alone.
                break
        else:
            return None
        runs = self._runs
        run = runs.get(batch.digest)
        if run is None:
            runs[batch.digest] = [1, batch.number, 0]
            if len(runs) > _MAX_BATCHES:
                del runs[next(iter(runs))]
            return None
        run[0] += 1
        shell = any(traits.shell for traits in batch.traits)
        limit = self._config.ask_shell if shell else self._config.ask
        if run[0] < limit:
            return None
        # Neither the first run of it nor the one that is about to come has been compared.
        if run[2] and 2 * run[2] >= run[0] - 2:
            limit *= self._config.new_words
        return self._finding(batch, run, limit) if run[0] >= limit else None

    def record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        runs = self._runs
        if outcome.worked and runs:
            own = runs.get(batch.digest)
            if own is not None and outcome.new_words:
                own[2] += 1
            if own is None:
                runs.clear()
            elif len(runs) > 1:
                runs.clear()
                runs[batch.digest] = own
        return None

    def human_message(self) -> None:
        self._runs.clear()

    def approve(self, loop: str) -> None:  # noqa: ARG002 - whatever it is, it may go on
        self.human_message()

    def to_state(self) -> list[Any]:
        return [[f"{key:x}", *(run if run[2] else run[:2])] for key, run in self._runs.items()]

    def load_state(self, state: Any) -> None:
        runs = {}
        for key, count, since, *words in stored.entries(state, _MAX_BATCHES):
            (new_words,) = words or (0,)
            counts = map(stored.count, (count, since, new_words))
            runs[stored.digest(key)] = list(counts)
        self._runs = runs

    def _finding(self, batch: Batch, run: list[int], limit: int) -> Finding:
        tools = ", ".join(dict.fromkeys(batch.names))
        return Finding(
            "unbroken_call",
            Action.ASK,
            tools=batch.names,
            count=run[0],
            threshold=limit,
            since=run[1],
            loop=f"unbroken_call:{batch.digest:x}",
            to_model=(
                "This step was done many times already, and every time it took effect again. Do "
                "not repeat it: check what it has done so far, then go on with the next step of "
                "the task or finish."
            ),
            to_person=(
                f"The agent called {tools} {run[0]} times with the same arguments and nothing "
                f"else came of it in between (limit {limit})."
            ),
        )
