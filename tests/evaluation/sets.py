"""Which conversations does the guard have to judge, and what is right for each?

All are in the transcript form, in `tests/data`. *Runs* are real conversations of agents, told
again as structure without any source text; some carry a label that was read by hand. *Reports*
are public bug reports told again, with what a user expects. *Made* ones test a behaviour and
justify nothing.
"""

from __future__ import annotations

import copy
import random
from functools import cache
from typing import NamedTuple

from tests.conversations import load

VERBS = "check compare inspect verify review explore list trace confirm study".split()
NOUNS = "parser cache router billing ledger index schema widget queue graph token store".split()
ADVERBS = "again now once carefully next".split()


LOOKS = {
    "asked": "found by the first core, too",
    "A guess spam: ever new arguments, one short answer": "guesses, one short result",
    "A guess spam": "guesses, one short result",
    "same call, same answer (recovered later)": "one call, one result; the run recovered later",
    "B cycle of equal calls, an answer that grows or is random": (
        "a cycle of equal calls, a result that grows or is random"
    ),
    "B2 one call 8 to 12 times running, random answer": "one call 8 to 12 times, random results",
    "run capped at 10 steps, short of the count": "a run that ends at 10 steps",
    "C failures inside JSON are not recognised": "failures inside JSON",
    "C failures that are not recognised count as progress": "failures that only prose tells",
    "A2 failing calls of several kinds, over and over": "failing calls of several kinds",
    "changing call, few variants, silent answer": "a few silent changes again and again",
    "short cycle at the end": "a short or long cycle",
    "long cycle, three rounds": "a short or long cycle",
}
"""What labelled loops of the fresh runs look like: the label's class -> its words here."""


class Set(NamedTuple):
    """A set of conversations."""

    name: str
    conversations: list
    kind: str
    """`runs`, `reports`, `made`, or `reworded`: loops of another set with one argument in
    different words at each call."""


@cache
def all_sets() -> tuple[Set, ...]:
    """Load every set; they are not to be changed."""
    corpus, cases = load("corpus"), load("cases")
    loops = [run for run in corpus if run.get("label") == "loop"]
    found = [case for case in cases if "ask_by" in case["expect"]]
    return (
        Set("corpus", corpus, "runs"),
        Set("fresh", load("fresh"), "runs"),
        Set("cases", cases, "reports"),
        Set("reports2", load("reports2"), "reports"),
        Set("reports3", load("reports3"), "reports"),
        Set("reports", load("reports"), "reports"),
        Set("policy", load("policy"), "made"),
        Set("shapes", load("shapes"), "made"),
        Set("corpus+description", [reworded(run, "description") for run in loops], "reworded"),
        Set("corpus+reason", [reworded(run, "reason") for run in loops], "reworded"),
        Set("cases+description", [reworded(case, "description") for case in found], "reworded"),
    )


def reworded(conversation, argument):
    """Copy a conversation with one more argument, in different words at each call."""
    conversation = copy.deepcopy(conversation)
    chance = random.Random(f"{conversation['id']} {argument}")
    taken = set()
    for event in conversation["events"]:
        for call in event.get("calls", ()):
            if isinstance(call.get("args"), dict):
                call["args"][argument] = _new_words(chance, taken)
    return conversation


def _new_words(chance, taken):
    while True:
        words = (
            f"{chance.choice(VERBS)} the {chance.choice(NOUNS)} {chance.choice(ADVERBS)} "
            f"{chance.choice(VERBS)} {chance.choice(NOUNS)}"
        )
        if words not in taken:
            taken.add(words)
            return words


def name_of(conversation):
    """Name a conversation in tables."""
    source = conversation.get("source")
    return f"{source}/{conversation['id']}" if source else conversation["id"]


def report_of(name, conversation):
    """Name the public report that a conversation tells again, `None` if it tells none."""
    seen_at = conversation.get("seen_at")
    if seen_at is None or name not in {"cases", "reports2", "reports3", "reports"}:
        return None
    return str(seen_at)
