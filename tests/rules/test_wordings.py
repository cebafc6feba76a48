"""Is the model told what to do instead, and the person what was counted?"""

from __future__ import annotations

import re

import pytest

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.rules import (
    NothingNew,
    RepeatedBatch,
    SameAnswer,
    SameError,
    SameNumbers,
    UnbrokenCall,
)
from tests.core.plays import HUMAN, call
from tests.rules.told import findings, only

SECRET, SAID = "hunter2", "swordfish"
TOOL = "lookup_account"
"""A reading tool, by its name."""


def step(name=TOOL, *, n="", fails=False):
    return call(name, secret=f"{SECRET}{n}", say=f"{SAID}\n{SAID}s\nthird", fails=fails)


def said_in_prose():
    guard = LoopGuard()
    return [guard.prose(SAID) for _ in range(6)][-1].findings


LOOPS = {
    "same_answer": (only(SameAnswer()), [step()] * 6),
    "nothing_new": (only(NothingNew()), [step()] * 12),
    "unbroken_call": (only(UnbrokenCall()), [step("edit_account")] * 12),
    "same_error": (only(SameError()), [step(n=n, fails=True) for n in range(12)]),
    "same_numbers": (only(SameNumbers()), [step(n=n) for n in range(20)]),
    "repeated_batch": (only(RepeatedBatch()), [step()] * 20),
    "probation": (LoopGuardPolicy(rules=(SameAnswer(),)), [*[step()] * 5, HUMAN, *[step()] * 3]),
    "a loop of two tools": (only(NothingNew()), [step(), step("edit_account")] * 9),
}
FOUND = {
    name: [finding for _, _, finding in findings(policy, steps)]
    for name, (policy, steps) in LOOPS.items()
} | {"stagnation": list(said_in_prose())}

loops = pytest.mark.parametrize("loop", FOUND)

INTERNAL = (
    r"\b(warn\w*|batch|hash|digest|threshold|limit|policy|rule|guard|loop|probation|streak|"
    r"detector|refus\w+|interrupt|harness)\b"
)


@loops
def test_the_model_is_told_nothing_of_the_call_or_its_answer(loop):
    for finding in FOUND[loop]:
        assert not re.search(f"{SECRET}|{SAID}|secret|account|third", finding.to_model)


@loops
def test_the_model_is_told_no_internal_terms_and_no_numbers(loop):
    for finding in FOUND[loop]:
        assert not re.search(INTERNAL, finding.to_model, re.IGNORECASE)
        assert not re.search(r"\d|_|`", finding.to_model)


@loops
def test_the_model_is_told_what_to_do_instead(loop):
    for finding in FOUND[loop]:
        assert re.search(r"different|next step|what is missing", finding.to_model)
        assert finding.to_model.endswith(".")
        assert len(finding.to_model) <= 300


@loops
def test_a_person_is_told_the_tool_the_count_and_the_limit(loop):
    for finding in FOUND[loop]:
        for tool in finding.tools:
            assert tool in finding.to_person
        if finding.rule != "probation":
            assert str(finding.count) in finding.to_person
            assert str(finding.threshold) in finding.to_person


@loops
def test_a_person_is_told_no_arguments_and_no_answers(loop):
    for finding in FOUND[loop]:
        assert not re.search(f"{SECRET}|{SAID}|secret|third", finding.to_person)


@loops
def test_an_ask_has_reached_its_limit_and_began_in_the_past(loop):
    for finding in FOUND[loop]:
        assert finding.count >= finding.threshold
        assert finding.since >= 1


@loops
def test_a_loop_keeps_its_name(loop):
    assert len({f.loop for f in FOUND[loop] if f.rule == loop}) <= 1


def test_every_rule_is_heard():
    heard = {finding.rule for found in FOUND.values() for finding in found}
    assert {rule.rule for rule in LoopGuardPolicy().rules} <= heard
    assert all(any(f.action is Action.ASK for f in found) for found in FOUND.values())
