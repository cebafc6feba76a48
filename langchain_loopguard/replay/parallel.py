"""How is work done on every run of an input, on every core, in the input's order?

The results come in the order of the input, whatever the number of processes. Only a few pieces
are under way at once, so that memory does not grow with the input. Processes are started only
when the work takes long enough to be worth it.
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
from typing import TYPE_CHECKING, TypeVar

from langchain_loopguard.replay.problems import Problem
from langchain_loopguard.replay.sources import find_sources, pieces_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from langchain_loopguard.replay.conversation import Conversation
    from langchain_loopguard.replay.pieces import Piece

T = TypeVar("T")

_ALONE_SECONDS = 0.4
"""How long one process works alone; starting others takes about as long."""

_AHEAD = 3
"""Pieces that wait for each process; more would only be kept in memory."""


class WorkError(RuntimeError):
    """The work can't be done, for a reason that is not in the input."""


class WorkerLostError(WorkError):
    """A process ended in the middle of its work; the system may have run out of memory."""


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
    for piece in find_pieces(paths, threads):
        if isinstance(piece, Problem):
            yield piece
        else:
            yield from piece.read()


def work_on_runs(
    paths: Iterable[str],
    work: Callable[[Conversation], T],
    *,
    jobs: int | None = None,
    threads: frozenset[str] = frozenset(),
    progress: Callable[[int], None] | None = None,
) -> Iterator[T | Problem]:
    """Do the same work on every run behind these paths.

    Args:
        paths: As for `read_runs`.
        work: Called with each run, in another process perhaps; it and its result must pickle.
        jobs: How many processes to use, by default one a core.
        threads: As for `read_runs`.
        progress: Told how many bytes of the input were done since the last time.

    Yields:
        The results in the order of the input, and a `Problem` for each part that could not be
        read.

    Raises:
        WorkerLostError: If a process died.
    """
    pieces = find_pieces(paths, threads)
    told = progress or _ignore
    jobs = jobs or _cores()
    until = time.monotonic() + _ALONE_SECONDS
    for piece in pieces:
        if isinstance(piece, Problem):
            yield piece
            continue
        yield from work_on_piece(piece, work)
        told(piece.size)
        if jobs > 1 and time.monotonic() > until:
            break
    else:
        return
    yield from _in_processes(pieces, work, jobs, told)


def find_pieces(paths: Iterable[str], threads: frozenset[str]) -> Iterator[Piece | Problem]:
    """Cut everything behind these paths into pieces."""
    for source in find_sources(paths):
        if isinstance(source, Problem):
            yield source
        else:
            yield from pieces_of(source, threads)


def work_on_piece(piece: Piece, work: Callable[[Conversation], T]) -> Iterator[T | Problem]:
    """Do the work on every run of one piece."""
    for run in piece.read():
        yield run if isinstance(run, Problem) else work(run)


def all_of(piece: Piece, work: Callable[[Conversation], T]) -> list[T | Problem]:
    """Do the work on every run of one piece, in another process."""
    return list(work_on_piece(piece, work))


def _in_processes(
    pieces: Iterator[Piece | Problem],
    work: Callable[[Conversation], T],
    jobs: int,
    told: Callable[[int], None],
) -> Iterator[T | Problem]:
    under_way: deque[tuple[Future[list[T | Problem]] | Problem, int]] = deque()
    pool = ProcessPoolExecutor(jobs, mp_context=_context(), initializer=_leave_interrupts_alone)
    try:
        more = True
        while more or under_way:
            while more and len(under_way) < jobs * _AHEAD:
                piece = next(pieces, None)
                if piece is None:
                    more = False
                elif isinstance(piece, Problem):
                    under_way.append((piece, 0))
                else:
                    with _interrupts_held():
                        under_way.append((pool.submit(all_of, piece, work), piece.size))
            if not under_way:
                break
            first, size = under_way.popleft()
            if isinstance(first, Problem):
                yield first
            else:
                yield from first.result()
                told(size)
    except BrokenProcessPool as error:
        raise WorkerLostError(
            "a worker process ended in the middle of its work, for lack of memory perhaps: "
            "fewer processes need less"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while processes are started, which inherit that.

    One that was interrupted before it came to `_leave_interrupts_alone` would be taken for lost.
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
    """Ctrl-C reaches every process of a terminal; only the first one is to answer it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _context() -> multiprocessing.context.BaseContext:
    """Choose how to start processes: by forking where nothing else runs, since it is quickest."""
    alone = threading.active_count() == 1
    return multiprocessing.get_context("fork" if alone and sys.platform == "linux" else "spawn")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _ignore(_size: int) -> None:
    """Tell nobody."""
