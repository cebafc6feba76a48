"""What each guard would have done on the same runs.

Every preset is replayed on every run. A preset of several rules is shown rule by rule as well,
since its rules are published apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from statistics import median_high
from typing import TYPE_CHECKING, Any

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.demo.scripts import incident
from langchain_loopguard.presets import PRESETS
from langchain_loopguard.replay.conversation import Conversation
from langchain_loopguard.replay.run import replay
from langchain_loopguard.replay.totals import Group

if TYPE_CHECKING:
    from langchain_loopguard.replay.verdicts import ReplayReport


@dataclass(frozen=True, slots=True)
class System:
    """One guard in the comparison.

    Attributes:
        name: The preset's name, with the rule's behind a dot for a part of one.
        title: What a person knows it by.
        policy: What it runs.
        source: Which version of the system that re-tells, empty for this package's own.
        read: When that was read.
    """

    name: str
    title: str
    policy: LoopGuardPolicy
    source: str = ""
    read: str = ""

    @property
    def detects(self) -> bool:
        """Whether it has any rule."""
        return bool(self.policy.rules)


def systems(own: LoopGuardPolicy | None = None, title: str = "loopguard") -> tuple[System, ...]:
    """List the guards: this package's first, then every preset.

    Args:
        own: The policy to compare with the others, `LoopGuardPolicy()` by default.
        title: What to call it.
    """
    listed = [System("default", title, LoopGuardPolicy() if own is None else own)]
    for name, preset in PRESETS.items():
        policy = LoopGuardPolicy.preset(name)
        listed.append(System(name, preset.title, policy, preset.source, preset.read))
        for rule in policy.rules if len(policy.rules) > 1 else ():
            part = policy.model_copy(update={"rules": (rule,)})
            known = getattr(type(rule), "title", rule.rule)
            listed.append(System(f"{name}.{rule.rule}", f"  only {known}", part))
    return tuple(listed)


@dataclass(frozen=True, slots=True)
class CompareWork:
    """Replays a run under every guard; made to be sent to another process.

    Returns a report for each system, in their order, without findings.
    """

    systems: tuple[System, ...]

    def __call__(self, run: Conversation) -> tuple[ReplayReport, ...]:
        """Replay one run."""
        return tuple(replay(run, one.policy, steps=False).bare() for one in self.systems)


@dataclass(slots=True)
class Standing:
    """What one guard did on all runs.

    Attributes:
        system: The guard.
        all: Every run.
        solved: The runs that ended well: what it did there, it did wrongly.
        asked_at: The calls of the first ask or stop, and in how many runs it was that one.
    """

    system: System
    all: Group = field(default_factory=Group)
    solved: Group = field(default_factory=Group)
    asked_at: Counter[int] = field(default_factory=Counter)

    def add(self, report: ReplayReport) -> None:
        """Count one run."""
        self.all.add(report)
        if report.outcome == "success":
            self.solved.add(report)
        if report.first_fire is not None:
            self.asked_at[report.first_fire.call] += 1

    @property
    def median_call(self) -> int | None:
        """The middle one of the calls at which it first asked."""
        return median_high(self.asked_at.elements()) if self.asked_at else None

    def as_dict(self) -> dict[str, Any]:
        """Return the counts in JSON types."""
        return {
            "name": self.system.name,
            "title": self.system.title.strip(),
            "detects": self.system.detects,
            "source": self.system.source,
            "read": self.system.read,
            **self.all.as_dict(),
            "solved_runs": self.solved.runs,
            "solved_runs_asked": self.solved.asked,
            "median_first_ask_call": self.median_call,
        }


def incident_run() -> Conversation:
    """Return the incident: 200 calls of a real session, one a step."""
    events: list[dict[str, Any]] = [{"type": "human"}]
    for number, scripted in enumerate(incident().calls, 1):
        call_id = f"call_{number}"
        status = "error" if scripted.failed else "success"
        result = {"id": call_id, "content": scripted.result, "status": status}
        call = {"id": call_id, "name": "bash", "args": {"command": scripted.command}}
        events.append({"type": "batch", "calls": [call], "results": [result]})
    return Conversation("loopguard", "incident", tuple(events))
