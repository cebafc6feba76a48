"""What do the reports of many runs add up to?

Only counts are kept, and the runs with the most calls saved, so that memory does not grow with
the number of runs.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.redact import mask_secrets, mask_value
from langchain_loopguard.replay.run import replay

if TYPE_CHECKING:
    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.replay.conversation import Conversation
    from langchain_loopguard.replay.problems import Problem
    from langchain_loopguard.replay.run import ReplayReport

SHOWN_CHARACTERS = 400
"""How much of one call's arguments, and of its answer, is shown when content is asked for."""

_KEPT_PROBLEMS = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """One run's report and, if it was asked for, what was being repeated.

    Attributes:
        report: The report.
        shown: The calls that were asked about, with secrets masked; `None` when content is
            hidden, or nothing was asked about.
    """

    report: ReplayReport
    shown: list[dict[str, str]] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Give it in JSON types."""
        shown = {} if self.shown is None else {"asked_about": self.shown}
        return {**self.report.as_dict(), **shown}


@dataclass(frozen=True, slots=True)
class ReplayWork:
    """Replays a run; made to be sent to another process.

    Attributes:
        policy: The guard's policy.
        unattended: As for `replay`.
        show_content: Whether to show what was asked about.
    """

    policy: LoopGuardPolicy
    unattended: bool = False
    show_content: bool = False

    def __call__(self, run: Conversation) -> Row:
        """Replay one run."""
        report = replay(run, self.policy, unattended=self.unattended, marks=False)
        return Row(report, asked_about(run, report) if self.show_content else None)


def asked_about(run: Conversation, report: ReplayReport) -> list[dict[str, str]] | None:
    """Show the calls of the first batch that was asked about, with secrets masked."""
    fire = report.held or report.ask or report.stop
    if fire is None:
        return None
    batch = next(event for at, event in enumerate(run.batches, 1) if at == fire.batch)
    answers = {
        result.get("id"): result.get("content")
        for result in batch.get("results") or []
        if isinstance(result, dict)
    }
    return [
        {
            "tool": _short(call.get("name")),
            "arguments": _short(call.get("args")),
            "answer": _short(answers.get(call.get("id"))),
        }
        for call in batch["calls"]
    ]


def _short(value: Any) -> str:
    # Masked before it is cut: half a secret has no shape.
    text = mask_secrets(value) if isinstance(value, str) else str(mask_value(value))
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


@dataclass(slots=True)
class Group:
    """Counts of the runs with one outcome.

    Attributes:
        runs: How many runs there are.
        calls: How many calls they made.
        warned: In how many runs the guard warned.
        asked: In how many it asked or stopped.
        stopped: In how many it stopped.
        saved: Calls that would not have run.
    """

    runs: int = 0
    calls: int = 0
    warned: int = 0
    asked: int = 0
    stopped: int = 0
    saved: int = 0

    def add(self, report: ReplayReport) -> None:
        """Count one run."""
        self.runs += 1
        self.calls += report.calls
        self.warned += report.warn is not None
        self.asked += report.looped
        self.stopped += report.stop is not None
        self.saved += report.saved

    def as_dict(self) -> dict[str, int]:
        """Give the counts."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Totals:
    """What many runs add up to.

    Attributes:
        keep: How many of the runs with loops to keep, those with the most calls saved.
        all: Every run.
        by_outcome: The runs by their outcome.
        problems: The first problems.
        bad: How many problems there were that are a fault of the input.
        ignored: How many files held no run and were only found in a directory.
    """

    keep: int = 20
    all: Group = field(default_factory=Group)
    by_outcome: dict[str, Group] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    bad: int = 0
    ignored: int = 0
    _top: list[tuple[int, int, Row]] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Count one run."""
        report = row.report
        self.all.add(report)
        self.by_outcome.setdefault(report.outcome, Group()).add(report)
        if report.looped and self.keep:
            entry = (report.saved, -self.all.runs, row)
            if len(self._top) < self.keep:
                heapq.heappush(self._top, entry)
            else:
                heapq.heappushpop(self._top, entry)

    def add_problem(self, problem: Problem) -> None:
        """Count what could not be read."""
        if problem.ignored:
            self.ignored += 1
            return
        self.bad += 1
        if len(self.problems) < _KEPT_PROBLEMS:
            self.problems.append(problem)

    @property
    def top(self) -> list[Row]:
        """The kept runs, the one with the most calls saved first."""
        return [row for _, _, row in sorted(self._top, key=lambda one: (-one[0], -one[1]))]

    @property
    def exit_code(self) -> int:
        """2 for input that could not be read, else 1 for a loop, else 0."""
        if self.bad or not self.all.runs:
            return 2
        return 1 if self.all.asked else 0

    def as_dict(self) -> dict[str, Any]:
        """Give the counts in JSON types."""
        return {
            **self.all.as_dict(),
            "by_outcome": {
                name: self.by_outcome[name].as_dict() for name in sorted(self.by_outcome)
            },
            "problems": self.bad,
            "files_without_runs": self.ignored,
        }
