"""Which thresholds fit these runs, and how sure is that?

A guard that asks about good runs is switched off. So the question is not which thresholds ask
about none of the good runs at hand, but which can be shown to ask about few of those to come:
the upper end of the Clopper-Pearson interval must not be above the share that is allowed.

How overfitting is kept out:

- Few candidates. A step multiplies the asking numbers of one rule by the next of `FACTORS`,
  around the policy it starts from. Nothing else is tuned.
- They form a ladder: from the loosest policy down, each rung tightens one rule by one step, in
  an order that the good runs it is tested on have no say in. Whoever is asked about on a rung is
  asked about on every tighter one.
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
only to runs that the guard asked about bend the bound; label by the run, not by the verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import orjson
from xxhash import xxh3_128_digest

from langchain_loopguard.core.rules import (
    NothingNew,
    SameAnswer,
    SameError,
    SameNumbers,
    UnbrokenCall,
)
from langchain_loopguard.replay.run import replay

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.core.rules import AnyRule
    from langchain_loopguard.replay.conversation import Conversation
    from langchain_loopguard.replay.labels import LabelKey, Labels

FACTORS = (3.0, 2.0, 1.5, 1.25, 1.0, 0.8, 0.6)
"""What a rule's asking numbers are multiplied by, loosest first. At 0.6 the default asks at the
third equal call, which stopped solved runs where it was measured: further down there is nothing
to look for."""

CONFIDENCE = 0.95
"""How sure it is that the proposed policy stays within the allowed share."""

_TUNED = (SameAnswer, NothingNew, UnbrokenCall, SameError, SameNumbers)
_SMALLEST = 2
"""No rule asks at the first occurrence."""

_NAMED = 20
"""Good runs that were asked about and are listed by name."""

Kind: TypeAlias = Literal["good", "loop", "other"]
"""What a run is evidence for: `other` is neither."""


class CalibrationError(ValueError):
    """Calibration cannot begin; the message says what is missing."""


# --- The ladder ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rung:
    """One candidate policy.

    Attributes:
        levels: For each tuned rule, the place of its factor in `FACTORS`.
        change: What is tighter than on the rung above; empty on the first.
    """

    levels: tuple[int, ...]
    change: str

    @property
    def distance(self) -> float:
        """How far it is from the policy it starts from."""
        return sum(abs(math.log(FACTORS[level])) for level in self.levels)


class Grid:
    """The variants of a policy that are tried: each rule with asking numbers, at each factor.

    Attributes:
        policy: The policy it starts from.
        places: Where in its rules the tuned ones are.
        tightest: The policy with each tuned rule at its last level.
        alone: For each tuned rule and level, the policy with that rule only.
        fixed: The policy with what is not tuned only.
    """

    def __init__(self, policy: LoopGuardPolicy) -> None:
        """Work out the variants.

        Raises:
            CalibrationError: If no rule of the policy has asking numbers.
        """
        self.policy = policy
        self.places = [place for place, rule in enumerate(policy.rules) if _asking(rule)]
        if not self.places:
            raise CalibrationError(
                "the policy has no rule that can be tuned: calibrate changes the numbers called"
                " `ask` of same_answer, nothing_new, unbroken_call, same_error and same_numbers"
            )
        self._variants = [
            [_scaled(policy.rules[place], factor) for factor in FACTORS] for place in self.places
        ]
        self.tightest = self.at([len(FACTORS) - 1] * len(self.places))
        self.fixed = self._only(
            [rule for place, rule in enumerate(policy.rules) if place not in self.places]
        )
        self.alone = [[self._only([rule]) for rule in variants] for variants in self._variants]

    def rule(self, tuned: int, level: int) -> AnyRule:
        """Give a tuned rule at a level."""
        return self._variants[tuned][level]

    def at(self, levels: Sequence[int]) -> LoopGuardPolicy:
        """Give the policy with each tuned rule at its level."""
        rules = list(self.policy.rules)
        for tuned, (place, level) in enumerate(zip(self.places, levels, strict=True)):
            rules[place] = self._variants[tuned][level]
        return self.policy.model_copy(update={"rules": tuple(rules)})

    def _only(self, rules: list[AnyRule]) -> LoopGuardPolicy:
        return self.policy.model_copy(update={"rules": tuple(rules)})

    def ladder(self, targets: Sequence[int] | None = None) -> list[Rung]:
        """Order candidates from the loosest down.

        Args:
            targets: The level at which each tuned rule stays; by default the tightest.
        """
        last = len(FACTORS) - 1
        ends = [last] * len(self.places) if targets is None else list(targets)
        levels = [0] * len(self.places)
        rungs = [Rung(tuple(levels), "")]
        for level in range(1, len(FACTORS)):
            for tuned, end in enumerate(ends):
                if level > end:
                    continue
                looser, tighter = self.rule(tuned, level - 1), self.rule(tuned, level)
                levels[tuned] = level
                if looser != tighter:
                    change = f"{tighter.rule} {_numbers(looser)} -> {_numbers(tighter)}"
                    rungs.append(Rung(tuple(levels), change))
        return rungs


def _asking(rule: AnyRule) -> list[str]:
    """Name the numbers that are tuned; foreign rules keep their published ones."""
    if not isinstance(rule, _TUNED):
        return []
    return [name for name in type(rule).model_fields if name == "ask" or name.startswith("ask_")]


def _scaled(rule: AnyRule, factor: float) -> AnyRule:
    numbers = rule.model_dump()
    for name in _asking(rule):
        numbers[name] = max(_SMALLEST, round(numbers[name] * factor))
    if "warn" in numbers:
        numbers["warn"] = min(numbers["warn"], numbers["ask"])
    return type(rule)(**numbers)


def _numbers(rule: AnyRule) -> str:
    numbers: dict[str, Any] = rule.model_dump()
    return "/".join(str(numbers[name]) for name in _asking(rule))


# --- What one run says --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measure:
    """What one run says about every candidate.

    Attributes:
        kind: What the run is evidence for.
        name: What a person knows it by.
        label: The label that was used, of those given beside the runs.
        digest: Equal for runs in which the same happened.
        calls: How many calls it has.
        saved: For each tuned rule and then for what is not tuned: for each level the calls saved,
            -1 where it is not asked about. `None` when no candidate asks.
    """

    kind: Kind
    name: str
    label: LabelKey | None
    digest: bytes
    calls: int
    saved: tuple[tuple[int, ...], ...] | None

    def asked(self, levels: Sequence[int]) -> bool:
        """Whether the candidate asks about the run."""
        return self.calls_saved(levels) >= 0

    def calls_saved(self, levels: Sequence[int]) -> int:
        """Give the calls saved by the candidate, -1 when it does not ask."""
        if self.saved is None:
            return -1
        # What is not tuned has one level.
        return max(saved[level] for saved, level in zip(self.saved, (*levels, 0), strict=True))


@dataclass(frozen=True, slots=True)
class MeasureWork:
    """Measures a run; made to be sent to another process.

    Attributes:
        grid: The candidates.
        labels: As for `measure`.
    """

    grid: Grid
    labels: Labels

    def __call__(self, run: Conversation) -> Measure:
        """Measure one run."""
        return measure(run, self.grid, self.labels)


def measure(conversation: Conversation, grid: Grid, labels: Labels | None = None) -> Measure:
    """Replay a run under every candidate that could ask about it.

    A policy asks about a run when one of its rules does, and a rule that does not ask at one
    number does not at a higher one; so most runs are replayed once, under the tightest policy.

    Args:
        conversation: The run.
        grid: The candidates.
        labels: What somebody says about runs; goes before what a run says itself.
    """
    saved: tuple[tuple[int, ...], ...] | None = None
    if replay(conversation, grid.tightest, marks=False).looped:
        saved = (
            *(tuple(_saved(conversation, grid, tuned)) for tuned in range(len(grid.places))),
            (_saved_by(conversation, grid.fixed),),
        )
    key = _label_key(conversation, labels or {})
    return Measure(
        kind=kind_of(conversation, labels),
        name=f"{conversation.source} {conversation.id}".strip(),
        label=key,
        digest=_digest(conversation),
        calls=conversation.calls,
        saved=saved,
    )


def _saved(conversation: Conversation, grid: Grid, tuned: int) -> list[int]:
    saved = [-1] * len(FACTORS)
    for level in reversed(range(len(FACTORS))):
        saved[level] = _saved_by(conversation, grid.alone[tuned][level])
        if saved[level] < 0:
            break
    return saved


def _saved_by(conversation: Conversation, policy: LoopGuardPolicy) -> int:
    report = replay(conversation, policy, marks=False)
    return report.saved if report.looped else -1


def _digest(conversation: Conversation) -> bytes:
    try:
        told = orjson.dumps(conversation.events, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # Not JSON all through, or text that is not UTF-8.
        told = repr(conversation.events).encode("utf-8", "backslashreplace")
    return xxh3_128_digest(told)


def kind_of(conversation: Conversation, labels: Labels | None = None) -> Kind:
    """Say what a run is evidence for.

    A label says it, from `labels` or from the run's own `label`: `benign` is good, `loop` is a
    loop, any other is neither. Without a label a successful run is good.
    """
    key = _label_key(conversation, labels or {})
    label = conversation.extra.get("label") if key is None else (labels or {})[key]
    if label is None:
        return "good" if conversation.outcome == "success" else "other"
    if label == "benign":
        return "good"
    return "loop" if label == "loop" else "other"


def _label_key(conversation: Conversation, labels: Labels) -> LabelKey | None:
    for source in (conversation.source, None):
        if (source, conversation.id) in labels:
            return source, conversation.id
    return None


# --- How sure it is -----------------------------------------------------------------------------


def upper_bound(asked: int, runs: int, confidence: float = CONFIDENCE) -> float:
    """Give the one-sided Clopper-Pearson bound of a share.

    Args:
        asked: How many runs were asked about.
        runs: Of how many.
        confidence: How sure it is that the true share is not above.

    Raises:
        ModuleNotFoundError: If scipy is not installed.
    """
    # The beta distribution's quantile. scipy.stats has it too and takes seconds to import.
    from scipy.special import betaincinv  # noqa: PLC0415 - the extra `calibrate`

    return 1.0 if asked >= runs else float(betaincinv(asked + 1, runs - asked, confidence))


def runs_needed(share: float, asked: int = 0, confidence: float = CONFIDENCE) -> int:
    """Say how many good runs are needed to show that no more than `share` are asked about.

    Args:
        share: The allowed share, above 0 and below 1.
        asked: How many of them are asked about. With none it is `ln(1 - confidence) /
            ln(1 - share)`, rounded up.
        confidence: How sure it is to be.
    """
    if asked == 0:
        return math.ceil(math.log(1 - confidence) / math.log1p(-share))
    low, high = asked, 2 * asked + runs_needed(share, 0, confidence)
    while upper_bound(asked, high, confidence) > share:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if upper_bound(asked, middle, confidence) > share:
            low = middle
        else:
            high = middle
    return high


# --- The proposal -------------------------------------------------------------------------------


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
            numbers={rule.rule: _asking(rule) for rule in self.grid.policy.rules if _asking(rule)},
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
                    _numbers(self.grid.rule(tuned, level)),
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
