"""What is remembered of a conversation, and for how long?

A conversation is the message list of one agent: its reader, its latest batches and what was
decided about them. `Conversations` keeps a bounded number of them and drops those that were
idle longest, but never one whose agent is at work. What is dropped is read again from the
messages when the conversation goes on.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage

from langchain_loopguard.callbacks.runs import session_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from langchain_core.messages import AIMessage

    from langchain_loopguard.callbacks.marks import Mark
    from langchain_loopguard.callbacks.questions import Question
    from langchain_loopguard.callbacks.runs import Key, RunTree
    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.core.errors import LoopDetectedError
    from langchain_loopguard.messages import MessageReader

_MAX_BATCHES = 32
"""Batches remembered in a conversation. One is under way at a time, several where one graph runs
agents side by side; the number has no measurement behind it."""

_MAX_MESSAGES = 32
"""AI messages remembered until their tools start: the agent's and those of helpers in between.
As for the batches, a number without a measurement."""

_MAX_RAN = 10_000
"""Messages of one session that are remembered of dropped conversations; a number without a
measurement too."""

_MAX_SESSIONS = 256
"""Sessions remembered whose end is never seen, because the handler was attached to a tool."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was decided about a batch.

    Attributes:
        everyone: What every call is answered with, `None` if the calls run.
        single: What single calls are answered with, by call id.
    """

    everyone: str | None = None
    single: Mapping[str, str] = field(default_factory=dict)

    def to(self, call_id: str | None) -> str | None:
        """Give the text that a call is answered with, `None` if it runs."""
        return self.single.get(call_id or "", self.everyone)

    def runs_any(self, batch: Batch) -> bool:
        """Tell whether any call of a batch runs."""
        return self.everyone is None and len(self.single) < len(batch.calls)


RUN = Answer()
"""The calls run."""


class Batch:
    """The tool calls of one AI message, or one call that no message stands behind.

    Attributes:
        key: Names the batch in its conversation.
        calls: The calls.
        decision: What the guard said.
        message: The AI message, if one stands behind it.
        parent: The run that a call without a message was started by.
        started: Whether a tool of the batch was started: not so for tools that don't exist.
        told: Whether it was counted and what was found about it handed on.
        ended: Whether its loop was to end the run.
        answer: What was decided, `None` while nothing is.
        question: What a person was asked about it.
        outputs: What its tools gave, by call id; empty once it is closed.
        closed: Whether every call had an output and a later batch has come.
        call_ids: The ids of the calls.
    """

    # `new_batch` sets the others: a class's own `__init__` takes Python four times as long.
    key: str
    calls: list[dict[str, Any]]
    decision: Decision
    outputs: dict[str, ToolMessage]
    call_ids: frozenset[str]
    message: AIMessage | None = None
    parent: UUID | None = None
    started: bool = False
    told: bool = False
    ended: bool = False
    answer: Answer | None = None
    question: Question | None = None
    closed: bool = False

    @property
    def complete(self) -> bool:
        """Whether every call has an output."""
        return self.closed or len(self.outputs) >= len(self.calls)

    @property
    def dealt_with(self) -> bool:
        """Whether a tool of it was started, or it was decided about."""
        return self.started or self.answer is not None

    @property
    def ran_unasked(self) -> bool:
        """Whether nobody was asked about it and nothing of it was refused."""
        return self.question is None and (self.answer is None or self.answer is RUN)

    def close(self) -> None:
        """Let go of the outputs once the next batch has come: they may be large."""
        self.closed = self.complete
        self.outputs.clear()

    def take(self, call_id: str, output: Any, *, status: str = "success") -> None:
        """Note what a tool gave: a tool message, a command or list that holds one, or content."""
        for item in (output,) if type(output) is ToolMessage else _flat(output):
            if isinstance(item, ToolMessage):
                self.outputs[str(item.tool_call_id)] = item
        if call_id not in self.outputs:
            content = output if isinstance(output, str) or _is_blocks(output) else repr(output)
            self.outputs[call_id] = ToolMessage(
                content=content, tool_call_id=call_id, status=status
            )


def new_batch(
    key: str,
    calls: list[dict[str, Any]],
    decision: Decision,
    *,
    message: AIMessage | None = None,
    parent: UUID | None = None,
) -> Batch:
    """Make a batch that was counted just now; see `Batch`."""
    batch = Batch()
    batch.key = key
    batch.calls = calls
    batch.decision = decision
    batch.outputs = {}
    batch.call_ids = frozenset([str(call["id"]) for call in calls if call.get("id")])
    batch.message = message
    batch.parent = parent
    return batch


def _is_blocks(output: Any) -> bool:
    return type(output) is list and all(
        type(block) is str or type(block) is dict for block in output
    )


def _flat(output: Any) -> list[Any]:
    if isinstance(output, list | tuple):
        return [item for part in output for item in _flat(part)]
    update = getattr(output, "update", None)
    if isinstance(update, dict):  # A LangGraph `Command`.
        return _flat(update.get("messages", []))
    return [output]


@dataclass(slots=True, eq=False)
class Conversation:
    """One agent's message list, as far as it was seen."""

    reader: MessageReader
    batches: dict[str, Batch] = field(default_factory=dict)
    last: Batch | None = None
    """The batch that was added last."""
    sessions: set[UUID] = field(default_factory=set)
    session: UUID | None = None
    """The session that was seen last."""
    over: bool = False
    """Whether its agent has ended, though the session goes on."""
    prompt: str = ""
    """The human text that was seen last, where messages have no ids."""
    marks: dict[str, Mark] = field(default_factory=dict)
    """What is to be written into the answers of calls, by call id, until they were seen."""
    restored_in: UUID | None = None
    """The session in which the history was last looked through for what was not saved."""
    prompted_in: UUID | None = None
    """The session in which a model was last sent a human text alone, before anything else."""
    before: dict[str, Any] | None = None
    """What the model's next message is to say about the batch before it."""

    def add(self, batch: Batch) -> Batch:
        """Remember a batch and close the one before it."""
        last = self.last
        if last is not None and last is not batch:
            last.close()
        self.batches.pop(batch.key, None)
        self.batches[batch.key] = self.last = batch
        while len(self.batches) > _MAX_BATCHES:
            del self.batches[next(iter(self.batches))]
        return batch

    def begin_anew(self, reader: MessageReader) -> None:
        """Go on with a reader that has read nothing yet."""
        self.reader = reader
        self.batches.clear()
        self.last = None

    def batch_of(self, call_id: str | None) -> Batch | None:
        """Find the latest batch with a call of this id."""
        if not call_id:
            return None
        for batch in reversed(self.batches.values()):
            if call_id in batch.call_ids:
                return batch
        return None


@dataclass(slots=True, eq=False)
class Ending:
    """Why a session is to end before its next model call.

    Attributes:
        error: What to raise.
        to_model: What the calls are answered with that don't run any more.
        last_word: The final AI message where the run may end without an error.
        delivered: Whether the error was raised.
        said_in: The agents that were ended with the last word, named by graph and node.
        seen_by: The conversations in which calls were answered so.
    """

    error: LoopDetectedError
    to_model: str
    last_word: str | None = None
    delivered: bool = False
    said_in: set[tuple[str, str | None]] = field(default_factory=set)
    seen_by: list[Conversation] = field(default_factory=list)

    def is_ignored_by(self, kept: Conversation) -> bool:
        """Tell whether a conversation goes on with new calls all the same, and note it.

        Its model is not seen then, because the node doesn't call it through LangChain, so the
        run can't be ended from there.
        """
        if any(kept is one for one in self.seen_by):
            return True
        self.seen_by.append(kept)
        return False


@dataclass(slots=True, eq=False)
class Session:
    """What is remembered while a session is open."""

    id: UUID
    ending: Ending | None = None
    marked: bool = False
    """Whether anything was decided in it that is to be written into messages."""
    keys: set[Key] = field(default_factory=set)
    """The conversations that it goes on with."""
    spoken: dict[Key, list[AIMessage]] = field(default_factory=dict)
    """AI messages with tool calls, the latest last, by conversation."""
    openings: dict[int, tuple[AIMessage, str]] = field(default_factory=dict)
    """The latest AI messages with calls that answer a human text alone, with that text."""
    ran: dict[str, None] = field(default_factory=dict)
    """Ids of AI messages whose calls were dealt with in conversations that were dropped since."""

    def hear(self, keys: tuple[Key, Key], message: AIMessage) -> None:
        """Remember an AI message until its tools start, in the conversations of `Run.keys`."""
        for key in keys if keys[0] != keys[1] else keys[:1]:
            heard = self.spoken.get(key)
            if heard is None:
                self.spoken[key] = [message]
            else:
                heard.append(message)
                if len(heard) > _MAX_MESSAGES:
                    del heard[0]

    def open(self, message: AIMessage, text: str) -> None:
        """Remember that a message answers a human text alone, until its tools start."""
        self.openings[id(message)] = (message, text)
        if len(self.openings) > _MAX_MESSAGES:
            del self.openings[next(iter(self.openings))]

    def opened_by(self, message: AIMessage) -> str | None:
        """Give the human text that a message answers, once; `None` if there was more than that."""
        _, text = self.openings.pop(id(message), (None, None))
        return text

    def remember(self, kept: Conversation) -> None:
        """Remember which batches of a conversation have run or were decided about."""
        for batch in kept.batches.values():
            if batch.message is not None and batch.message.id and batch.dealt_with:
                self.ran[batch.message.id] = None
        while len(self.ran) > _MAX_RAN:
            del self.ran[next(iter(self.ran))]


class Conversations:
    """The conversations and sessions of one handler."""

    def __init__(self, new_reader: Callable[[], MessageReader], limit: int) -> None:
        """Keep up to `limit` conversations whose agent is not at work."""
        self._new_reader = new_reader
        self._limit = limit
        self._kept: OrderedDict[Key, Conversation] = OrderedDict()
        # By number: a UUID takes Python ten times as long to hash.
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        """Count the conversations."""
        return len(self._kept)

    def find(self, key: Key) -> Conversation | None:
        """Give a conversation if it is remembered."""
        return self._kept.get(key)

    def get(self, key: Key, session: UUID, *, live: bool) -> Conversation:
        """Give a conversation, a new one if need be.

        Args:
            key: Names the conversation.
            session: The session that goes on with it.
            live: Whether the end of the session will be seen.
        """
        kept = self._kept.get(key)
        if kept is None:
            self._trim(room=1)
            kept = self._kept[key] = Conversation(self._new_reader())
        self._kept.move_to_end(key)
        if live:
            kept.sessions.add(session)
            self.session(session).keys.add(key)
        kept.session = session
        kept.over = False
        return kept

    def get_again(self, key: Key, session: UUID) -> Conversation | None:
        """Give a conversation that `get` gave the same session last; for speed alone."""
        kept = self._kept.get(key)
        if kept is None or kept.session is not session or kept.over:
            return None
        self._kept.move_to_end(key)
        return kept

    def session(self, session_id: UUID) -> Session:
        """Give what is remembered of a session."""
        found = self._sessions.get(session_id.int)
        if found is None:
            found = self._sessions[session_id.int] = Session(session_id)
        return found

    def is_marked(self, session_id: UUID) -> bool:
        """Tell whether anything was decided in a session that is to be written into messages."""
        found = self._sessions.get(session_id.int)
        return found is not None and found.marked

    def end_session(self, session_id: UUID) -> Session | None:
        """Forget a session, and the conversations that were its own."""
        ended = self._sessions.pop(session_id.int, None)
        if ended is None:
            return None
        own = session_key(session_id)
        for key in ended.keys:
            kept = self._kept.get(key)
            if kept is not None:
                kept.sessions.discard(session_id)
                if key[:2] == own:
                    del self._kept[key]
        self._trim()
        return ended

    def let_go(self, keys: Iterable[Key], session_id: UUID) -> None:
        """Take conversations for idle whose agent has ended, though the session goes on."""
        session = self._sessions.get(session_id.int)
        for key in keys:
            if session is not None:
                session.spoken.pop(key, None)
            kept = self._kept.get(key)
            if kept is not None:
                kept.sessions.discard(session_id)
                kept.over = True

    def trim_sessions(self, runs: RunTree) -> None:
        """Forget sessions whose end was not and will not be seen, the oldest first."""
        if len(self._sessions) <= _MAX_SESSIONS:
            return
        stale = [number for number, one in self._sessions.items() if one.id not in runs]
        for number in stale[: len(self._sessions) - _MAX_SESSIONS]:
            del self._sessions[number]

    def _trim(self, *, room: int = 0) -> None:
        """Drop the conversations that were idle longest, until there is room within the limit."""
        if len(self._kept) + room <= self._limit:
            return
        idle = [key for key, kept in self._kept.items() if not kept.sessions]
        for key in idle[: max(0, len(idle) + room - self._limit)]:
            kept = self._kept.pop(key)
            session = None if kept.session is None else self._sessions.get(kept.session.int)
            if session is not None:
                session.keys.discard(key)
                session.remember(kept)
