"""Which inputs are huge, deep or hostile, and how long do they take?

`python -m tests.fuzz.sizes` runs every case at its largest size and at twice that size, and prints
the seconds, their ratio and the bytes of the state that is left. Ends with 1 when a ratio is 3 or
more, or the state has more than 9 KB.
"""

import argparse
import contextlib
import gc
import json
import resource
import sys
import time

import orjson
from langchain_core.messages import AIMessage, ToolMessage
from langchain_loopguard.interrupts import InvalidResumeError, interrupt_payload, parse_resume
from langchain_loopguard.messages import MessageReader

from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from tests.core.odd import HostileDict, HostileList, HostileObject, HostileText, LiesAboutItsClass

MOST = 9216
"""Bytes of a reader's state: 8 KB of counts and its place."""

MEASURABLE = 0.2
"""CPU seconds; below that chance decides."""


def played(args=None, content="text", number=3):
    """Give a function that plays one call with these arguments and this answer."""

    def play():
        guard = LoopGuard()
        for _ in range(number):
            decision = guard.check([{"name": "edit", "args": args, "id": "1"}])
            guard.record_results(decision.record, [{"id": "1", "content": content}])
        return guard

    return play


def read(*messages):
    """Give a function that reads these messages."""

    def reading():
        reader = MessageReader(LoopGuard())
        reader.read(messages)
        return reader

    return reading


def nested(levels, wrap):
    value = 1
    for _ in range(levels):
        value = wrap(value)
    return value


def long_text(size):
    return "0123456789 line of text\n" * (size // 24)


def one_line(size):
    return "1d " * (size // 3)


def many_calls(size):
    calls = [
        {"name": f"t{n % 7}", "args": {"n": n}, "id": f"call_{n}", "type": "tool_call"}
        for n in range(size)
    ]
    answers = [ToolMessage(f"a {n % 5}", tool_call_id=f"call_{n}", id=f"t{n}") for n in range(size)]
    return read(AIMessage("", tool_calls=calls, id="a"), *answers)


def many_calls_of_one_id(size):
    calls = [{"name": "t", "args": {"n": n}, "id": "1", "type": "tool_call"} for n in range(size)]
    return read(AIMessage("", tool_calls=calls), *[ToolMessage("a", tool_call_id="1")] * size)


def many_blocks(size):
    blocks = [{"type": "text", "text": "a"}] * size
    return read(
        AIMessage("", tool_calls=[{"name": "t", "args": {}, "id": "call_12345"}], id="a"),
        ToolMessage.model_construct(
            content=blocks, tool_call_id="call_12345", status="success", additional_kwargs={}
        ),
    )


def many_messages(size):
    messages = []
    for n in range(size):
        call = {"name": "t", "args": {"n": n % 3}, "id": f"c{n}"}
        messages += [
            AIMessage("", tool_calls=[call], id=f"a{n}"),
            ToolMessage("x", tool_call_id=f"c{n}"),
        ]
    return read(*messages)


def resumed(make):
    def case(size):
        value = make(size)

        def run():
            with contextlib.suppress(InvalidResumeError):
                parse_resume(value, 1)

        return run

    return case


def asked(make):
    def case(size):
        call = {"name": "edit", "args": make(size), "id": "1"}

        def run():
            guard = LoopGuard()
            orjson.dumps(interrupt_payload(guard.check([call]), [call]))
            return guard

        return run

    return case


def restored(make):
    def case(size):
        value = make(size)

        def run():
            with contextlib.suppress(GuardStateError):
                MessageReader.from_state(LoopGuardPolicy(), value)

        return run

    return case


def saved(**parts):
    state = {**LoopGuard().to_state(), **parts}
    return {
        "v": 1,
        "human": None,
        "last": None,
        "calls": "",
        "open": False,
        "emitted": "",
        "guard": state,
    }


def hostile(size):
    values = [
        HostileObject(),
        LiesAboutItsClass(),
        HostileText("a"),
        HostileDict(a=1),
        HostileList([1]),
    ]
    values = values * (size // 5)
    return played({"a": values}, values, 1)


def cyclic(size):
    value = [{"a": [None] * 9} for _ in range(size)]
    value.append(value)
    return played({"a": value}, value, 1)


CASES = {
    "argument": (lambda n: played({"text": "a" * n}), 500_000),
    "argument of surrogates": (lambda n: played({"text": "\ud800" * n}), 100_000),
    "answer of lines": (lambda n: played({}, long_text(n)), 500_000),
    "answer of clocks": (lambda n: played({}, one_line(n)), 50_000),
    "answer without lines": (lambda n: played({}, "x" * n), 500_000),
    "answer of numbers": (lambda n: played({}, "1" * n), 200_000),
    "keys": (lambda n: played({str(k): k for k in range(n)}), 20_000),
    "keys of numbers": (lambda n: played({k * 2**61: k for k in range(n)}, number=1), 5_000),
    "nested lists": (lambda n: played(nested(n, lambda v: [v]), nested(n, lambda v: [v])), 2_000),
    "nested mappings": (lambda n: played(nested(n, lambda v: {"a": v})), 2_000),
    "nested content": (
        lambda n: played({}, nested(n, lambda v: [{"type": "text", "text": v}])),
        2_000,
    ),
    "big integer": (lambda n: played({"n": 10**n}, 10**n), 10_000),
    "calls": (many_calls, 500),
    "calls of one id": (many_calls_of_one_id, 500),
    "blocks": (many_blocks, 10_000),
    "messages": (many_messages, 500),
    "cyclic": (cyclic, 1_000),
    "hostile": (hostile, 500),
    "resume text": (resumed(lambda n: "no " * n), 100_000),
    "resume list": (resumed(lambda n: [{"type": "approve"}] * n), 50_000),
    "resume nested": (resumed(lambda n: nested(n, lambda v: [v])), 5_000),
    "question": (asked(lambda n: {str(k): k for k in range(n)}), 20_000),
    "question nested": (asked(lambda n: nested(n, lambda v: {"a": v})), 5_000),
    "state nested": (
        restored(lambda n: saved(rules=nested(n, lambda v: {"same_answer": v}))),
        5_000,
    ),
    "state of keys": (restored(lambda n: saved(refused={str(k): 1 for k in range(n)})), 20_000),
    "state of a text": (
        restored(lambda n: saved(progress={"new": "0" * n, "old": "", "frames": []})),
        500_000,
    ),
}
"""Name -> a function from a size to what is run, and the size of the quick test."""

LARGEST = {
    "argument": 50 * 2**20,
    "answer of lines": 50 * 2**20,
    "answer without lines": 50 * 2**20,
    "answer of clocks": 50 * 2**20,
    "answer of numbers": 50 * 2**20,
    "argument of surrogates": 5 * 2**20,
    "keys": 1_000_000,
    "nested lists": 10_000,
    "nested mappings": 10_000,
    "nested content": 10_000,
    "calls": 10_000,
    "calls of one id": 10_000,
    "blocks": 1_000_000,
    "messages": 10_000,
    "resume text": 5 * 2**20,
    "resume list": 1_000_000,
    "resume nested": 10_000,
    "question": 1_000_000,
    "question nested": 10_000,
    "state nested": 10_000,
    "state of keys": 1_000_000,
    "state of a text": 50 * 2**20,
}
"""The sizes of the command; other cases are run at ten times that of the quick test."""


def state_of(guard):
    """Give the JSON of a guard's or a reader's state."""
    return json.dumps(guard.to_state(), allow_nan=False).encode()


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sizes")
    parser.add_argument("--case", action="append", help="only this case; may be repeated")
    options = parser.parse_args()
    wrong = 0
    print(f"{'case':<24} {'size':>11} {'seconds':>8} {'twice':>8} {'ratio':>6} {'state B':>8}")  # noqa: T201
    for name, (case, quick) in CASES.items():
        if options.case and name not in options.case:
            continue
        size = LARGEST.get(name, 10 * quick)
        once, guard = _timed(case, size)
        kept = len(state_of(guard)) if guard is not None else 0
        twice, _ = _timed(case, 2 * size)
        bad = (twice >= 3 * once and twice > MEASURABLE) or kept > MOST
        wrong += bad
        row = f"{name:<24} {size:>11,} {once:>8.2f} {twice:>8.2f} {twice / max(once, 1e-6):>6.1f}"
        print(f"{row} {kept:>8,}{'  WRONG' if bad else ''}", flush=True)  # noqa: T201
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak memory: {peak} MB")  # noqa: T201
    sys.exit(1 if wrong else 0)


def cpu_seconds(run):
    """Time one run without the collector, which comes when it likes and looks at everything."""
    gc.collect()
    gc.disable()
    try:
        started = time.process_time()
        guard = run()
        return time.process_time() - started, guard
    finally:
        gc.enable()


def _timed(case, size):
    """Run a case twice; the quicker run counts, since other work may disturb."""
    (first, guard), (second, _) = (cpu_seconds(case(size)) for _ in range(2))
    return min(first, second), guard


if __name__ == "__main__":
    main()
