"""The same work on more than one machine: on a Dask cluster.

The workers read the input themselves, so that it must be at the same path for all of them, on a
shared disk or in a store that fsspec knows. Plain files of lines are cut into blocks; everything
else goes to one worker a file.

A worker that is lost in the middle is no loss: its work is done again by another one. The results
come in the order of the input and are the same as on one machine.

The rows of large tables are dealt out by the workers to a temporary folder. On several machines it
must be on a disk that they share: set `TMPDIR` for the command.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distributed import Client
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from langchain_loopguard.replay.conversation import Problem, WorkError
from langchain_loopguard.replay.rows import Portion
from langchain_loopguard.replay.sources import (
    Source,
    find_sources,
    is_table,
    join_tables,
    pieces_of,
)
from langchain_loopguard.replay.streams import HEAD, foreign, lines_of, open_bytes, unpacked
from langchain_loopguard.replay.texts import Lines, are_runs_a_line, is_postgres

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    from langchain_loopguard.replay.conversation import Conversation
    from langchain_loopguard.replay.tables import Tables
    from langchain_loopguard.replay.texts import Found

BLOCK = 32 * 2**20
"""Bytes of one block: some seconds of work, so that a lost worker costs little."""

_RETRIES = 5
"""How often work is done again that failed with its worker."""

_PATIENCE = "10s"
"""How long to wait for the cluster to answer."""


class ClusterError(WorkError):
    """The cluster can't be reached, or it gave up."""


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """Connect to a cluster; gives a pool and the number of its threads.

    Raises:
        ClusterError: If the cluster can't be reached or gives up.
    """
    try:
        client: Any = Client(address, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise ClusterError(f"no Dask cluster answers at {address}: {error}") from error
    with client:
        pool = client.get_executor(pure=False, retries=_RETRIES)
        try:
            yield pool, max(sum(client.nthreads().values()), 1)
        except (FutureCancelledError, KilledWorker, OSError) as error:
            raise ClusterError(f"the cluster gave up: {error}") from error


@dataclass(frozen=True, slots=True)
class Whole:
    """A source that one worker reads to its end."""

    source: Source
    threads: frozenset[str]

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.source.size

    def read(self) -> Iterator[Conversation | Problem]:
        """Read the source."""
        for piece in pieces_of(self.source, self.threads):
            yield from [piece] if isinstance(piece, Problem) else piece.read()


@dataclass(frozen=True, slots=True)
class Block:
    """The lines that begin in a part of a plain file; `first` is the number of the first one."""

    source: Source
    start: int
    end: int
    first: int = 1

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.end - self.start

    def read(self) -> Iterator[Conversation | Problem]:
        """Read the lines."""
        lines: list[tuple[int, bytes | None]] = []
        with open_bytes(self.source.path) as file:
            if self.start:
                # A line begins after a line end.
                file.seek(self.start - 1)
                while (line := file.readline(2**20)) and not line.endswith(b"\n"):
                    pass
            for number, found in lines_of(file) if file.tell() < self.end else ():
                # Blank lines are passed over: this one may begin beyond the block.
                if found is None or file.tell() - len(found) < self.end:
                    lines.append((self.first + number - 1, found))
                if file.tell() >= self.end:
                    break
        return Lines(self.source.name, lines, 0).read()

    def count_lines(self) -> int:
        """Count the lines that begin in it."""
        lines = 0 if self.start else 1
        with open_bytes(self.source.path) as file:
            at = max(self.start - 1, 0)
            file.seek(at)
            while at < self.end - 1 and (chunk := file.read(min(2**20, self.end - 1 - at))):
                at += len(chunk)
                lines += chunk.count(b"\n")
        return lines


def deal(pool: Executor, portions: Sequence[Portion], folder: str, shares: int) -> None:
    """Have the workers deal out the portions of a table, each by one of them, and wait for all."""
    for done in [pool.submit(Portion.deal, one, folder, shares) for one in portions]:
        done.result()


def find_pieces(
    pool: Executor, paths: Iterable[str], threads: frozenset[str], tables: Tables
) -> Iterator[Found]:
    """Cut everything behind these paths into pieces that a worker reads."""
    for source in join_tables(find_sources(paths)):
        if isinstance(source, Problem):
            yield source.source, source
        elif source.path == "-" or is_postgres(source.path) or is_table(source):
            yield from ((source.name, piece) for piece in pieces_of(source, threads, tables))
        elif source.size > BLOCK and not threads and _can_be_cut(source):
            starts = range(0, source.size, BLOCK)
            blocks = [Block(source, at, min(at + BLOCK, source.size)) for at in starts]
            counts = [pool.submit(Block.count_lines, block) for block in blocks]
            first = 1
            for block, count in zip(blocks, counts, strict=True):
                yield source.name, Block(source, block.start, block.end, first)
                first += count.result()
        else:
            yield source.name, Whole(source, threads)


def _can_be_cut(source: Source) -> bool:
    try:
        with open_bytes(source.path) as file:
            packed = unpacked(file)[1]
            return not packed and foreign(file.peek(HEAD)[:HEAD]) is None and are_runs_a_line(file)
    except OSError:
        return False  # The worker tells why.
