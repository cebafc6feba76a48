"""Do some inputs of every fuzz target pass?

`python -m tests.fuzz.run` runs as many more as it is given time for.
"""

import subprocess
import sys

import pytest

from tests.fuzz.run import some
from tests.fuzz.targets import TARGETS

INPUTS = 300


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_by_chance_are_no_faults(name):
    for data in (b"", *some(7, INPUTS)):
        TARGETS[name][0](data)


def test_the_shares_are_of_a_thousand():
    assert sum(share for _, share in TARGETS.values()) == 1000


def test_the_command_prints_a_table_and_ends_well():
    command = [sys.executable, "-m", "tests.fuzz.run", "--by-chance", "--inputs", "60"]
    ended = subprocess.run(
        [*command, "--target", "texts"], capture_output=True, text=True, check=True
    )
    rows = [line.split()[:2] for line in ended.stdout.splitlines()[-2:]]
    assert rows == [["texts", "60"], ["all", "60"]]
