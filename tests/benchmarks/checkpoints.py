"""How many bytes does a guard add to what is saved of a thread?

A run of the open corpus is played through a real agent on a real store, with the guard and
without, and everything that the store holds afterwards is weighed: the checkpoints, the values of
channels, the writes of each task. `InMemorySaver`, as the Postgres savers do, stores a value once
a change; `SqliteSaver` stores all values with every checkpoint, and a middleware's hooks make two
more checkpoints in a step.

The run is the median one by the number of its steps, and among those by its size; besides, the
longest in which nothing is found: what a guard tells the model is saved too.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ToolCallLimitMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from rich.table import Table

from langchain_loopguard.middleware import LoopGuardMiddleware
from tests.benchmarks.agents import guarded_graph, plain_graph
from tests.conversations import load, read_through
from tests.hosts import ScriptedChatModel, agent_graph

GOAL = 2048
"""Bytes a step in a store that keeps a value once a change."""

_CONFIG = {"configurable": {"thread_id": "t"}, "recursion_limit": 1000}


class _Recorded(BaseTool):
    """A tool whose results are those of the recorded run."""

    args_schema: Any = None
    results: Any = None

    def invoke(self, input, config=None, **kwargs: Any) -> ToolMessage:  # noqa: A002 - LangChain's
        """Give the recorded result of the call with this id."""
        told = self.results[input["id"]]
        status = told.get("status", "success")
        return ToolMessage(told["content"], tool_call_id=input["id"], name=self.name, status=status)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class Run:
    """A recorded run as a script for an agent."""

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        self.turns: list[list[AIMessage]] = []
        self.results: dict[str, Any] = {}
        self.steps = 0
        for event in events:
            if event["type"] == "human" or not self.turns:
                self.turns.append([])
            if event["type"] == "batch":
                self.turns[-1].append(self._message(event))

    def _message(self, event: Mapping[str, Any]) -> AIMessage:
        self.steps += 1
        known = {result["id"]: result for result in event.get("results") or ()}
        calls = []
        for place, call in enumerate(event["calls"]):
            # As long as a provider's.
            call_id = f"call_{self.steps:012x}{place:012x}"
            self.results[call_id] = known.get(call["id"], {"content": ""})
            calls.append({**call, "args": dict(call["args"]), "id": call_id, "type": "tool_call"})
        return AIMessage("", tool_calls=calls)

    def parts(self) -> tuple[ScriptedChatModel, list[BaseTool]]:
        """Make a model and tools that play it once."""

        def lines() -> Iterator[AIMessage]:
            for turn in self.turns:
                yield from (message.model_copy() for message in turn)
                yield AIMessage("done")

        script = lines()
        names = {call["name"] for turn in self.turns for said in turn for call in said.tool_calls}
        schema = {"type": "object", "properties": {}}
        tools = [
            _Recorded(name=name, description="A tool.", args_schema=schema, results=self.results)
            for name in sorted(names)
        ]
        return ScriptedChatModel(respond=lambda messages: next(script)), list(tools)


def _with(middleware: Callable[[], Any]) -> Callable[..., Any]:
    return lambda *parts, saver: agent_graph(*parts, checkpointer=saver, middleware=[middleware()])


GUARDS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add_loop_guard": (
        lambda *parts, saver: guarded_graph(*parts, saver=saver, on_detected="warn"),
        plain_graph,
    ),
    "LoopGuardMiddleware": (
        _with(lambda: LoopGuardMiddleware(on_detected="warn")),
        _with(lambda: ToolCallLimitMiddleware(run_limit=1000)),
    ),
}
"""Builds a guarded agent, and what it is set against: the same graph, another middleware."""


def play(run: Run, build: Callable[..., Any], saver: Any) -> None:
    """Play a run through an agent."""
    graph = build(*run.parts(), saver=saver)
    for _ in run.turns:
        graph.invoke({"messages": [HumanMessage("go")]}, _CONFIG)


def _in_memory(run: Run, build: Callable[..., Any]) -> int:
    saver = InMemorySaver()
    play(run, build, saver)
    saved = [
        part
        for spaces in saver.storage.values()
        for found in spaces.values()
        for checkpoint in found.values()
        for part in checkpoint[:2]
    ]
    saved += saver.blobs.values()
    saved += [write[2] for writes in saver.writes.values() for write in writes.values()]
    return sum(len(typed[1]) for typed in saved)


def _in_sqlite(run: Run, build: Callable[..., Any]) -> int:
    with SqliteSaver.from_conn_string(":memory:") as saver:
        play(run, build, saver)
        (checkpoints,) = saver.conn.execute(
            "SELECT sum(length(checkpoint) + length(metadata)) FROM checkpoints"
        ).fetchone()
        (writes,) = saver.conn.execute("SELECT sum(length(value)) FROM writes").fetchone()
    return int(checkpoints) + int(writes)


SAVERS: dict[str, Callable[[Run, Callable[..., Any]], int]] = {
    "InMemorySaver": _in_memory,
    "SqliteSaver": _in_sqlite,
}


def chosen() -> dict[str, Sequence[Mapping[str, Any]]]:
    """Choose the runs that are played."""
    runs = load("corpus")
    length = statistics.median_low(_steps(run) for run in runs)
    middle = sorted(
        (run for run in runs if _steps(run) == length), key=lambda run: len(str(run["events"]))
    )
    by_length = sorted(runs, key=_steps, reverse=True)
    longest = next(run for run in by_length if not read_through(run["events"]).findings)
    return {"the median run": middle[len(middle) // 2]["events"], "the longest": longest["events"]}


def _steps(run: Mapping[str, Any]) -> int:
    return sum(event["type"] == "batch" for event in run["events"])


def measure(*, quick: bool = False) -> list[dict[str, Any]]:
    """Measure everything this file asks; gives a row for each run, store and guard."""
    rows: list[dict[str, Any]] = []
    for name, events in list(chosen().items())[: 1 if quick else None]:
        run = Run(events)
        for saver, weigh in SAVERS.items():
            for guard, (guarded, without) in GUARDS.items():
                row = {"run": name, "steps": run.steps, "store": saver, "guard": guard}
                row["without"] = weigh(run, without) / run.steps
                row["more"] = weigh(run, guarded) / run.steps - row["without"]
                rows.append(row)
    return rows


def tables(found: list[dict[str, Any]]) -> list[Table]:
    """Show what was measured."""
    table = Table("run, guard", "steps", "store", "without it", "more", "goal", "")
    table.title = "Bytes saved a step"
    for row in found:
        goal = GOAL if row["store"] == "InMemorySaver" else None
        met = "" if goal is None else "yes" if row["more"] <= goal else "[bold]no[/bold]"
        table.add_row(
            f"{row['run']}, {row['guard']}",
            str(row["steps"]),
            row["store"],
            *(f"{row[name]:,.0f}" for name in ("without", "more")),
            "" if goal is None else f"{goal:,}",
            met,
        )
    return [table]
