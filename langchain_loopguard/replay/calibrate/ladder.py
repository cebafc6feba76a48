"""Which candidates are there, and in which order are they tried?

A candidate is the policy to start from with the asking numbers of its rules multiplied by one of
`FACTORS` each. What runs say about them is not known here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_loopguard.core.rules import OWN_RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.core.rules import AnyRule

FACTORS = (3.0, 2.0, 1.5, 1.25, 1.0, 0.8, 0.6)
"""What a rule's asking numbers are multiplied by, loosest first. At 0.6 the default asks at the
third equal call, which stopped solved runs where it was measured: further down there is nothing
to look for."""

_TUNED = tuple(rule for rule in OWN_RULES if "ask" in rule.model_fields)
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
                    change = f"{tighter.rule} {numbers_of(looser)} -> {numbers_of(tighter)}"
                    rungs.append(Rung(tuple(levels), change))
        return rungs


def asking_fields(rule: AnyRule) -> list[str]:
    """Name the numbers that are tuned; foreign rules keep their published ones."""
    if not isinstance(rule, _TUNED):
        return []
    return [name for name in type(rule).model_fields if name == "ask" or name.startswith("ask_")]


def _scaled(rule: AnyRule, factor: float) -> AnyRule:
    numbers = rule.model_dump()
    for name in asking_fields(rule):
        numbers[name] = max(_SMALLEST, round(numbers[name] * factor))
    if "warn" in numbers:
        numbers["warn"] = min(numbers["warn"], numbers["ask"])
    return type(rule)(**numbers)


def numbers_of(rule: AnyRule) -> str:
    """Write the numbers that are tuned as a table shows them."""
    numbers: dict[str, Any] = rule.model_dump()
    return "/".join(str(numbers[name]) for name in asking_fields(rule))
