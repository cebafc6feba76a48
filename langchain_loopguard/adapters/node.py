"""How does a node between the agent and the tools of a graph stop a loop?

`LoopGuardNode` is the guard for graphs that are wired by hand. It is a pure function of the
state: the counts are a channel of it, or are folded from the messages where there is no such
channel, so a resume, a replay, a fork and another process reach the same verdict and count a step
once.

What it can't see: in a graph without the channel, whatever was trimmed from the messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from langgraph.config import get_config
from langgraph.graph import END, MessagesState
from langgraph.types import Command, Send

from langchain_loopguard.adapters._langgraph import NodeCallable, is_resumed
from langchain_loopguard.adapters.graph import GraphGuard, LastAnswer, read_key
from langchain_loopguard.langchain.errors import error_of_facts
from langchain_loopguard.langchain.marks import Mark, ends_of, final_message, replacement
from langchain_loopguard.langchain.messages import key_of, last_step, makes_calls, with_warnings
from langchain_loopguard.langchain.options import (
    IsUserMessage,
    OnDetected,
    Options,
    ShowContent,
    check_name,
    check_tools,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

    from langchain_loopguard.adapters.gate import Decided
    from langchain_loopguard.langchain.history import Reader
    from langchain_loopguard.langchain.messages import MessageStep
    from langchain_loopguard.langchain.telemetry import Count
    from langchain_loopguard.langchain.wording import Wording
    from langchain_loopguard.policy import LoopGuardPolicy


def _newest(old: Any, new: Any) -> Any:
    return new or old


class LoopGuardState(MessagesState):
    """`MessagesState` with the guard's counts."""

    loop_guard: NotRequired[Annotated[dict[str, Any], _newest]]
    """The guard's counts in JSON types, a few KB at most. Sub-graphs with this key share them;
    where two that run side by side write them, the later one's are kept."""


class LoopGuardNode(NodeCallable):
    """A node that lets a step's tool calls run, asks a person, or refuses it.

    It may stand in one place or in two. Behind the agent it decides: the calls go on to the
    tools, back to the agent with a refusal, or the run ends. Behind the tools it takes in their
    results and goes on to the agent; without that second place it reads the results when the
    agent has spoken again. Each place costs a super-step; `add_loop_guard` costs none.

    It doesn't own the request to the model. Behind the tools it writes a warning below the last
    result, once for a loop and threshold; elsewhere the model gets none.

    The options are those of `LoopGuardMiddleware`, and besides:

    Args:
        on_detected: Under `"wrap_up"` the agent's node is called a last time unless there is a
            `wrap_up_model`: its model still has its tools, but what it calls is not run any more.
        agent: The node that calls the model next, after a refusal or after the tools.
        tools: The node that runs the calls of the last AI message.
        end: Where a run goes that makes no more calls or was stopped.
        messages_key: The state's key for the messages. With a reducer that only appends,
            `operator.add` for one, no message is changed that stands there already.
        state_key: The state's key for the counts. A state without that channel works too: the
            messages are then read from the first one each time, and `always` isn't remembered.
            Guards that run at the same time in one graph need a key each.
        wrap_up_model: A chat model without tools, or any runnable from messages to a message, for
            the last answer under `"wrap_up"`.
        tool_list: The tools themselves, for what they declare in their `metadata`.

    Raises:
        ValueError: If an option has a value it can't have; the message names both.
    """

    def __init__(
        self,
        policy: LoopGuardPolicy | None = None,
        *,
        on_detected: OnDetected = "interrupt",
        agent: str = "agent",
        tools: str = "tools",
        end: str = END,
        messages_key: str = "messages",
        state_key: str = "loop_guard",
        wrap_up_model: Runnable[Any, Any] | None = None,
        tool_list: Iterable[Any] = (),
        show_content: ShowContent = "full",
        agent_inbox: bool = False,
        is_user_message: IsUserMessage = None,
        wording: Wording | Mapping[str, str] | None = None,
        fail_open: bool = True,
    ) -> None:
        for option, name in (("agent", agent), ("tools", tools), ("end", end)):
            check_name(option, name)
        check_tools("tool_list", tool_list)
        options = Options(
            policy=policy,  # type: ignore[arg-type]
            on_detected=on_detected,
            show_content=show_content,
            agent_inbox=agent_inbox,
            is_user_message=is_user_message,
            wording=wording,  # type: ignore[arg-type]
            fail_open=fail_open,
        )
        self._guard = GraphGuard(
            options,
            tools=tool_list,
            messages_key=messages_key,
            state_key=state_key,
            wrap_up_model=wrap_up_model,
        )
        super().__init__(self._decide, self._adecide, name=type(self).__name__, trace=False)
        self.policy, self.on_detected = options.policy, on_detected
        self.agent, self.tools_node, self.end = agent, tools, end

    @property
    def destinations(self) -> tuple[str, ...]:
        """Where the node may go; `add_node(..., destinations=...)` draws it."""
        return tuple(dict.fromkeys((self.tools_node, self.agent, self.end)))

    def stats(self) -> Mapping[Count, int]:
        """Count what was done since it was made, over all threads; see `telemetry.Stats`."""
        return self._guard.gate.stats()

    def __call__(self, state: Any) -> Command[Any]:
        """As `invoke`."""
        return self._decide(state)

    def _decide(self, state: Any) -> Command[Any]:
        way = self._where_to(state)
        if isinstance(way, LastAnswer):
            way = way.finish(self._guard.wrap_up_model.invoke(way.history))
        return way

    async def _adecide(self, state: Any) -> Command[Any]:
        way = self._where_to(state)
        if isinstance(way, LastAnswer):
            way = way.finish(await self._guard.wrap_up_model.ainvoke(way.history))
        return way

    def _where_to(self, state: Any) -> Command[Any] | LastAnswer:
        guard, messages = self._guard, self._guard.messages(state)
        ends = ends_of(messages)
        if ends.get("as") == "raise":
            raise error_of_facts(ends)
        step = last_step(messages)
        if step is None or not makes_calls(step.message):
            return Command(goto=self.end)
        stopped = guard.stopped_again(step, messages) if step.open_calls else None
        if stopped is not None:
            return self._go(self.end, stopped)
        counts = read_key(state, guard.state_key)
        reader = guard.gate.open(counts, messages)
        if reader is None:
            return Command(goto=self.tools_node if step.waiting else self.agent)
        if self._tools_ran(reader, step, known=bool(counts)):
            return self._read_results(reader, step, messages)
        decided = guard.decide(reader, step, messages)
        if decided is None:
            return Command(goto=self.tools_node if step.waiting else self.agent)
        saved = guard.gate.save(reader, messages)
        if decided.outcome.next == "answer" and guard.wrap_up_model is not None and not step.late:
            return guard.last_answer(
                decided, messages, lambda said: self._go(self.end, said, saved)
            )
        return self._carry_out(state, decided, messages, saved, known=counts is not None)

    def _tools_ran(self, reader: Reader, step: MessageStep, *, known: bool) -> bool:
        """Tell whether the tools have run, so that only their results are to be read."""
        if known:
            return key_of(step.message) == reader.counts.last
        if step.results:
            return bool(step.by_tools) and not step.waiting
        # Tools may have spoken in another way; an answer to the guard's question shows that it
        # stood before them.
        return bool(step.others) and not is_resumed()

    def _carry_out(
        self,
        state: Any,
        decided: Decided,
        messages: list[BaseMessage],
        counts: dict[str, Any] | None,
        *,
        known: bool,
    ) -> Command[Any]:
        guard, outcome = self._guard, decided.outcome
        # Where no counts are saved the messages are all that the next reading has.
        added = guard.added(decided, marks=not known)
        goto: Any = self.agent
        if outcome.next == "end":
            goto = self.end
            added.append(final_message(outcome.final))
        elif outcome.next == "raise":
            # Once more here, when the results are saved.
            goto = str(get_config()["metadata"]["langgraph_node"])
        elif outcome.next == "run" and decided.runs():
            shown = guard.for_tools(state, decided, messages)
            goto = self.tools_node if shown is state else Send(self.tools_node, shown)
        return self._go(goto, guard.written(decided, messages, added), counts)

    def _read_results(
        self, reader: Reader, step: MessageStep, messages: list[BaseMessage]
    ) -> Command[Any]:
        guard = self._guard
        wording = guard.gate.options.wording
        given = [(call, wording.unparsed) for call in step.unparsed]
        given += [(call, wording.skipped) for call in step.waiting] * bool(step.results)
        told = dict(reader.counts.warnings)
        guard.gate.read(reader, messages)
        added: list[BaseMessage] = [
            replacement(call, text, mark=Mark(skipped=True)) for call, text in given
        ]
        new = {at: text for at, text in reader.counts.warnings.items() if told.get(at) != text}
        if new and guard.can_replace():
            noted = with_warnings(step.results, new) or []
            added += [one for one in noted if one not in step.results]
        return self._go(self.agent, added, guard.gate.save(reader, messages))

    def _go(
        self, goto: Any, messages: Sequence[BaseMessage], counts: dict[str, Any] | None = None
    ) -> Command[Any]:
        update: dict[str, Any] = {}
        if messages:
            update[self._guard.messages_key] = list(messages)
        if counts is not None:
            update[self._guard.state_key] = counts
        return Command(goto=goto, update=update)
