"""Does a run that is killed end as the same run does when nobody kills it?

A trial runs a scenario once in one process, and once more in processes that are killed one
after another; each is a fork of this warm one. What the two left behind is compared.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.scenarios import scenario
from tests.faults.worker import STAGES, Log, Turn, Worker

ANY_TIME = "any time"
"""A kill that the parent sends after a random time, inside whatever runs then."""

_PATIENCE = 60.0
"""Seconds until a process is taken for hung; the longest of these runs takes about one."""

_MAX_KILLS = 3


@dataclass
class Trial:
    """What came of one killed run.

    Attributes:
        adapter: The adapter.
        store: The store.
        number: The scenario's.
        durability: When LangGraph saved.
        kills: In which stages a process was killed.
        questions: How many questions a person was asked.
        stops: How often a person said "stop".
        twice: Tool runs whose answer was lost with the process, so that the host ran the call
            again.
        faults: What should not have been; empty for a run that survived.
    """

    adapter: str
    store: str
    number: int
    durability: str
    kills: list[str] = field(default_factory=list)
    questions: int = 0
    stops: int = 0
    twice: int = 0
    faults: list[str] = field(default_factory=list)


def trial(adapter: str, store: str, number: int, where: str, folder: Path) -> Trial:
    """Run a scenario twice, the second time with kills, and compare.

    Args:
        adapter: One of `worker.adapters()`.
        store: One of `stores.STORES`.
        number: Of the scenario; the kills follow from it too.
        where: The file or URI of the store; for `memory` a folder's name is made from it.
        folder: Where the logs go.
    """
    rng = random.Random(f"kills {adapter} {store} {number}")
    name = f"{adapter}-{store}-{number}"
    done = Trial(adapter, store, number, scenario(number, adapter).durability)

    whole = _Run(adapter, store, number, where, folder / f"{name}-whole.log")
    begun = time.monotonic()
    whole.go()
    took = time.monotonic() - begun
    expected = whole.lines()
    if not any(line["event"] == "final" for line in expected) or whole.problems:
        done.faults = [f"without a kill: {fault}" for fault in whole.problems or ["no end"]]
        return done

    killed = _Run(adapter, store, number, where, folder / f"{name}-killed.log")
    points = Counter(line["stage"] for line in expected if line["event"] == "at")
    for _ in range(rng.randint(1, _MAX_KILLS)):
        # Each stage as often as any other, though most of a run is spent in two of them.
        stage = rng.choice([*sorted(points), ANY_TIME])
        if stage == ANY_TIME:
            killed.go(after=rng.uniform(0, took))
        else:
            killed.go(f"{stage}:{rng.randint(1, points[stage])}")
    killed.go()
    done.kills = killed.kills
    actual = killed.lines()
    asked = [line for line in actual if line["event"] == "answered"]
    done.questions = len(asked)
    done.stops = sum(line["word"] == "stop" for line in asked)
    done.twice = sum(n - 1 for n in _tool_runs(actual).values())
    done.faults = [*killed.problems, *compare(expected, actual)]
    return done


class _Run:
    """The processes of one run."""

    def __init__(self, adapter: str, store: str, number: int, where: str, log: Path) -> None:
        self._log = log
        self._thread = log.stem
        where = str(log.with_suffix(".memory")) if store == "memory" else where
        self._make = lambda: Worker(adapter, number, store, where, Log(log))
        self.kills: list[str] = []
        self.problems: list[str] = []

    def go(self, kill_at: str = "", after: float | None = None) -> None:
        """Run a process until it ends or is killed."""
        if self.problems:
            return

        def work() -> None:
            os.environ["KILL_AT"] = kill_at
            worker = self._make()
            worker.run(self._thread)

        status, ours = forked(work, self._log.with_suffix(".err"), after)
        if os.WIFSIGNALED(status):
            killed = [line["stage"] for line in self.lines() if line["event"] == "killed"]
            told = sum(kill != ANY_TIME for kill in self.kills)
            if ours:
                self.kills.append(ANY_TIME)
            elif len(killed) > told:
                self.kills.append(killed[-1])
            else:
                self.problems.append("a process hung, or died by itself")
        elif os.WEXITSTATUS(status):
            text = self._log.with_suffix(".err").read_text().strip()
            self.problems.append(f"a process failed: {text[-2000:]}")

    def lines(self) -> list[dict[str, Any]]:
        """Give the log."""
        if not self._log.exists():
            return []
        return [json.loads(line) for line in self._log.read_text().splitlines()]


def forked(
    work: Callable[[], None], errors: Path, kill_after: float | None = None
) -> tuple[int, bool]:
    """Do something in a process of its own, which ends without cleaning up.

    Args:
        work: What to do.
        errors: A file for the traceback, if it fails.
        kill_after: After how many seconds to kill it.

    Returns:
        The status that `os.waitpid` gave, and whether it was killed from here.
    """
    pid = fork(work, errors)
    patience = _PATIENCE if kill_after is None else kill_after
    status, killed = _ended(pid, time.monotonic() + patience)
    return status, killed and kill_after is not None


def _ended(pid: int, deadline: float) -> tuple[int, bool]:
    """Wait for a process, and kill it when it is late; gives its status, and whether it was."""
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status, False
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            return status, os.WIFSIGNALED(status)
        time.sleep(0.001)


def fork(work: Callable[[], None], errors: Path) -> int:
    """Do something in a process of its own; gives its id, which must be waited for."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - the parent is told, whatever it was
        errors.write_text(traceback.format_exc())
    finally:
        sys.stdout.flush()
        os._exit(code)


def in_turns(
    adapter: str, store: str, number: int, where: str, folder: Path, workers: int = 2
) -> list[str]:
    """Let processes take turns on one thread, a step of the graph each, and compare with one.

    Returns:
        What should not have been.
    """
    name = f"{adapter}-{store}-{number}-turns"
    whole = _Run(adapter, store, number, where, folder / f"{name}-whole.log")
    whole.go()
    problems = list(whole.problems)
    path = folder / f"{name}-shared.log"
    path.touch()
    pids = _started(lambda: Worker(adapter, number, store, where, Log(path)), path, workers)
    for at, pid in enumerate(pids):
        status, killed = _ended(pid, time.monotonic() + _PATIENCE)
        if killed:
            problems.append(f"process {at} hung")
        elif status:
            problems.append(path.with_suffix(f".{at}.err").read_text()[-2000:])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return problems or compare(whole.lines(), lines)


def _started(make: Callable[[], Worker], log: Path, workers: int) -> list[int]:
    """Start processes in a ring, each of which passes the turn on; gives their ids."""
    pipes = [os.pipe() for _ in range(workers)]
    pids = []
    for at in range(workers):
        ours = (pipes[at][0], pipes[(at + 1) % workers][1])

        def work(ours: tuple[int, int] = ours) -> None:
            for end in {end for pair in pipes for end in pair}.difference(ours):
                os.close(end)
            make().run(log.stem, Turn(*ours))

        pids.append(fork(work, log.with_suffix(f".{at}.err")))
    os.write(pipes[0][1], b".")
    for pair in pipes:
        for end in pair:
            os.close(end)
    return pids


def compare(expected: Sequence[dict[str, Any]], actual: Sequence[dict[str, Any]]) -> list[str]:
    """Say what is wrong with a run that was killed.

    Args:
        expected: The log of the same run without a kill.
        actual: Its own log.
    """
    faults = [line["text"] for line in actual if line["event"] == "error"]
    final = _last(actual)
    if final is None:
        return [*faults, "the run did not come to its end"]
    for name, of in (
        ("counts", lambda lines: (_last(lines) or {}).get("counts")),
        ("messages", lambda lines: (_last(lines) or {}).get("messages")),
        ("questions", _questions),
        ("ends of a turn", _ends),
    ):
        wanted, got = of(expected), of(actual)
        if wanted != got:
            faults.append(f"other {name}: {_difference(wanted, got)}")
    return [*faults, *_wrong_tool_runs(actual, final)]


def _questions(lines: Sequence[dict[str, Any]]) -> list[Any]:
    # A client that died before it had an answer asks the same question, by its id, once more.
    asked = {line["id"]: line for line in lines if line["event"] == "asked"}
    keys = ("findings", "calls", "open")
    return [
        {**{key: line[key] for key in keys}, "message": _without_cost(line["message"])}
        for line in asked.values()
    ]


def _without_cost(message: str) -> str:
    # A model call that was killed is made twice, and counted so.
    costs = ("Since the loop began", "Over all questions")
    return "\n".join(x for x in message.splitlines() if not x.startswith(costs))


def _ends(lines: Sequence[dict[str, Any]]) -> list[Any]:
    return [line.get("error") for line in lines if line["event"] == "closed"]


def _wrong_tool_runs(lines: Sequence[dict[str, Any]], final: dict[str, Any]) -> list[str]:
    faults: list[str] = []
    waiting: set[str] = set()
    refused: set[str] = set()
    saved: set[str] = set()
    for line in lines:
        if line["event"] == "asked":
            waiting.update(line["calls"])
        elif line["event"] == "answered":
            waiting.clear()
            refused.update(line["refused"])
        elif line["event"] == "saved":
            saved.update(line["calls"])
        elif line["event"] == "tool":
            call = line["call"]
            for calls, what in (
                (refused, "ran although a person refused it"),
                (waiting, "ran while a person was asked about it"),
                (saved, "ran again although its answer was saved"),
            ):
                if call in calls:
                    faults.append(f"{call} {what}")
    ran = _tool_runs(lines)
    by_guard = [message["call"] for message in final["messages"] if message["by_guard"]]
    return [*faults, *(f"{c} ran although the guard refused it" for c in by_guard if c in ran)]


def _tool_runs(lines: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(line["call"] for line in lines if line["event"] == "tool")


def _last(lines: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    return next((line for line in reversed(lines) if line["event"] == "final"), None)


def _difference(wanted: Any, got: Any, path: str = "") -> str:
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key in {**wanted, **got}:
            if wanted.get(key) != got.get(key):
                return _difference(wanted.get(key), got.get(key), f"{path}.{key}")
    if isinstance(wanted, list) and isinstance(got, list):
        for at, pair in enumerate(zip(wanted, got, strict=False)):
            if pair[0] != pair[1]:
                return _difference(*pair, f"{path}[{at}]")
        return f"{path} has {len(got)} items, not {len(wanted)}: {(got + wanted)[-1:]}"
    return f"{path} is {got!r}, not {wanted!r}"[:600]


__all__ = ["ANY_TIME", "STAGES", "Trial", "compare", "forked", "in_turns", "trial"]
