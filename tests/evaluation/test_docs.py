"""Is every figure in `core/README.md` what the command gives, and is its table the core's?"""

import re
from itertools import count

import pytest

from langchain_loopguard.core.evidence import TABLE, Progress, Said
from langchain_loopguard.core.kinds import NAMES as NAMES_OF_KINDS
from langchain_loopguard.core.policy import IGNORED_ARGUMENTS, Policy
from langchain_loopguard.core.rules import Ceiling, Error, InVain, Repeat, Stall
from tests.core.story import call, said
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


def names_in(text):
    return re.findall(r"`(\w+)`", text)


def test_the_readmes_names_of_tools_are_the_kinds():
    rows = re.findall(r"^\| ([a-z ]+) \| (`[`\w ]+`) \| .+ \|$", TEXT, re.MULTILINE)
    kinds = {"only reads": "read_only", "changes": "changing"}
    said = {kinds.get(kind, kind): names_in(names) for kind, names in rows if kind != "handoff"}
    assert said == {kind: names.split() for kind, names in NAMES_OF_KINDS.items()}


def test_the_readmes_arguments_that_are_left_out_are_the_policys():
    listed = TEXT.partition("### Arguments left out\n\n")[2].partition("\n\n")[0]
    assert tuple(names_in(listed)) == IGNORED_ARGUMENTS


_numbers = count(1)
LINES = "one line\nanother line\na third line"


def _new(tool):
    """A step that says something that was not known."""
    number = next(_numbers)
    words = "".join("abcdefghij"[int(digit)] for digit in str(number))
    return call(tool, n=number, say=f"{words} one\n{words} two\n{words} three")


def _other(tool, say, **more):
    return call(tool, n=next(_numbers), say=say, **more)


STEPS = {
    "NEW: says something new, its tool only reads": lambda: _new("read_file"),
    "NEW: says something new, another tool": lambda: _new("bash"),
    "NEW: the receipt of a new change": lambda: _other("edit", "known"),
    "open: may have changed something": lambda: _other("frobnicate", "known"),
    "open: changed nothing (a new error, a first short result of a tool that reads, thoughts)": (
        lambda: _other("read_file", "known")
    ),
    "NONE": lambda: _other("read_file", LINES),
}
LOOPS = {
    "*repeat*": (Repeat(), lambda: call("read_file", path="a", say=LINES)),
    "*stall*": (Stall(), lambda: _other("read_file", LINES)),
    "*ceiling*, unbroken": (Ceiling(), lambda: call("edit", x=1, say=f"row {next(_numbers)}")),
    "*error*": (Error(), lambda: _other("api", "refused", fails=True)),
    "*in vain*": (InVain(), lambda: _other("search", "none")),
}
"""The column, and a step of the loop that the rule finds."""
EFFECTS = {
    "nothing": 0,
    "counts": -1,
    "clears": 3,
    "clears calls that only read; others ask at 12": 3,
    "asks at 12; the next NONE is free": 4 + 1,
}
"""What a cell says -> how many steps of the loop more, of which three came before, it takes."""

EFFECTS_TABLE = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.partition("| the step |")[2].partition("\n\n")[0].splitlines()
]


@pytest.mark.parametrize("row", EFFECTS_TABLE[2:], ids=lambda row: row[0][:40])
@pytest.mark.parametrize("column", LOOPS)
def test_the_readmes_effects_are_the_rules(row, column):
    rule, loop = LOOPS[column]

    def steps_until_asked(*between):
        first = [call("look", say=LINES), call("look", say="known\nnone"), loop(), loop(), loop()]
        told = [*first, *between, *[loop() for _ in range(40)]]
        return said(*told, rules=(rule,))[1 if column != "*ceiling*, unbroken" else 2]

    more = steps_until_asked(STEPS[row[0]]()) - steps_until_asked() - 1
    assert more == EFFECTS[row[1 + EFFECTS_TABLE[0].index(column)]]
