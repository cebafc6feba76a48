"""Is what the demo replays the incident, call for call?"""

from __future__ import annotations

from collections import Counter, defaultdict

from langchain_loopguard.demo.scripts import failing_call, incident

# The order as it was published: S and T are always the same command, D is the diff of one file,
# V stands for 13 spellings of the three.
PUBLISHED = (
    "VSDVTDVDTVVSVVTVDSVDSDVVDSTVDSVDSTDSTDSTDSTDSTDSTD"
    "STDSTDSTDSTDSTSDSTSDSTSDSTSDSTSDSTSDSTSDSTSDSTSDST"
    "SDSTSDSTSDSTSDSTSDSTSDSTSDSTSDSTSDSTSDSTSDSTSDSTSD"
    "STSDSTSDSTSDSTSDSTSDSTSDSTSDSTSDSTSDSTSDSTSDSTSDST"
)
LETTERS = {"git status --short": "S", "git diff src/app/main.py": "D", "git diff --stat": "T"}


def test_the_order_of_the_calls_is_the_published_one() -> None:
    letters = "".join(LETTERS.get(call.command, "V") for call in incident().calls)
    assert letters == PUBLISHED


def test_every_variant_occurs_once() -> None:
    counts = Counter(call.command for call in incident().calls)
    assert sorted(counts.values()) == [1] * 13 + [49, 53, 85]


def test_a_command_always_answers_the_same() -> None:
    answers = defaultdict(set)
    for call in incident().calls:
        answers[call.command].add(call.result)
    assert {len(seen) for seen in answers.values()} == {1}


def test_the_failing_call_is_one_call() -> None:
    assert len(set(failing_call(30).calls)) == 1
