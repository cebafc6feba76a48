"""Does the default guard tell loops from good work, shape by shape?

The shapes are in `tests.rules.shapes`. A shape listed in `LIMITS` is one that the guard is known
to get wrong, with the reason why; it fails here as soon as the guard gets it right.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.conversations import read_through
from tests.rules import shapes_by_trade as _  # noqa: F401 - adds its shapes
from tests.rules.shapes import CLOCKS, SEEDS, SHAPES, judge

_SHORT = (
    "ever new calls with a one-line answer: silent commands, receipts and honest searches look "
    "the same"
)
_MORE_THAN_SHORT = (
    "from the first call on, every answer is the same few lines: ever new spellings of one "
    "command look the same"
)
_FRAMED = (
    "the same few lines around one that is new by a clock: what a harness puts around silent "
    "commands looks the same"
)
_FIRST_CHANGE = "a first change that succeeds is work, whatever its arguments"
_GROWS = "what is looked at between two changes is new each time: paging by a button looks the same"
_EQUAL_LOOKS = (
    "new spellings of one look count half: checks of one place after the other look the same"
)
_NUMBERS = (
    "the answers of a repeated change differ in numbers only: a growing insert looks the same"
)
_SWEEP = "numbered things with one answer: paging beyond the end looks the same"
_NEW_WORDS = "the answers are in ever new words: found at the higher ceiling, as paging by a button"
_OTHER_ERRORS = "the error is in other words each time"
_REARRANGED = "what was said before is cut or ordered in another way each time"

LIMITS = {
    "goodbye-in-new-words": _SHORT,
    "nothing-found-in-new-words": _SHORT,
    "pages-beyond-the-end-by-shell": _SHORT,
    "new-explanations-of-one-call-with-a-one-line-answer": _SHORT,
    "one-change-with-a-fresh-key": _FIRST_CHANGE,
    **{f"rotation-{period}-with-new-to-do-lists": _FIRST_CHANGE for period in (2, 3, 5)},
    "growing-insert-and-a-look": _GROWS,
    "two-growing-inserts-alternate": _GROWS,
    "rotation-40-long-20-lines": "a lap of 800 lines is more than is remembered",
    **{f"new-spellings-with-{clock}": _FRAMED for clock in CLOCKS},
    **{
        f"30-different-{tool}-with-{receipt}": _MORE_THAN_SHORT
        for tool in ("bash", "execute_code")
        for receipt in ("three-lines", "indented-json")
    },
    "new-spellings-of-one-reading": _EQUAL_LOOKS,
    "python-part-loads-30": _MORE_THAN_SHORT,
    "debugger-steps-through-a-for-loop": _NUMBERS,
    "robot-12-steps-forward": _NUMBERS,
    "dice-12": _NUMBERS,
    "health-of-20-hosts": _SWEEP,
    "partitions-of-24-months": _SWEEP,
    "calendar-of-22-days": _SWEEP,
    "eta-falls-20": "a remaining time is masked as a clock",
    "eta-in-words-falls-20": "a remaining time is masked as a clock",
    "sleep-and-tail-each-line-4-times": "only every fourth answer says something new",
    "rollout-status-12": "numbers in an error are masked, and here they are the news",
    "blocked-by-policy-with-incident": _NEW_WORDS,
    "sub-agent-same-prompt-new-words": _NEW_WORDS,
    "truncated-at-another-place": _NEW_WORDS,
    "write-same-file-and-hypothesis-test": _NEW_WORDS,
    "error-with-temp-file-names": _OTHER_ERRORS,
    "typos-of-the-argument-name": _OTHER_ERRORS,
    "japanese-error-full-width-digits": _OTHER_ERRORS,
    "result-order-shuffles": _REARRANGED,
    "truncated-rotation": _REARRANGED,
    "page-beyond-the-end-echoes-its-number": "the answer is new by the call's own number",
    "search-vain-in-json-forever": _SHORT,
    "computer-clicks-near-one-place": _SHORT,
    "devtools-click-and-snapshot-no-effect": _GROWS,
    "memory-save-and-growing-search": _GROWS,
    "todos-grow-with-the-same-read": _FIRST_CHANGE,
    "same-commit-with-new-message": _FIRST_CHANGE,
    "same-failing-test-between-comments": _FIRST_CHANGE,
    "mail-again-in-new-words": _FIRST_CHANGE,
    "handoff-ping-pong-new-reasons": _FIRST_CHANGE,
    "login-page-and-post-with-csrf": _FIRST_CHANGE,
}
FAMILIES = dict.fromkeys(shape.family for shape in SHAPES.values())
STORED_BATCHES = 24
"""So many batches of each shape are told with the state stored before each of them."""


@cache
def judged(name):
    """What the guard got wrong; told with the first seed that shows it."""
    return next(filter(None, (judge(SHAPES[name], seed) for seed in SEEDS)), "")


def of(family):
    return {name: shape for name, shape in SHAPES.items() if shape.family == family}


@pytest.mark.parametrize("family", FAMILIES)
def test_loops_are_asked_about_and_good_work_never(family):
    wrong = {name: told for name in of(family) if name not in LIMITS and (told := judged(name))}
    assert wrong == {}


@pytest.mark.parametrize("reason", dict.fromkeys(LIMITS.values()))
def test_what_is_known_to_be_wrong_still_is(reason):
    assert [n for n, why in LIMITS.items() if why == reason and not judged(n)] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_guard_whose_state_is_stored_before_every_event_says_the_same(family):
    differ = []
    for name, shape in of(family).items():
        events, policy = shape.talk(SEEDS[0]).events[:STORED_BATCHES], shape.policy()
        straight = read_through(events, policy)
        stored = read_through(events, policy, through_json=True)
        if repr(stored.findings) != repr(straight.findings):
            differ.append(name)
    assert differ == []
