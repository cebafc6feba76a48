"""Work on every run of an input, on every core, with the results in the input's order.

Only a few pieces are under way at once, so that memory does not grow with the input. Processes
are started only when the work takes long enough to be worth it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from langchain_loopguard.replay.conversation import Conversation, Problem, WorkError
from langchain_loopguard.replay.sources import find_sources, join_tables, pieces_of
from langchain_loopguard.replay.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor, Future

    from langchain_loopguard.replay.texts import Found, Piece

T = TypeVar("T")

_ALONE_SECONDS = 0.4
"""How long one process works alone; starting others takes about as long."""

_AHEAD = 3
"""Pieces that wait for each process; more would only be kept in memory."""


class WorkerLostError(WorkError):
    """A process ended in the middle of its work; the system may have run out of memory."""


class Done(NamedTuple):
    """The results of the work on one piece, problems among them, and how much it holds."""

    results: list[Any]
    runs: int = 0
    calls: int = 0


def read_runs(
    paths: Iterable[str], *, threads: frozenset[str] = frozenset()
) -> Iterator[Conversation | Problem]:
    """Read every run behind these paths, in order, in this process.

    Args:
        paths: Files, directories, patterns, `-`, addresses; see `sources`.
        threads: Of a LangGraph checkpointer, only the threads with these ids.

    Yields:
        The runs, and a `Problem` for each part that could not be read.
    """
    sources = Sources()
    with Tables() as tables:
        for source, piece in find_pieces(paths, threads, tables):
            yield from sources.begin(source)
            for run in [piece] if isinstance(piece, Problem) else piece.read():
                if isinstance(run, Conversation):
                    sources.count(1, run.calls)
                yield run
    yield from sources.end()


def work_on_runs(
    paths: Iterable[str],
    work: Callable[[Conversation], T],
    *,
    jobs: int | None = None,
    dask: str | None = None,
    threads: frozenset[str] = frozenset(),
    progress: Callable[[int], object] = lambda _: None,
) -> Iterator[T | Problem]:
    """Do the same work on every run behind these paths.

    Args:
        paths: As for `read_runs`; on a cluster as its workers see them.
        work: Called with each run, in another process perhaps; it and its result must pickle.
        jobs: How many processes to use, by default one a core.
        dask: The address of a Dask cluster's scheduler, to work there.
        threads: As for `read_runs`.
        progress: Called with the bytes of the input that were done since the last time.

    Yields:
        The results in the order of the input, and a `Problem` for each part that could not be
        read.

    Raises:
        WorkError: If a process died, or the cluster can't be reached or gave up.
    """
    sources = Sources()
    if dask is not None:
        from langchain_loopguard.replay import fleet  # noqa: PLC0415 - an extra

        with fleet.cluster(dask) as (pool, workers), Tables(partial(fleet.deal, pool)) as tables:
            pieces = fleet.find_pieces(pool, paths, threads, tables)
            yield from _in_pool(pool, pieces, work, workers * _AHEAD, progress, sources)
        return
    with Tables() as tables:
        pieces = find_pieces(paths, threads, tables)
        yield from _on_cores(pieces, work, jobs or _cores(), progress, sources)


def _on_cores(
    pieces: Iterator[Found],
    work: Callable[[Conversation], T],
    jobs: int,
    progress: Callable[[int], object],
    sources: Sources,
) -> Iterator[T | Problem]:
    """Work alone at first, since starting processes takes a while, then in a pool of them."""
    until = time.monotonic() + _ALONE_SECONDS
    for source, piece in pieces:
        yield from sources.begin(source)
        yield from sources.take(work_on_piece(piece, work))
        progress(size_of(piece))
        if jobs > 1 and time.monotonic() > until:
            break
    else:
        yield from sources.end()
        return
    pool = ProcessPoolExecutor(jobs, mp_context=_context(), initializer=_leave_interrupts_alone)
    try:
        yield from _in_pool(pool, pieces, work, jobs * _AHEAD, progress, sources)
    except BrokenProcessPool as error:
        raise WorkerLostError(
            "a worker process ended in the middle of its work, for lack of memory perhaps: "
            "fewer processes need less"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class Sources:
    """Finds the sources in whose runs there is no call: most likely they were misread."""

    def __init__(self) -> None:
        """Start before the first source."""
        self._name = ""
        self._runs = self._calls = 0

    def begin(self, name: str) -> Iterator[Problem]:
        """Go on to a source, which may be the same one."""
        if name != self._name:
            yield from self.end()
            self._name = name

    def count(self, runs: int, calls: int) -> None:
        """Count what was found in the source."""
        self._runs += runs
        self._calls += calls

    def take(self, done: Done) -> list[Any]:
        """Count a piece's work; returns its results."""
        self.count(done.runs, done.calls)
        return done.results

    def end(self) -> Iterator[Problem]:
        """End the source."""
        if self._runs and not self._calls:
            runs = "the only run" if self._runs == 1 else f"any of the {self._runs:,} runs"
            yield Problem(self._name, f"no call was found in {runs}")
        self._runs = self._calls = 0


def find_pieces(paths: Iterable[str], threads: frozenset[str], tables: Tables) -> Iterator[Found]:
    """Cut everything behind these paths into pieces."""
    for source in join_tables(find_sources(paths)):
        if isinstance(source, Problem):
            yield source.source, source
        else:
            for piece in pieces_of(source, threads, tables):
                yield source.name, piece


def work_on_piece(piece: Piece | Problem, work: Callable[[Conversation], Any]) -> Done:
    """Do the work on every run of one piece."""
    if isinstance(piece, Problem):
        return Done([piece])
    results: list[Any] = []
    runs = calls = 0
    for run in piece.read():
        if isinstance(run, Problem):
            results.append(run)
        else:
            runs, calls = runs + 1, calls + run.calls
            results.append(work(run))
    return Done(results, runs, calls)


def size_of(piece: Piece | Problem) -> int:
    """Return the bytes of the input that a piece stands for."""
    return 0 if isinstance(piece, Problem) else piece.size


def _in_pool(
    pool: Executor,
    pieces: Iterator[Found],
    work: Callable[[Conversation], T],
    ahead: int,
    progress: Callable[[int], object],
    sources: Sources,
) -> Iterator[T | Problem]:
    under_way: deque[tuple[str, Future[Done], int]] = deque()
    more = True
    while more or under_way:
        while more and len(under_way) < ahead:
            found = next(pieces, None)
            if found is None:
                more = False
            else:
                with _interrupts_held():
                    done = pool.submit(work_on_piece, found[1], work)
                under_way.append((found[0], done, size_of(found[1])))
        if under_way:
            source, done, size = under_way.popleft()
            yield from sources.begin(source)
            yield from sources.take(done.result())
            progress(size)
    yield from sources.end()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while processes are started, which inherit that.

    One that was interrupted before it came to `_leave_interrupts_alone` would look like a lost
    one.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave_interrupts_alone() -> None:
    """Ignore Ctrl-C, which reaches every process of a terminal; the first one answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _context() -> multiprocessing.context.BaseContext:
    """Choose how to start processes: by forking where nothing else runs, since it is quickest.

    Parquet files are read by threads that Python does not know of.
    """
    alone = threading.active_count() == 1 and "pyarrow" not in sys.modules
    return multiprocessing.get_context("fork" if alone and sys.platform == "linux" else "spawn")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
