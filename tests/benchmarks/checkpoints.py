"""How many bytes does a guard add to what is saved of a thread?

A run of the open corpus is played through a real agent on a real store, with the guard and with
something empty in its place (see `agents`), and everything the store holds afterwards is
weighed: the checkpoints, the values of channels, the writes of each task. `InMemorySaver`, as
the Postgres savers do, stores a value once a change; `SqliteSaver` stores all values with every
checkpoint, of which LangGraph makes four in a step, with a guard as with an empty one.

The run is the median one by the number of its batches, and among those by its size; besides, the
longest in which nothing is found: what a guard tells the model is saved too, and no run goes on
for long after that.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from rich.table import Table

from langchain_loopguard.middleware import LoopGuardMiddleware
from tests.benchmarks.agents import EmptyMiddleware, node_graph
from tests.conversations import load, read_through
from tests.hosts import ScriptedChatModel, agent_graph

GOAL = 2048
"""Bytes a step."""

_CONFIG = {"configurable": {"thread_id": "t"}, "recursion_limit": 1000}


class _Recorded(BaseTool):
    """A tool that answers as it did in the recorded run."""

    args_schema: Any = None
    answers: Any = None

    def invoke(self, input, config=None, **kwargs: Any) -> ToolMessage:  # noqa: A002 - LangChain's
        """Give the recorded answer to the call with this id."""
        answer = self.answers[input["id"]]
        return ToolMessage(
            answer["content"],
            tool_call_id=input["id"],
            name=self.name,
            status=answer.get("status", "success"),
        )

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class Run:
    """A recorded run as a script for an agent."""

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        self.turns: list[list[AIMessage]] = []
        self.answers: dict[str, Any] = {}
        self.steps = 0
        for event in events:
            if event["type"] == "human" or not self.turns:
                self.turns.append([])
            if event["type"] == "batch":
                self.turns[-1].append(self._message(event))

    def _message(self, event: Mapping[str, Any]) -> AIMessage:
        self.steps += 1
        known = {answer["id"]: answer for answer in event.get("results") or ()}
        calls = []
        for place, call in enumerate(event["calls"]):
            # As long as a provider's.
            call_id = f"call_{self.steps:012x}{place:012x}"
            self.answers[call_id] = known.get(call["id"], {"content": ""})
            calls.append({**call, "args": dict(call["args"]), "id": call_id, "type": "tool_call"})
        return AIMessage("", tool_calls=calls)

    def parts(self) -> tuple[ScriptedChatModel, list[BaseTool]]:
        """Give a model and tools that play it once."""

        def lines() -> Iterator[AIMessage]:
            for turn in self.turns:
                yield from (message.model_copy() for message in turn)
                yield AIMessage("done")

        script = lines()
        names = {call["name"] for turn in self.turns for said in turn for call in said.tool_calls}
        tools = [
            _Recorded(
                name=name,
                description=f"The tool {name}.",
                args_schema={"type": "object", "properties": {}},
                answers=self.answers,
            )
            for name in sorted(names)
        ]
        return ScriptedChatModel(respond=lambda messages: next(script)), tools


def _graph(run: Run, guard: str, saver: Any) -> Any:
    model, tools = run.parts()
    if guard in {"node", "empty node"}:
        options = {"on_detected": "warn"} if guard == "node" else {}
        return node_graph(model, tools, guard=guard, checkpointer=saver, **options)
    middleware: list[Any] = {
        "middleware": lambda: [LoopGuardMiddleware(on_detected="warn")],
        "empty middleware": lambda: [EmptyMiddleware()],
        "none": list,
    }[guard]()
    return agent_graph(model, tools, checkpointer=saver, middleware=middleware)


def _play(run: Run, guard: str, saver: Any) -> None:
    graph = _graph(run, guard, saver)
    for _ in run.turns:
        graph.invoke({"messages": [HumanMessage("go")]}, _CONFIG)


def _in_memory(run: Run, guard: str) -> tuple[int, int]:
    saver = InMemorySaver()
    _play(run, guard, saver)
    saved = [
        part
        for spaces in saver.storage.values()
        for found in spaces.values()
        for checkpoint in found.values()
        for part in checkpoint[:2]
    ]
    saved += saver.blobs.values()
    saved += [write[2] for writes in saver.writes.values() for write in writes.values()]
    latest = saver.get_tuple(_CONFIG)
    assert latest is not None
    whole = saver.serde.dumps_typed(latest.checkpoint)[1]
    return sum(len(typed[1]) for typed in saved), len(whole)


def _in_sqlite(run: Run, guard: str) -> tuple[int, int]:
    with SqliteSaver.from_conn_string(":memory:") as saver:
        _play(run, guard, saver)
        (checkpoints,) = saver.conn.execute(
            "SELECT sum(length(checkpoint) + length(metadata)) FROM checkpoints"
        ).fetchone()
        (writes,) = saver.conn.execute("SELECT sum(length(value)) FROM writes").fetchone()
        (latest,) = saver.conn.execute(
            "SELECT length(checkpoint) FROM checkpoints ORDER BY checkpoint_id DESC LIMIT 1"
        ).fetchone()
    return int(checkpoints) + int(writes), int(latest)


SAVERS: dict[str, Callable[[Run, str], tuple[int, int]]] = {
    "InMemorySaver": _in_memory,
    "SqliteSaver": _in_sqlite,
}


def chosen() -> dict[str, Sequence[Mapping[str, Any]]]:
    """Give the runs that are played."""
    runs = load("corpus")
    length = statistics.median_low(_batches(run) for run in runs)
    middle = sorted(
        (run for run in runs if _batches(run) == length), key=lambda run: len(str(run["events"]))
    )
    by_length = sorted(runs, key=_batches, reverse=True)
    longest = next(run for run in by_length if not read_through(run["events"]).findings)
    return {"the median run": middle[len(middle) // 2]["events"], "the longest": longest["events"]}


def _batches(run: Mapping[str, Any]) -> int:
    return sum(event["type"] == "batch" for event in run["events"])


def measure(*, quick: bool = False) -> list[dict[str, Any]]:
    """Measure everything this file asks; gives a row for each run, store and guard."""
    rows = []
    for name, events in chosen().items():
        if quick and rows:
            break
        run = Run(events)
        for saver, weigh in SAVERS.items():
            bare, _ = weigh(run, "none")
            for guard in ("node", "middleware"):
                empty, last_empty = weigh(run, f"empty {guard}")
                guarded, last = weigh(run, guard)
                rows.append(
                    {
                        "run": name,
                        "steps": run.steps,
                        "store": saver,
                        "guard": guard,
                        "bytes_a_step": {
                            "none": bare / run.steps,
                            "empty": empty / run.steps,
                            "guard": guarded / run.steps,
                        },
                        "growth_a_step": (guarded - empty) / run.steps,
                        "last_checkpoint_grew": last - last_empty,
                        "goal": GOAL,
                    }
                )
    return rows


def tables(found: list[dict[str, Any]]) -> list[Table]:
    """Show what was measured."""
    table = Table(
        "run, guard", "steps", "store", "none", "empty", "guard", "more", "goal", "", "last one"
    )
    table.title = "Bytes saved a step, and how much larger the last checkpoint is"
    for row in found:
        saved = row["bytes_a_step"]
        table.add_row(
            f"{row['run']}, {row['guard']}",
            str(row["steps"]),
            row["store"],
            *(f"{saved[name]:,.0f}" for name in ("none", "empty", "guard")),
            f"{row['growth_a_step']:,.0f}",
            f"{row['goal']:,}",
            "yes" if row["growth_a_step"] <= row["goal"] else "[bold]no[/bold]",
            f"{row['last_checkpoint_grew']:,}",
        )
    return [table]


__all__ = ["SAVERS", "Run", "chosen", "measure", "tables"]
