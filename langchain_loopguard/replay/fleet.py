"""How is the work done on more than one machine?

On a Dask cluster, with the functions that work here too. The workers read the input themselves,
so that it must be at the same path for all of them, on a shared disk or in a store that fsspec
knows. Plain files of lines are cut into blocks; everything else goes to one worker a file.

A worker that is lost in the middle is no loss: its work is done again by another one. The results
come in the order of the input and are the same as on one machine.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from distributed import Client
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from langchain_loopguard.replay.parallel import WorkError, all_of, work_on_piece
from langchain_loopguard.replay.pieces import Lines, is_postgres
from langchain_loopguard.replay.problems import Problem
from langchain_loopguard.replay.sources import Source, find_sources, pieces_of
from langchain_loopguard.replay.streams import HEAD, foreign, lines_of, open_bytes, unpacked
from langchain_loopguard.replay.texts import are_runs_a_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from langchain_loopguard.replay.conversation import Conversation

T = TypeVar("T")

BLOCK = 32 * 2**20
"""Bytes of one block: some seconds of work, so that a lost worker costs little."""

_AHEAD = 4
"""Pieces of work that wait for each worker's thread."""

_RETRIES = 5
"""How often work is done again that failed with its worker."""


_PATIENCE = "10s"
"""How long to wait for the cluster to answer."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a plain file of lines: those that begin in it.

    Attributes:
        source: The file.
        start: Its first byte.
        end: The byte after its last one.
    """

    source: Source
    start: int
    end: int


class ClusterError(WorkError):
    """The cluster can't be reached, or it gave up."""


def work_on_cluster(
    address: str,
    paths: Iterable[str],
    work: Callable[[Conversation], T],
    *,
    threads: frozenset[str] = frozenset(),
    progress: Callable[[int], None] | None = None,
) -> Iterator[T | Problem]:
    """Do the same work on every run behind these paths, on a cluster.

    Args:
        address: The scheduler's address.
        paths: As for `work_on_runs`, as the workers see them.
        work: Called with each run.
        threads: As for `work_on_runs`.
        progress: Told how many bytes of the input were done since the last time.

    Yields:
        The results in the order of the input, and a `Problem` for each part that could not be
        read.

    Raises:
        ClusterError: If the cluster can't be reached or gives up.
    """
    try:
        client: Any = Client(address, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise ClusterError(f"no Dask cluster answers at {address}: {error}") from error
    with client:
        ahead = _AHEAD * max(sum(client.nthreads().values()), 1)
        waiting: deque[_Task] = deque()
        tasks = _tasks(client, paths, work, threads)
        try:
            more = True
            while more or waiting:
                while more and len(waiting) < ahead:
                    task = next(tasks, None)
                    if task is None:
                        more = False
                    else:
                        waiting.append(task)
                if waiting:
                    task = waiting.popleft()
                    yield from task.results()
                    if progress is not None:
                        progress(task.size)
        except (FutureCancelledError, KilledWorker, OSError) as error:
            raise ClusterError(f"the cluster gave up: {error}") from error


@dataclass(frozen=True, slots=True)
class _Task:
    """Work that is under way, or a problem in its place."""

    size: int
    under_way: Any

    def results(self) -> list[Any]:
        """Wait for the results."""
        if isinstance(self.under_way, Problem):
            return [self.under_way]
        results: list[Any] = self.under_way.result()
        return results


def _tasks(
    client: Any,
    paths: Iterable[str],
    work: Callable[[Conversation], Any],
    threads: frozenset[str],
) -> Iterator[_Task]:
    submit = partial(client.submit, pure=False, retries=_RETRIES)
    for source in find_sources(paths):
        if isinstance(source, Problem):
            yield _Task(0, source)
        elif source.path == "-" or is_postgres(source.path):
            for piece in pieces_of(source, threads):
                if isinstance(piece, Problem):
                    yield _Task(0, piece)
                else:
                    yield _Task(piece.size, submit(all_of, piece, work))
        elif source.size > BLOCK and not threads and _can_be_cut(source):
            blocks = _blocks(source)
            counts = [submit(count_lines, block) for block in blocks]
            first = 1
            for block, count in zip(blocks, counts, strict=True):
                size = block.end - block.start
                yield _Task(size, submit(work_on_block, block, first, work))
                first += count.result()
        else:
            yield _Task(source.size, submit(_work_on_source, source, threads, work))


def _blocks(source: Source) -> list[Block]:
    starts = range(0, source.size, BLOCK)
    return [Block(source, start, min(start + BLOCK, source.size)) for start in starts]


def _can_be_cut(source: Source) -> bool:
    try:
        with open_bytes(source.path) as file:
            packed = unpacked(file)[1]
            return not packed and foreign(file.peek(HEAD)[:HEAD]) is None and are_runs_a_line(file)
    except OSError:
        return False  # The worker tells why.


def count_lines(block: Block) -> int:
    """Count the lines that begin in a block."""
    lines = 0 if block.start else 1
    with open_bytes(block.source.path) as file:
        # A line begins after a line end.
        at = max(block.start - 1, 0)
        file.seek(at)
        while at < block.end - 1:
            chunk = file.read(min(2**20, block.end - 1 - at))
            if not chunk:
                break
            at += len(chunk)
            lines += chunk.count(b"\n")
    return lines


def work_on_block(block: Block, first: int, work: Callable[[Conversation], T]) -> list[T | Problem]:
    """Do the work on the lines that begin in a block.

    Args:
        block: The block.
        first: The number of its first line.
        work: Called with each run.
    """
    name = block.source.name
    lines: list[tuple[int, bytes | None]] = []
    with open_bytes(block.source.path) as file:
        if block.start:
            file.seek(block.start - 1)
            while (line := file.readline(2**20)) and not line.endswith(b"\n"):
                pass
        at = file.tell()
        for number, line_or_none in lines_of(file) if at < block.end else ():
            lines.append((first + number - 1, line_or_none))
            if file.tell() >= block.end:
                break
    return list(work_on_piece(Lines(name, lines, 0), work))


def _work_on_source(
    source: Source, threads: frozenset[str], work: Callable[[Conversation], T]
) -> list[T | Problem]:
    results: list[T | Problem] = []
    for piece in pieces_of(source, threads):
        if isinstance(piece, Problem):
            results.append(piece)
        else:
            results.extend(work_on_piece(piece, work))
    return results
