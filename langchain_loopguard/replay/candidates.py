"""The policies that calibration tries, their order, and what one run says about each.

A candidate is the policy to start from with the asking numbers of its rules multiplied by one of
`FACTORS` each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import orjson
from xxhash import xxh3_128_digest

from langchain_loopguard.core.rules import OWN_RULES
from langchain_loopguard.replay.run import replay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard import LoopGuardPolicy
    from langchain_loopguard.core.rules import RuleConfig
    from langchain_loopguard.replay.conversation import Conversation
    from langchain_loopguard.replay.labels import LabelKey, Labels

FACTORS = (3.0, 2.0, 1.5, 1.25, 1.0, 0.8, 0.6)
"""What a rule's asking numbers are multiplied by, loosest first. At 0.6 the default asks at the
third equal call, which stopped solved runs where it was measured: further down there is nothing
to look for."""

DEFAULT = FACTORS.index(1.0)
"""The level of the policy to start from."""

Kind: TypeAlias = Literal["good", "loop", "other"]
"""What a run is evidence for: `other` is neither."""

_KEPT = frozenset({"rule", "warn", "repeats", "longest"})
"""What is no number at which a person is asked: a sign that a rule needs, a length it looks at."""

_SMALLEST = 2
"""No rule asks at the first occurrence."""


class CalibrationError(ValueError):
    """Calibration cannot begin; the message says what is missing."""


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
        self.places = [place for place, rule in enumerate(policy.rules) if asking_fields(rule)]
        if not self.places:
            raise CalibrationError(
                "the policy has no rule that can be tuned: calibrate changes the asking numbers of"
                f" {', '.join(rule.model_fields['rule'].default for rule in OWN_RULES)}"
            )
        self._variants = [
            [_scaled(policy.rules[place], factor) for factor in FACTORS] for place in self.places
        ]
        fixed = [rule for place, rule in enumerate(policy.rules) if place not in self.places]
        self.tightest = self.at([len(FACTORS) - 1] * len(self.places))
        self.fixed = _with_rules(policy, fixed)
        self.alone = [[_with_rules(policy, [rule]) for rule in tried] for tried in self._variants]

    def rule(self, tuned: int, level: int) -> RuleConfig:
        """Return a tuned rule at a level."""
        return self._variants[tuned][level]

    def at(self, levels: Sequence[int]) -> LoopGuardPolicy:
        """Return the policy with each tuned rule at its level."""
        rules = list(self.policy.rules)
        for tuned, (place, level) in enumerate(zip(self.places, levels, strict=True)):
            rules[place] = self._variants[tuned][level]
        return _with_rules(self.policy, rules)

    def change_at(self, levels: Sequence[int]) -> str:
        """Say in words how the policy at these levels differs from the one to start from."""
        changes = []
        for tuned, level in enumerate(levels):
            old, new = self.rule(tuned, DEFAULT), self.rule(tuned, level)
            if old != new:
                changes.append(f"{old.rule} {numbers_of(old)} -> {numbers_of(new)}")
        return "; ".join(changes) or "the policy as it is"

    def ladder(self, targets: Sequence[int] | None = None) -> list[Rung]:
        """Order candidates from the loosest down.

        Args:
            targets: The level at which each tuned rule stays; by default the tightest.
        """
        ends = [len(FACTORS) - 1] * len(self.places) if targets is None else targets
        levels = [0] * len(self.places)
        rungs = [Rung(tuple(levels), "")]
        for level in range(1, len(FACTORS)):
            for tuned, end in enumerate(ends):
                if level > end:
                    continue
                looser, tighter = self.rule(tuned, level - 1), self.rule(tuned, level)
                levels[tuned] = level
                if looser != tighter:
                    change = f"{tighter.rule} {numbers_of(looser)} -> {numbers_of(tighter)}"
                    rungs.append(Rung(tuple(levels), change))
        return rungs


def _with_rules(policy: LoopGuardPolicy, rules: Sequence[RuleConfig]) -> LoopGuardPolicy:
    """Copy a policy with other rules; it judges failures as the whole policy does."""
    return policy.model_copy(update={"rules": tuple(rules)})


def asking_fields(rule: RuleConfig) -> list[str]:
    """Name the numbers that are tuned; other systems' rules keep their published ones."""
    if not isinstance(rule, OWN_RULES):
        return []
    return [name for name in type(rule).model_fields if name not in _KEPT]


def numbers_of(rule: RuleConfig) -> str:
    """Write the numbers that are tuned as a table shows them."""
    return "/".join(str(getattr(rule, name)) for name in asking_fields(rule))


def _scaled(rule: RuleConfig, factor: float) -> RuleConfig:
    numbers = rule.model_dump()
    for name in asking_fields(rule):
        numbers[name] = max(_SMALLEST, round(numbers[name] * factor))
    for names in type(rule).rising:
        if "warn" in names:
            # The warning keeps its number as far as the order of the numbers allows.
            at = names.index("warn")
            least = max((numbers[name] for name in names[:at]), default=_SMALLEST)
            most = min(numbers[name] for name in names[at + 1 :])
            numbers["warn"] = max(least, min(numbers["warn"], most))
    return type(rule).model_validate(numbers)


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
            -1 where no person is asked. `None` when no candidate asks.
    """

    kind: Kind
    name: str
    label: LabelKey | None
    digest: bytes
    calls: int
    saved: tuple[tuple[int, ...], ...] | None

    def calls_saved(self, levels: Sequence[int]) -> int:
        """Return the calls saved by the candidate, -1 when it does not ask."""
        if self.saved is None:
            return -1
        # What is not tuned has one level.
        return max(saved[level] for saved, level in zip(self.saved, (*levels, 0), strict=True))


def measure(conversation: Conversation, grid: Grid, labels: Labels | None = None) -> Measure:
    """Replay a run under every candidate that could interrupt it.

    A policy interrupts a run when one of its rules does, and a rule that does not ask at one
    number does not at a higher one; so most runs are replayed once, under the tightest policy.

    Args:
        conversation: The run.
        grid: The candidates.
        labels: What somebody says about runs; goes before what a run says itself.
    """
    saved: tuple[tuple[int, ...], ...] | None = None
    if replay(conversation, grid.tightest, steps=False).looped:
        alone = (_saved(conversation, policies) for policies in grid.alone)
        saved = (*alone, _saved(conversation, [grid.fixed]))
    return Measure(
        kind=kind_of(conversation, labels),
        name=f"{conversation.source} {conversation.id}".strip(),
        label=_label_key(conversation, labels or {}),
        digest=_digest(conversation),
        calls=conversation.calls,
        saved=saved,
    )


def _saved(conversation: Conversation, policies: Sequence[LoopGuardPolicy]) -> tuple[int, ...]:
    """Return the calls saved by each policy, the loosest first, -1 where it doesn't ask."""
    saved = [-1] * len(policies)
    for level in reversed(range(len(policies))):
        report = replay(conversation, policies[level], steps=False)
        if not report.looped:
            break
        saved[level] = report.saved
    return tuple(saved)


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
    keys = ((source, conversation.id) for source in (conversation.source, None))
    return next((key for key in keys if key in labels), None)
