"""What does one process do that runs a guarded agent, and where can it be killed?

`Worker` is a client and an agent in one process. Everything that it does goes into a log file,
line by line, which is all that it knows of the processes before it: a person's answers, the
turns that were sent, the tools that ran. The thread itself is in the store.

A process is killed at a point, `KILL_AT="stage:number"` in its environment: the signal is
sent in that stage, in the model, in a tool, or around a write of the saver, whichever comes as
number `number` of the whole run. No part of the guard is touched for it, but for a subclass of
the callback handler that tells when it has checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import logging
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException
from langgraph.types import Command

from langchain_loopguard import LoopDetectedError, LoopGuardCallbackHandler
from langchain_loopguard.langchain.marks import SOURCE, mark_of
from langchain_loopguard.node import LoopGuardState
from tests.adapters.guarded import by_hand, owned
from tests.faults.scenarios import (
    POLICIES,
    Scenario,
    answer_to,
    model_of,
    refused_by,
    scenario,
    tool_answer,
)
from tests.faults.stores import aopened, is_async
from tests.hosts import ScriptedChatModel, agent_graph, tool_node_graph

STAGES = (
    "before the check",
    "before the tool",
    "in the tool",
    "after the tool",
    "asked",
    "resumed",
)
"""Where a process may be killed: until the guard has counted the batch; until the tool runs;
in it; until the model is called again; while a question is open; and between a person's answer
and the next tool or model call."""

_MOVES = 400
"""More moves of the client than any scenario has: then something goes round in circles."""


class Log:
    """A file to which processes add lines; a line that was added outlives the process."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the file, for reading what is there and for adding to it."""
        self._path = Path(path)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, event: str, **more: Any) -> None:
        """Add a line. It is there once this returns, also for a process that dies next."""
        os.write(self._file, (json.dumps({"event": event, **more}) + "\n").encode())
        if event != "at":
            os.fsync(self._file)

    def read(self) -> list[dict[str, Any]]:
        """Give all lines."""
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class Place:
    """Knows in which stage the run is, and kills the process where it was told to."""

    def __init__(self, log: Log) -> None:
        """Go on with the numbers of the processes before."""
        self._log = log
        self._lock = threading.Lock()
        self._stage = STAGES[0]
        self._seen: Counter[str] = Counter(
            line["stage"] for line in log.read() if line["event"] == "at"
        )
        stage, _, number = os.environ.get("KILL_AT", "").rpartition(":")
        self._kill = (stage, int(number or 0))

    def reach(self, stage: str) -> None:
        """Enter a stage; a point where the process may be killed."""
        with self._lock:
            # What follows an answer belongs to the resume until a tool or the model is called.
            if not (self._stage == "resumed" and stage == "before the tool"):
                self._stage = stage
            self._point()

    def write(self, when: str, channels: Sequence[str]) -> None:
        """Note a write of the saver; a point where the process may be killed."""
        with self._lock:
            if self._stage == STAGES[0] and when == "after" and "loop_guard" in channels:
                self._stage = "before the tool"
            if "__interrupt__" in channels:
                self._stage = "asked"
            self._point()

    def _point(self) -> None:
        self._seen[self._stage] += 1
        self._log.add("at", stage=self._stage)
        stage, number = self._kill
        if self._stage == stage and self._seen[stage] >= number:
            self._log.add("killed", stage=stage)
            os.kill(os.getpid(), signal.SIGKILL)


class _Handler(LoopGuardCallbackHandler):
    """A handler that tells when it has let a call run."""

    place: Place

    def on_tool_start(self, *args: Any, **kwargs: Any) -> None:
        super().on_tool_start(*args, **kwargs)
        self.place.reach("before the tool")


class _Errors(logging.Handler):
    """Notes what the guard logs as an error: here it is a fault."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.ERROR)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.add("error", text=record.getMessage())


def _tools(place: Place, log: Log, *, native_async: bool) -> list[BaseTool]:
    def make(name: str) -> BaseTool:
        def body(tool_call_id: Annotated[str, InjectedToolCallId], q: Any = "") -> str:
            place.reach("before the tool")
            log.add("tool", call=tool_call_id, name=name, args={"q": q})
            place.reach("in the tool")
            answer = tool_answer(name, {"q": q})
            place.reach("after the tool")
            if name == "broken":
                raise ToolException(answer)
            return answer

        async def abody(tool_call_id: Annotated[str, InjectedToolCallId], q: Any = "") -> str:
            await asyncio.sleep(0)
            return body(tool_call_id, q)

        return StructuredTool.from_function(
            func=body,
            coroutine=abody if native_async else None,
            name=name,
            description=f"The tool {name}.",
            handle_tool_error=True,
        )

    return [make(name) for name in ("search", "fetch", "write", "broken")]


def adapters() -> tuple[str, ...]:
    """Name the adapters that there are, each in the hosts that it stands in."""
    known = ("node", "node-schema", "node-folding", "handler-agent", "handler-tool-node")
    if importlib.util.find_spec("langchain_loopguard.middleware"):
        known = (*known, "middleware")
    return known


def _build(adapter: str, made: Scenario, saver: Any, place: Place, log: Log) -> tuple[Any, list]:
    """Build the graph; gives the callback handlers to run it with, too."""
    plain = model_of(made)

    def respond(messages: Sequence[BaseMessage]) -> AIMessage:
        place.reach("before the check")
        answer = plain.respond(messages)
        place.reach("before the check")
        return answer

    model = ScriptedChatModel(respond=respond)
    tools = _tools(place, log, native_async=made.native_async)
    options: dict[str, Any] = {
        "policy": POLICIES[made.policy],
        "on_detected": made.on_detected,
        "fail_open": False,
    }
    if adapter.startswith("node"):
        build = by_hand if adapter == "node-folding" else owned
        if adapter == "node-schema":
            options["schema"] = LoopGuardState
        return build(model, tools, saver=saver, **options), []
    if adapter == "middleware":
        from langchain_loopguard.middleware import LoopGuardMiddleware

        guard = LoopGuardMiddleware(**options)
        return agent_graph(model, tools, checkpointer=saver, middleware=[guard]), []
    handler = _Handler(**options)
    handler.place = place
    host = agent_graph if adapter == "handler-agent" else tool_node_graph
    return host(model, tools, checkpointer=saver), [handler]


class Worker:
    """A client and its agent; see the module."""

    def __init__(self, adapter: str, number: int, store: str, where: str, log: Log) -> None:
        """Be ready to open the store.

        Args:
            adapter: One of `adapters()`.
            number: Of the scenario.
            store: One of `STORES`.
            where: Where it is: a file, or a URI.
            log: The log of the run; its name is the thread's.
        """
        self.made = scenario(number, adapter)
        self._adapter = adapter
        self._store = store
        self._where = where
        self._log = log
        self._place = Place(log)
        self._config: dict[str, Any] = {}
        self._graph: Any = None
        self._saver: Any = None
        self._stepwise = False
        self._went_on: set[str] = set()

    def run(self, thread_id: str, turn: Turn | None = None) -> None:
        """Go on from where the log and the thread are until the scenario is over.

        Args:
            thread_id: The thread.
            turn: Says when this process may make a move; whenever it likes without one. With it
                a move is one step of the graph.
        """
        self._stepwise = turn is not None
        logger = logging.getLogger("langchain_loopguard")
        logger.addHandler(_Errors(self._log))
        logger.propagate = False
        logging.getLogger("langchain_core.callbacks.manager").disabled = True
        work = self._run(thread_id, turn)
        if is_async(self._store):
            asyncio.run(work)
        else:
            _finish(work)

    async def _run(self, thread_id: str, turn: Turn | None) -> None:
        async with aopened(self._store, self._where, self._place.write) as saver:
            self._saver = saver
            self._graph, handlers = _build(self._adapter, self.made, saver, self._place, self._log)
            self._config = {
                "configurable": {"thread_id": thread_id},
                "callbacks": handlers,
                "recursion_limit": 200,
            }
            for _ in range(_MOVES):
                if turn is not None:
                    turn.wait()
                going = await self._move()
                if turn is not None:
                    turn.give()
                if not going:
                    return
            self._log.add("error", text="the conversation does not end")

    # --- The client -----------------------------------------------------------------------

    async def _move(self) -> bool:
        """Do what a client does next; gives whether there may be more to do."""
        past = self._log.read()
        if any(line["event"] == "final" for line in past):
            return False
        at = sum(line["event"] == "closed" for line in past)
        state = await self._call("get_state")
        messages = state.values.get("messages", [])
        self._log.add("saved", calls=_answered(messages, state.tasks))
        if at == len(self.made.turns):
            await self._close(messages)
            return False
        if state.interrupts:
            await self._answer(past, state, messages)
        elif any(message.id == f"human-{at}" for message in messages):
            # Not `state.next`, which leaves out tasks that are done when their step is not.
            if state.tasks:
                await self._send(None)
            else:
                self._log.add("closed", turn=at)
        elif any(task.name == "__start__" for task in state.tasks):
            await self._send(None)
        else:
            await self._send({"messages": [HumanMessage("go", id=f"human-{at}")]})
        return True

    async def _answer(self, past: list[dict[str, Any]], state: Any, messages: list) -> None:
        question = state.interrupts[0]
        given = {line["id"]: line["word"] for line in past if line["event"] == "answered"}
        calls = _asked_about(messages, question.value)
        word = given.get(question.id)
        if word is None:
            word = self.made.answers[len(given) % len(self.made.answers)]
            self._place.reach("asked")
            self._log.add(
                "asked",
                id=question.id,
                open=len(state.interrupts),
                calls=[call["id"] for call in calls],
                findings=question.value["findings"],
                message=_without_time(question.value["message"]),
            )
            self._place.reach("asked")
            refused = refused_by(word, [call["id"] for call in calls])
            self._log.add("answered", id=question.id, word=word, refused=refused)
        elif not self.made.resend and question.id not in self._went_on:
            # The answer was sent and the process died. Was it saved?
            self._went_on.add(question.id)
            await self._send(None)
            return
        value = answer_to(word, calls)
        self._place.reach("resumed")
        await self._send(Command(resume={question.id: value} if self.made.by_id else value))

    async def _send(self, value: Any) -> None:
        try:
            await self._call(
                "invoke",
                value,
                durability=self.made.durability,
                interrupt_after="*" if self._stepwise else None,
            )
        except LoopDetectedError as error:
            at = sum(line["event"] == "closed" for line in self._log.read())
            self._log.add("closed", turn=at, error=_without_time(str(error)))

    async def _close(self, messages: Sequence[BaseMessage]) -> None:
        counts = await self._counts()
        plain = [_plain(message) for message in messages]
        self._log.add("final", messages=plain, counts=counts)

    async def _counts(self) -> Any:
        config = {"configurable": self._config["configurable"]}
        if is_async(self._store):
            saved = await self._saver.aget_tuple(config)
        else:
            saved = self._saver.get_tuple(config)
        counts = saved.checkpoint["channel_values"].get("loop_guard")
        # Ids of messages are other ones in every run.
        ids = ("first", "human", "last", "recent", "warnings")
        return counts and {key: value for key, value in counts.items() if key not in ids}

    async def _call(self, method: str, *args: Any, **options: Any) -> Any:
        args = (self._config,) if method == "get_state" else (*args, self._config)
        if is_async(self._store):
            return await getattr(self._graph, f"a{method}")(*args, **options)
        return getattr(self._graph, method)(*args, **options)


class Turn:
    """Lets processes move one after another: each waits for a byte and passes it on."""

    def __init__(self, read: int, write: int) -> None:
        """Take the ends of two pipes."""
        self._read, self._write = read, write

    def wait(self) -> None:
        """Wait for the turn; ends the process when there is none left to pass it on."""
        if not os.read(self._read, 1):
            os._exit(0)

    def give(self) -> None:
        """Pass the turn on, if there is anybody left."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._write, b".")


def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("a sync store was awaited")


def _asked_about(messages: Sequence[BaseMessage], question: Mapping[str, Any]) -> list[dict]:
    """Find the calls that a question is about: those that wait, or the whole batch."""
    at = max(i for i, message in enumerate(messages) if isinstance(message, AIMessage))
    calls: list[Any] = [*messages[at].tool_calls]
    answered = {getattr(message, "tool_call_id", None) for message in messages[at + 1 :]}
    waiting = [call for call in calls if call["id"] not in answered]
    asked = waiting if len(waiting) == len(question["action_requests"]) else calls
    assert [call["name"] for call in asked] == [r["name"] for r in question["action_requests"]]
    return asked


def _answered(messages: Sequence[BaseMessage], tasks: Sequence[Any]) -> list[str]:
    """List the calls whose answers are saved, in the messages or as a task's result."""
    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, ToolMessage):
            found.append(value.tool_call_id)
        elif isinstance(value, Mapping):
            look(list(value.values()))
        elif isinstance(value, list | tuple):
            for item in value:
                look(item)

    look(list(messages))
    look([task.result for task in tasks])
    return found


def _without_time(text: str) -> str:
    """Cut how long the run took so far, which is another in every run."""
    return re.sub(r",? in [\d.]+ (seconds|minutes|hours)", "", text)


def _plain(message: BaseMessage) -> dict[str, Any]:
    """Give a message without what may be another in every run."""
    by_guard = message.additional_kwargs.get("lc_source") == SOURCE
    content = message.content
    if isinstance(content, str):
        content = _without_time(content)
    return {
        "type": message.type,
        "content": content,
        "calls": [[c["name"], c["args"], c["id"]] for c in getattr(message, "tool_calls", ())],
        "call": getattr(message, "tool_call_id", None),
        "status": getattr(message, "status", None),
        "by_guard": by_guard,
        "approved": mark_of(message).approved,
    }
