"""What does a guarded agent go through in a fault test?

A scenario is made from a number alone, so that every run can be made again: what the model
does, what the person answers, how a loop is acted on, and when the host saves. Tools answer by
their arguments alone and the model by its messages alone, so that a run that was killed can be
held against one that was not.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_loopguard import LoopGuardPolicy
from tests.hosts import ScriptedChatModel, ai_calls, turns_since_human

Call = tuple[str, dict[str, Any]]

POLICIES = {"seed": LoopGuardPolicy.seed(), "default": LoopGuardPolicy()}

ANSWERS = ("continue", "stop", "Use the archive instead.", "mixed", "edit")
"""What a person answers; the last two are made into decisions about each call."""


@dataclass(frozen=True)
class Scenario:
    """One conversation and how it is run.

    Attributes:
        number: What it was made from.
        policy: A key of `POLICIES`.
        on_detected: What the guard does about a loop.
        durability: When LangGraph saves.
        by_id: Whether answers are sent as a map by interrupt id.
        resend: Whether a client whose answer may be lost sends it again at once. Otherwise it
            first has the thread go on as it is saved.
        native_async: Whether tools are coroutines in async runs.
        turns: For each user turn, the batches that the model makes before it is done.
        answers: What the person says to the questions, in order, from the first again at the end.
    """

    number: int
    policy: str
    on_detected: str
    durability: str
    by_id: bool
    resend: bool
    native_async: bool
    turns: tuple[tuple[tuple[Call, ...], ...], ...]
    answers: tuple[str, ...]


def scenario(number: int, adapter: str) -> Scenario:
    """Make the scenario of a number for an adapter."""
    rng = random.Random(f"{adapter} {number}")
    modes = {"interrupt": 6, "refuse": 2, "raise": 1, "warn": 1}
    if not adapter.startswith("handler"):
        modes["wrap_up"] = 1
    # A graph wired by hand has nothing that answers the calls which an error leaves open.
    if adapter == "node-folding":
        del modes["raise"]
    # A callback can't change a call.
    answers = ANSWERS[:-1] if adapter.startswith("handler") else ANSWERS
    return Scenario(
        number=number,
        policy=rng.choice(sorted(POLICIES)),
        on_detected=rng.choices(list(modes), list(modes.values()))[0],
        durability=rng.choices(("sync", "async", "exit"), (4, 4, 2))[0],
        by_id=rng.random() < 0.5,
        resend=rng.random() < 0.5,
        native_async=rng.random() < 0.5,
        turns=tuple(_turn(rng) for _ in range(rng.randint(1, 2))),
        answers=tuple(rng.choice(answers) for _ in range(4)),
    )


def _turn(rng: random.Random) -> tuple[tuple[Call, ...], ...]:
    batches: list[tuple[Call, ...]] = []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(("work", "loop", "loop", "cycle"))
        if kind == "work":
            batches += [(("fetch", {"q": rng.random()}),) for _ in range(rng.randint(1, 3))]
        elif kind == "loop":
            batches += [_batch(rng)] * rng.randint(3, 7)
        else:
            batches += [_batch(rng), _batch(rng)] * rng.randint(2, 4)
    return tuple(batches[:16])


def _batch(rng: random.Random) -> tuple[Call, ...]:
    # A tool that does not exist is answered by the host, without any event.
    names = ("search", "search", "write", "broken", "nowhere")
    return tuple(
        (rng.choice(names), {"q": rng.choice("abc")}) for _ in range(rng.choice((1, 1, 2, 3)))
    )


def tool_answer(name: str, args: Mapping[str, Any]) -> str:
    """Say what a tool answers."""
    if name == "fetch":
        return "\n".join(f"line {n} of {args.get('q')}" for n in range(3))
    if name == "broken":
        return f"error: no such file {args.get('q')}"
    return "nothing found" if name == "search" else "ok"


def model_of(made: Scenario) -> ScriptedChatModel:
    """Make the model; like a provider's, its messages have other ids in every call."""

    def respond(messages: Sequence[BaseMessage]) -> AIMessage:
        turn = sum(message.type == "human" for message in messages) - 1
        batches = made.turns[turn]
        at = turns_since_human(messages)
        if at >= len(batches):
            return AIMessage(content="done")
        return ai_calls(batches[at], sum(isinstance(m, AIMessage) for m in messages))

    return ScriptedChatModel(respond=respond)


def answer_to(word: str, calls: Sequence[Mapping[str, Any]]) -> Any:
    """Say what a person answers to a question about these calls, in the form that is sent."""
    if word == "edit":
        edited = {"name": "search", "args": {"q": "edited"}}
        approved = [{"type": "approve"} for _ in calls[1:]]
        return {"decisions": [{"type": "edit", "edited_action": edited}, *approved]}
    if word == "mixed":
        kinds: list[dict[str, Any]] = [
            {"type": "approve"},
            {"type": "reject", "message": "Not this one."},
            {"type": "respond", "message": "It is empty."},
        ]
        return {"decisions": [kinds[(at + 1) % 3] for at in range(len(calls))]}
    return word


def refused_by(word: str, calls: Sequence[str]) -> list[str]:
    """Name the calls, by id, that an answer keeps from running."""
    if word in {"continue", "edit"}:
        return []
    if word == "mixed":
        return [call for at, call in enumerate(calls) if (at + 1) % 3]
    return list(calls)
