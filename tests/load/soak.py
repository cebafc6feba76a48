"""Does the memory of a guard, or of a handler, stay what it is however long it serves?"""

from __future__ import annotations

import gc
import json
import random
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Self

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import StructuredTool

from langchain_loopguard import (
    Action,
    LoopDetectedError,
    LoopGuard,
    LoopGuardCallbackHandler,
    LoopGuardPolicy,
)
from tests.hosts import ScriptedChatModel, agent_graph, ai_calls, lcel_chain
from tests.load.crowd import left_of, memory

_WINDOWS = 10
"""How often memory and time are looked at."""

_REMEMBERED = 20
"""Conversations that the handler remembers, few so that they are soon used up."""

_LIVE = 4
"""Conversations that are open all the time."""

_THREE = "3 times in a row"

KINDS = ("guard", "handler-tools", "handler-chains", "handler-agents")
"""One guard; one handler on tools that are called by themselves, on chains with a model, and on
agents that one run calls one after the other."""


@dataclass
class Result:
    """What came of a soak.

    Attributes:
        kind: One of `KINDS`.
        batches: How many batches there were.
        seconds: How long it took.
        memory: Memory at the end of each window: of the process in MB, or in bytes as
            `tracemalloc` counts it.
        costs: Microseconds a batch, in each window.
        state: The largest state as JSON, in bytes; of a guard only.
        left: What is left over, by name; empty if nothing is.
        wrong: What should not have been.
    """

    kind: str
    batches: int
    seconds: float = 0.0
    memory: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    state: int = 0
    left: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def growth(self) -> float:
        """How much more memory the second half of the windows needed than the first.

        What is forgotten all at once when a limit is reached makes a saw, so tops are compared.
        """
        half = len(self.memory) // 2
        return max(self.memory[half:]) - max(self.memory[:half])


def soak(kind: str, batches: int, *, traced: bool = False) -> Result:
    """Serve a number of batches.

    Args:
        kind: One of `KINDS`.
        batches: How many.
        traced: Whether memory is counted by `tracemalloc`, exactly and slowly.
    """
    work = {
        "guard": _guard,
        "handler-tools": _tools,
        "handler-chains": _chains,
        "handler-agents": _agents,
    }[kind]
    result = Result(kind, batches)
    if traced:
        tracemalloc.start()
    begun = last = time.monotonic()
    try:
        for done in work(result, batches):
            now = time.monotonic()
            result.costs.append((now - last) / done * 1e6)
            if traced:
                gc.collect()
            result.memory.append(tracemalloc.get_traced_memory()[0] if traced else memory())
            last = time.monotonic()
    finally:
        if traced:
            tracemalloc.stop()
    result.seconds = time.monotonic() - begun
    return result


def _guard(result: Result, batches: int) -> Iterator[int]:
    """Serve one conversation without end; yields the batches of each window."""
    guard = LoopGuard(LoopGuardPolicy())
    rng = random.Random(1)
    window = batches // _WINDOWS
    for number in range(window * _WINDOWS):
        kind = rng.random()
        if kind < 0.5:
            # Never the same, as a model that is after the guard's memory would call.
            name, args = f"tool_{rng.randrange(5)}", {f"k{number}": rng.random()}
        elif kind < 0.6:
            name, args = f"invented_{number}", {"q": number}
        else:
            name, args = f"tool_{number // 20 % 5}", {"q": number // 20}
        call = {"name": name, "args": args, "id": f"c{number}", "type": "tool_call"}
        decision = guard.check([call] * rng.choice((1, 1, 1, 3)))
        if decision.action >= Action.ASK and rng.random() < 0.5:
            guard.refuse(decision)
        else:
            if decision.action >= Action.ASK:
                guard.approve(decision)
            error = rng.random() < 0.1
            text = f"line {rng.random()}" if rng.random() < 0.5 else "nothing found"
            answer = {
                "tool_call_id": f"c{number}",
                "content": f"error: {text}" if error else text,
                "status": "error" if error else "success",
            }
            guard.record_results(decision.record, [answer])
        if number % 5000 == 0:
            guard.start_turn()
        if number % 1000 == 0:
            result.state = max(result.state, len(json.dumps(guard.to_state())))
        if (number + 1) % window == 0:
            yield window


def _tools(result: Result, batches: int) -> Iterator[int]:
    """Serve tools that are called by hand, ten in a conversation."""
    calls = 10

    tool = _searching()

    def talk(user: int) -> None:
        for step in range(calls):
            call = {"name": "search", "args": {"q": f"{step // 2}"}, "id": f"{user}-{step}"}
            tool.invoke({**call, "type": "tool_call"})

    return _serve(result, RunnableLambda(talk), batches, calls)


def _chains(result: Result, batches: int) -> Iterator[int]:
    """Serve a loop written by hand around a chain of model and tools, ten rounds each."""
    rounds = 10

    def respond(messages: Any) -> AIMessage:
        step = (len(messages) - 1) // 2
        return ai_calls([("search", {"q": f"{step // 2}"})], step)

    tool = _searching()
    chain = lcel_chain(_Forgetful(respond=respond), [tool])

    def talk(user: int) -> None:
        messages: list[Any] = [HumanMessage("go")]
        for _ in range(rounds):
            messages += chain.invoke(messages)

    return _serve(result, RunnableLambda(talk), batches, rounds)


def _agents(result: Result, batches: int) -> Iterator[int]:
    """Call an agent for one job after the other, in one run that goes on all the time."""
    steps = 5
    handler = _handler()
    window = batches // _WINDOWS // steps

    def respond(messages: Any) -> AIMessage:
        step = (len(messages) - 1) // 2
        return ai_calls([("search", {"q": f"{step}"})], step) if step < steps else AIMessage("done")

    agent = agent_graph(_Forgetful(respond=respond), [_searching()])

    def work(_: object, config: RunnableConfig) -> Iterator[int]:
        for number in range(window * _WINDOWS):
            agent.invoke({"messages": [HumanMessage("go")]}, config)
            if (number + 1) % window == 0:
                yield window * steps

    yield from RunnableLambda(work).stream(0, {"callbacks": [handler]})
    result.left = left_of(handler, _REMEMBERED)


class _Forgetful(ScriptedChatModel):
    """A scripted model that keeps nothing of what it was sent."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.respond(messages))])


def _serve(result: Result, talk: RunnableLambda, batches: int, each: int) -> Iterator[int]:
    """Serve conversation after conversation, while some others wait in the middle of theirs.

    Args:
        result: Gets what is wrong and what is left.
        talk: One conversation.
        batches: How many batches to serve in all.
        each: How many a conversation makes.
    """
    handler = _handler()

    def config(user: str) -> dict[str, Any]:
        return {"callbacks": [handler], "metadata": {"thread_id": user}}

    window = batches // _WINDOWS // each
    with _Waiting(config) as waiting:
        for number in range(window * _WINDOWS):
            talk.invoke(number, config(f"user {number}"))
            if (number + 1) % window == 0:
                yield window * each
    result.wrong += waiting.wrong
    result.left = left_of(handler, _REMEMBERED)


def _handler() -> LoopGuardCallbackHandler:
    return LoopGuardCallbackHandler(
        LoopGuardPolicy.seed(), on_detected="raise", fail_open=False, max_conversations=_REMEMBERED
    )


class _Waiting:
    """Conversations that are open all the time, two calls into a loop of three."""

    def __init__(self, config: Callable[[str], dict[str, Any]]) -> None:
        self.wrong: list[str] = []
        self._config = config
        self._begun = threading.Barrier(_LIVE + 1, timeout=60)
        self._end = threading.Event()
        self._pool = ThreadPoolExecutor(_LIVE)
        self._tool = _searching()

    def __enter__(self) -> Self:
        talk = RunnableLambda(self._talk)
        self._found = [
            self._pool.submit(talk.invoke, user, self._config(f"live {user}"))
            for user in range(_LIVE)
        ]
        self._begun.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._pool.shutdown()
        said = [found.result() for found in self._found]
        self.wrong = [f"live conversation: {text}" for text in said if _THREE not in text]

    def _talk(self, user: int) -> str:
        call = {"name": "search", "args": {"q": "the same"}, "type": "tool_call"}
        for step in range(2):
            self._tool.invoke({**call, "id": f"{user}-{step}"})
        self._begun.wait()
        self._end.wait()
        try:
            self._tool.invoke({**call, "id": f"{user}-2"})
        except LoopDetectedError as error:
            return str(error)
        return "no loop was found"


def _searching() -> StructuredTool:
    def search(q: str) -> str:
        return "nothing found"

    return StructuredTool.from_function(func=search, name="search", description="Searches.")
