"""What does each part of the default policy decide?

A part stays in the default only if without it a verdict on real runs changes, or that on two
independent public reports. Conversations that were made for a test count for nothing here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.evaluation.judge import Verdict, wrong
from tests.evaluation.sets import all_sets, name_of, report_of

NONE = "none"
_ENOUGH_REPORTS = 2
_SHOWN = 3


class Effect(NamedTuple):
    """What changes when a part is switched off."""

    changed: dict[str, int]
    """Set -> how many verdicts are another one: silent, warned, asked, or right and wrong."""
    runs_helped: list[str]
    """Runs that are judged right, or without a needless warning, only with the part."""
    runs_hurt: list[str]
    """Runs that are judged right only without it."""
    runs_other: list[str]
    """Runs that nobody has labelled, with another verdict."""
    reports_helped: list[str]
    reports_hurt: list[str]

    @property
    def decides(self) -> str:
        """By which evidence the part may stay; only what is better with it speaks for it."""
        if self.runs_helped:
            return "runs"
        if len(self.reports_helped) >= _ENOUGH_REPORTS:
            return "reports"
        if self.runs_other:
            return "unlabelled runs"
        return "one report" if self.reports_helped else NONE

    @property
    def examples(self) -> list[str]:
        """Up to three that decide, those first where the part helps."""
        found = [f"+ {name}" for name in (*self.runs_helped, *self.reports_helped)]
        # One of each kind before a second of one kind.
        if len(self.runs_helped) >= _SHOWN and self.reports_helped:
            found = [*found[: _SHOWN - 1], f"+ {self.reports_helped[0]}"]
        found += [f"- {name}" for name in (*self.runs_hurt, *self.reports_hurt)]
        found += [f"· {name}" for name in self.runs_other]
        return found[:_SHOWN]

    def as_dict(self) -> dict[str, Any]:
        """Give the effect in JSON types."""
        return {**self._asdict(), "decides": self.decides, "examples": self.examples}


def effect(default: dict[str, list[Verdict]], without: dict[str, list[Verdict]]) -> Effect:
    """Compare the verdicts of the default policy with those without a part."""
    found = Effect({}, [], [], [], [], [])
    helped: dict[str, None] = {}
    hurt: dict[str, None] = {}
    for name, given, kind in all_sets():
        changed = 0
        for one, before, after in zip(given, default[name], without[name], strict=True):
            better = _better(one, before, after)
            changed += better != 0 or before.level != after.level
            report = report_of(name, one)
            if kind == "runs":
                _note_run(found, name_of(one), better, before.level != after.level)
            elif report is not None and better:
                (helped if better > 0 else hurt)[report] = None
        found.changed[name] = changed
    found.reports_helped.extend(helped)
    found.reports_hurt.extend(hurt)
    return found


def _note_run(found: Effect, name: str, better: int, has_changed: bool) -> None:
    if better > 0:
        found.runs_helped.append(name)
    elif better < 0:
        found.runs_hurt.append(name)
    elif has_changed:
        found.runs_other.append(name)


def _better(one: dict[str, Any], before: Verdict, after: Verdict) -> int:
    """Say whether a verdict is better with the part (1), without it (-1), or neither (0)."""
    was_wrong, is_wrong = bool(wrong(one, before)), bool(wrong(one, after))
    if was_wrong != is_wrong:
        return 1 if is_wrong else -1
    if one.get("outcome") == "success" and one.get("label") != "loop":
        return (before.level == "silent") - (after.level == "silent")
    return 0
