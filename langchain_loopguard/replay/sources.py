"""What is behind a path, and which pieces does it come in?

A path is a file, a directory, a pattern, `-` for the standard input, an address that fsspec
knows, or the address of a Postgres database. What a file holds is decided by its first bytes and
lines.

Nothing here raises for bad input: it becomes a `Problem`, and the rest is read.
"""

from __future__ import annotations

import glob
import os
import stat
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from langchain_loopguard.replay.conversation import ConversationError, Problem
from langchain_loopguard.replay.readers.inspect_ai import samples_in
from langchain_loopguard.replay.readers.langgraph_sqlite import MAGIC
from langchain_loopguard.replay.streams import (
    BOM,
    HEAD,
    MAX_LINE,
    PARQUET,
    UNPACK_ERRORS,
    ZIP,
    foreign,
    need_fsspec,
    open_bytes,
    reason_of,
    unpacked,
)
from langchain_loopguard.replay.tables import Tables
from langchain_loopguard.replay.texts import (
    Document,
    Piece,
    Threads,
    is_postgres,
    open_store,
    text_pieces,
)

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Iterator

_THREADS = 16
"""Threads of a checkpointer that make one piece."""

_SUFFIXES = frozenset(
    ".json .jsonl .ndjson .traj .gz .bz2 .xz .db .sqlite .sqlite3 .parquet .eval .log .txt".split()
)
"""Endings of the files that are looked into in a directory; a file that is named is read
whatever its name."""

_SPECIAL = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to read.

    Attributes:
        path: Where it is.
        name: What it is called; holds no password.
        found: Whether it was found in a directory, where other files may be as well.
        size: Its bytes, 0 when that is not known.
        parts: The Parquet files that are read together, if it is several.
    """

    path: str
    name: str
    found: bool = False
    size: int = 0
    parts: tuple[str, ...] = ()


def find_sources(paths: Iterable[str]) -> Iterator[Source | Problem]:
    """Find what paths mean, in a fixed order: directories and patterns are sorted."""
    for path in paths:
        if path == "-":
            yield Source("-", "standard input")
        elif is_postgres(path):
            yield Source(path, _without_password(path))
        elif "://" in path:
            yield from _addresses(path)
        elif os.path.lexists(path) or not glob.has_magic(path):
            yield from _path(path)
        else:
            names = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - as the user wrote it
            if not names:
                yield Problem(path, "no file matches")
            for name in names:
                yield from _path(name)


def join_tables(sources: Iterable[Source | Problem]) -> Iterator[Source | Problem]:
    """Join all Parquet files to one source, the last one: a trace may be in several of them."""
    tables: list[Source] = []
    for source in sources:
        if isinstance(source, Source) and is_table(source):
            tables.append(source)
        else:
            yield source
    if tables:
        names = [one.name for one in tables]
        name = names[0]
        if len(names) > 1:
            # By characters and cut at a slash, since addresses are no paths.
            folder = os.path.commonprefix(names).rpartition("/")[0]  # noqa: RUF071
            name = folder or f"{name} and {len(names) - 1:,} more"
        size = sum(one.size for one in tables)
        yield replace(tables[0], name=name, size=size, parts=tuple(one.path for one in tables))


def is_table(source: Source) -> bool:
    """Tell by its name whether a source is a Parquet file."""
    return Path(source.path.partition("?")[0]).suffix.lower() == ".parquet"


def pieces_of(
    source: Source, threads: frozenset[str] = frozenset(), tables: Tables | None = None
) -> Iterator[Piece | Problem]:
    """Cut a source into pieces.

    Args:
        source: What to read.
        threads: The ids of the threads to read of a checkpointer; empty for all.
        tables: Cuts Parquet files; its pieces are read before it is closed. Without it each
            piece is read before the next one is asked for.
    """
    if source.parts:
        yield from _table_pieces(source, tables)
        return
    if is_postgres(source.path):
        yield from _threads(source, threads)
        return
    try:
        file = open_bytes(source.path)
    except OSError as error:
        yield Problem(source.name, error.strerror or str(error))
        return
    try:
        yield from file_pieces(source, file, threads, tables)
    except UNPACK_ERRORS as error:
        yield Problem(source.name, f"cannot be read to its end: {reason_of(error)}")
    finally:
        if source.path != "-":
            file.close()


def file_pieces(
    source: Source,
    file: io.BufferedReader,
    threads: frozenset[str],
    tables: Tables | None = None,
) -> Iterator[Piece | Problem]:
    """Cut an open file into pieces, as `pieces_of` does."""
    try:
        stream, packed = unpacked(file)
        head = stream.peek(HEAD)[:HEAD]
    except UNPACK_ERRORS as error:
        yield Problem(source.name, f"cannot be unpacked: {reason_of(error)}")
        return
    if not head.removeprefix(BOM):
        yield Problem(source.name, "empty", ignored=source.found)
        return
    if head.startswith(MAGIC):
        if packed or source.path == "-" or "://" in source.path:
            yield Problem(source.name, "a SQLite file can only be read from a disk, unpacked")
        else:
            yield from _threads(source, threads)
        return
    unread = foreign(head)
    if head.startswith(ZIP):
        yield from _samples(source, stream)
        return
    if head.startswith(PARQUET):
        yield from _table_pieces(source, tables)
        return
    if unread is None and threads:
        unread = "no checkpointer, so it has none of the threads that were asked for"
    if unread is not None:
        yield Problem(source.name, unread, ignored=source.found)
        return
    yield from text_pieces(source.name, stream, found=source.found)


def _table_pieces(source: Source, tables: Tables | None) -> Iterator[Piece | Problem]:
    with nullcontext(tables) if tables is not None else Tables() as cutter:
        yield from cutter.pieces(source.name, source.parts or (source.path,))


def _samples(source: Source, stream: io.BufferedReader) -> Iterator[Piece | Problem]:
    try:
        for text in samples_in(stream, MAX_LINE):
            yield Document(source.name, text, source.found)
    except ConversationError as error:
        yield Problem(source.name, f"a zip archive: {error}", ignored=source.found)


def _threads(source: Source, wanted: frozenset[str]) -> Iterator[Piece | Problem]:
    try:
        store = open_store(source.path)
    except ConversationError as error:
        yield Problem(source.name, str(error), ignored=source.found)
        return
    try:
        listed = (t for t in store.threads() if not wanted or t.thread_id in wanted)
        empty = True
        while some := list(islice(listed, _THREADS)):
            empty = False
            yield Threads(source.path, source.name, some)
        if empty:
            text = "has none of the threads that were asked for" if wanted else "has no threads"
            yield Problem(source.name, text)
    except ConversationError as error:
        yield Problem(source.name, str(error))
    finally:
        store.close()


def _path(path: str) -> Iterator[Source | Problem]:
    if os.path.isdir(path):  # noqa: PTH112 - a name as the user wrote it
        yield from _directory(path)
    else:
        yield _file(path)


def _file(path: str, *, found: bool = False) -> Source | Problem:
    try:
        known = os.stat(path)  # noqa: PTH116 - as above
    except OSError as error:
        return Problem(path, error.strerror or str(error))
    special = _SPECIAL.get(stat.S_IFMT(known.st_mode))
    # A pipe that somebody names has a writer; one that lies in a folder may never have one.
    if special is not None and (found or special == "a device"):
        return Problem(path, f"{special}, skipped", ignored=found)
    return Source(path, path, found=found, size=known.st_size)


def _directory(path: str) -> Iterator[Source | Problem]:
    seen = False
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(folder, name)  # noqa: PTH118 - as above
            made = _file(file, found=True)
            if Path(name).suffix.lower() in _SUFFIXES or (
                isinstance(made, Problem) and made.ignored
            ):
                seen = seen or isinstance(made, Source)
                yield made
    if not seen:
        kinds = " ".join(sorted(_SUFFIXES))
        yield Problem(path, f"no file to read in this directory; looked for {kinds}")


def _addresses(path: str) -> Iterator[Source | Problem]:
    if not glob.has_magic(path.partition("?")[0]):
        yield Source(path, _without_password(path))
        return
    try:
        fs, _, found = need_fsspec().get_fs_token_paths(path, mode="rb")
    except Exception as error:  # noqa: BLE001 - a store's client reports in its own classes
        text = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        yield Problem(_without_password(path), text)
        return
    if not found:
        yield Problem(_without_password(path), "no file matches")
    for name in sorted(found):
        address = fs.unstrip_protocol(name)
        yield Source(address, _without_password(address))


def _without_password(address: str) -> str:
    parts = urlsplit(address)
    if parts.password is None and not parts.query:
        return address
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"
