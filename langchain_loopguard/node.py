"""How does a LangGraph graph ask before it runs a batch that repeats itself?

`LoopGuardNode` stands between the agent and the tools. It is a pure function of the graph's
state: the counts are a channel of the state, or are folded from the messages where there is no
such channel, so a resume, a replay, a fork and another process reach the same verdict and count
a batch once. The node counts nothing itself and sees no tool run.

What it cannot see: in a graph without the channel, whatever was trimmed from the messages.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NotRequired, get_args

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langgraph.config import get_config
from langgraph.graph import END, MessagesState
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.errors import loop_detected_error
from langchain_loopguard.history import (
    approved_message,
    edited_message,
    invalid_call_messages,
    is_approved,
    last_batch,
    only_calls,
    response_message,
    without_foreign_answers,
)
from langchain_loopguard.interrupts import interrupt_payload, parse_resume
from langchain_loopguard.messages import SOURCE, MessageReader, refusal_messages, tool_calls_of
from langchain_loopguard.wiring import check_builder, read_key, repair_at_start, with_state_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from langgraph.graph import StateGraph

    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.history import Batch
    from langchain_loopguard.interrupts import Resume

__all__ = ["LoopGuardNode", "LoopGuardState", "OnDetected", "add_loop_guard"]

logger = logging.getLogger(__name__)

OnDetected = Literal["interrupt", "raise", "refuse", "warn"]
"""What happens when a loop is detected."""

_NO_CHECKPOINTER = (
    "A person was to be asked, but this graph has no checkpointer, so it could not be resumed. "
    "Compile it with one (`builder.compile(checkpointer=...)`), or choose another `on_detected`: "
    "'raise', 'refuse' or 'warn'."
)
_RAISED = (
    "The calls were not run. Choose on_detected='interrupt' to ask a person, or 'refuse' to let "
    "the agent try something else."
)
_CHECKPOINTER = "__pregel_checkpointer"
_STOPPED = "This call was not run: the run was ended because the same step was repeated."
_SKIPPED = "This call got no answer."


class LoopGuardState(MessagesState):
    """`MessagesState` with the guard's counts."""

    loop_guard: NotRequired[dict[str, Any]]
    """The guard's counts in JSON types, at most a few KB; nothing of a call or an answer."""


class LoopGuardNode:
    """A node that lets a batch of tool calls run, asks about it, or refuses it.

    It may stand in one place or in two. Behind the agent it decides: the calls go on to the
    tools, back to the agent with a refusal, or the run ends. Behind the tools it takes in their
    answers and goes on to the agent; without that second place it reads the answers when the
    agent has spoken again. `add_loop_guard` wires both.

    Args:
        policy: What counts as a loop; `LoopGuardPolicy()` without one.
        on_detected: What happens to a batch that is a loop. `"interrupt"` asks a person with
            `langgraph.types.interrupt`; see `langchain_loopguard.interrupts` for the question
            and the accepted answers. `"raise"` ends the run in `LoopDetectedError`. `"refuse"`
            answers the calls with an error and lets the model go on, until
            `LoopGuardPolicy.max_refusals` ends the run with a final message. `"warn"` only logs.
        agent: The node that calls the model next, after a refusal or after the tools.
        tools: The node that runs the calls of the last AI message.
        end: Where a run goes that makes no more calls or was stopped.
        messages_key: The state's key for the messages.
        state_key: The state's key for the counts. A state without that channel works too: the
            messages are then read from the first one each time. Guards that run at the same
            time in one graph need a key each.
        fail_open: Whether a fault of the guard itself is logged once and the agent goes on
            unguarded; `False` raises it.

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
        fail_open: bool = True,
    ) -> None:
        if policy is not None and not isinstance(policy, LoopGuardPolicy):
            raise ValueError(f"policy: must be a LoopGuardPolicy or None, not {policy!r}")
        if on_detected not in get_args(OnDetected):
            allowed = ", ".join(repr(choice) for choice in get_args(OnDetected))
            raise ValueError(f"on_detected: must be one of {allowed}, not {on_detected!r}")
        names: dict[str, Any] = {
            "agent": agent,
            "tools": tools,
            "end": end,
            "messages_key": messages_key,
            "state_key": state_key,
        }
        for field, name in names.items():
            if not isinstance(name, str) or not name:
                raise ValueError(f"{field}: must be a name that is not empty, not {name!r}")
        self.policy = policy or LoopGuardPolicy()
        self.on_detected = on_detected
        self.agent = agent
        self.tools = tools
        self.end = end
        self.messages_key = messages_key
        self.state_key = state_key
        self.fail_open = fail_open
        self._logged = False

    @property
    def destinations(self) -> tuple[str, ...]:
        """Where the node may go; `add_node(..., destinations=...)` draws it."""
        return tuple(dict.fromkeys((self.tools, self.agent, self.end)))

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
        batch = last_batch(messages)
        if batch is None:
            return Command(goto=self.agent if _tools_spoke(messages) else self.end)
        if not tool_calls_of(batch.message):
            return Command(goto=self.end)
        turn = _Turn(state, messages, batch, read_key(state, self.state_key))
        try:
            reader = self._reader(turn.known)
            if _tools_ran(turn, reader):
                return self._answers_came(turn, reader)
            found = _Found(turn, reader, _verdict(turn, reader))
            asks = found.decision.action is Action.ASK and self.on_detected == "interrupt"
            question = interrupt_payload(found.decision, turn.calls) if asks else None
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the guard's own fault
            self._fault(error)
            return self._unguarded(turn)
        if question is None:
            return self._act(found)
        if not _resumable():
            raise loop_detected_error(found.decision, _NO_CHECKPOINTER)
        return self._carry_out(found, parse_resume(interrupt(question), turn.calls))

    def _act(self, found: _Found) -> Command[Any]:
        decision = found.decision
        self._tell(decision)
        if decision.action < Action.ASK or self.on_detected == "warn":
            return self._run(found)
        if self.on_detected == "raise":
            raise loop_detected_error(decision, _RAISED)
        if decision.action is Action.STOP:
            return self._stop(found)
        return self._refuse(found, refusal_messages(found.turn.calls, decision.to_model))

    def _carry_out(self, found: _Found, resume: Resume) -> Command[Any]:
        calls = found.turn.calls
        if resume.kind == "continue":
            return self._run(found, approved=True)
        if resume.kind == "stop":
            return self._stop(found, resume.text)
        if resume.kind == "feedback":
            return self._refuse(found, refusal_messages(calls, resume.text))
        answers: list[BaseMessage] = []
        edits: dict[Any, tuple[str, Mapping[str, Any]]] = {}
        run: set[Any] = set()
        for call, answer in zip(calls, resume.calls, strict=True):
            if answer.kind == "refuse":
                answers.extend(refusal_messages([call], answer.text))
            elif answer.kind == "respond":
                answers.append(response_message(call, answer.text))
            else:
                run.add(call.get("id"))
                if answer.args is not None:
                    edits[call.get("id")] = (answer.name or str(call["name"]), answer.args)
        if not run:
            return self._refuse(found, answers)
        return self._run(found, approved=True, run=run, edits=edits, answers=answers)

    def _run(
        self,
        found: _Found,
        *,
        approved: bool = False,
        run: set[Any] | None = None,
        edits: Mapping[Any, tuple[str, Mapping[str, Any]]] | None = None,
        answers: Sequence[BaseMessage] = (),
    ) -> Command[Any]:
        """Send calls to the tools; those that are not to run are answered here.

        Args:
            found: The batch and what was found.
            approved: Whether a person let it run.
            run: The ids of the calls to run, every call that waits by default.
            edits: For a call's id, what to run in its place.
            answers: The answers of the calls that are not to run.
        """
        turn, reader, edits = found.turn, found.reader, edits or {}
        message = edited_message(turn.batch.message, edits) if edits else turn.batch.message
        asked = {call.get("id") for call in turn.calls} if run is None else run
        wanted = asked & {call.get("id") for call in message.tool_calls}
        unreadable = [call for call in turn.batch.unreadable if call.get("id") in asked - wanted]
        answers = [*answers, *invalid_call_messages(unreadable)]

        def settle() -> None:
            if approved:
                reader.approve(found.decision)
            if edits and not answers:
                # What runs is another batch than the one that was counted.
                reader.guard.check(tool_calls_of(message))

        update = self._counts(reader, settle)
        if approved and turn.known is None:
            # Without a channel the messages are all that the next reading has.
            message = approved_message(message)
        changed = [message] if message.id and message is not turn.batch.message else []
        if changed or answers:
            update[self.messages_key] = [*changed, *answers]
        if not wanted:
            return Command(goto=self.agent, update=update)
        # A message without an id can't be replaced, so its edit reaches the tools only.
        seen = bool(changed) or not edits
        return Command(goto=self._to_tools(turn, message, wanted, seen=seen), update=update)

    def _to_tools(
        self, turn: _Turn, message: AIMessage, wanted: set[Any], *, seen: bool = True
    ) -> str | Send:
        if seen and wanted == {call.get("id") for call in tool_calls_of(message)}:
            return self.tools
        # A tools node runs every call of the last AI message, answered or not, so it is shown
        # one that makes only the calls to run.
        history = [*turn.messages[: turn.batch.index], only_calls(message, wanted)]
        return Send(self.tools, _with(turn.state, self.messages_key, history))

    def _refuse(self, found: _Found, answers: Sequence[BaseMessage]) -> Command[Any]:
        update = self._counts(found.reader, lambda: found.reader.refuse(found.decision))
        return Command(goto=self.agent, update={**update, self.messages_key: list(answers)})

    def _stop(self, found: _Found, reason: str = "") -> Command[Any]:
        update = self._counts(found.reader, lambda: found.reader.refuse(found.decision))
        text = f"Stopped. {found.decision.to_person}"
        if reason:
            text += f" Reason: {reason}"
        answers = refusal_messages(found.turn.calls, _STOPPED)
        last = AIMessage(content=text, additional_kwargs={"lc_source": SOURCE})
        return Command(goto=self.end, update={**update, self.messages_key: [*answers, last]})

    def _answers_came(self, turn: _Turn, reader: MessageReader) -> Command[Any]:
        batch = turn.batch
        if turn.known is None:
            _verdict(turn, reader)
        self._tell(reader.read(_unread(reader, turn.messages)))
        update: dict[str, Any] = {}
        if turn.known is not None:
            update[self.state_key] = reader.to_state()
        notice = reader.take_notice(turn.messages)
        left = [
            # An answer without an id can't be replaced by one that carries a notice.
            *([notice] if notice is not None and notice.id else []),
            *invalid_call_messages(batch.unreadable),
            *refusal_messages(batch.waiting, _SKIPPED),
        ]
        if left:
            update[self.messages_key] = left
        return Command(goto=self.agent, update=update)

    def _unguarded(self, turn: _Turn) -> Command[Any]:
        """Go where a graph without a guard goes."""
        batch = turn.batch
        if batch.tools_ran or (batch.answered and not batch.waiting):
            return Command(goto=self.agent)
        if not batch.waiting:
            return Command(goto=self.end)
        wanted = {call.get("id") for call in batch.waiting}
        return Command(goto=self._to_tools(turn, batch.message, wanted))

    def _messages(self, state: Any) -> list[BaseMessage]:
        messages = read_key(state, self.messages_key)
        if not isinstance(messages, Sequence) or isinstance(messages, str):
            raise ValueError(  # noqa: TRY004 - the option is wrong, not the state's type
                f"messages_key: the state holds no list of messages under {self.messages_key!r}"
            )
        if all(isinstance(message, BaseMessage) for message in messages):
            return list(messages)
        try:
            # A reducer of the user's own may keep messages as they came: mappings, pairs, texts.
            return [*convert_to_messages(messages)]
        except Exception as error:  # noqa: BLE001 - odd messages are no reason to end a run
            self._fault(error)
            return [message for message in messages if isinstance(message, BaseMessage)]

    def _reader(self, known: Any) -> MessageReader:
        fresh = MessageReader(LoopGuard(self.policy))
        if known is None:
            return fresh
        try:
            return MessageReader.from_state(self.policy, known)
        except GuardStateError as error:
            # The counts of a newer release are left alone for the process that wrote them. Any
            # other odd value is no reason to go on without a guard.
            if not self.fail_open or _is_newer(known, fresh.to_state()):
                raise
            self._log("The loop guard counts anew: %s", error)
            return fresh

    def _counts(self, reader: MessageReader, settle: Callable[[], None]) -> dict[str, Any]:
        try:
            settle()
            return {self.state_key: reader.to_state()}
        except Exception as error:  # noqa: BLE001 - a person's answer is carried out all the same
            self._fault(error)
            return {}

    def _tell(self, decision: Decision | None) -> None:
        """Log what was found and no person hears of otherwise."""
        if decision is None or not decision.findings:
            return
        if decision.action is Action.WARN or self.on_detected in {"warn", "refuse"}:
            logger.warning("%s", decision.to_person)

    def _fault(self, error: Exception) -> None:
        if not self.fail_open:
            raise error
        if isinstance(error, GuardStateError):
            self._log("The loop guard is off for threads with this state: %s", error)
        else:
            self._log("The loop guard failed, the agent goes on unguarded.", exc_info=error)

    def _log(self, text: str, *args: object, exc_info: Exception | None = None) -> None:
        if not self._logged:
            self._logged = True
            logger.error(text, *args, exc_info=exc_info)


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
    fail_open: bool = True,
) -> StateGraph[Any, Any, Any, Any]:
    """Put a guard between the agent and the tools of a graph, and wire it.

    The edges become agent -> guard and tools -> guard; the guard goes on to the tools, the agent
    or the end. An edge START -> agent is led through one more node, which answers the calls that
    an interrupted turn left open when the user writes something new instead of answering. Call
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
        fail_open: Whether a fault of the guard itself lets the agent go on.

    Returns:
        The same builder.

    Raises:
        ValueError: If a node, a key or an option is not what it must be, or if the agent or the
            tools have edges of their own. The message names the field and what is allowed.
    """
    node = LoopGuardNode(
        policy,
        on_detected=on_detected,
        agent=agent,
        tools=tools,
        end=end,
        messages_key=messages_key,
        state_key=state_key,
        fail_open=fail_open,
    )
    check_builder(builder, name, agent, tools, end=end, messages_key=messages_key)
    builder.add_node(
        name,
        node,
        input_schema=with_state_key(builder, state_key),
        destinations=node.destinations,
    )
    builder.add_edge(agent, name)
    builder.add_edge(tools, name)
    repair_at_start(builder, f"{name}_repair", agent, messages_key=messages_key)
    return builder


@dataclass(frozen=True, slots=True)
class _Turn:
    """Where a run stands when the node is called.

    Attributes:
        state: The state as LangGraph gave it.
        messages: Its messages.
        batch: The calls of the last AI message.
        known: The saved counts, `None` before the first ones and without a channel.
    """

    state: Any
    messages: list[BaseMessage]
    batch: Batch
    known: Any

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls to decide about."""
        return [*self.batch.waiting, *self.batch.unreadable]


@dataclass(frozen=True, slots=True)
class _Found:
    """A turn with the verdict on it."""

    turn: _Turn
    reader: MessageReader
    decision: Decision


def _tools_spoke(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether the tools wrote the messages after the last AI message, an image perhaps."""
    last = next((message for message in reversed(messages) if _is_ai(message)), None)
    return last is not None and bool(tool_calls_of(last))


def _tools_ran(turn: _Turn, reader: MessageReader) -> bool:
    """Tell whether the batch has run, so that only its answers are to be taken in."""
    batch = turn.batch
    if not batch.answered:
        return False
    if not batch.waiting:
        return True
    # Some calls are answered and some are not: either a person answered those before the batch
    # ran, or the tools node left the others out.
    if turn.known is None:
        return batch.tools_ran
    return reader.place(turn.messages) == batch.index


def _verdict(turn: _Turn, reader: MessageReader) -> Decision:
    batch = turn.batch
    messages = _unread(reader, turn.messages[: batch.index + 1])
    if turn.known is None:
        # What a person let run is known from the marks in the messages.
        for at, message in enumerate(messages[:-1]):
            if is_approved(message):
                reader.read(messages[: at + 1])
                reader.approve(reader.check(message))
    reader.read(messages)
    message = batch.message
    if batch.answered:
        message = only_calls(message, {call.get("id") for call in turn.calls})
    return reader.check(message)


def _unread(reader: MessageReader, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Give the messages from the one that was counted last on, which are all that matter."""
    return without_foreign_answers(messages[reader.place(messages) or 0 :])


def _is_ai(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage)


def _is_newer(known: Any, own: Mapping[str, Any]) -> bool:
    """Tell whether a later release wrote the counts."""
    if not isinstance(known, Mapping):
        return False
    pairs = [(known.get("v"), own["v"])]
    if isinstance(known.get("guard"), Mapping):
        pairs.append((known["guard"].get("v"), own["guard"]["v"]))
    return any(isinstance(theirs, int) and theirs > ours for theirs, ours in pairs)


def _resumable() -> bool:
    """Tell whether the running graph can be resumed: whether it has a checkpointer."""
    settings = get_config().get("configurable", {})
    # LangGraph sets the key for every task, to None without a checkpointer. Should it be gone
    # one day, a thread id is what a checkpointer asks for.
    return settings.get(_CHECKPOINTER, settings.get("thread_id")) is not None


def _with(state: Any, key: str, value: Any) -> Any:
    if isinstance(state, Mapping):
        return {**state, key: value}
    if isinstance(state, BaseModel):
        return state.model_copy(update={key: value})
    return dataclasses.replace(state, **{key: value})
