"""Do a thousand conversations at once share one graph and one guard without sharing a count?

Every user's agent makes each call twice in a row, and all users make the same calls: one count
that leaks from one to another, or is kept from before, makes that a loop. Half of the users end
with a call made three times, which has to be found, in that step and not before.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import resource
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool

from langchain_loopguard import LoopDetectedError, LoopGuardCallbackHandler, LoopGuardPolicy
from tests.adapters.guarded import owned
from tests.hosts import ScriptedChatModel, agent_graph, ai_calls, ask, turns_since_human

SEED = LoopGuardPolicy.seed()

WAYS = ("threads", "asyncio")
"""A thread for each user, or a task."""


def guards() -> tuple[str, ...]:
    """Name what can stand in the agent, nothing included."""
    known = ("none", "handler", "node")
    return (*known, "middleware") if importlib.util.find_spec(_MIDDLEWARE) else known


_MIDDLEWARE = "langchain_loopguard.middleware"


@dataclass
class Result:
    """What came of a crowd.

    Attributes:
        guard: One of `guards()`.
        way: One of `WAYS`.
        users: How many conversations there were, all at once.
        steps: How many batches each made.
        seconds: How long it took.
        peak: The most memory that the process had, in MB.
        kept: How much more memory it has afterwards than before, in MB.
        wrong: Users for whom something else came than should have, and what.
        left: What is left over, by name; empty if nothing is.
    """

    guard: str
    way: str
    users: int
    steps: int
    seconds: float = 0.0
    peak: float = 0.0
    kept: float = 0.0
    wrong: list[str] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)


class _Model(ScriptedChatModel):
    """A scripted model that remembers nothing, so that only the guard's memory is measured."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.respond(messages))])


class Agent:
    """One graph and one guard for everybody."""

    def __init__(self, guard: str, steps: int) -> None:
        """Build it.

        Args:
            guard: One of `guards()`.
            steps: How many batches each user's agent makes.
        """
        self.steps = steps
        self.handler: LoopGuardCallbackHandler | None = None

        def respond(messages: Sequence[BaseMessage]) -> AIMessage:
            step = turns_since_human(messages)
            if step >= steps:
                return AIMessage("done")
            # The looping users say so in their first message.
            loops = messages[0].content == "loop"
            number = (steps - 1) // 2 - 1 if loops and step >= steps - 3 else step // 2
            return ai_calls([("search", {"q": f"{number}"})], step)

        def search(q: str) -> str:
            return "nothing found"

        async def asearch(q: str) -> str:
            return "nothing found"

        tool = StructuredTool.from_function(
            func=search, coroutine=asearch, name="search", description="Searches."
        )
        model = _Model(respond=respond)
        options: dict[str, Any] = {"on_detected": "raise", "fail_open": False}
        if guard == "node":
            self.graph = owned(model, [tool], saver=False, policy=SEED, **options)
        elif guard == "middleware":
            from langchain_loopguard.middleware import LoopGuardMiddleware

            middleware = [LoopGuardMiddleware(SEED, **options)]
            self.graph = agent_graph(model, [tool], middleware=middleware)
        else:
            self.graph = agent_graph(model, [tool])
        if guard == "handler":
            self.handler = LoopGuardCallbackHandler(SEED, **options)

    def config(self, user: int) -> dict[str, Any]:
        """Give a user's config."""
        return {
            "configurable": {"thread_id": f"user {user}"},
            "callbacks": [self.handler] if self.handler else [],
            "recursion_limit": 10 * self.steps + 50,
        }


def crowd(guard: str, way: str, users: int, steps: int) -> Result:
    """Let users talk to one agent, all at once.

    Args:
        guard: One of `guards()`.
        way: One of `WAYS`.
        users: How many.
        steps: How many batches each of their agents makes, from 6 on.
    """
    # The first runs load and cache what every later one uses.
    run(Agent(guard, 6), way, 4)
    agent = Agent(guard, steps)
    before = memory()
    threads = threading.active_count()
    begun = time.monotonic()
    came = run(agent, way, users)
    done = Result(guard, way, users, steps, seconds=time.monotonic() - begun)
    done.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for user, outcome in enumerate(came):
        loops = user % 2 == 1 and guard != "none"
        wanted = "search 3 times in a row" if loops else "done"
        if wanted not in outcome:
            done.wrong.append(f"user {user}: {outcome}")
    del came
    done.kept = memory() - before
    if threading.active_count() > threads:
        done.left["threads"] = threading.active_count() - threads
    if agent.handler is not None:
        done.left |= left_of(agent.handler, 1000)
    return done


def left_of(handler: LoopGuardCallbackHandler, limit: int) -> dict[str, int]:
    """Count what a handler keeps when no run is under way, and should not."""
    runs, kept = handler._deciding.runs, handler._deciding._conversations
    left = {
        "runs": len(runs._runs),
        "runs that were not seen": len(runs._strangers),
        "conversations at work": len(kept._working),
        "conversations over the limit": max(0, len(kept._idle) - limit),
    }
    return {name: count for name, count in left.items() if count}


def run(agent: Agent, way: str, users: int) -> list[str]:
    """Run all users at once; gives each one's last words, or the error."""
    inputs = [ask("loop" if user % 2 else "work") for user in range(users)]

    def user(number: int) -> str:
        try:
            result = agent.graph.invoke(inputs[number], agent.config(number))
        except LoopDetectedError as error:
            return str(error)
        return str(result["messages"][-1].content)

    async def auser(number: int) -> str:
        try:
            result = await agent.graph.ainvoke(inputs[number], agent.config(number))
        except LoopDetectedError as error:
            return str(error)
        return str(result["messages"][-1].content)

    async def everybody() -> list[str]:
        came = await asyncio.gather(*(auser(number) for number in range(users)))
        left = len(asyncio.all_tasks()) - 1
        return [*came[:-1], came[-1] if not left else f"{left} tasks are left over"]

    if way == "asyncio":
        return asyncio.run(everybody())
    with ThreadPoolExecutor(users) as pool:
        return list(pool.map(user, range(users)))


def memory() -> float:
    """Give the memory that this process has now, in MB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
