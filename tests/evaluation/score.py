"""How good are the verdicts: the row of each set, and the goals of the second design."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.evaluation.judge import Verdict, wrong
from tests.evaluation.sets import all_sets

_COUNTS = (
    "loops loops_of benign benign_of asked asked_loops warned warned_loops solved other"
).split()

_MOST_WARNED = 3
"""Per cent of the solved runs."""


class Goal(NamedTuple):
    """A measure with what the first core reached and what the second has to reach."""

    measure: str
    landed: str
    goal: str
    measured: str
    holds: bool


def scores(verdicts: dict[str, list[Verdict]]) -> dict[str, dict[str, int]]:
    """Count each set: what was found and what was left alone, of how many."""
    return {
        name: _runs(given, verdicts[name]) if kind == "runs" else _expected(given, verdicts[name])
        for name, given, kind in all_sets()
    }


def _runs(given: list[dict[str, Any]], verdicts: list[Verdict]) -> dict[str, int]:
    count = dict.fromkeys(_COUNTS, 0)
    for run, verdict in zip(given, verdicts, strict=True):
        label, asked = run.get("label"), verdict.ask is not None
        count["loops"] += label == "loop" and asked
        count["loops_of"] += label == "loop"
        count["benign"] += label == "benign" and asked
        count["benign_of"] += label == "benign"
        if run["outcome"] == "success":
            count["solved"] += 1
            count["asked"] += asked and label != "loop"
            count["asked_loops"] += asked and label == "loop"
            count["warned"] += verdict.level != "silent"
            count["warned_loops"] += verdict.level != "silent" and label == "loop"
        elif label is None:
            count["other"] += asked
    return count


def _expected(given: list[dict[str, Any]], verdicts: list[Verdict]) -> dict[str, int]:
    count = dict.fromkeys("right of loops loops_of good good_of".split(), 0)
    for one, verdict in zip(given, verdicts, strict=True):
        is_right = not wrong(one, verdict)
        expect = one.get("expect") or {"ask_by": 1}
        kind = "loops" if "ask_by" in expect else "good" if expect.get("never_ask") else None
        count["right"] += is_right
        count["of"] += 1
        if kind:
            count[kind] += is_right
            count[f"{kind}_of"] += 1
    return count


def in_short(count: dict[str, int]) -> str:
    """Show a set's count in a cell: loops found, good work stopped, warnings."""
    if "solved" in count:
        return f"{count['loops']}/{count['benign']}/{count['asked']}/{count['warned']}"
    return f"{count['right']}"


def heads() -> dict[str, str]:
    """Name the columns of `in_short`."""
    found = {}
    for name, given, kind in all_sets():
        if kind == "runs":
            count = _runs(given, [Verdict(None, None, None, ())] * len(given))
            shown = f"{count['loops_of']}/{count['benign_of']}/{count['solved']}"
        else:
            shown = str(len(given))
        found[name] = f"{name} ({shown})"
    return found


def goals(scores: dict[str, dict[str, int]]) -> list[Goal]:
    """Hold the default policy's scores against the goals."""
    corpus, fresh, cases = scores["corpus"], scores["fresh"], scores["cases"]
    found, good = scores["reports2"]["loops"], scores["reports2"]["good"]
    reworded = scores["corpus+description"]["right"] + scores["corpus+reason"]["right"]
    words = scores["cases+description"]["right"]
    return [
        Goal(
            "first corpus: loops of 20 / benign of 19 / solved of 366 asked / solved warned",
            "20 / 0 / 1 (a loop) / 1.1 %",
            "20 / 0 / 1 / ≤ 3 %",
            _shown(corpus, corpus["asked"] + corpus["asked_loops"]),
            corpus["loops"] == 20
            and corpus["benign"] == corpus["asked"] == 0
            and _share(corpus) <= _MOST_WARNED,
        ),
        Goal(
            "its loops with `description`, and with `reason`, in new words each time",
            "14 of 40",
            "38 of 40",
            f"{reworded} of 40",
            reworded >= 38,
        ),
        Goal(
            "cases right of 61; their 27 loops with `description` in new words each time",
            "61; 12",
            "61; 27",
            f"{cases['right']}; {words}",
            cases["right"] == 61 and words == 27,
        ),
        Goal(
            "new reports: loops in time of 90 / good work left alone of 62",
            "60 / 62",
            "≥ 81 / ≥ 60",
            f"{found} / {good}",
            found >= 81 and good >= 60,
        ),
        Goal(
            "fresh runs: loops of 122 / benign of 30 / good solved asked / solved of 354 warned",
            "70 / 2 / 0 / 3.7 %",
            "≥ 92 / ≤ 1 / 0 / ≤ 3 %",
            _shown(fresh, fresh["asked"]),
            fresh["loops"] >= 92
            and fresh["benign"] <= 1
            and fresh["asked"] == 0
            and _share(fresh) <= _MOST_WARNED,
        ),
    ]


def _share(run: dict[str, int]) -> float:
    return 100 * run["warned"] / run["solved"]


def _shown(run: dict[str, int], asked: int) -> str:
    of_loops = f" ({run['warned_loops']} of {run['warned']} on labelled loops)"
    return f"{run['loops']} / {run['benign']} / {asked} / {_share(run):.1f} %{of_loops}"
