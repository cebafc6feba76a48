"""Which policy is proposed, and what stands behind it?

Walks down the ladder as the package's docstring says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.calibrate.bound import CONFIDENCE, runs_needed, upper_bound
from langchain_loopguard.replay.calibrate.ladder import FACTORS, asking_fields, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.replay.calibrate.ladder import Grid, Rung
    from langchain_loopguard.replay.calibrate.measure import Kind, Measure
    from langchain_loopguard.replay.labels import LabelKey

_NAMED = 20
"""Good runs that were asked about and are listed by name."""


@dataclass(frozen=True, slots=True)
class Row:
    """One rung, and what it does to the runs.

    Attributes:
        rung: The candidate.
        asked: Good runs asked about, among those that are tested.
        bound: The upper bound of the share of good runs asked about.
        holds: Whether the bound is within the allowed share here and on every rung above.
        loops: Runs labelled as loops that are asked about.
        others: Runs that are neither good nor a loop and are asked about.
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
        """Give the row in JSON types."""
        counts = ("asked", "bound", "holds", "loops", "others", "saved")
        return {"change": self.rung.change, **{name: getattr(self, name) for name in counts}}


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the runs say about the candidates.

    Attributes:
        allowed: The share of good runs that may be asked about.
        confidence: How sure it is.
        good: How many good runs there are.
        tested: How many of them were tested; the others chose how far each rule is tightened.
        loops: How many runs are labelled as loops.
        others: How many runs are neither.
        doubles: How many runs were left out since the same had been read before.
        labels: Which of the labels given beside the runs were used.
        needed: How many good runs are needed when none is asked about.
        rows: The rungs that were looked at, loosest first.
        start: The place in `rows` of the policy it started from, `None` when it is not there.
        chosen: The place in `rows` of the proposal, `None` when there is none.
        policy: The proposal.
        alone: For each tuned rule by its name: at each of `FACTORS`, its asking numbers, how many
            good runs and how many loops it asks about when it is the only rule.
        numbers: For each tuned rule the names of those numbers.
        asked_about: Good runs that the policy it started from asks about, by name.
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
    rows: tuple[Row, ...]
    start: int | None
    chosen: int | None
    policy: LoopGuardPolicy | None
    alone: dict[str, list[tuple[str, int, int]]]
    numbers: dict[str, list[str]]
    asked_about: tuple[str, ...]

    @property
    def enough(self) -> bool:
        """Whether there are enough good runs to show anything."""
        return self.good >= self.needed

    @property
    def proposal(self) -> Row | None:
        """The row of the proposed policy."""
        return None if self.chosen is None else self.rows[self.chosen]

    @property
    def smallest(self) -> float:
        """The smallest share that so many good runs can show, when none is asked about."""
        return -math.expm1(math.log(1 - self.confidence) / self.good) if self.good else 1.0

    def as_dict(self) -> dict[str, Any]:
        """Give the result in JSON types."""
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
        allowed: The share of good runs that may be asked about, above 0 and below 1.
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
        default = tuple(FACTORS.index(1.0) for _ in self.grid.places)
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
            alone=self._alone(good),
            numbers={
                rule.rule: asking_fields(rule)
                for rule in self.grid.policy.rules
                if asking_fields(rule)
            },
            asked_about=tuple(m.name for m in good if m.asked(default))[:_NAMED],
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
                asked = sum(measured.asked(tried) for measured in fitted)
                if upper_bound(asked, len(fitted), self.confidence) <= self.allowed:
                    targets = tried
                else:
                    held.add(tuned)
        return targets

    def _walk(self, tested: list[Measure], targets: list[int] | None) -> Iterator[Row]:
        holds = True
        for rung in self.grid.ladder(targets):
            asked = sum(measured.asked(rung.levels) for measured in tested)
            bound = upper_bound(asked, len(tested), self.confidence)
            holds = holds and bound <= self.allowed
            loops = [saved for m in self._loops if (saved := m.calls_saved(rung.levels)) >= 0]
            others = [saved for m in self._others if (saved := m.calls_saved(rung.levels)) >= 0]
            yield Row(
                rung=rung,
                asked=asked,
                bound=bound,
                holds=holds,
                loops=len(loops),
                others=len(others),
                saved=sum(loops) + sum(others),
            )

    def _alone(self, good: list[Measure]) -> dict[str, list[tuple[str, int, int]]]:
        table = {}
        for tuned, place in enumerate(self.grid.places):
            table[self.grid.policy.rules[place].rule] = [
                (
                    numbers_of(self.grid.rule(tuned, level)),
                    self._asked_alone(good, tuned, level),
                    self._asked_alone(self._loops, tuned, level),
                )
                for level in range(len(FACTORS))
            ]
        return table

    @staticmethod
    def _asked_alone(measures: list[Measure], tuned: int, level: int) -> int:
        return sum(m.saved is not None and m.saved[tuned][level] >= 0 for m in measures)


def _choose(rows: Sequence[Row]) -> int | None:
    holding = [at for at, row in enumerate(rows) if row.holds]
    if not holding:
        return None
    # Rounded, so that two ways to the same distance are equal and the looser one is taken.
    return max(holding, key=lambda at: (rows[at].loops, -round(rows[at].rung.distance, 6), -at))
