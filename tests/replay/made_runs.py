"""Runs made up for the report and for calibration, in the package's own form."""

from __future__ import annotations

import random

from langchain_loopguard.replay.conversation import Conversation


def batch(*calls, number=0, **more):
    """One batch; a call is (tool, argument, answer) or (tool, argument, answer, status)."""
    made, results = [], []
    for place, (tool, argument, *rest) in enumerate(calls):
        call_id = f"{number}-{place}"
        made.append({"id": call_id, "name": tool, "args": {"value": argument}})
        answer = rest[0] if rest else None
        status = rest[1] if len(rest) > 1 else "success"
        if answer is not None:
            results.append({"id": call_id, "content": answer, "status": status})
    return {"type": "batch", "calls": made, "results": results, **more}


def run(*events, name="run", source="made", outcome="unknown", **extra):
    """A run of batches; a string is a human turn."""
    told = [{"type": "human"} if isinstance(event, str) else event for event in events]
    return Conversation.from_dict(
        {"source": source, "id": name, "outcome": outcome, "events": told, **extra}
    )


def repeating(times, *, tool="search", name="loop", **more):
    """A run that makes one call over and over and gets one answer."""
    batches = [batch((tool, "same", "nothing found"), number=at) for at in range(times)]
    return run("start", *batches, name=name, **more)


def working(calls, *, name="good", outcome="success", **more):
    """A run in which every call brings something new."""
    batches = [
        batch(("read", f"{name} {at}", f"line {name} {at}\nanother {name} {at}"), number=at)
        for at in range(calls)
    ]
    return run("start", *batches, name=name, outcome=outcome, **more)


def mixture(count, seed=1):
    """Runs of every kind, of 1 to 200 calls: the mean is that of the measured collections."""
    dice = random.Random(seed)
    runs = []
    for at in range(count):
        size = min(200, 1 + int(dice.expovariate(1 / 11)))
        source = dice.choice(["alpha", "beta", "gamma"])
        outcome = dice.choice(["success", "fail", "unknown"])
        if dice.random() < 0.15:
            made = repeating(size + 2, name=f"run-{at}", source=source, outcome="fail")
        else:
            made = working(size, name=f"run-{at}", source=source, outcome=outcome)
        runs.append(made)
    return runs


def good(count, **more):
    """Short runs in which every call brings something new."""
    return [working(2, name=f"good-{at}", **more) for at in range(count)]


def patient(count, times=6):
    """Good runs that make one call a few times and get the same answer."""
    return [
        repeating(times, tool=f"ask-{at}", name=f"patient-{at}", outcome="success")
        for at in range(count)
    ]
