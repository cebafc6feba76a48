"""What does the default guard make of further cases that follow from what it is meant to see?

`tests/data/policy.jsonl.xz` holds 144 loops and 96 pieces of good work, each with the sentence it
follows from, written without a look at the rules. At the first look 2 of the good ones were asked
about, and 14 of the loops never or late. A case listed in `LIMITS` is one that the guard is known
to judge wrongly.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.conversations import load, policy_for, read_through
from tests.rules.figures import unexpected

_HALF = "first looks count half: whoever checks one place after the other has a reason"
_AFTER_WORK = "found one to three batches later: checks by shell after a change bring nothing new"
_NEW_WORDS = "answers in new words have twice the ceiling: queues and pages are worked off so"
_CHATTER = "whoever says something new in each step cannot be told from one who reports"

LIMITS = {
    **dict.fromkeys(
        ["spell-search", "r-spell-par", "r-search-syn", "r-retrieve-syn", "r-view-ranges"], _HALF
    ),
    **dict.fromkeys(["rot3-late", "spell-descriptions", "r8-shell", "r5-work"], _AFTER_WORK),
    **dict.fromkeys(["unknown-ceil", "delegate-run"], _NEW_WORDS),
    **dict.fromkeys(["chatter-echo", "chatter-bash"], _CHATTER),
    "prob-4-per-turn": "it was warned about, not asked: only what was asked about is on probation",
}

CASES = {case["id"]: case for case in load("policy")}


@cache
def judged(name):
    """What the guard got wrong."""
    case = CASES[name]
    return unexpected(case, read_through(case["events"], policy_for(case)))


@pytest.mark.parametrize("kind", ["loop", "false alarm"])
def test_loops_are_asked_about_and_good_work_never(kind):
    names = [name for name, case in CASES.items() if case["kind"] == kind and name not in LIMITS]
    assert names
    assert {name: told for name in names if (told := judged(name))} == {}


def test_what_is_known_to_be_wrong_still_is():
    assert [name for name in LIMITS if not judged(name)] == []
