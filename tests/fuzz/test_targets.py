"""Do a few thousand inputs of every fuzz target pass, and those that were faults once?

`python -m tests.fuzz.run` runs as many more as it is given time for.
"""

import subprocess
import sys

import pytest

from tests.fuzz.kept import KEPT
from tests.fuzz.run import _some
from tests.fuzz.targets import SHARES, TARGETS

INPUTS = 400


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_by_chance_are_no_faults(name):
    for data in _some(7, INPUTS):
        TARGETS[name](data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param(name, data, id=f"{name}-{number}")
        for name, kept in KEPT.items()
        for number, data in enumerate(kept)
    ],
)
def test_what_was_a_fault_once_is_none(name, data):
    TARGETS[name](data)


@pytest.mark.parametrize("name", TARGETS)
def test_an_empty_input_is_one(name):
    TARGETS[name](b"")


def test_every_target_has_a_share():
    assert SHARES.keys() == TARGETS.keys()
    assert sum(SHARES.values()) == 1000


def test_the_command_prints_a_table_and_ends_well():
    command = [sys.executable, "-m", "tests.fuzz.run", "--by-chance", "--inputs", "60"]
    ended = subprocess.run(
        [*command, "--target", "resume", "--target", "texts"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [line.split()[:2] for line in ended.stdout.splitlines()[-3:]]
    assert [name for name, _ in rows] == ["resume", "texts", "all"]
    assert 59 <= int(rows[-1][1]) <= 60 + len(KEPT.get("resume", ())) + len(KEPT.get("texts", ()))
