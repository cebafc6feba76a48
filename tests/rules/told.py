"""Where does a guard first warn and ask in a story?

Stories are those of `tests.core.plays`, with one more step: `APPROVE`, a person's go-ahead for
whatever was asked about last.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from tests.core.plays import HUMAN, call, run

APPROVE = "a person said go on"


class Told(NamedTuple):
    """Numbers of batches, counted from 1; `None` when it never came."""

    warn: int | None = None
    ask: int | None = None
    """The first ask, before a batch ran or out of its answers."""
    held: int | None = None
    """The first ask before a batch ran."""


NEVER = Told()


def only(*rules, **options):
    """A policy of these rules and nothing else."""
    return LoopGuardPolicy(rules=rules, probation=False, **options)


def findings(policy, steps, *, reload=False):
    """Tell a story and give `(number of the batch, "?" before it ran or "!" after, finding)`."""
    guard, found, number, asked = LoopGuard(policy), [], 0, None
    for step in steps:
        if reload:
            guard = LoopGuard.from_state(policy, json.loads(json.dumps(guard.to_state())))
        if step is HUMAN:
            guard.human_message()
        elif step is APPROVE:
            guard.approve(asked)
        else:
            number += 1
            for when, decision in run(guard, step):
                if decision.action >= Action.ASK:
                    asked = decision
                found += [(number, when, finding) for finding in decision.findings]
    return found


def told(policy, steps):
    """Tell a story and give where the guard first warned and asked.

    The state is taken through JSON before every step in a second telling, which must be the same.
    """
    first = {}
    straight = findings(policy, steps)
    for number, when, finding in straight:
        asks = finding.action >= Action.ASK
        first.setdefault("ask" if asks else "warn", number)
        if asks and when == "?":
            first.setdefault("held", number)
    stored = findings(policy, steps, reload=True)
    assert [(n, w, repr(f)) for n, w, f in stored] == [(n, w, repr(f)) for n, w, f in straight]
    return Told(**first)


def look(word, *, name="read_file", lines=4, **args):
    """A reading call with an answer of `lines` lines that no other word's answer shares."""
    return call(name, path=word, say="\n".join(f"{word} {'i' * n}" for n in range(lines)), **args)


def glance(word, *, name="read_file"):
    """A reading call with an answer of one line that no other word's answer shares."""
    return call(name, path=word, say=word)


def change(word, *, say="ok", fails=False, name="edit_file"):
    """A changing call with a receipt."""
    return call(name, text=word, say=say, fails=fails)


def shell(word, *, say="", fails=False):
    """A shell command, silent unless told otherwise."""
    return call("bash", command=word, say=say, fails=fails)


def words(n):
    """Words without a digit, each another one."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [letters[k // 676 % 26] + letters[k // 26 % 26] + letters[k % 26] for k in range(n)]
