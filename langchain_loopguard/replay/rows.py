"""Groups the rows of tables to runs, in bounded memory and whatever their order.

A small table is sorted in memory. The rows of a large one are dealt out by a hash of their trace to
files in a temporary folder (`Portion.deal`), each of which is small enough to be sorted in memory
(`Share.read`). All rows of a trace come to one share.

Portions and shares know nothing of each other: they can be worked on in any process, and again
where one is lost. The order of the runs is that of the shares, and within one that of the traces'
first rows; it depends on the input alone.
"""

from __future__ import annotations

import os
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xxhash import xxh3_64_intdigest

from langchain_loopguard.replay.conversation import Problem
from langchain_loopguard.replay.readers import read_values
from langchain_loopguard.replay.streams import MAX_MEMORY, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_loopguard.replay.conversation import Conversation

TRACE = ("trace_id", "traceId", "context.trace_id")
"""Columns that name a row's trace; the SDK's own rows have it in `context`."""

SMALL = 32 * 2**20
"""Bytes of rows that are sorted in memory at once. As Python's objects they take some ten times
as much, of which `_ROWS` rows are there at a time."""

_LARGEST_RUN = 64 * 2**20
"""Bytes of the rows of one run: they are Python's objects all at once."""

_ROWS = 1000
"""Rows that are made Python's objects at once."""

_FEW = 128
"""Rows that are unpacked at once: a text of megabytes that a file holds once may stand in each."""

_BATCH = 2**22
"""Bytes of rows that are dealt out at once."""

NUMBER = "loopguard row"
"""The column of rows' numbers in a share."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Some row groups of a file, small enough to be dealt out in some seconds.

    Attributes:
        path: The file.
        groups: The numbers of its row groups.
        first: The number of their first row in the table, from 1.
        at: The portion's place in the table.
    """

    path: str
    groups: tuple[int, ...]
    first: int
    at: int

    def tables(self, most: int) -> Iterator[Any]:
        """Yield the rows with their numbers, in tables of up to about `most` bytes."""
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import parquet  # noqa: PLC0415

        number, size = self.first, 0
        gathered: list[Any] = []
        with open_bytes(self.path) as opened:
            file = parquet.ParquetFile(opened)
            for batch in file.iter_batches(_FEW, row_groups=list(self.groups)):
                gathered.append(batch)
                size += batch.nbytes
                if size >= most:
                    yield _numbered(pa.Table.from_batches(gathered), number)
                    number += sum(len(one) for one in gathered)
                    gathered, size = [], 0
        if gathered:
            yield _numbered(pa.Table.from_batches(gathered), number)

    def deal(self, folder: str, shares: int) -> None:
        """Deal the rows out to a file for each share; done again it writes the same files.

        Raises:
            OSError: If a file can't be read or written.
            pyarrow.ArrowException: If the file is none of Parquet.
        """
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import compute, ipc  # noqa: PLC0415

        # Another process may do the same at the same time, if this one was thought lost.
        own = uuid.uuid4().hex
        packed = ipc.IpcWriteOptions(compression="lz4")
        writers: dict[int, Any] = {}
        with ExitStack() as opened:
            for table in self.tables(_BATCH):
                places, known = _traces(table)
                hashes = [xxh3_64_intdigest(repr(one).encode()) for one in known]
                share_of = pa.array([one % shares for one in hashes], pa.int32())
                dealt = share_of.take(places).fill_null(0)
                ordered = table.take(compute.array_sort_indices(dealt))
                start = 0
                counts = compute.value_counts(dealt).to_pylist()
                for found in sorted(counts, key=lambda one: int(one["values"])):
                    share, count = found["values"], found["counts"]
                    if share not in writers:
                        path = _file(folder, self.at, share, own)
                        sink = opened.enter_context(pa.OSFile(path, "wb"))
                        stream = ipc.new_stream(sink, table.schema, options=packed)
                        writers[share] = opened.enter_context(stream)
                    writers[share].write_table(ordered.slice(start, count))
                    start += count
        for share in writers:
            Path(_file(folder, self.at, share, own)).replace(_file(folder, self.at, share))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are read where they stand: a small table, or a part of one without traces."""

    source: str
    portions: tuple[Portion, ...]
    size: int

    def read(self) -> Iterator[Conversation | Problem]:
        """Read the rows."""
        yield from _guarded(self.source, self._tables())

    def _tables(self) -> Iterator[Any]:
        for portion in self.portions:
            yield from portion.tables(MAX_MEMORY)


@dataclass(frozen=True, slots=True)
class Share:
    """The rows of some of a table's traces."""

    source: str
    folder: str
    number: int
    portions: int
    size: int

    def read(self) -> Iterator[Conversation | Problem]:
        """Read the rows."""
        yield from _guarded(self.source, self._tables())

    def _tables(self) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import ipc  # noqa: PLC0415

        for portion in range(self.portions):
            path = _file(self.folder, portion, self.number)
            if os.path.exists(path):  # noqa: PTH110 - a name, not a path to work with
                with pa.OSFile(path, "rb") as file, ipc.open_stream(file) as stream:
                    yield stream.read_all()


def _guarded(source: str, tables: Iterator[Any]) -> Iterator[Conversation | Problem]:
    """Read the runs in tables that are one, together; nothing that they hold raises."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    try:
        held, size = [], 0
        for table in tables:
            held.append(table)
            size += table.nbytes
            if size > MAX_MEMORY:
                text = f"{size >> 20:,} MB of rows at once, more than {MAX_MEMORY >> 20}, not read"
                yield Problem(source, text, table[NUMBER][0].as_py(), "row")
                return
        if held:
            yield from _runs_in(source, pa.concat_tables(held, promote_options="permissive"))
    except (pa.ArrowException, OSError, ValueError) as error:
        yield Problem(source, f"not a Parquet file: {type(error).__name__}")


def _runs_in(source: str, table: Any) -> Iterator[Conversation | Problem]:
    """Sort rows by their trace and read each trace's."""
    import pyarrow as pa  # noqa: PLC0415 - an extra
    from pyarrow import compute  # noqa: PLC0415

    places, known = _traces(table)
    if places is None:
        yield from read_values(_rows_of(table), source, unit="row")
        return
    keys = pa.table({"trace": places.fill_null(len(known)), "row": table[NUMBER]})
    order = compute.sort_indices(keys, [("trace", "ascending"), ("row", "ascending")])
    table = table.take(order)
    found = compute.value_counts(keys["trace"].take(order)).to_pylist()
    counts = [int(one["counts"]) for one in found]
    numbers = table[NUMBER].to_pylist()
    table = table.drop_columns([NUMBER])
    some: list[Any] = []
    base = unpacked = 0
    for end, count in zip(accumulate(counts), counts, strict=True):
        start = end - count
        if count > _ROWS and table.slice(start, count).nbytes > _LARGEST_RUN:
            text = f"a run of more than {_LARGEST_RUN >> 20} MB of rows, not read"
            yield Problem(source, text, numbers[start], "row")
            some, unpacked = [], end
            continue
        if unpacked < end:
            some = table.slice(start, max(count, _ROWS)).to_pylist()
            base, unpacked = start, start + len(some)
        rows = some[start - base : end - base]
        yield from read_values(zip(numbers[start:end], rows, strict=True), source, unit="row")


def _rows_of(table: Any) -> Iterator[tuple[int, Any]]:
    """Yield rows that stand in their order, each with its number."""
    for start in range(0, len(table), _ROWS):
        for row in table.slice(start, _ROWS).to_pylist():
            yield row.pop(NUMBER), row


def _traces(table: Any) -> tuple[Any, list[Any]]:
    """Return for each row the place of its trace in a list, and the list; `None` without one."""
    import pyarrow as pa  # noqa: PLC0415 - an extra
    from pyarrow import compute  # noqa: PLC0415

    name = next((name for name in TRACE if name in table.column_names), None)
    if name is not None:
        column = table[name]
    elif "context" in table.column_names and pa.types.is_struct(table["context"].type):
        column = compute.struct_field(table["context"], "trace_id")
    else:
        return None, []
    coded = column.combine_chunks().dictionary_encode()
    return coded.indices, coded.dictionary.to_pylist()


def _numbered(table: Any, first: int) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    return table.append_column(NUMBER, pa.array(range(first, first + len(table)), pa.int64()))


def _file(folder: str, portion: int, share: int, own: str = "") -> str:
    return os.path.join(folder, f"{portion:06}-{share:04}{own}.arrow")  # noqa: PTH118 - a name
