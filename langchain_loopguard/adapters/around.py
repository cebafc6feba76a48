"""What runs in the place of an agent's node and of a tools node that `add_loop_guard` guards?

It begins the turn at the start, adds warnings to what the agent reads, decides before the tools
and reads their results behind them, so the counts are saved with the results. Must not know how
it came there: see `wiring`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import RemoveMessage
from langchain_core.runnables.config import set_config_context
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from langchain_loopguard.adapters._langgraph import (
    begins_turn,
    is_nested,
    read_channel,
    thread_key,
    write_channel,
)
from langchain_loopguard.adapters.graph import (
    GraphGuard,
    LastAnswer,
    leaves_graph,
    read_key,
    results_in,
    with_key,
)
from langchain_loopguard.langchain.errors import error_of_facts
from langchain_loopguard.langchain.marks import Mark, ends_of, final_message, replacement
from langchain_loopguard.langchain.messages import id_of, last_step, with_warnings
from langchain_loopguard.langchain.repair import complete

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain_core.messages import BaseMessage, ToolMessage

    from langchain_loopguard.adapters.gate import Decided
    from langchain_loopguard.langchain.history import Reader


class Around(GraphGuard):
    """The guard around an agent's and a tools node."""

    commands = False
    """Whether the tools lead on by commands of their own, so that no edge does."""
    back, end = "", ""
    """Where a refused step goes then, and where a run ends."""

    def begin(self, _: Any, config: Any, way: Any) -> Any:
        """Begin a turn with the run's input, and give results to calls that were left open."""
        # LangGraph runs no config at the start.
        with set_config_context(config) as context:
            context.run(self._begin)
        return way

    def _begin(self) -> None:
        try:
            messages = self.as_messages(read_channel(self.messages_key, fresh=True) or [])
            whole = complete(messages, self.gate.options.wording.not_run) if self.replaces else None
            if whole is not None:
                update = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *whole]
                write_channel(self.messages_key, update)
            counts = read_channel(self.state_key)
            given = read_channel(self.state_key, fresh=True)
            # Counts that came with the input are somebody else's.
            begins = given == counts and begins_turn(messages, counts)
            reader = self.gate.open(counts) if begins else None
            if reader is not None:
                self.gate.start_run(reader, whole or messages)
                write_channel(self.state_key, self.gate.save(reader) or {})
        except Exception as error:  # noqa: BLE001 - logged, or raised if the user wants so
            self.gate.fault(error)

    def agent(self, state: Any, call: Callable[[Any], Any]) -> Any:
        """Call the agent with the warnings in its messages."""
        shown, copies = self._shown(state)
        return _restored(call(shown), self.messages_key, copies)

    async def aagent(self, state: Any, call: Callable[[Any], Awaitable[Any]]) -> Any:
        """As `agent`."""
        shown, copies = self._shown(state)
        return _restored(await call(shown), self.messages_key, copies)

    def tools(self, state: Any, call: Callable[[Any], Any]) -> Any:
        """Run the calls, or not."""
        entered = self._enter(state)
        if isinstance(entered, _Run):
            return entered.leave(call(entered.state))
        if isinstance(entered, LastAnswer):
            return entered.finish(self.wrap_up_model.invoke(entered.history))
        return call(state) if entered is None else entered

    async def atools(self, state: Any, call: Callable[[Any], Awaitable[Any]]) -> Any:
        """As `tools`."""
        entered = self._enter(state)
        if isinstance(entered, _Run):
            return entered.leave(await call(entered.state))
        if isinstance(entered, LastAnswer):
            return entered.finish(await self.wrap_up_model.ainvoke(entered.history))
        return await call(state) if entered is None else entered

    def observe(self, state: Any, call: Callable[[Any], Any]) -> Any:
        """Record what would be done, and run the calls; for `invoke` and `ainvoke` alike."""
        messages = self.messages(state)
        step = last_step(messages)
        if step is not None and step.calls:
            key = f"{thread_key()}|{messages[0].id}"
            reader = self.gate.recall(key, messages)
            self.gate.take(reader, step, messages, ask=None)
            self.gate.remember(key, reader)
        return call(state)

    def _shown(self, state: Any) -> tuple[Any, list[BaseMessage]]:
        given = read_key(state, self.messages_key)
        if not isinstance(given, list):
            return state, []
        messages = self.as_messages(given)
        ends = ends_of(messages)
        if ends.get("as") == "raise":
            raise error_of_facts(ends)
        counts = read_channel(self.state_key)
        warnings = counts.get("warnings") if isinstance(counts, dict) else None
        told = with_warnings(messages, warnings) if isinstance(warnings, dict) else None
        if told is None or messages is not given:  # an agent that reads them in its own form
            return state, []
        changed = [old for old, new in zip(messages, told, strict=True) if old is not new]
        return with_key(state, self.messages_key, told), changed

    def _enter(self, state: Any) -> Any:
        """Decide; gives `None` where there is nothing to decide or after a fault."""
        messages = self.messages(state)
        step = last_step(messages)
        if step is None or not step.calls:
            return None
        stopped = self.stopped_again(step, messages) if step.open_calls else None
        if stopped is not None:
            return self._output(stopped, ends=True)
        counts = read_channel(self.state_key)
        reader = self.gate.open(counts, messages)
        if reader is None:
            return None
        decided = self.decide(reader, step, messages)
        if decided is None:
            return None
        outcome = decided.outcome
        if decided.as_made or (outcome.next == "run" and decided.runs()):
            return _Run(self, decided, reader, messages, self.for_tools(state, decided, messages))
        saved = self.gate.save(reader)
        if outcome.next == "answer" and self.wrap_up_model is not None and not step.late:
            return self.last_answer(
                decided, messages, lambda said: self._output(said, saved, ends=True)
            )
        added = self.added(decided, marks=False)
        if outcome.next == "end":
            added.append(final_message(outcome.final))
        written = self.written(decided, messages, added)
        return self._output(written, saved, ends=outcome.next == "end")

    def _output(
        self, messages: list[BaseMessage], counts: Any = None, *, ends: bool = False
    ) -> Any:
        update: dict[str, Any] = {self.messages_key: messages} if messages else {}
        if counts is not None:
            update[self.state_key] = counts
        if not self.commands:
            return update
        return Command(update=update, goto=self.end if ends else self.back)


class _Run(NamedTuple):
    """A step whose calls run, and the state that the tools node is called with."""

    guard: Around
    decided: Decided
    reader: Reader
    messages: list[BaseMessage]
    state: Any

    def leave(self, output: Any) -> Any:
        """Read the results, and give the node's output with the counts and what was added."""
        guard, decided, step = self.guard, self.decided, self.decided.step
        results = results_in(output, guard.messages_key)
        skipped = self._skipped(results, output)
        added: list[BaseMessage] = []
        if not decided.as_made:
            added = guard.added(decided, marks=is_nested())
        history = self.messages
        if added or step.others:
            own = [*step.results, *decided.results()]
            history = [*history[: step.index], decided.message, *own]
        history = [*history, *results, *skipped]
        if results:
            guard.gate.read(self.reader, history)
        counts = guard.gate.save(self.reader, history)
        update: dict[str, Any] = {} if counts is None else {guard.state_key: counts}
        written = [] if decided.as_made else guard.written(decided, self.messages, added)
        if written:
            update[guard.messages_key] = written
        if output is None or not update:
            return update or output
        if type(output) is dict and not written and not skipped:
            return {**output, **update}
        # What is added stands before the results.
        outputs = output if isinstance(output, list | tuple) else [output]
        added_last = {guard.messages_key: skipped} if skipped else {}
        return [Command(update=update), *outputs, Command(update=added_last)]

    def _skipped(self, results: list[ToolMessage], output: Any) -> list[ToolMessage]:
        """Make results of the calls that tools which gave some have left out."""
        if not results or len(results) == len(self.decided.outcome.calls) or leaves_graph(output):
            return []
        given = {result.tool_call_id for result in results}
        missing = [call for call in self.decided.step.waiting if id_of(call) not in given]
        text, runs = self.guard.gate.options.wording.skipped, self.decided.runs()
        return [
            replacement(call, text, mark=Mark(skipped=True))
            for call in missing
            if id_of(call) in runs
        ]


def _restored(output: Any, key: str, originals: list[BaseMessage]) -> Any:
    """Put messages back that an agent gives with the warnings it was called with."""
    given = output.get(key) if originals and isinstance(output, dict) else None
    if not isinstance(given, list):
        return output
    by_id = {one.id: one for one in originals if one.id}
    return {**output, key: [by_id.get(str(getattr(one, "id", "")), one) for one in given]}
