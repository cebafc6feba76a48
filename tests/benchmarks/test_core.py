"""What does one tool call cost in the core, by size and by length of history?

The aim is at most 5 microseconds for 100 bytes of arguments and 200 bytes of answer, 30 for 10 KB
and 10 KB, 700 for an answer of 1 MB, and the same after 100,000 calls as after 10.
"""

import itertools

import pytest

from langchain_loopguard.core.canonical import canonical_arguments
from langchain_loopguard.core.detector import LoopDetector
from langchain_loopguard.core.results import hash_results


def step(arguments, answers):
    """Make one step of an agent: check, run the tool, record. The answers take turns."""
    detector = LoopDetector(max_observation_steps=10**9)
    calls = [{"name": "bash", "args": arguments, "id": "c0"}]
    turn = itertools.cycle(answers)

    def run():
        record = detector.check(calls)
        detector.record_results(record, hash_results(calls, [next(turn)]))

    return run


ARGUMENTS_100_B = {"command": "x" * 80, "n": 1}


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        pytest.param(ARGUMENTS_100_B, "y" * 200, id="100 B + 200 B"),
        pytest.param({"content": "x" * 10_000}, "y" * 10_000, id="10 KB + 10 KB"),
        pytest.param({"content": "x[{" * 3_333}, "y" * 10_000, id="10 KB of brackets + 10 KB"),
        pytest.param(
            {"edits": [{"old": "a" * 20, "new": "b" * 20, "line": n} for n in range(150)]},
            "y" * 10_000,
            id="10 KB in 150 objects + 10 KB",
        ),
        pytest.param(ARGUMENTS_100_B, "y" * 10**6, id="100 B + 1 MB"),
        pytest.param(ARGUMENTS_100_B, "\u2603" * 10**6, id="100 B + 1 MB of snowmen"),
        pytest.param(
            ARGUMENTS_100_B,
            [{"type": "text", "text": "y" * 10**6}],
            id="100 B + 1 MB in a content block",
        ),
    ],
)
def test_one_step(benchmark, arguments, answer):
    answers = [answer, answer[:-1]] if isinstance(answer, str) else [answer, [*answer, 1]]
    benchmark(step(arguments, answers))


@pytest.mark.parametrize("history", [10, 100_000])
def test_one_step_after_a_history(benchmark, history):
    run = step(ARGUMENTS_100_B, ["y" * 200, "z" * 200])
    for _ in range(history):
        run()
    benchmark(run)


@pytest.mark.parametrize("calls", [1, 5])
def test_check_of_a_batch(benchmark, calls):
    detector = LoopDetector(max_strikes=10**9)
    batch = [{"name": "bash", "args": {**ARGUMENTS_100_B, "n": n}} for n in range(calls)]
    benchmark(detector.check, batch)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"n": float("nan")}, id="nan"),
        pytest.param({"tags": {"a", "b", "c"}}, id="set"),
        pytest.param({"x": [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}, id="deep"),
    ],
)
def test_arguments_that_json_cannot_say(benchmark, arguments):
    benchmark(canonical_arguments, arguments)
