"""Does what is huge, deep or hostile cost more than its size?

Each case is run at one size and at twice that size. `python -m tests.fuzz.sizes` runs the same
cases at 50 MB, a million keys and 10,000 levels.
"""

import pytest

from tests.fuzz.sizes import CASES, MOST, least, state_of

ROUNDS = 6
"""Tries to be linear: other work on the machine may disturb a measurement."""

MEASURABLE = 0.05
"""Seconds of the processor; below that chance decides."""


@pytest.mark.parametrize("name", CASES)
def test_twice_the_size_takes_less_than_three_times_as_long_and_leaves_little(name):
    case, size, _ = CASES[name]
    pairs = []
    for _ in range(ROUNDS):
        (once, guard), (twice, _) = least(case(size)), least(case(2 * size))
        assert guard is None or len(state_of(guard)) <= MOST
        pairs.append((once, twice))
        if twice < 3 * once or twice < MEASURABLE:
            return
    pytest.fail(f"seconds at one size and at twice that size: {pairs}")
