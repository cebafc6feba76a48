"""Thresholds that fit these runs, and how sure that is.

A guard that interrupts good runs is switched off. So the question is not which thresholds interrupt
 none of the good runs that were read, but which can be shown to interrupt few of those to come:
the upper end of the Clopper-Pearson interval must not be above the share that is allowed.

How overfitting is kept out:

- Few candidates. A step multiplies the asking numbers of one rule by the next of `FACTORS`,
  around the policy it starts from. Nothing else is tuned.
- They form a ladder: from the loosest policy down, each rung tightens one rule by one step, in
  an order that the good runs it is tested on have no say in. What is interrupted on a rung is
  interrupted on every tighter one.
- The ladder is walked down and left at the first rung whose bound is above the allowed share.
  That is fixed-sequence testing: all rungs above hold together with the whole confidence, so
  many looks cost nothing (Maurer, Hothorn and Lehmacher 1995; "Learn then Test", Angelopoulos
  and others 2021). Bonferroni over the rungs would need twice the runs, a grid of all
  combinations far more.
- With twice the good runs that are needed, one half is walked down first, and a rule whose step
  goes too far there is left as it is, so that one touchy rule doesn't hold up the others. Only
  the other half is tested.
- Equal runs are counted once: a file that is read twice is no new evidence.
- Of the rungs that hold, the one that catches most of the runs labelled as loops is proposed, and
  among those the nearest to the start. Without labelled loops nothing is tightened.

What it cannot know: whether the runs to come are like these, and whether the labels are fair.
Many runs of one task count as many, though they say less than runs of many tasks. Labels given
only to runs that the guard interrupted bend the bound; label by the run, not by the verdict.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.candidates import (
    DEFAULT,
    FACTORS,
    CalibrationError,
    Grid,
    Kind,
    Measure,
    Rung,
    kind_of,
    measure,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_loopguard import LoopGuardPolicy
    from langchain_loopguard.replay.labels import LabelKey

__all__ = [
    "CONFIDENCE",
    "FACTORS",
    "Calibration",
    "CalibrationError",
    "Calibrator",
    "Grid",
    "Kind",
    "LadderRow",
    "Measure",
    "Rung",
    "kind_of",
    "measure",
    "runs_needed",
    "upper_bound",
]

CONFIDENCE = 0.95
"""How sure it is that the proposed policy stays within the allowed share."""


def upper_bound(asked: int, runs: int, confidence: float = CONFIDENCE) -> float:
    """Give the one-sided Clopper-Pearson bound of a share.

    Args:
        asked: How many runs were interrupted.
        runs: Of how many.
        confidence: How sure it is that the true share is not above.

    Raises:
        ModuleNotFoundError: If scipy is not installed.
    """
    # The beta distribution's quantile. scipy.stats has it too and takes seconds to import.
    from scipy.special import betaincinv  # noqa: PLC0415 - the extra `calibrate`

    return 1.0 if asked >= runs else float(betaincinv(asked + 1, runs - asked, confidence))


def runs_needed(share: float, asked: int = 0, confidence: float = CONFIDENCE) -> int:
    """Say how many good runs are needed to show that no more than `share` are interrupted.

    Args:
        share: The allowed share, above 0 and below 1.
        asked: How many of them are interrupted. With none it is `ln(1 - confidence) /
            ln(1 - share)`, rounded up.
        confidence: How sure it is to be.
    """
    if asked == 0:
        return math.ceil(math.log(1 - confidence) / math.log1p(-share))
    high = 2 * asked + runs_needed(share, 0, confidence)
    while upper_bound(asked, high, confidence) > share:
        high *= 2
    counts = range(high + 1)
    return bisect_left(
        counts, -share, asked + 1, key=lambda runs: -upper_bound(asked, runs, confidence)
    )


_NAMED = 20
"""Good runs that were interrupted and are listed by name."""


@dataclass(frozen=True, slots=True)
class LadderRow:
    """One rung, and what it does to the runs.

    Attributes:
        rung: The candidate.
        asked: Good runs interrupted, among those that are tested.
        bound: The upper bound of the share of good runs interrupted.
        holds: Whether the bound is within the allowed share here and on every rung above.
        loops: Runs labelled as loops that are interrupted.
        others: Runs that are neither good nor a loop and are interrupted.
        saved: Calls saved in all runs but the good ones.
    """

    rung: Rung
    asked: int
    bound: float
    holds: bool
    loops: int
    others: int
    saved: int

    def as_dict(self) -> dict[str, Any]:
        """Return the row in JSON types."""
        counts = ("asked", "bound", "holds", "loops", "others", "saved")
        return {"change": self.rung.change, **{name: getattr(self, name) for name in counts}}


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the runs say about the candidates.

    Attributes:
        allowed: The share of good runs that may be interrupted.
        confidence: How sure it is.
        good: How many good runs there are.
        tested: How many of them were tested; the others chose how far each rule is tightened.
        loops: How many runs are labelled as loops.
        others: How many runs are neither.
        doubles: How many runs were left out since the same had been read before.
        labels: Which of the labels given beside the runs were used.
        needed: How many good runs are needed when none is interrupted.
        rows: The rungs that were looked at, loosest first.
        start: The place in `rows` of the policy it started from, `None` when it is not there.
        chosen: The place in `rows` of the proposal, `None` when there is none.
        policy: The proposal.
        change: How the proposal differs from the policy it started from.
        asked_about: Good runs that the policy it started from interrupts, by name.
    """

    allowed: float
    confidence: float
    good: int
    tested: int
    loops: int
    others: int
    doubles: int
    labels: frozenset[LabelKey]
    needed: int
    rows: tuple[LadderRow, ...]
    start: int | None
    chosen: int | None
    policy: LoopGuardPolicy | None
    change: str
    asked_about: tuple[str, ...]

    @property
    def proposal(self) -> LadderRow | None:
        """The row of the proposed policy."""
        return None if self.chosen is None else self.rows[self.chosen]

    @property
    def smallest(self) -> float:
        """The smallest share that so many good runs can show, when none is interrupted."""
        return -math.expm1(math.log(1 - self.confidence) / self.good) if self.good else 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return the result in JSON types."""
        names = ("allowed", "confidence", "good", "tested", "loops", "others", "doubles", "needed")
        return {
            **{name: getattr(self, name) for name in names},
            "rows": [row.as_dict() for row in self.rows],
            "start": self.start,
            "chosen": self.chosen,
            "policy": None if self.policy is None else self.policy.model_dump(mode="json"),
            "asked_about": list(self.asked_about),
        }


@dataclass
class Calibrator:
    """Collects what runs say and makes a proposal of it.

    Attributes:
        grid: The candidates.
        allowed: The share of good runs that may be interrupted, above 0 and below 1.
        confidence: How sure it is to be.
    """

    grid: Grid
    allowed: float = 0.01
    confidence: float = CONFIDENCE
    _seen: set[bytes] = field(default_factory=set)
    _doubles: int = 0
    _labels: set[LabelKey] = field(default_factory=set)
    _good: list[Measure] = field(default_factory=list)
    _loops: list[Measure] = field(default_factory=list)
    _others: list[Measure] = field(default_factory=list)
    _counts: dict[Kind, int] = field(default_factory=lambda: {"good": 0, "loop": 0, "other": 0})

    def add(self, measured: Measure) -> None:
        """Take in what a run says. A run without calls says nothing."""
        if measured.label is not None:
            self._labels.add(measured.label)
        if not measured.calls:
            return
        if measured.digest in self._seen:
            self._doubles += 1
            return
        self._seen.add(measured.digest)
        self._counts[measured.kind] += 1
        if measured.kind == "good":
            self._good.append(measured)
        elif measured.saved is not None:
            (self._loops if measured.kind == "loop" else self._others).append(measured)

    def result(self) -> Calibration:
        """Walk down the ladder and choose."""
        # By a hash of what happened, so that neither order nor names have a say.
        good = sorted(self._good, key=lambda measured: measured.digest)
        needed = runs_needed(self.allowed, 0, self.confidence)
        tested, targets = good, None
        if len(good) >= 2 * needed:
            tested = good[1::2]
            targets = self._targets(good[::2])
        rows = tuple(self._walk(tested, targets)) if len(good) >= needed else ()
        default = [DEFAULT] * len(self.grid.places)
        start = next((at for at, row in enumerate(rows) if self._is_start(row.rung)), None)
        chosen = _choose(rows)
        return Calibration(
            allowed=self.allowed,
            confidence=self.confidence,
            good=len(good),
            tested=len(tested),
            loops=self._counts["loop"],
            others=self._counts["other"],
            doubles=self._doubles,
            labels=frozenset(self._labels),
            needed=needed,
            rows=rows,
            start=start,
            chosen=chosen,
            policy=None if chosen is None else self.grid.at(rows[chosen].rung.levels),
            change="" if chosen is None else self.grid.change_at(rows[chosen].rung.levels),
            asked_about=tuple(m.name for m in good if m.calls_saved(default) >= 0)[:_NAMED],
        )

    def _is_start(self, rung: Rung) -> bool:
        # By its rules: where two factors give the same numbers, only one of them is a rung.
        return self.grid.at(rung.levels).rules == self.grid.policy.rules

    def _targets(self, fitted: list[Measure]) -> list[int]:
        """Say how far each rule may be tightened, by runs that are not tested later."""
        targets = [0] * len(self.grid.places)
        held: set[int] = set()
        for level in range(1, len(FACTORS)):
            for tuned in range(len(targets)):
                if tuned in held:
                    continue
                tried = [*targets[:tuned], level, *targets[tuned + 1 :]]
                asked = sum(measured.calls_saved(tried) >= 0 for measured in fitted)
                if upper_bound(asked, len(fitted), self.confidence) <= self.allowed:
                    targets = tried
                else:
                    held.add(tuned)
        return targets

    def _walk(self, tested: list[Measure], targets: list[int] | None) -> Iterator[LadderRow]:
        holds = True
        for rung in self.grid.ladder(targets):
            asked = sum(measured.calls_saved(rung.levels) >= 0 for measured in tested)
            bound = upper_bound(asked, len(tested), self.confidence)
            holds = holds and bound <= self.allowed
            loops = [saved for m in self._loops if (saved := m.calls_saved(rung.levels)) >= 0]
            others = [saved for m in self._others if (saved := m.calls_saved(rung.levels)) >= 0]
            yield LadderRow(
                rung=rung,
                asked=asked,
                bound=bound,
                holds=holds,
                loops=len(loops),
                others=len(others),
                saved=sum(loops) + sum(others),
            )


def _choose(rows: Sequence[LadderRow]) -> int | None:
    holding = [at for at, row in enumerate(rows) if row.holds]
    if not holding:
        return None
    # Rounded, so that two ways to the same distance are equal and the looser one is taken.
    return max(holding, key=lambda at: (rows[at].loops, -round(rows[at].rung.distance, 6), -at))
