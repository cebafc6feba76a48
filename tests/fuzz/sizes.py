"""Which inputs are huge, deep or hostile, and how long do they take?

`python -m tests.fuzz.sizes` runs every case at its largest size and at twice that size, and prints
the seconds, their ratio and the bytes of the state that is left. Ends with 1 when a ratio is 3 or
more, or the state has more than its bound.
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

from langchain_loopguard import LoopGuard
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.langchain.errors import InvalidResumeError
from langchain_loopguard.langchain.history import Reader
from langchain_loopguard.langchain.messages import last_step
from langchain_loopguard.langchain.options import Options
from langchain_loopguard.langchain.question import Asked, make_question
from langchain_loopguard.langchain.replies import read_reply
from tests.core.odd import HostileDict, HostileList, HostileObject, HostileText, LiesAboutItsClass

MOST = 9216
"""Bytes of a reader's state: 8 KB of counts and its place."""

MEASURABLE = 0.2
"""Seconds of the processor; below that chance decides."""

OPTIONS = Options()
CALL = {"name": "t", "args": {}, "id": "call_12345", "type": "tool_call"}


def played(args=None, content="text", number=3):
    """Give a function that plays one call with these arguments and this result."""

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
        reader = Reader(OPTIONS)
        reader.read(messages)
        return reader

    return reading


def nested(levels, wrap):
    value = 1
    for _ in range(levels):
        value = wrap(value)
    return value


def in_lists(levels):
    return nested(levels, lambda value: [value])


def keys(size):
    return {str(key): key for key in range(size)}


def many_calls(size):
    calls = [
        {**CALL, "name": f"t{n % 7}", "args": {"n": n}, "id": f"call_{n}"} for n in range(size)
    ]
    results = [ToolMessage(f"a {n % 5}", tool_call_id=f"call_{n}", id=f"t{n}") for n in range(size)]
    return read(AIMessage("", tool_calls=calls, id="a"), *results)


def many_calls_of_one_id(size):
    calls = [{**CALL, "args": {"n": n}, "id": "1"} for n in range(size)]
    return read(AIMessage("", tool_calls=calls), *[ToolMessage("a", tool_call_id="1")] * size)


def many_blocks(size):
    blocks = [{"type": "text", "text": "a"}] * size
    result = ToolMessage.model_construct(
        content=blocks, tool_call_id="call_12345", status="success", additional_kwargs={}
    )
    return read(AIMessage("", tool_calls=[CALL], id="a"), result)


def many_messages(size):
    messages = []
    for n in range(size):
        call = {**CALL, "args": {"n": n % 3}, "id": f"c{n}"}
        messages += [
            AIMessage("", tool_calls=[call], id=f"a{n}"),
            ToolMessage("x", tool_call_id=f"c{n}"),
        ]
    return read(*messages)


def replied(value):
    def run():
        with contextlib.suppress(InvalidResumeError):
            read_reply(value, [CALL])

    return run


def asked(args):
    call = {**CALL, "args": args}
    step = last_step([AIMessage.model_construct(content="", tool_calls=[call],
                                                invalid_tool_calls=[])])  # fmt: skip

    def run():
        guard = LoopGuard()
        found = guard.check([call])
        question = make_question(found, step, [step.message], asked=Asked(), options=OPTIONS)
        orjson.dumps(question)
        return guard

    return run


def restored(**parts):
    state = Reader(OPTIONS).to_state()
    state["guard"].update(parts)

    def run():
        with contextlib.suppress(GuardStateError):
            Reader.from_state(OPTIONS, state)

    return run


def hostile(size):
    kinds = [HostileObject, LiesAboutItsClass, lambda: HostileText("a"), HostileDict, HostileList]
    values = [make() for make in kinds] * (size // 5)
    return played({"a": values}, values, 1)


def cyclic(size):
    value = [{"a": [None] * 9} for _ in range(size)]
    value.append(value)
    return played({"a": value}, value, 1)


MB = 2**20

CASES = {
    "argument": (lambda n: played({"text": "a" * n}), 500_000, 50 * MB),
    "argument of surrogates": (lambda n: played({"text": "\ud800" * n}), 100_000, 5 * MB),
    "result of lines": (
        lambda n: played({}, "0123456789 line of text\n" * (n // 24)),
        500_000,
        50 * MB,
    ),
    "result of clocks": (lambda n: played({}, "1d " * (n // 3)), 50_000, 50 * MB),
    "result without lines": (lambda n: played({}, "x" * n), 500_000, 50 * MB),
    "result of numbers": (lambda n: played({}, "1" * n), 200_000, 50 * MB),
    "keys": (lambda n: played(keys(n)), 20_000, 1_000_000),
    "keys of numbers": (
        lambda n: played({k * 2**61: k for k in range(n)}, number=1),
        5_000,
        50_000,
    ),
    "nested lists": (lambda n: played(in_lists(n), in_lists(n)), 2_000, 10_000),
    "nested mappings": (lambda n: played(nested(n, lambda v: {"a": v})), 2_000, 10_000),
    "nested content": (
        lambda n: played({}, nested(n, lambda v: [{"type": "text", "text": v}])), 2_000, 10_000,
    ),
    "big integer": (lambda n: played({"n": 10**n}, 10**n), 10_000, 100_000),
    "calls": (many_calls, 500, 10_000),
    "calls of one id": (many_calls_of_one_id, 500, 10_000),
    "blocks": (many_blocks, 10_000, 1_000_000),
    "messages": (many_messages, 500, 10_000),
    "cyclic": (cyclic, 1_000, 10_000),
    "hostile": (hostile, 500, 5_000),
    "reply text": (lambda n: replied("no " * n), 100_000, 5 * MB),
    "reply list": (lambda n: replied([{"type": "approve"}] * n), 50_000, 1_000_000),
    "reply nested": (lambda n: replied(in_lists(n)), 5_000, 10_000),
    "question": (lambda n: asked(keys(n)), 20_000, 1_000_000),
    "question nested": (lambda n: asked(nested(n, lambda v: {"a": v})), 5_000, 10_000),
    "state nested": (lambda n: restored(rules=nested(n, lambda v: {"repeat": v})), 5_000, 10_000),
    "state of keys": (lambda n: restored(refused=keys(n)), 20_000, 1_000_000),
    "state of a text": (lambda n: restored(always=["0" * n]), 500_000, 50 * MB),
}  # fmt: skip
"""Name -> a function from a size to what is run, the size of the quick test, and the largest."""


def state_of(guard):
    """Give the JSON of a guard's or a reader's state."""
    return json.dumps(guard.to_state(), allow_nan=False, separators=(",", ":")).encode()


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


def least(run):
    """Run twice; the quicker run counts, since other work may disturb."""
    (first, guard), (second, _) = cpu_seconds(run), cpu_seconds(run)
    return min(first, second), guard


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sizes")
    parser.add_argument("--case", action="append", help="only this case; may be repeated")
    options = parser.parse_args()
    wrong = 0
    print(f"{'case':<24} {'size':>11} {'seconds':>8} {'twice':>8} {'ratio':>6} {'state B':>8}")  # noqa: T201
    for name, (case, _, size) in CASES.items():
        if options.case and name not in options.case:
            continue
        once, guard = least(case(size))
        kept = len(state_of(guard)) if guard is not None else 0
        twice, _ = least(case(2 * size))
        bad = (twice >= 3 * once and twice > MEASURABLE) or kept > MOST
        wrong += bad
        row = f"{name:<24} {size:>11,} {once:>8.2f} {twice:>8.2f} {twice / max(once, 1e-6):>6.1f}"
        print(f"{row} {kept:>8,}{'  WRONG' if bad else ''}", flush=True)  # noqa: T201
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak memory: {peak} MB")  # noqa: T201
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
