"""Does the default guard tell loops from good work, shape by shape?

The shapes are in `tests.rules.shapes`. A shape listed in `LIMITS` is one that the guard is known
to get wrong, with the reason why that is left as it is.
"""

from __future__ import annotations

import pytest

from tests.conversations import read_through
from tests.rules.shapes import SEEDS, SHAPES, judge

_SHORT = (
    "ever new calls with a one-line answer: silent commands, receipts and honest searches look "
    "the same"
)
_MORE_THAN_SHORT = (
    "from the first call on, every answer is the same few lines: ever new spellings of one "
    "command look the same"
)
_ECHO = "a tool that echoes its arguments in several lines says new lines each time"
_GROWS = "what is looked at between two changes is new each time: paging by a button looks the same"
LIMITS = {
    "goodbye-in-new-words": _SHORT,
    "nothing-found-in-new-words": _SHORT,
    "pages-beyond-the-end-by-shell": _SHORT,
    "new-explanations-of-one-call-with-a-one-line-answer": _SHORT,
    "one-change-with-a-fresh-key": "a first change that succeeds is work, whatever its arguments",
    **dict.fromkeys(
        (f"rotation-{period}-with-new-to-do-lists" for period in (2, 3, 5)),
        "a first change that succeeds is work, whatever its arguments",
    ),
    **dict.fromkeys(
        (f"rotation-{period}-with-echoed-long-thoughts" for period in (2, 3, 5)), _ECHO
    ),
    "parallel-with-an-echoed-thought": _ECHO,
    "politely-refused-call-with-echoed-thoughts-4-lines": _ECHO,
    "politely-refused-call-with-echoed-thoughts-1-lines": _ECHO,
    "growing-insert-and-a-look": _GROWS,
    "two-growing-inserts-alternate": _GROWS,
    "rotation-40-long-20-lines": "a lap of 800 lines is more than is remembered",
    "shell-polling-a-growing-log-30": "a shell that appends and prints looks the same",
    "shell-polling-a-growing-log-30-with-sleeps": "a shell that appends and prints looks the same",
    **dict.fromkeys(
        (
            f"30-different-{tool}-with-{receipt}"
            for tool in ("bash", "execute_code")
            for receipt in ("two-lines", "three-lines", "indented-json")
        ),
        _MORE_THAN_SHORT,
    ),
    **dict.fromkeys(
        (name for name in SHAPES if "shell-with-two-line-receipt" in name), _MORE_THAN_SHORT
    ),
}


def _limit(name):
    return [pytest.mark.xfail(reason=LIMITS[name], strict=True)] if name in LIMITS else []


@pytest.mark.parametrize(
    "name", [pytest.param(name, id=name, marks=_limit(name)) for name in SHAPES]
)
def test_a_loop_is_asked_about_and_good_work_never(name):
    assert [told for told in (judge(SHAPES[name], seed) for seed in SEEDS) if told] == []


def test_every_limit_is_a_shape():
    assert set(LIMITS) <= set(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_a_guard_taken_through_json_before_every_event_says_the_same(name):
    shape = SHAPES[name]
    events, policy = shape.talk(SEEDS[0]).events[:60], shape.policy()
    straight = read_through(events, policy)
    stored = read_through(events, policy, through_json=True)
    assert (stored.warn, stored.ask, stored.held, stored.asks) == (
        straight.warn,
        straight.ask,
        straight.held,
        straight.asks,
    )
