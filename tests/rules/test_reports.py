"""What does the default guard make of further public reports of loops and of false alarms?

`tests/data/reports.jsonl.xz` re-tells 73 reports of agents in loops and 49 of guards that stopped
good work, with the tools and the answers of the products they are about, and 63 pieces of good work
that look like loops. They were written without a look at the rules and the other tests. At the
first look 59 of the 73 loops were asked about in time, 7 never, and 1 of the 112 good ones was
stopped; since then they are like all other tests. A conversation listed in `LIMITS` is one that the
guard is known to judge wrongly.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.conversations import load, policy_for, read_through

_SHORT = (
    "each search or message is in new words and its answer is a line: honest work looks the same"
)
_COUNTED = "a number in an answer moves by itself: so does the progress of what is waited for"

LIMITS = {
    **dict.fromkeys(
        ["loop-08", "loop-29", "loop-40", "loop-55", "loop-56", "loop-65"],
        "found, but up to 4 batches later than was asked for",
    ),
    "loop-36": _SHORT,
    "loop-43": _SHORT,
    "loop-64": _SHORT,
    "loop-14": _COUNTED,
    "loop-59": _COUNTED,
    "loop-49": "nothing says that the tool only reads: other arguments may be other changes",
    "good-107": "a change whose answers differ in numbers only: a growing insert looks the same",
}

REPORTS = {case["id"]: case for case in load("reports")}


@cache
def judged(name):
    """What the guard got wrong."""
    case = REPORTS[name]
    ask = read_through(case["events"], policy_for(case)).ask
    if case["expect"].get("never_ask"):
        return f"asked at batch {ask}" if ask else ""
    by = case["expect"]["ask_by"]
    return "" if ask and ask <= by else f"asked at batch {ask}, not by {by}"


@pytest.mark.parametrize("kind", ["loop", "false alarm"])
def test_loops_are_asked_about_and_good_work_never(kind):
    names = [name for name, case in REPORTS.items() if case["kind"] == kind and name not in LIMITS]
    assert {name: told for name in names if (told := judged(name))} == {}


def test_what_is_known_to_be_wrong_still_is():
    assert [name for name in LIMITS if not judged(name)] == []


def test_the_sets_are_as_large_as_is_said():
    kinds = [case["kind"] for case in REPORTS.values()]
    told = [case for case in REPORTS.values() if "seen_at" in case]
    assert (kinds.count("loop"), kinds.count("false alarm"), len(told)) == (73, 112, 122)
