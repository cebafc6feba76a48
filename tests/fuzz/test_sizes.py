"""Does what is huge, deep or hostile cost more than its size?

Each case is run at one size and at twice that size. `python -m tests.fuzz.sizes` runs the same
cases at 50 MB, a million keys and 10,000 levels.
"""

import pytest

from tests.fuzz.sizes import CASES, cpu_seconds, state_of

ROUNDS = 6
"""Tries to be linear: other work on the machine may disturb a measurement."""

MEASURABLE = 0.05
"""CPU seconds; below that chance decides."""


def spent(run, size):
    return min(cpu_seconds(run(size))[0] for _ in range(2))


@pytest.mark.parametrize(("run", "size"), CASES.values(), ids=CASES)
def test_twice_the_size_takes_less_than_three_times_as_long(run, size):
    pairs = []
    for _ in range(ROUNDS):
        once, twice = spent(run, size), spent(run, 2 * size)
        pairs.append((once, twice))
        if twice < 3 * once or twice < MEASURABLE:
            return
    pytest.fail(f"seconds at one size and at twice that size: {pairs}")


@pytest.mark.parametrize(("run", "size"), CASES.values(), ids=CASES)
def test_nothing_of_it_stays_in_the_state(run, size):
    guard = run(size)()
    if guard is not None:
        assert len(state_of(guard)) <= 9216
