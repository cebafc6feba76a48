"""What does the guard cost: bytes of state, microseconds of a step, milliseconds of a megabyte?

The bytes are the same on every machine, the times are not.
"""

from __future__ import annotations

import gc
import json
import random
import time
from typing import Any

from langchain_loopguard.core.guard import LoopGuard
from tests.evaluation.score import Goal

SIZES = {"100 B + 200 B": (100, 200), "10 KB + 10 KB": (10_000, 10_000), "1 MB": (100, 1_000_000)}
"""Bytes of arguments and of the result."""

GOALS = {
    "100 B + 200 B": (10, "4.2 to 6"),
    "10 KB + 10 KB": (30, "13 to 20"),
    "1 MB": (1000, "131 to 193"),
}
"""Microseconds of `check` and `record_results` to reach, and what the first core took."""

TOOLS = {"changing": "write_file", "reading": "read_file"}

_LARGE = 1_000_000
_STATE_CALLS = 10_000
_STATE_MOST = 8192
_REPEAT_MOST = 10.0


def state_bytes() -> dict[str, int]:
    """Count the bytes of the state as JSON after 10,000 calls of several kinds of runs."""
    return {name: _state_bytes(make) for name, make in _RUNS.items()}


def _state_bytes(make: Any) -> int:
    guard, chance = LoopGuard(), random.Random(1)
    for number in range(_STATE_CALLS // 2):
        # Two calls a step.
        made = [(*make(number, chance), f"c{place}") for place in range(2)]
        calls = [{"name": name, "args": args, "id": one} for name, args, _, one in made]
        decision = guard.check(calls)
        given = [{"tool_call_id": one, **result} for _, _, result, one in made]
        guard.record_results(decision.record, given)
    return len(json.dumps(guard.to_state(), separators=(",", ":")))


def _new(number: int, chance: random.Random) -> Any:
    return "read_file", {"path": chance.random()}, {"content": f"line {chance.random()}\n" * 3}


def _failing(number: int, chance: random.Random) -> Any:
    text = f"refused for {_word(chance)} of {_word(chance)}"
    return f"tool_{number % 40}" + "x" * 90, {"n": number}, {"content": text, "status": "error"}


def _mixed(number: int, chance: random.Random) -> Any:
    name = f"tool_{chance.randrange(12)}_" + "é" * 60
    lines = "\n".join([_word(chance) for _ in range(chance.randrange(30))])
    return name, {"path": chance.randrange(60)}, {"content": lines}


_RUNS = {"new each time": _new, "failing": _failing, "mixed, long names": _mixed}


def _word(chance: random.Random) -> str:
    return "".join(chance.choices("abcdefghij", k=8))


def state_goal() -> Goal:
    """Hold the largest state against its goal."""
    most = max(state_bytes().values())
    return Goal(
        "state after 10,000 calls, bytes as JSON",
        "3 to 4 KB",
        "≤ 8 KB, constant",
        f"{most:,} bytes".replace(",", " "),
        most <= _STATE_MOST,
    )


def times() -> list[Goal]:
    """Measure what a step costs, for each size and kind of tool, and a large repeat."""
    rows = []
    for size, (arguments, content) in SIZES.items():
        found = {kind: _step_cost(tool, arguments, content) for kind, tool in TOOLS.items()}
        most, landed = GOALS[size]
        rows.append(
            Goal(
                f"check + record, {size}, µs, {' / '.join(found)} tool",
                landed,
                f"≤ {most}",
                " / ".join([f"{cost:.1f}" for cost in found.values()]),
                max(found.values()) <= most,
            )
        )
    return [*rows, repeat_goal()]


def repeat_goal() -> Goal:
    """Measure what a repeated call costs whose large result differs."""
    large = {name: _repeat_cost(make) for name, make in _TEXTS.items()}
    return Goal(
        "a repeated call whose large result differs, ms per MB, worst text",
        "100 to 135",
        "≤ 10",
        f"{max(large.values()):.1f} ({max(large, key=lambda name: large[name])})",
        max(large.values()) <= _REPEAT_MOST,
    )


def _step_cost(tool: str, arguments: int, content: int) -> float:
    """Time steps of which no word comes twice; microseconds of the best piece."""
    count = 25 if content < _LARGE else 4
    guard, best = LoopGuard(), float("inf")
    for start in range(0, (20 if content < _LARGE else 5) * count, count):
        made = [
            ([_call(tool, n, _text(arguments - 60, n))], _text(content, n))
            for n in range(start, start + count)
        ]
        best = min(best, _timed(guard, made) / count)
    return best / 1e3


def _repeat_cost(make: Any) -> float:
    """Time one call with another result of 1 MB each time; milliseconds of the best."""
    guard = LoopGuard()
    calls = [_call("read_file", 1, "report")]
    return min([_timed(guard, [(calls, make(number))]) for number in range(6)]) / 1e6


def _timed(guard: LoopGuard, made: list[Any]) -> int:
    gc.collect()
    gc.disable()
    try:
        start = time.process_time_ns()
        for calls, content in made:
            decision = guard.check(calls)
            guard.record_results(decision.record, [{"tool_call_id": "c", "content": content}])
        return time.process_time_ns() - start
    finally:
        gc.enable()


def _call(tool: str, number: int, text: str) -> dict[str, Any]:
    return {"name": tool, "args": {"path": f"src/{number:x}.py", "text": text}, "id": "c"}


def _text(size: int, number: int) -> str:
    """Write lines of some fifty characters, with words of their own for each number."""
    words = max(1, size // 10)
    lines = [" ".join([f"@w{word:07x}" for word in range(at, at + 5)]) for at in range(0, words, 5)]
    return "\n".join(lines).replace("@", f"{number:x}")[:size].ljust(size, "x")


def _of(piece: str) -> Any:
    def make(number: int) -> str:
        return (f"{number} {piece * (_LARGE // len(piece))}")[:_LARGE]

    return make


_TEXTS = {
    "lines of a log": lambda number: _text(_LARGE, number),
    "digits": _of("7"),
    "hexadecimal": _of("0123456789abcdef"),
    "clocks": _of("12:34:56.789 "),
    "keys": _of("time=1 "),
    "open brackets": _of('[{"text":'),
    "spaces": _of(" "),
    "line ends": _of("\n"),
    "signed addresses": _of("?sig=a&"),
}
"""Large texts, some made to be slow."""
