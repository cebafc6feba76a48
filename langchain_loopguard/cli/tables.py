"""How does a table fit into a narrow terminal without losing anything?

Rich cuts what is too wide, names and numbers alike. Here a table that is too wide comes in parts,
one under the other, each with the first column again. Texts may break between words, numbers not
at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.measure import Measurement
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, RenderableType
    from rich.table import Column

__all__ = ["print_table"]

_GAP = 2
"""Spaces between two columns."""

_ANY = 1_000
"""A width that no cell has."""


def print_table(console: Console, table: Table) -> None:
    """Print a table without borders, in parts if it is wider than the console."""
    if _size(console, table).maximum <= console.width:
        console.print(table)
        return
    for place, part in enumerate(_parts(console, table)):
        if place:
            console.print()
        console.print(part)


def _parts(console: Console, table: Table) -> Iterator[Table]:
    first, *others = table.columns
    least = [_least(console, column) for column in others]
    narrowest = _least(console, first)
    widest = max((_size(console, cell).maximum for cell in first.cells), default=0)
    title, styles = table.title, [row.style for row in table.rows]
    while others:
        used, taken = narrowest, 0
        while taken < len(others) and (not taken or used + _GAP + least[taken] <= console.width):
            used += _GAP + least[taken]
            taken += 1
        spare = max(console.width - used, 0)
        part = Table(title=title, title_justify="left", box=None, pad_edge=False)
        _add(part, first, min(narrowest + spare, max(widest, narrowest)))
        for column, width in zip(others[:taken], least, strict=False):
            _add(part, column, width)
        cells = [list(column.cells) for column in (first, *others[:taken])]
        for row, style in zip(zip(*cells, strict=True), styles, strict=True):
            part.add_row(*row, style=style)
        yield part
        title, others, least = None, others[taken:], least[taken:]


def _add(part: Table, column: Column, width: int) -> None:
    part.add_column(column.header, justify=column.justify, width=width, overflow="fold")


def _least(console: Console, column: Column) -> int:
    """Give the columns of the terminal that it needs: a number's line, of a text a word."""
    widths = [_size(console, column.header).minimum]
    for cell in column.cells:
        measured = _size(console, cell)
        widths.append(measured.maximum if column.justify == "right" else measured.minimum)
    return max(widths)


def _size(console: Console, cell: RenderableType) -> Measurement:
    return Measurement.get(console, console.options.update(width=_ANY), cell)
