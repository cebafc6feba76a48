"""Reads tables: the exports of trace stores as Parquet files, one or a folder of them.

A store writes a row a span, in an order of its own, and a trace may begin in one file and go on in
another. So all files with the same columns are one table, whose rows are grouped by their trace
first (`rows`). That takes a temporary folder of about the size of the rows, compressed.

A table without a column that names the trace has a run a row, or is one run as a whole.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from langchain_loopguard.replay.conversation import Problem
from langchain_loopguard.replay.readers import format_of
from langchain_loopguard.replay.rows import NUMBER, SMALL, TRACE, Portion, Rows, Share
from langchain_loopguard.replay.streams import open_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_loopguard.replay.texts import Piece

_MOST_SHARES = 512
"""Files that are written at a time; a process may have 1,024 open. From 16 GB of rows on the
shares become larger than `_SMALL`."""

_EXTRA = "a Parquet file needs pyarrow: pip install 'langchain-loopguard[parquet]'"


def _deal(portions: Sequence[Portion], folder: str, shares: int) -> None:
    for portion in portions:
        portion.deal(folder, shares)


@dataclass(slots=True)
class Tables:
    """Cuts tables into pieces; the folder of what was dealt out goes when it is closed.

    Attributes:
        deal: Calls `Portion.deal` of portions, here by default, in order.
    """

    deal: Callable[[Sequence[Portion], str, int], None] = _deal
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()

    def pieces(self, source: str, paths: Sequence[str]) -> Iterator[Piece | Problem]:
        """Cut Parquet files into pieces. Those with the same columns are one table.

        Args:
            source: What the files are called together.
            paths: The files, in order.
        """
        try:
            from pyarrow import ArrowException  # noqa: PLC0415 - an extra
        except ImportError:
            yield Problem(source, _EXTRA)
            return
        tables: dict[frozenset[str], _Table] = {}
        for path in paths:
            try:
                _look_into(path, tables)
            except (ArrowException, OSError, ValueError) as error:
                yield Problem(path, f"not a Parquet file: {type(error).__name__}")
        for table in tables.values():
            try:
                yield from self._table(source, table)
            except (ArrowException, OSError, ValueError) as error:
                yield Problem(source, f"can't be grouped into runs: {error}")

    def _table(self, source: str, table: _Table) -> Iterator[Piece | Problem]:
        portions = table.portions
        if not table.rows:
            yield Problem(source, "a table without rows")
        elif not table.has_traces and _is_run_a_row(portions[0]):
            yield from (Rows(source, (one,), table.packed // len(portions)) for one in portions)
        elif table.size <= SMALL:
            yield Rows(source, tuple(portions), table.packed)
        elif not table.has_traces:
            most = f"of {SMALL >> 20} MB that are read without a column {' or '.join(TRACE)}"
            yield Problem(source, f"{table.size >> 20:,} MB of rows, {most}")
        else:
            shares = min(-(-table.size // SMALL), _MOST_SHARES)
            folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="loopguard-"))
            self.deal(portions, folder, shares)
            size = table.packed // shares
            yield from (Share(source, folder, at, len(portions), size) for at in range(shares))


@dataclass(slots=True)
class _Table:
    """Files with the same columns: their rows, and the bytes of these unpacked and in the files."""

    has_traces: bool
    portions: list[Portion] = field(default_factory=list)
    rows: int = 0
    size: int = 0
    packed: int = 0


def _look_into(path: str, tables: dict[frozenset[str], _Table]) -> None:
    """Read a file's end, which says what is in it, and add its portions to its table."""
    from pyarrow import parquet  # noqa: PLC0415 - an extra

    with open_bytes(path) as opened:
        about = parquet.ParquetFile(opened)
    names = about.schema_arrow.names
    context = about.schema_arrow.field("context").type if "context" in names else None
    traced = any(name in names for name in TRACE) or (
        context is not None and str(context).startswith("struct") and "trace_id" in str(context)
    )
    table = tables.setdefault(frozenset(names), _Table(has_traces=traced))
    groups: list[int] = []
    first, size = table.rows + 1, 0
    for group in range(about.num_row_groups):
        found = about.metadata.row_group(group)
        groups.append(group)
        size += found.total_byte_size
        columns = (found.column(at) for at in range(found.num_columns))
        table.packed += sum(column.total_compressed_size for column in columns)
        table.rows += found.num_rows
        if size >= SMALL or group == about.num_row_groups - 1:
            portion = Portion(path, tuple(groups), first, len(table.portions))
            table.portions.append(portion)
            table.size += size
            groups, first, size = [], table.rows + 1, 0


def _is_run_a_row(portion: Portion) -> bool:
    rows = next(portion.tables(1), None)
    found = format_of(rows.drop_columns([NUMBER]).slice(0, 1).to_pylist()[0]) if rows else None
    return found is not None and found.group is None
