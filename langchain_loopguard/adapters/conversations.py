"""What is remembered of a conversation, and for how long?

A conversation is the message list of one agent: its reader and its latest steps, with what was
decided about them. A bounded number is kept; those that were idle longest are dropped, but never
one whose agent is at work. What is dropped is read again from the messages when it goes on.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import AIMessage, ToolMessage

from langchain_loopguard.langchain.messages import calls_of, id_of, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from uuid import UUID

    from langchain_core.messages import BaseMessage

    from langchain_loopguard.adapters.asking import Question
    from langchain_loopguard.adapters.runs import Key, Run, RunTree
    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.core.errors import LoopDetectedError
    from langchain_loopguard.langchain.history import Reader
    from langchain_loopguard.langchain.marks import Mark
    from langchain_loopguard.langchain.messages import MessageStep
    from langchain_loopguard.langchain.outcome import CallOutcome, Outcome

_STEPS = 32
"""Steps, and AI messages whose tools have not started, that are remembered of a conversation. One
is under way at a time, several where one graph runs agents side by side; without a measurement."""

_SESSIONS = 256
"""Sessions remembered whose end is never seen, because the handler was attached below it."""

_NOTED = 10_000
"""AI messages that are remembered as decided about, or read; without a measurement too."""

_LOOSE = 64
"""Loops written by hand that are looked through for a call that comes without an id."""


@dataclass(slots=True, eq=False)
class Pending:
    """One step whose calls start, or whose results came before anybody decided."""

    step: MessageStep
    history: Sequence[BaseMessage]  # The messages it stands in; empty once it is decided about.
    parent: UUID | None = None  # The run that started a call without an AI message.
    in_state: bool = False  # Whether the graph's state holds the step, and so its results.
    decision: Decision | None = None
    outcome: Outcome | None = None  # `None` while nothing is decided.
    question: Question | None = None  # What a person was asked.
    by_id: Mapping[str | None, CallOutcome] = field(default_factory=dict)
    outputs: dict[str, ToolMessage] = field(default_factory=dict)  # Where no message list tells.

    @property
    def call_ids(self) -> frozenset[str | None]:
        """The ids of all its calls."""
        return frozenset(map(id_of, self.step.calls))

    @property
    def ran_unasked(self) -> bool:
        """Whether it was approved without a person."""
        return self.outcome is not None and self.outcome.next == "run" and not self.question

    def settle(self, outcome: Outcome) -> None:
        """Note what was decided, and let go of the history."""
        self.outcome = outcome
        self.by_id = dict(zip(map(id_of, self.step.decided_calls), outcome.calls, strict=False))
        self.history = ()

    def take(self, call_id: str, output: Any, status: str) -> None:
        """Note what a tool gave: a message, a command or a list that holds one, or content."""
        for message in messages_in(output):
            if isinstance(message, ToolMessage):
                self.outputs[str(message.tool_call_id)] = message
        if call_id not in self.outputs:
            plain = isinstance(output, str) or _is_blocks(output)
            content: Any = output if plain else repr(output)
            self.outputs[call_id] = ToolMessage(content, tool_call_id=call_id, status=status)

    def results(self) -> list[BaseMessage] | None:
        """Give the step with what its tools gave, `None` where results are missing."""
        if len(self.outputs) < len(self.step.message.tool_calls):
            return None
        return [self.step.message, *self.outputs.values()]


class Said(NamedTuple):
    """What a model said, and the attempt of the task in which it did."""

    message: AIMessage
    sent: Sequence[BaseMessage]  # What it answers; empty where the graph's state tells.
    attempt: UUID


@dataclass(slots=True, eq=False)
class Conversation:
    """One agent's message list, as far as it was seen."""

    key: Key
    reader: Reader
    holder: Run | None = None  # The run with which its agent has ended.
    steps: dict[str, Pending] = field(default_factory=dict)  # By the keys of their AI messages.
    spoken: list[Said] = field(default_factory=list)  # The latest AI messages with calls.
    # What is to be written into results, by call id, and whether the guard gave the result.
    marks: dict[str | None, tuple[Mark, bool]] = field(default_factory=dict)
    before: Mark | None = None  # What the next AI message is to say of the step before it.
    # Where messages have no ids: the user's texts that AI messages answered alone, until their
    # tools start; the text seen last; and the session in which one was all that a model was sent.
    openings: dict[str, str] = field(default_factory=dict)
    prompt: str = ""
    prompted: UUID | None = None
    lock: Any = field(default_factory=threading.RLock)

    @property
    def is_at_work(self) -> bool:
        """Whether the agent has not ended."""
        return self.holder is not None and self.holder.is_open

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


@dataclass(slots=True, eq=False)
class Session:
    """What is remembered while a session is open."""

    begun: bool = False  # Whether its turn has begun.
    # The keys of its conversations, by graph and by the tool call around.
    agents: dict[tuple[str, str], Key] = field(default_factory=dict)
    # How it ends before its next model call, and the error that says what for; the conversations
    # in which calls were stopped since; the attempts in which agents gave the final message, with
    # the signals; and whether the end was carried out.
    ending: Outcome | None = None
    loop: LoopDetectedError | None = None
    seen: set[Key] = field(default_factory=set)
    said: dict[tuple[str, str], tuple[UUID, Exception]] = field(default_factory=dict)
    delivered: bool = False


class _LastKeys(OrderedDict[str, None]):
    """Keys of the AI messages noted last."""

    def note(self, key: str) -> None:
        self[key] = None
        if len(self) > _NOTED:
            self.popitem(last=False)


class Conversations:
    """The conversations and sessions of one handler. The caller holds the handler's lock."""

    def __init__(self, new_reader: Callable[[], Reader], limit: int, runs: RunTree) -> None:
        """Keep up to `limit` conversations whose agents are not at work."""
        self.new_reader = new_reader
        self._limit = limit
        self._runs = runs
        self._kept: OrderedDict[Key, Conversation] = OrderedDict()
        self._sessions: dict[int, Session] = {}
        self._loose: OrderedDict[str, Key] = OrderedDict()
        # In whichever conversation: decided about, and read with results. What results revealed is
        # emitted by the reader that comes first, since agents that hand over share messages.
        self.decided = _LastKeys()
        self.revealed = _LastKeys()

    def find(self, key: Key | None) -> Conversation | None:
        """Give a conversation if it is remembered."""
        return None if key is None else self._kept.get(key)

    def get(self, key: Key, run: Run, *, in_task: bool = False) -> Conversation:
        """Give a conversation, a new one if need be, and keep it while the run's agent works."""
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = Conversation(key, self.new_reader())
        self._kept.move_to_end(key)
        if not kept.is_at_work:
            kept.holder = self._runs.holder(run, in_task=in_task)
            if kept.holder is not None:
                kept.holder.holds = (*kept.holder.holds, key)
        over = len(self._kept) - self._limit
        if over > 0:
            idle = [one for one, old in self._kept.items() if not old.is_at_work and one != key]
            for one in idle[:over]:
                del self._kept[one]
        if run.ns:
            scope = f"{run.ns}|" if in_task else run.scope
            self.session(run.session).agents[(scope, run.around)] = key
        return kept

    def session(self, session_id: UUID) -> Session:
        """Give what is remembered of a session."""
        found = self._sessions.get(session_id.int)
        if found is None:
            if len(self._sessions) >= _SESSIONS and self._runs.get(session_id) is None:
                stale = [number for number in self._sessions if not self._runs.has(number)]
                for number in stale[: len(self._sessions) - _SESSIONS + 1]:
                    del self._sessions[number]
            found = self._sessions[session_id.int] = Session()
        return found

    def known_session(self, session_id: UUID) -> Session | None:
        """Give what is remembered of a session, `None` without anything."""
        return self._sessions.get(session_id.int)

    def end(self, run: Run) -> None:
        """Let go of what is over with a run."""
        self._sessions.pop(run.id.int, None)
        for key in run.holds:
            kept = self._kept.get(key)
            if kept is None or kept.is_at_work:
                continue
            kept.spoken.clear()
            if key[0] == "session":
                del self._kept[key]  # Nobody comes back to it.

    def hear(self, kept: Conversation, said: Said) -> None:
        """Remember an AI message until its tools start, however many tasks are at work at once."""
        kept.spoken.append(said)
        if len(kept.spoken) > _STEPS:
            old, new = kept.spoken[:-_STEPS], kept.spoken[-_STEPS:]
            kept.spoken = [one for one in old if self._runs.get(one.attempt) is not None] + new

    def follow(self, message: AIMessage, key: Key) -> None:
        """Note in which loop written by hand an AI message was made."""
        self._loose.update(dict.fromkeys(_names_of(message), key))
        while len(self._loose) > _LOOSE * _STEPS:
            self._loose.popitem(last=False)

    def loop_of(self, messages: Sequence[BaseMessage]) -> Key | None:
        """Find the loop written by hand that a model's messages belong to."""
        said = (message for message in reversed(messages) if isinstance(message, AIMessage))
        names = (name for message in said for name in _names_of(message))
        return next((self._loose[name] for name in names if name in self._loose), None)

    def loop_with(self, call: Mapping[str, Any]) -> Key | None:
        """Find the loop written by hand in which a model has made a call."""
        if call["id"]:
            return self._loose.get(f"call {call['id']}")
        for key in list(OrderedDict.fromkeys(reversed(self._loose.values())))[:_LOOSE]:
            kept = self._kept.get(key)
            if kept is not None and any(call_in(said.message, call) for said in kept.spoken):
                return key
        return None


def _names_of(message: AIMessage) -> list[str]:
    return [key_of(message), *(f"call {id_of(call)}" for call in calls_of(message))]


def call_in(message: AIMessage, call: Mapping[str, Any]) -> str | None:
    """Find a call in an AI message: by id, or by name and arguments where none came along.

    Returns:
        The call's id, `None` if the message makes no such call.
    """
    for made in message.tool_calls:
        same = made.get("name") == call["name"] and made.get("args") == call["args"]
        if made.get("id") == call["id"] if call["id"] else same:
            return str(made.get("id"))
    return None


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
