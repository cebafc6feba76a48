"""How does a LangGraph graph ask before it runs a batch that repeats itself?

`LoopGuardNode` stands between the agent and the tools. It is a pure function of the graph's
state: the counts are a channel of the state, or are folded from the messages where there is no
such channel, so a resume, a replay, a fork and another process reach the same verdict and count
a batch once. The node counts nothing itself and sees no tool run.

What it cannot see: in a graph without the channel, whatever was trimmed from the messages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, NotRequired

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.config import get_config
from langgraph.graph import END, MessagesState
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Send
from pydantic import BaseModel

from langchain_loopguard.graph.endings import check_ended, last_answer
from langchain_loopguard.graph.gate import Gate
from langchain_loopguard.graph.reducers import replaces_by_id, running_channel
from langchain_loopguard.graph.tracing import node_options
from langchain_loopguard.graph.turn import Turn
from langchain_loopguard.graph.wiring import (
    check_builder,
    read_key,
    repair_at_start,
    tools_of,
    with_state_key,
)
from langchain_loopguard.history import answer_open_calls, last_batch, only_calls, rewritten
from langchain_loopguard.messages import makes_calls, tool_calls_of
from langchain_loopguard.options import (
    OnDetected,
    check_choice,
    check_flag,
    check_name,
    check_tools,
    policy_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_core.runnables import Runnable
    from langgraph.graph import StateGraph

    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.graph.gate import Step
    from langchain_loopguard.telemetry import Count

__all__ = ["LoopGuardNode", "LoopGuardState", "OnDetected", "add_loop_guard"]

_SCRATCHPAD = "__pregel_scratchpad"
"""Where a task's config holds what the task was resumed with."""

_USUAL: frozenset[type] = frozenset({AIMessage, HumanMessage, SystemMessage, ToolMessage})


class LoopGuardState(MessagesState):
    """`MessagesState` with the guard's counts."""

    loop_guard: NotRequired[dict[str, Any]]
    """The guard's counts in JSON types, at most a few KB; nothing of a call or an answer."""


class LoopGuardNode:
    """A node that lets a batch of tool calls run, asks about it, or refuses it.

    It may stand in one place or in two. Behind the agent it decides: the calls go on to the
    tools, back to the agent with a refusal, or the run ends. Behind the tools it takes in their
    answers and goes on to the agent; without that second place it reads the answers when the
    agent has spoken again. `add_loop_guard` wires both. What is found is told as
    `langchain_loopguard.telemetry` says.

    Args:
        policy: What counts as a loop; `LoopGuardPolicy()` without one.
        on_detected: What happens to a batch that is a loop. `"interrupt"` asks a person with
            `langgraph.types.interrupt`; see `langchain_loopguard.interrupts` for the question
            and the accepted answers. `"raise"` ends the run in `LoopDetectedError`; where the
            thread is saved, the calls are answered first, so that it can go on later.
            `"refuse"` answers the calls with an error and lets the model go on, until
            `LoopGuardPolicy.max_refusals` ends the run with a final message. `"wrap_up"`
            answers the calls with an error and has the model speak once more, so that the run
            ends with what was found; see `wrap_up_model`. `"warn"` holds nothing back. In every
            mode the model is told, and what no person hears of otherwise is logged.
        agent: The node that calls the model next, after a refusal or after the tools.
        tools: The node that runs the calls of the last AI message.
        end: Where a run goes that makes no more calls or was stopped.
        messages_key: The state's key for the messages. With a reducer that only appends,
            `operator.add` for one, no message is changed that stands there already: the model
            gets no hints, an edited call reaches the tools only, and without a channel for the
            counts a person is asked about a loop again that was let go on.
        state_key: The state's key for the counts. A state without that channel works too: the
            messages are then read from the first one each time. Guards that run at the same
            time in one graph need a key each.
        wrap_up_model: A chat model without tools, or any runnable from messages to a message
            (its `invoke` is called), for the last answer under `"wrap_up"`. Without one the
            agent's node is called once more: its model still has its tools, but what it calls
            is not run any more, and if it says nothing besides, the run ends with a message of
            the guard.
        agent_inbox: Whether a question carries the older form too that Agent Inbox reads.
        tool_list: The tools themselves, for what they declare in their `metadata`: MCP's
            `readOnlyHint`, or `{"loop_guard": {...}}` with any of `ToolTraits`.
            `add_loop_guard` finds those of a `ToolNode`.
        fail_open: Whether a fault of the guard itself is logged once and the agent goes on
            unguarded; `False` raises it.

    Raises:
        ValueError: If an option has a value it can't have; the message names both.
    """

    _behind_tools = False
    """Whether it is known to stand behind the tools too."""

    _known_to_replace: bool | None = None
    """Whether a message replaces one with the same id, if that was found when it was wired."""

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
        agent_inbox: bool = False,
        tool_list: Iterable[Any] = (),
        fail_open: bool = True,
    ) -> None:
        self.policy = policy_of(policy)
        check_choice("on_detected", on_detected, OnDetected)
        names: dict[str, Any] = {
            "agent": agent,
            "tools": tools,
            "end": end,
            "messages_key": messages_key,
            "state_key": state_key,
        }
        for option, name in names.items():
            check_name(option, name)
        if state_key == messages_key:
            raise ValueError(f"state_key: must be another key than messages_key, {messages_key!r}")
        check_flag("agent_inbox", agent_inbox)
        check_flag("fail_open", fail_open)
        check_tools("tool_list", tool_list)
        if wrap_up_model is not None and not callable(getattr(wrap_up_model, "invoke", None)):
            raise ValueError(
                f"wrap_up_model: must be a chat model or another runnable, not {wrap_up_model!r}"
            )
        self.on_detected = on_detected
        self.agent = agent
        self.tools = tools
        self.end = end
        self.messages_key = messages_key
        self.state_key = state_key
        self.wrap_up_model = wrap_up_model
        self._gate = Gate(
            self.policy,
            adapter="node",
            on_detected=on_detected,
            agent_inbox=agent_inbox,
            fail_open=fail_open,
            answers_unreadable=True,
            tools=tool_list,
            replaces=self._replaces,
        )

    @property
    def destinations(self) -> tuple[str, ...]:
        """Where the node may go; `add_node(..., destinations=...)` draws it."""
        return tuple(dict.fromkeys((self.tools, self.agent, self.end)))

    def stats(self) -> Mapping[Count, int]:
        """Count what it did since it was made, over all threads; see `Telemetry.stats`."""
        return self._gate.telemetry.stats()

    def __call__(self, state: Any) -> Command[Any]:
        """Decide where the run goes on; reads the state and changes nothing.

        Raises:
            GraphInterrupt: LangGraph's signal that a person is asked.
            LoopDetectedError: With `on_detected="raise"`, or when a person was to be asked and
                the graph has no checkpointer.
            InvalidResumeError: If the graph was resumed with a value that is no answer. The
                question stays open.
        """
        messages = self._messages(state)
        check_ended(messages)
        batch = last_batch(messages)
        if batch is None or not makes_calls(batch.message):
            return Command(goto=self.end)
        turn = Turn(batch.ends(messages), batch, read_key(state, self.state_key))
        if batch.others and not (batch.answered or batch.spoken) and self._may_have_run(turn):
            return Command(goto=self.agent)  # The tools spoke, in their own way.
        step = self._gate.step(turn, behind_tools=self._behind_tools)
        return self._unguarded(state, turn) if step is None else self._go(state, turn, step)

    def _go(self, state: Any, turn: Turn, step: Step) -> Command[Any]:
        messages: list[Any] = list(step.messages)
        batch, stored = turn.batch, step.stored
        goto: str | Send = self.agent
        if step.to == "end":
            goto = self.end
        elif step.to == "error":
            # This node once more, when the answers are saved.
            goto = str(get_config()["metadata"]["langgraph_node"])
        elif step.to == "answer" and self.wrap_up_model is not None:
            whole = answer_open_calls([*turn.messages[: batch.index + 1], *messages])
            messages.append(last_answer(messages, self.wrap_up_model.invoke(whole)))
            goto = self.end
        if batch.others and not self._replaces():
            stored = False  # Many tools nodes look at the last message only.
        elif batch.others and (batch.apart or step.to != "agent" or messages):
            # Nothing may stand between the calls and their answers.
            first = step.to not in {"agent", "end"}
            whole = rewritten(turn.messages, batch, messages, others_first=first)
            messages = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *whole]
        if step.to == "tools" and step.run:
            goto = self._to_tools(
                state, turn, step.message or batch.message, step.run, stored=stored
            )
        update: dict[str, Any] = {}
        if step.counts is not None:
            update[self.state_key] = step.counts
        if messages:
            update[self.messages_key] = messages
        return Command(goto=goto, update=update)

    def _to_tools(
        self,
        state: Any,
        turn: Turn,
        message: AIMessage,
        wanted: AbstractSet[Any],
        *,
        stored: bool = True,
    ) -> str | Send:
        if stored and wanted == {call.get("id") for call in tool_calls_of(message)}:
            return self.tools
        # A tools node runs every call of the last AI message, answered or not, so it is shown
        # one that makes only the calls to run.
        history = [*turn.messages[: turn.batch.index], only_calls(message, wanted)]
        return Send(self.tools, _with(state, self.messages_key, history))

    def _unguarded(self, state: Any, turn: Turn) -> Command[Any]:
        """Go where a graph without a guard goes."""
        batch = turn.batch
        if batch.tools_ran or (batch.answered and not batch.waiting):
            return Command(goto=self.agent)
        if not batch.waiting:
            return Command(goto=self.end)
        wanted = {call.get("id") for call in batch.waiting}
        stored = not batch.others
        return Command(goto=self._to_tools(state, turn, batch.message, wanted, stored=stored))

    def _may_have_run(self, turn: Turn) -> bool:
        """Tell whether it is unknown if the tools ran that have left no answer.

        The counts know it. Without any, only an answer to the guard's question shows that they
        didn't; where the guard stands behind the tools, counts are saved before the first run.
        """
        return turn.known is None and not self._behind_tools and not _is_resumed()

    def _replaces(self) -> bool:
        if self._known_to_replace is not None:
            return self._known_to_replace
        channel = running_channel(self.messages_key)
        return channel is None or replaces_by_id(channel)

    def _messages(self, state: Any) -> list[BaseMessage]:
        messages = read_key(state, self.messages_key)
        if not isinstance(messages, Sequence) or isinstance(messages, str):
            raise ValueError(  # noqa: TRY004 - the option is wrong, not the state's type
                f"messages_key: the state holds no list of messages under {self.messages_key!r}"
            )
        # By type, of which there are few, since a history may be long. The usual ones are not
        # asked what they are: that takes ten times as long.
        kinds = set(map(type, messages))
        if kinds <= _USUAL or all(issubclass(kind, BaseMessage) for kind in kinds):
            return messages if isinstance(messages, list) else list(messages)
        try:
            # A reducer of the user's own may keep messages as they came: mappings, pairs, texts.
            return [*convert_to_messages(messages)]
        except Exception as error:  # noqa: BLE001 - odd messages are no reason to end a run
            self._gate.fault(error)
            return [message for message in messages if isinstance(message, BaseMessage)]


class _WiredNode(LoopGuardNode):
    """A node that `add_loop_guard` has wired."""

    _behind_tools = True

    def note_channel(self, channel: Any) -> None:
        """Find out what the channel of the messages does with ids."""
        self._known_to_replace = replaces_by_id(channel)


def add_loop_guard(
    builder: StateGraph[Any, Any, Any, Any],
    agent: str = "agent",
    tools: str = "tools",
    *,
    name: str = "loop_guard",
    policy: LoopGuardPolicy | None = None,
    on_detected: OnDetected = "interrupt",
    end: str = END,
    messages_key: str = "messages",
    state_key: str = "loop_guard",
    wrap_up_model: Runnable[Any, Any] | None = None,
    agent_inbox: bool = False,
    fail_open: bool = True,
) -> StateGraph[Any, Any, Any, Any]:
    """Put a guard between the agent and the tools of a graph, and wire it.

    The edges become agent -> guard and tools -> guard; the guard goes on to the tools, the agent
    or the end. An edge START -> agent is led through one more node, which answers the calls that
    an interrupted turn left open when the user writes something new instead of answering. That
    takes a reducer for the messages that puts one in the place of another, as `add_messages` and
    what is built upon it do; with any other one a warning is logged, and it is for the agent to
    send the model what `langchain_loopguard.history.answer_open_calls` makes of its history. Call
    it last, before `compile`, on a graph without own edges out of the agent and out of the
    tools: they would run besides the guard's and past a refusal.

    The counts are kept in a channel of the graph. Where the state's schema lists `state_key`,
    it is that one; otherwise the guard adds one that is saved with the thread and is no part of
    the graph's input and output.

    Args:
        builder: The graph, not compiled yet; it is changed.
        agent: The node that calls the model.
        tools: The node that runs the calls.
        name: The guard's name in the graph.
        policy: As for `LoopGuardNode`, and so are the options below.
        on_detected: What happens to a batch that is a loop.
        end: Where a run goes that makes no more calls or was stopped.
        messages_key: The state's key for the messages.
        state_key: The state's key for the counts; guards that run at the same time need one each.
        wrap_up_model: Who gives the last answer under `"wrap_up"`, the agent without one.
        agent_inbox: Whether a question carries the older form too that Agent Inbox reads.
        fail_open: Whether a fault of the guard itself lets the agent go on.

    Returns:
        The same builder.

    Raises:
        ValueError: If a node, a key or an option is not what it must be, or if the agent or the
            tools have edges of their own. The message names the field and what is allowed.
    """
    check_name("name", name)
    node = _WiredNode(
        policy,
        on_detected=on_detected,
        agent=agent,
        tools=tools,
        end=end,
        messages_key=messages_key,
        state_key=state_key,
        wrap_up_model=wrap_up_model,
        agent_inbox=agent_inbox,
        tool_list=tools_of(builder, tools),
        fail_open=fail_open,
    )
    check_builder(builder, name, agent, tools, end=end, messages_key=messages_key)
    node.note_channel(builder.channels[messages_key])
    builder.add_node(
        name,
        node,
        input_schema=with_state_key(builder, state_key),
        destinations=node.destinations,
        **node_options(),
    )
    builder.add_edge(agent, name)
    builder.add_edge(tools, name)
    repair_at_start(builder, f"{name}_repair", agent, messages_key=messages_key)
    return builder


def _is_resumed() -> bool:
    """Tell whether this task was interrupted and has an answer now."""
    try:
        scratchpad = get_config()["configurable"][_SCRATCHPAD]
        return bool(scratchpad.resume) or scratchpad.get_null_resume(False) is not None  # noqa: FBT003
    except Exception:  # noqa: BLE001 - the host's internals, which may be gone one day
        return False


def _with(state: Any, key: str, value: Any) -> Any:
    if isinstance(state, Mapping):
        return {**state, key: value}
    if isinstance(state, BaseModel):
        return state.model_copy(update={key: value})
    return dataclasses.replace(state, **{key: value})
