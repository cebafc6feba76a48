"""What is known of one agent's messages, and what of them is read when?

A conversation is the message list of one agent: its reader and its latest steps, with what was
decided about them. Where one is kept, and for how long, says `finding.py`; what is to be done
about a step is not decided here.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_loopguard.adapters.runs import MISSING
from langchain_loopguard.langchain.history import Reader
from langchain_loopguard.langchain.marks import is_generated
from langchain_loopguard.langchain.messages import (
    calls_of,
    id_of,
    key_of,
    last_step,
    makes_calls,
    short,
    step_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from langchain_loopguard.adapters.asking import Question
    from langchain_loopguard.adapters.gate import Gate
    from langchain_loopguard.adapters.runs import Key, Run
    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.langchain.marks import Mark
    from langchain_loopguard.langchain.messages import MessageStep
    from langchain_loopguard.langchain.outcome import CallOutcome, Outcome

_STEPS = 32
"""Steps, and AI messages whose tools have not started, that are remembered of a conversation. One
is under way at a time, several where one graph runs agents side by side; without a measurement."""

_NOTED = 10_000
"""AI messages that are remembered as decided about, or read; without a measurement too."""


class Place(NamedTuple):
    """The conversation of a call, and where the AI message is that makes it."""

    kept: Conversation
    messages: Sequence[BaseMessage]
    at: int
    in_state: bool = False  # Whether the messages are the graph's state.
    direct: bool = False  # Whether no model made the call, so that the message is made up.
    prompt: str = ""  # See `Said`.


class Said(NamedTuple):
    """What a model said, and in which attempt of a task."""

    message: AIMessage
    attempt: Run
    sent: Sequence[BaseMessage]  # What it answers; empty where the graph's state tells.
    prompt: str  # A user's text without an id that it answers alone.


@dataclass(slots=True, eq=False)
class Pending:
    """One step whose calls start, or whose results came before anybody decided."""

    step: MessageStep
    history: Sequence[BaseMessage]  # The messages it stands in; empty once it is decided about.
    caller: UUID | None = None  # The run that started a call without an AI message.
    in_state: bool = False  # Whether the graph's state holds the step, and so its results.
    decision: Decision | None = None
    outcome: Outcome | None = None  # `None` while nothing is decided.
    question: Question | None = None  # What a person was asked.
    outputs: dict[str, ToolMessage] = field(default_factory=dict)  # Where no message list tells.

    @property
    def call_ids(self) -> set[str | None]:
        """The ids of all its calls."""
        return set(map(id_of, self.step.calls))

    @property
    def ran_unasked(self) -> bool:
        """Whether it was approved without a person."""
        return self.outcome is not None and self.outcome.next == "run" and not self.question

    def settle(self, outcome: Outcome) -> None:
        """Note what was decided, and let go of the history."""
        self.outcome, self.history = outcome, ()

    def outcome_of(self, call_id: str | None) -> CallOutcome | None:
        """Give what happens to a call."""
        outcomes = self.outcome.calls if self.outcome is not None else ()
        calls = zip(self.step.decided_calls, outcomes, strict=False)
        return next((one for call, one in calls if id_of(call) == call_id), None)

    def take(self, call_id: str, output: Any, status: str) -> None:
        """Note what a tool gave: a message, a command or a list that holds one, or content."""
        for message in messages_in(output):
            if isinstance(message, ToolMessage):
                self.outputs[str(message.tool_call_id)] = message
        if call_id not in self.outputs:
            plain = isinstance(output, str) or _is_blocks(output)
            content: Any = output if plain else repr(output)
            self.outputs[call_id] = ToolMessage(content, tool_call_id=call_id, status=status)

    def results(self) -> list[BaseMessage]:
        """Give the step with what its tools gave, nothing where results are missing."""
        complete = len(self.outputs) >= len(self.step.message.tool_calls)
        return [self.step.message, *self.outputs.values()] if complete else []


class Noted(OrderedDict[str, None]):
    """Keys of the AI messages noted last."""

    def note(self, key: str) -> None:
        """Note one; the oldest is forgotten."""
        self[key] = None
        if len(self) > _NOTED:
            self.popitem(last=False)


class Conversation:
    """One agent's message list, as far as it was seen. The caller holds its lock.

    Attributes:
        key: Its name.
        reader: What is counted.
        steps: The latest ones, by the keys of their AI messages.
        spoken: The latest AI messages with calls.
        before: What the next AI message is to say of the step before it.
    """

    def __init__(self, key: Key, gate: Gate, revealed: Noted) -> None:
        """Start with nothing read; `revealed` holds the messages that any conversation has read."""
        self.key = key
        self.lock = threading.RLock()
        self.steps: dict[str, Pending] = {}
        self.spoken: list[Said] = []
        self.before: Mark | None = None
        self._gate = gate
        self._revealed = revealed
        # Where messages have no ids: the user's text seen last, and the session in which one was
        # all that a model was sent.
        self._prompt = ""
        self._prompted: UUID | None = None
        self.start_again()

    def start_again(self) -> None:
        """Read from the beginning."""
        self.reader = Reader(self._gate.options)

    @property
    def last(self) -> Pending | None:
        """The step that was added last."""
        return next(reversed(self.steps.values()), None)

    def add(self, pending: Pending) -> Pending:
        """Remember a step; the outputs of the one before it are needed no more."""
        if self.last is not None:
            self.last.outputs.clear()
        key = key_of(pending.step.message)
        self.steps.pop(key, None)
        self.steps[key] = pending
        if len(self.steps) > _STEPS:
            del self.steps[next(iter(self.steps))]
        return pending

    def step_with(self, call_id: str) -> Pending | None:
        """Find the latest step with a call of this id."""
        steps = reversed(self.steps.values())
        return next((step for step in steps if call_id in step.call_ids), None)

    def hear(self, said: Said) -> None:
        """Remember an AI message until its tools start, however many tasks are at work at once."""
        old, new = self.spoken[:-_STEPS], self.spoken[-_STEPS:]
        self.spoken = [*(one for one in old if one.attempt.is_open), *new, said]

    # --- Reading ----------------------------------------------------------------------------

    def step_of_call(self, place: Place, run: Run) -> Pending:
        """Give the step of a call that starts.

        What stands before it is read, unless it is in the graph's state: the gate reads that.
        """
        message = place.messages[place.at]
        pending = self.steps.get(key_of(message))
        question = pending.question if pending is not None else None
        if question is not None and question.is_replayed_by(run):
            self.start_again()
            pending = None
        if pending is not None and (message.id or pending.step.index == place.at):
            return pending
        before = place.messages[: place.at]
        if not place.in_state:
            self._read_before(place, before, run)
        elif not self.begin_turn(run, before):
            self.renew(before)
        caller = run.above.id if place.direct and run.above is not None else None
        step = step_at(place.messages, place.at)
        return self.add(Pending(step, place.messages, caller, place.in_state))

    def _read_before(self, place: Place, before: Sequence[BaseMessage], run: Run) -> None:
        """Read what stands before a step that is not in a graph's state."""
        if place.prompt:
            self._read_prompt(place.prompt)
        results = self.last.results() if self.last is not None else None
        if results and self.reader.counts.last == key_of(results[0]):
            self._gate.read(self.reader, results)  # No message list tells what its tools gave.
        if not place.direct:
            self.read(before)
            return
        # A graph that shows no messages begins a turn where it is called again.
        fresh = self._prompted not in {None, run.session.id} and run.resume is MISSING
        if run.ns and fresh:
            self.reader.start_turn()
        self._prompted = run.session.id

    def begin_turn(self, run: Run, messages: Sequence[BaseMessage]) -> bool:
        """Begin a turn where a graph's run was started with an input; tells whether it did."""
        session = run.session
        if session.begun or not run.ns or run.scope or run.around:
            return False
        session.begun = True
        if session.has_input:
            self._gate.start_run(self.reader, messages)
        else:
            self._catch_up(messages)
        return session.has_input

    def _catch_up(self, messages: Sequence[BaseMessage]) -> None:
        """Read what stands before the last step of a resumed run, which may have begun elsewhere.

        The input was not seen in this process, so that human messages begin a turn by themselves.
        """
        last = last_step(messages)
        if last is not None and last.calls:
            messages = messages[: last.index]
            if key_of(last.message) == self.reader.counts.last:
                return
        by_run, self.reader.counts.by_run = self.reader.counts.by_run, False
        self.read(messages)
        self.reader.counts.by_run = by_run

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read messages; where a history was taken back (a fork), from its beginning."""
        last = next((key_of(one) for one in reversed(messages) if makes_calls(one)), "")
        if last != self.reader.counts.last:
            self.renew(messages)
        if not self.reader.counts.last and last in self._revealed:
            self.reader.read(messages)  # Another agent has read it, and what that revealed is out.
        else:
            self._gate.read(self.reader, messages)
        self._revealed.note(last)

    def renew(self, messages: Sequence[BaseMessage]) -> None:
        """Start at the beginning where a history was taken back; one that was trimmed goes on."""
        counts = self.reader.counts
        gone = counts.first and counts.place(messages) is None
        if gone and any(short(one.id or "") == counts.first for one in messages):
            self.start_again()

    def history(
        self, run: Run, sent: Sequence[BaseMessage], state: Sequence[BaseMessage] | None
    ) -> Sequence[BaseMessage] | None:
        """Choose what a model call continues: the graph's state, or what the model is sent.

        The state is whole where the prompt was trimmed, and free of the questions that a node
        asks a model on the side, for which this is `None`. But a loop inside one node is not in it.
        """
        if state and (self.last is None or self.last.in_state):
            place = self.reader.counts.place
            if place(state) is not None or place(sent) is None:
                return state
        if any(map(makes_calls, sent)):
            return self._with_ids(sent)
        # No tool calls: the first prompt of a turn, a text agent's, or a question on the side.
        human = next((one for one in reversed(sent) if is_users(one)), None)
        if human is None:
            return None
        if human.id is not None:
            return None if state else [human]
        # Without an id only its text tells a new turn: a text agent's prompt grows.
        if self._prompted == run.session.id:
            run.prompt = str(human.text)
        else:
            self._prompted = run.session.id
            self._read_prompt(str(human.text))
        return None

    def _read_prompt(self, text: str) -> None:
        """Take in a human text without an id, with which a person may have spoken."""
        if self.reader.counts.recent and not text.startswith(self._prompt):
            self.reader.start_turn()
        self._prompt = text

    def _with_ids(self, sent: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        """Put in the place of AI messages without ids what the model said with the same calls."""
        if all(one.id or not isinstance(one, AIMessage) for one in sent):
            return sent
        said = [one.message for one in self.spoken]
        said += [one.step.message for one in self.steps.values()]
        by_calls = {_call_ids(one): one for one in said}
        return [
            one if one.id or not makes_calls(one) else by_calls.get(_call_ids(one), one)
            for one in sent
        ]


def is_users(message: BaseMessage) -> bool:
    """Tell a message that a person may have written."""
    return isinstance(message, HumanMessage) and not is_generated(message)


def messages_in(outputs: Any) -> Iterator[BaseMessage]:
    """List the messages in what a tool or a node gave; they are the host's own objects."""
    if hasattr(outputs, "tool_call_id") or isinstance(outputs, AIMessage):
        yield outputs
    elif isinstance(outputs, list | tuple):
        for part in outputs:
            yield from messages_in(part)
    elif isinstance(outputs, dict):
        for value in outputs.values():
            if isinstance(value, list | tuple | AIMessage | ToolMessage):
                yield from messages_in(value)
    elif isinstance(getattr(outputs, "update", None), dict | list | tuple):
        yield from messages_in(outputs.update)  # A LangGraph `Command`.


def _is_blocks(output: Any) -> bool:
    return type(output) is list and all(type(block) in {str, dict} for block in output)


def _call_ids(message: BaseMessage) -> tuple[str | None, ...]:
    return tuple(map(id_of, calls_of(message)))
