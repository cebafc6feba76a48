"""Does a run that is killed, or handed over at every step, end as if nothing had happened?

A sample of what `python -m tests.faults.run` does. It runs in a process of its own, because it
forks, which a process with threads must not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.trials import compare
from tests.faults.worker import STAGES, adapters

ROOT = Path(__file__).parents[2]
every_adapter = pytest.mark.parametrize("adapter", adapters())


def run(*options: str) -> list[dict]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.run", "--json", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def killed():
    return run("--runs", "18")


@pytest.fixture(scope="module")
def by_turns():
    return run("--turns", "--runs", "6")


@every_adapter
def test_a_killed_run_ends_as_one_that_was_not(killed, adapter):
    trials = [trial for trial in killed if trial["adapter"] == adapter]
    assert trials
    assert [(trial["number"], trial["faults"]) for trial in trials if trial["faults"]] == []


def test_processes_were_killed_in_every_stage(killed):
    kills = Counter(stage for trial in killed for stage in trial["kills"])
    assert set(STAGES) <= set(kills)


@every_adapter
def test_two_processes_by_turns_end_as_one_does(by_turns, adapter):
    trials = [trial for trial in by_turns if trial["adapter"] == adapter]
    assert trials
    assert [(trial["number"], trial["faults"]) for trial in trials if trial["faults"]] == []


# --- Would a fault be seen? -------------------------------------------------------------------

ANSWERED = {"type": "tool", "call": "c1", "by_guard": False}
REFUSED = {"type": "tool", "call": "c1", "by_guard": True}


def log(*lines: tuple, messages=(ANSWERED,), counts=None) -> list[dict]:
    made = [{"event": event, **more} for event, more in lines]
    return [*made, {"event": "final", "messages": list(messages), "counts": counts}]


def asked(call: str = "c1", count: int = 3, question: str = "q1") -> tuple:
    findings = [{"count": count}]
    more = {"id": question, "open": 1, "calls": [call], "findings": findings, "message": ""}
    return ("asked", more)


def answered(*refused: str) -> tuple:
    return ("answered", {"id": "q1", "word": "", "refused": list(refused)})


TOOL = ("tool", {"call": "c1"})
SAVED = ("saved", {"calls": ["c1"]})


@pytest.mark.parametrize(
    ("expected", "actual", "fault"),
    [
        pytest.param(log(TOOL), log(TOOL, TOOL, SAVED), None, id="run-again-by-the-host"),
        pytest.param(log(TOOL), log(TOOL, SAVED, TOOL), "answer was saved", id="run-again"),
        pytest.param(
            log(asked(), answered("c1")),
            log(asked(), asked(), answered("c1")),
            None,
            id="same-question-again",
        ),
        pytest.param(
            log(asked(), answered("c1")),
            log(asked(), asked(question="q2"), answered("c1")),
            "other questions",
            id="question-too-many",
        ),
        pytest.param(log(asked()), log(asked(count=4)), "other questions", id="counted-twice"),
        pytest.param(
            log(asked(), answered("c1")),
            log(asked(), answered("c1"), TOOL),
            "a person refused",
            id="ran-after-a-no",
        ),
        pytest.param(
            log(asked(), answered(), TOOL),
            log(asked(), TOOL, answered()),
            "while a person was asked",
            id="ran-while-asked",
        ),
        pytest.param(
            log(messages=[REFUSED]),
            log(TOOL, messages=[REFUSED]),
            "the guard refused",
            id="ran-although-refused",
        ),
        pytest.param(log(counts={"n": 1}), log(counts={"n": 2}), "other counts", id="counts"),
        pytest.param(log(), log(messages=[]), "other messages", id="messages"),
        pytest.param(log(), [], "did not come to its end", id="no-end"),
        pytest.param(log(), log(("error", {"text": "it failed"})), "it failed", id="logged"),
        pytest.param(
            log(("closed", {"error": "loop"})), log(("closed", {})), "ends of a turn", id="no-error"
        ),
    ],
)
def test_a_fault_is_seen(expected, actual, fault):
    found = compare(expected, actual)
    assert found == [] if fault is None else any(fault in text for text in found)
