"""Is every figure in `core/README.md` what the command gives, and is its table the core's?"""

import re

import pytest

from langchain_loopguard.core.evidence import TABLE, Progress, Said
from langchain_loopguard.core.policy import Policy
from tests.evaluation import tables
from tests.evaluation.ablation import NONE
from tests.evaluation.mechanisms import MECHANISMS
from tests.evaluation.run import measure

TEXT = tables.README.read_text(encoding="utf-8")
BLOCKS = tables.written_blocks(TEXT)


UNDECIDED = [
    "invisible characters in arguments",
    "names: poller",
    "values of JSON on one line",
    "waiting: long results that say so",
    "waiting: errors that say so",
    "patience of *repeat* (12 instead)",
    "patience of *error* (8 instead)",
    "*repeat*: news read slows (excuses nothing instead)",
    "*in vain*: 15 where a tool reads",
    "*ceiling*: 50 in all",
]
"""The README gives a reason for each."""


def test_every_block_is_written():
    assert set(BLOCKS) == {"goals", "misses", "classes", "parts", "numbers", "presets", "times"}
    assert all(text.startswith("| ") for text in BLOCKS.values())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_figure_is_that_of_the_command():
    new = tables.blocks(measure())
    for name in set(BLOCKS) - set(tables.MACHINE_BLOCKS):
        assert BLOCKS[name] == new[name], name


def test_the_parts_that_decide_nothing_are_owned_up_to():
    rows = [line.split(" | ") for line in BLOCKS["parts"].splitlines()[2:]]
    assert [row[0].removeprefix("| ") for row in rows if row[3] == NONE] == UNDECIDED


def test_every_part_has_its_row():
    rows = [line.split(" | ")[0].removeprefix("| ") for line in BLOCKS["parts"].splitlines()[2:]]
    assert rows == [mechanism.name for mechanism in MECHANISMS]


LETTERS = {Progress.NEW: "NEW", Progress.OPEN: "open", Progress.NONE: "NONE"}
ROWS = re.findall(
    r"^\| (.+?) \| (any|new|known) \| (\w+) \| (\w+) \| (\w+) \|$", TEXT, re.MULTILINE
)
NAMES = {
    "nothing new, short (a receipt)": Said.RECEIPT,
    "nothing new, short": Said.RECEIPT,
    "missing": Said.MISSING,
    "what this call said before": Said.AGAIN,
}


def test_the_readmes_table_is_the_cores():
    said = {}
    for name, known, *letters in ROWS:
        row = NAMES.get(name) or Said(name)
        for place in {"any": (0, 1), "new": (0,), "known": (1,)}[known]:
            said[row, place] = letters
    # A call that is new can't have said anything before.
    expected = {
        (row, place): [LETTERS[one] for one in columns[place]]
        for row, columns in TABLE.items()
        for place in (0, 1)
        if (row, place) != (Said.AGAIN, 0)
    }
    assert said == expected


def test_the_readmes_numbers_are_the_policys():
    rules = {rule.rule: rule for rule in Policy().rules}
    repeat, stall, error, vain = (rules[name] for name in ("repeat", "stall", "error", "in_vain"))
    ceiling, cycle = rules["ceiling"], rules["cycle"]
    table = TEXT.partition("| rule | what it counts")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")][2:4] for line in table]
    assert rows == [
        [str(repeat.warn), str(repeat.ask)],
        ["", str(repeat.ask_across)],
        ["", str(repeat.patience)],
        [str(stall.warn), str(stall.ask)],
        ["", str(stall.ask_after_change)],
        ["", str(ceiling.changing)],
        ["", str(ceiling.shell)],
        ["", str(ceiling.total)],
        [str(error.warn), str(error.ask)],
        ["", str(error.patience)],
        [str(vain.warn), ""],
        [str(vain.warn), str(vain.ask)],
        ["", str(vain.ask_again)],
        ["", f"{cycle.rounds} rounds"],
    ]
