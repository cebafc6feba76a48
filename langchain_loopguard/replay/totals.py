"""What the reports of many runs add up to.

Only counts are kept, and the runs with the most calls saved, so that memory does not grow with
the number of runs.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_loopguard.langchain.masks import mask_secrets, mask_value, shortened
from langchain_loopguard.replay.run import replay

if TYPE_CHECKING:
    from langchain_loopguard import LoopGuardPolicy
    from langchain_loopguard.replay.conversation import Conversation, Problem
    from langchain_loopguard.replay.verdicts import ReplayReport

SHOWN_CHARACTERS = 400
"""How much of one call's arguments, and of its result, is shown when content is asked for."""

_KEPT = 1000
"""Different problems, and names of files without runs, that are kept."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run's report and, if it was asked for, what was being repeated.

    Attributes:
        report: The report.
        shown: The calls that would have been interrupted, with secrets masked; `None`
            when content is hidden, or no person would have been asked.
    """

    report: ReplayReport
    shown: list[dict[str, str]] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it in JSON types."""
        shown = {} if self.shown is None else {"repeated_calls": self.shown}
        return {**self.report.as_dict(), **shown}


@dataclass(frozen=True, slots=True)
class ReplayWork:
    """Replays a run; made to be sent to another process.

    Attributes:
        policy: The guard's policy.
        unattended: As for `replay`.
        show_content: Whether to show the calls that would have been interrupted.
    """

    policy: LoopGuardPolicy
    unattended: bool = False
    show_content: bool = False

    def __call__(self, run: Conversation) -> Row:
        """Replay one run."""
        report = replay(run, self.policy, unattended=self.unattended, steps=False)
        return Row(report, repeated_calls(run, report) if self.show_content else None)


def repeated_calls(run: Conversation, report: ReplayReport) -> list[dict[str, str]] | None:
    """Show the calls of the first step that was stopped or interrupted, secrets masked."""
    fire = report.held or report.first_fire
    if fire is None:
        return None
    step = next(event for at, event in enumerate(run.steps, 1) if at == fire.step)
    results = {
        str(one.get("id")): one.get("content")
        for one in step.get("results") or []
        if isinstance(one, dict)
    }
    return [
        {
            "tool": _short(call.get("name")),
            "arguments": _short(call.get("args")),
            "result": _short(results.get(str(call.get("id")))),
        }
        for call in step["calls"]
    ]


def _short(value: Any) -> str:
    # Masked before it is cut: half a secret has no shape.
    text = mask_secrets(value) if isinstance(value, str) else str(mask_value(value))
    return shortened(text, SHOWN_CHARACTERS)


@dataclass(slots=True)
class Group:
    """Counts of some runs.

    Attributes:
        runs: How many runs there are.
        calls: How many calls they made.
        warned: In how many runs the guard warned.
        asked: In how many it asked or stopped.
        stopped: In how many it stopped.
        saved: Calls that would not have run.
        without_calls: How many runs made no call.
    """

    runs: int = 0
    calls: int = 0
    warned: int = 0
    asked: int = 0
    stopped: int = 0
    saved: int = 0
    without_calls: int = 0

    def add(self, report: ReplayReport) -> None:
        """Count one run."""
        self.runs += 1
        self.calls += report.calls
        self.warned += report.warn is not None
        self.asked += report.looped
        self.stopped += report.stop is not None
        self.saved += report.saved
        self.without_calls += not report.calls

    def as_dict(self) -> dict[str, int]:
        """Return the counts."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Problems:
    """What of an input was not read, equal problems of one source listed once.

    Attributes:
        bad: How many problems there were that are a fault of the input.
        ignored: How many files held no run and were only found in a directory.
        ignored_names: The names of the first of them, and why.
    """

    bad: int = 0
    ignored: int = 0
    ignored_names: list[str] = field(default_factory=list)
    _different: dict[tuple[str, str], list[Any]] = field(default_factory=dict)

    def add(self, problem: Problem) -> None:
        """Count what could not be read."""
        if problem.ignored:
            self.ignored += 1
            if len(self.ignored_names) < _KEPT:
                self.ignored_names.append(str(problem))
            return
        self.bad += 1
        known = self._different.get((problem.source, problem.text))
        if known is not None:
            known[1] += 1
        elif len(self._different) < _KEPT:
            self._different[problem.source, problem.text] = [problem, 1]

    @property
    def different(self) -> int:
        """How many of them differ."""
        return len(self._different)

    def lines(self) -> list[str]:
        """Return each different problem in a line, with how often it came."""
        return [
            str(problem) + (f" (and {count - 1:,} more like it)" if count > 1 else "")
            for problem, count in self._different.values()
        ]

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return them in JSON types."""
        return [{**one.as_dict(), "count": count} for one, count in self._different.values()]


@dataclass(slots=True)
class Totals:
    """What many runs add up to.

    Attributes:
        keep: How many of the runs with loops to keep, those with the most calls saved.
        all: Every run.
        by_outcome: The runs by their outcome.
        problems: What was not read.
    """

    keep: int = 20
    all: Group = field(default_factory=Group)
    by_outcome: dict[str, Group] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    _top: list[tuple[int, int, Row]] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Count one run."""
        report = row.report
        self.all.add(report)
        self.by_outcome.setdefault(report.outcome, Group()).add(report)
        if report.looped:
            # The number read keeps the order, and keeps rows from being compared.
            insort(self._top, (-report.saved, self.all.runs, row))
            del self._top[self.keep :]

    @property
    def top(self) -> list[Row]:
        """The kept runs, the one with the most calls saved first."""
        return [row for _, _, row in self._top]

    def as_dict(self) -> dict[str, Any]:
        """Return the counts in JSON types."""
        groups = {name: self.by_outcome[name].as_dict() for name in sorted(self.by_outcome)}
        counts = {"problems": self.problems.bad, "files_without_runs": self.problems.ignored}
        summary = {**self.all.as_dict(), "by_outcome": groups, **counts}
        return {"problems": self.problems.as_dicts(), "summary": summary}


def names_of(reports: list[ReplayReport]) -> list[str]:
    """Name runs so that no two of them are called the same, by their places where need be."""
    names = [f"{report.source} · {report.id}" for report in reports]
    twice = {name for name in names if names.count(name) > 1} if len(names) < _KEPT else set()
    return [
        f"{name}, {report.place}" if name in twice and report.place else name
        for name, report in zip(names, reports, strict=True)
    ]
