"""Whether a guard that only observes may begin to ask, from the log that it wrote.

A log is JSON lines, one event each: what an agent with `on_detected="observe"` logs as
`record.loop_guard`, and the outcomes:

    {"thread": "42", "action": "ask", "findings": [{"rule": "repeat", "tools": ["search"], ...}]}
    {"thread": "42", "outcome": "success"}

`thread` names the conversation; `action` (`allow`, `warn`, `ask`, `stop`) and the first finding's
`rule`, `tools` and `count`, or these in the event itself, say what would have happened. `outcome`
(`success`, `fail`) may stand in any event of a thread, or in one of its own; the last one counts. A
thread in which nothing was found needs one event too, with the action `allow` or the outcome alone:
without the quiet threads nothing can be said of a share. Other fields are ignored.

The question is how many of the good threads would have been interrupted. The answer is
the upper end of the one-sided Clopper-Pearson interval, as for calibration: of threads like these
at most that share, with the confidence that was asked for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.calibrate import CONFIDENCE, runs_needed, upper_bound
from langchain_loopguard.replay.conversation import Problem
from langchain_loopguard.replay.streams import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

_ACTIONS = {"allow": 0, "warn": 1, "ask": 2, "stop": 3}
_ASKS = _ACTIONS["ask"]


@dataclass(slots=True)
class ObservedThread:
    """What a log says of one conversation: the strongest action, its first ask, the outcome."""

    action: int = 0
    outcome: str = ""
    why: str = ""
    tools: tuple[str, ...] = ()


@dataclass
class Promotion:
    """What a log says about asking.

    Attributes:
        allowed: The share of good threads that may be interrupted.
        confidence: How sure it is to be.
        threads: The conversations by their names.
        problems: Lines that were not read.
    """

    allowed: float = 0.01
    confidence: float = CONFIDENCE
    threads: dict[str, ObservedThread] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def read(self, lines: Iterable[tuple[int, bytes | None]], source: str) -> None:
        """Take in a log's lines, each with its number; a bad one becomes a problem."""
        for number, line in lines:
            try:
                self.take(parse(line or b""))
            except ValueError as error:
                self.problems.append(Problem(source, str(error), number))

    def take(self, event: Any) -> None:
        """Take in one event.

        Raises:
            ValueError: If it is none.
        """
        thread = event.get("thread") if isinstance(event, dict) else None
        if type(thread) not in {str, int}:
            raise ValueError('must be an object with a "thread"')
        action = str(event.get("action", "allow")).lower()
        if action not in _ACTIONS:
            raise ValueError(f"action: must be one of {', '.join(_ACTIONS)}")
        known = self.threads.setdefault(str(thread), ObservedThread())
        if _ACTIONS[action] >= _ASKS > known.action:
            findings = event.get("findings")
            first = findings[0] if isinstance(findings, list) and findings else event
            found = first if isinstance(first, dict) else event
            tools = found.get("tools")
            known.tools = tuple(map(str, tools)) if isinstance(tools, list) else ()
            known.why = f"{found.get('rule')}: {', '.join(known.tools)}, {found.get('count')} times"
        known.action = max(known.action, _ACTIONS[action])
        known.outcome = str(event.get("outcome") or known.outcome)

    @property
    def good(self) -> list[ObservedThread]:
        """The threads that ended well."""
        return [one for one in self.threads.values() if one.outcome == "success"]

    @property
    def asked(self) -> int:
        """How many good threads would have been interrupted."""
        return sum(one.action >= _ASKS for one in self.good)

    @property
    def caught(self) -> tuple[int, int]:
        """How many failed threads would have been interrupted, and of how many."""
        failed = [one for one in self.threads.values() if one.outcome in {"fail", "failure"}]
        return sum(one.action >= _ASKS for one in failed), len(failed)

    @property
    def bound(self) -> float:
        """At most this share of good threads would be interrupted, with the confidence."""
        return upper_bound(self.asked, len(self.good), self.confidence)

    @property
    def holds(self) -> bool:
        """Whether that is within the allowed share."""
        return self.bound <= self.allowed

    @property
    def needed(self) -> int:
        """How many good threads would be enough, if so many are interrupted."""
        return runs_needed(self.allowed, self.asked, self.confidence)

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """Why good threads would have been interrupted, the most frequent first."""
        return Counter(one.why for one in self.good if one.action >= _ASKS).most_common()

    def as_dict(self) -> dict[str, Any]:
        """Return the result in JSON types."""
        caught, failed = self.caught
        return {
            "threads": len(self.threads),
            "good": len(self.good),
            "good_asked": self.asked,
            "failed": failed,
            "failed_asked": caught,
            "allowed": self.allowed,
            "confidence": self.confidence,
            "bound": self.bound,
            "holds": self.holds,
            "needed": self.needed,
            "reasons": dict(self.reasons),
            "problems": [problem.as_dict() for problem in self.problems],
        }
