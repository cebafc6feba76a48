"""Does a table lose nothing where the terminal is narrow?"""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.cli.calibrate import _alone_table, _ladder_table
from langchain_loopguard.cli.tables import print_table
from langchain_loopguard.replay.calibrate import Calibrator, Grid, MeasureWork
from tests.replay.made_runs import repeating, working


@pytest.fixture(scope="module")
def tables():
    """Give the tables of `loopguard calibrate`."""
    grid = Grid(LoopGuardPolicy())
    calibrator = Calibrator(grid, allowed=0.2, confidence=0.95)
    work = MeasureWork(grid, {})
    runs = [working(2, name=f"good-{at}") for at in range(40)]
    for run in [*runs, repeating(6, name="loop", label="loop")]:
        calibrator.add(work(run))
    result = calibrator.result()
    return [_ladder_table(result), _alone_table(result)]


def printed(table, width):
    out = io.StringIO()
    print_table(Console(file=out, width=width), table)
    return out.getvalue()


def cells(table, *, number):
    """The table's numbers, or its other words."""
    columns = [column for column in table.columns if (column.justify == "right") is number]
    told = [str(cell) for column in columns for cell in (*column.cells, column.header)]
    return {cell for cell in told if cell} if number else {w for t in told for w in t.split()}


@pytest.mark.parametrize("at", [0, 1], ids=["ladder", "alone"])
@pytest.mark.parametrize("width", [160, 100, 80, 60, 45])
def test_no_name_and_no_number_is_cut(at, width, tables):
    table = tables[at]
    wanted = cells(table, number=False) | {
        word for cell in cells(table, number=True) for word in cell.split()
    }
    told = printed(table, width)
    assert "…" not in told
    assert wanted <= set(told.split())
    assert max(map(len, told.splitlines())) <= width


def test_a_cell_with_a_number_stays_in_one_line(tables):
    numbers = {str(cell) for column in tables[1].columns[1:] for cell in column.cells}
    told = printed(tables[1], 60)
    assert all(number in told for number in numbers)


def test_a_table_that_fits_comes_in_one_part(tables):
    assert printed(tables[0], 160).count("tightened") == 1


def test_every_part_names_its_rows(tables):
    told = printed(tables[1], 60)
    assert told.count("same_numbers") == told.count("\nrule ") > 1


def test_a_row_keeps_its_style():
    table = Table(box=None)
    table.add_column("name")
    for _ in range(5):
        table.add_column("a column", justify="right")
    table.add_row("bold", *["12345"] * 5, style="bold")
    out = io.StringIO()
    print_table(Console(file=out, width=20, force_terminal=True), table)
    assert out.getvalue().count("\x1b[1m 12345") == 5
