"""What does the same tool call cost in other guards?

Check and record of one call through each peer's own interface, as its documentation shows it,
with its default settings. Each in a process of its own, in the same order of work on the same
calls, the processes taking turns; the least of all times counts. The calls are all different, so
that nobody stops.

The peers are no dependency: `pip install --group peers` puts them beside the package, or give
`--peers-python` the interpreter of an environment that has them. One that is not installed is
shown as such.

Started by itself, this file measures one of them; it then needs nothing but Python and that one.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.made import HISTORIES, SIZES, Made, guard_work, made

if TYPE_CHECKING:
    from rich.table import Table

_Work = Callable[[Made], Any]


@dataclass(frozen=True)
class Peer:
    """A guard.

    Attributes:
        package: Its name on PyPI.
        make: Makes it and gives what is done with it for one call.
        interface: What is called.
        arguments: Whether it compares the arguments of calls.
        results: Whether it compares results.
    """

    package: str
    make: Callable[[], _Work]
    interface: str
    arguments: str
    results: str


def _loopguard() -> _Work:
    from langchain_loopguard import LoopGuard

    return guard_work(LoopGuard())


def _able() -> _Work:
    from able_harness_kit import ProgressAwareLoopGuardMiddleware
    from langchain.agents.middleware.types import ToolCallRequest
    from langchain_core.messages import ToolMessage

    guard = ProgressAwareLoopGuardMiddleware()
    # The host makes request and message, so one of each is made and only filled.
    request = ToolCallRequest(tool_call={}, tool=None, state=None, runtime=None)
    message = ToolMessage("", tool_call_id="")

    def work(item: Made) -> None:
        request.tool_call.update(item.call)
        message.content = item.result
        guard.wrap_tool_call(request, lambda request: message)

    return work


def _agentbelt() -> _Work:
    from agentbelt_loop import LoopDetector

    detector = LoopDetector()

    def work(item: Made) -> None:
        call = item.call
        detector.record("session", tool=call["name"], args=call["args"], result=item.result)
        detector.check("session")

    return work


def _trajectory() -> _Work:
    from trajectory_fuse import Action, AgentFuse

    fuse = AgentFuse()

    def work(item: Made) -> None:
        call = item.call
        if fuse.check(call["name"], call["args"]) is not None:
            raise AssertionError("a loop in calls that all differ")
        fuse.observe(Action(tool=call["name"], args=call["args"], result=item.result, success=True))

    return work


def _runbound() -> _Work:
    import runbound

    runbound.init()
    results: list[str] = []

    @runbound.tool(name="edit_file")
    def edit_file(path: str, text: str) -> str:
        return results.pop()

    def work(item: Made) -> None:
        results.append(item.result)
        edit_file(**item.call["args"])

    return work


def _monetise() -> _Work:
    from monetise_circuit_breaker import CircuitBreaker

    breaker = CircuitBreaker(mode="loop-killer")

    def work(item: Made) -> None:
        breaker.record_iteration(item.result)

    return work


PEERS = (
    Peer("langchain-loopguard", _loopguard, "LoopGuard.check, record_results", "yes", "yes"),
    Peer(
        "able-harness-kit",
        _able,
        "ProgressAwareLoopGuardMiddleware.wrap_tool_call",
        "yes",
        "yes",
    ),
    Peer("agentbelt-loop", _agentbelt, "LoopDetector.record, check", "yes", "yes"),
    Peer("trajectory-fuse", _trajectory, "AgentFuse.check, observe", "yes", "of failures only"),
    Peer("runbound", _runbound, "@runbound.tool", "yes", "no"),
    Peer(
        "monetise-circuit-breaker",
        _monetise,
        "CircuitBreaker.record_iteration(last message)",
        "no",
        "yes",
    ),
)

_WINDOW = 40
"""Calls of the same size before those that are measured: what some peers look back on is full
then."""

_SLOW = 20.0
"""Seconds after which a history is given up as too long to play."""

# --- One peer, in its own process -------------------------------------------------------------


def one(peer: Peer, *, quick: bool) -> dict[str, Any]:
    """Measure a peer; gives least microseconds by size and by history."""
    try:
        work = peer.make()
    except ImportError:
        return {"installed": False}
    counts = (600, 60, 5) if quick else (2000, 150, 15)
    sizes = {}
    for (name, size), count in zip(SIZES.items(), counts, strict=True):
        work = peer.make()
        for item in made(_WINDOW, *size):
            work(item)
        sizes[name] = _least(work, made(count, *size, _WINDOW), 20 if count >= 500 else 1)
    histories: dict[str, float | None] = {}
    work = peer.make()
    done = 0
    begun = time.monotonic()
    for history in HISTORIES[: 2 if quick else 3]:
        while done < history and time.monotonic() - begun < _SLOW:
            for item in made(min(500, history - done), 100, 200, done):
                work(item)
                done += 1
        if done < history:
            histories[str(history)] = None
            continue
        histories[str(history)] = _least(work, made(400, 100, 200, done), 20)
        done += 400
    return {
        "installed": True,
        "version": _version(peer.package),
        "sizes": sizes,
        "histories": histories,
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # Run from a copy that is not installed.
        return ""


def _least(work: _Work, items: list[Made], piece: int) -> float:
    least = float("inf")
    for start in range(0, len(items) - piece + 1, piece):
        part = items[start : start + piece]
        begun = time.perf_counter_ns()
        for item in part:
            work(item)
        least = min(least, (time.perf_counter_ns() - begun) / piece / 1000)
    return least


# --- All of them ------------------------------------------------------------------------------


def measure(*, quick: bool = False, python: str = sys.executable) -> list[dict[str, Any]]:
    """Measure all.

    Args:
        quick: Whether to measure less.
        python: The interpreter that has the peers; the package itself is measured in this one.
    """
    found: dict[str, dict[str, Any]] = {}
    for _ in range(1 if quick else 3):
        for peer in PEERS:
            own = peer.package == "langchain-loopguard"
            came = _apart(peer.package, sys.executable if own else python, quick=quick)
            known = found.setdefault(peer.package, came)
            for part in ("sizes", "histories") if came.get("installed") else ():
                for name, least in came[part].items():
                    if least is not None and known[part][name] is not None:
                        known[part][name] = min(known[part][name], least)
    return [
        {
            "peer": peer.package,
            "interface": peer.interface,
            "compares_arguments": peer.arguments,
            "compares_results": peer.results,
            **found[peer.package],
        }
        for peer in PEERS
    ]


def _apart(package: str, python: str, *, quick: bool) -> dict[str, Any]:
    command = [python, "-m", "tests.benchmarks.peers", package, *(["--quick"] * quick)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        return {"installed": True, "failed": done.stderr[-1000:]}


def tables(found: list[dict[str, Any]]) -> list[Table]:
    """Show what was measured."""
    from rich.table import Column, Table

    heads = [
        *(name.replace(" + ", " +\n") for name in SIZES),
        *(f"after\n{n:,}" for n in HISTORIES),
    ]
    table = Table(Column("", no_wrap=True), "arguments", "results", *heads)
    table.title = (
        "Check and record of one call in other guards: least microseconds, and what is compared"
    )
    for row in found:
        if not row["installed"]:
            table.add_row(
                row["peer"], row["compares_arguments"], row["compares_results"], "not installed"
            )
            continue
        if "failed" in row:
            table.add_row(row["peer"], "", "", "failed")
            continue
        numbers = [row["sizes"].get(name) for name in SIZES]
        numbers += [row["histories"].get(str(n)) for n in HISTORIES]
        table.add_row(
            f"{row['peer']} {row['version']}".strip(),
            row["compares_arguments"],
            row["compares_results"],
            *("" if n is None else f"{n:,.1f}" if n < 100 else f"{n:,.0f}" for n in numbers),
        )
    return [table]


def main() -> None:
    """Measure the peer that is named and print it as JSON."""
    logging.disable(logging.CRITICAL)
    peer = next(peer for peer in PEERS if peer.package == sys.argv[1])
    print(json.dumps(one(peer, quick="--quick" in sys.argv)))


if __name__ == "__main__":
    main()
