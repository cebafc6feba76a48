"""Reads the conversation that the checkpoints of a LangGraph thread hold.

A thread is read from its writes: what every step added to the messages, in order. They still have
what the state has lost since, be it trimmed, summarised or overwritten, and a person's answers to
the guard's questions. The last checkpoint's messages fill in what was saved without writes
(`durability="exit"`). Where a thread was forked, the branch that ends in the newest checkpoint
counts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_loopguard.langchain.errors import InvalidResumeError
from langchain_loopguard.langchain.marks import mark_of
from langchain_loopguard.langchain.messages import calls_of
from langchain_loopguard.langchain.question import QUESTION
from langchain_loopguard.langchain.replies import read_reply
from langchain_loopguard.replay.conversation import Conversation
from langchain_loopguard.replay.readers.checkpoints import unpack
from langchain_loopguard.replay.readers.langchain import is_message
from langchain_loopguard.replay.readers.langchain_messages import events_of, message_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_loopguard.replay.readers.checkpoints import Step, Store, Thread, Write


def read_thread(store: Store, thread: Thread, source: str) -> Conversation:
    """Read one thread.

    Raises:
        ConversationError: If its values are of a form that is not read.
    """
    steps = store.steps(thread)
    line = _lineage(steps)
    log = _Log()
    for write in store.writes(thread):
        if write.checkpoint_id in line:
            log.take(write)
    newest = next(reversed(steps), None)
    channel = log.channel
    if newest is not None:
        values = store.values(thread, newest)
        channel = channel or _channel_of(values)
        if channel is not None:
            log.add_state(channel, _messages(values.get(channel)))
    messages = log.messages(channel)
    return Conversation(source, thread.name, tuple(events_of(messages, log.replies)))


@dataclass(slots=True)
class _Log:
    """The messages that a thread's steps wrote, by channel."""

    replies: dict[str, str] = field(default_factory=dict)
    """For the id of an AI message the kind of what a person answered about its calls."""
    _channels: dict[str, _Line] = field(default_factory=dict)
    _asked: dict[tuple[str, str], bool] = field(default_factory=dict)
    _answers: dict[tuple[str, str], Any] = field(default_factory=dict)

    def take(self, write: Write) -> None:
        """Take in one write."""
        place = (write.checkpoint_id, write.task_id)
        if write.channel == "__interrupt__":
            self._asked[place] = _is_ours(unpack(write.kind, write.value))
        elif write.channel == "__resume__":
            self._answers[place] = unpack(write.kind, write.value)
        if write.channel.startswith(("__", "branch:")):
            if self._asked.get(place) and place in self._answers:
                self._settle(self._answers[place])
                del self._asked[place]
            return
        messages = _messages(unpack(write.kind, write.value))
        if messages:
            self._channels.setdefault(write.channel, _Line()).add(messages)

    def _settle(self, answers: Any) -> None:
        """Note a person's answer to the question about the latest calls."""
        line = self._channels.get(self.channel or "")
        message = line.last_calls if line is not None else None
        if message is None or message.id is None:
            return
        for answer in answers if isinstance(answers, list) else [answers]:
            try:
                reply = read_reply(answer, calls_of(message))
            except InvalidResumeError:
                continue
            runs = reply.kind != "decisions" or any(one.kind == "run" for one in reply.calls)
            self.replies[message.id] = reply.kind if runs else "text"

    def add_state(self, channel: str, messages: list[BaseMessage]) -> None:
        """Merge in the messages of a checkpoint."""
        if messages:
            self._channels.setdefault(channel, _Line()).merge(messages)

    @property
    def channel(self) -> str | None:
        """The channel with the conversation: `messages`, or the one with the most of them."""
        if "messages" in self._channels:
            return "messages"
        sizes = {name: len(line.all) for name, line in self._channels.items()}
        return max(sizes, key=sizes.__getitem__) if sizes else None

    def messages(self, channel: str | None) -> list[BaseMessage]:
        """Give a channel's messages in order."""
        line = self._channels.get(channel) if channel is not None else None
        return line.all if line is not None else []


class _Line:
    """Messages in the order in which they were written, each once."""

    def __init__(self) -> None:
        self.all: list[BaseMessage] = []
        self.last_calls: AIMessage | None = None
        self._places: dict[str, int] = {}

    def add(self, messages: Iterable[BaseMessage]) -> None:
        """Add what a step wrote. A message written again was counted as it first was."""
        for message in messages:
            if message.id is not None:
                at = self._places.get(message.id)
                if at is not None:
                    if mark_of(message).approved:
                        self.all[at] = message
                    continue
                self._places[message.id] = len(self.all)
            self.all.append(message)
            if isinstance(message, AIMessage) and calls_of(message):
                self.last_calls = message

    def merge(self, messages: list[BaseMessage]) -> None:
        """Merge in a whole state: what is missing goes before the next message that is known."""
        # A write may have been saved before its message got an id.
        without: dict[str, deque[int]] = {}
        for at, message in enumerate(self.all):
            if message.id is None:
                without.setdefault(_likeness(message), deque()).append(at)
        merged: list[BaseMessage] = []
        taken = 0
        for message in messages:
            found = self._places.get(message.id) if message.id is not None else None
            if found is None and (alike := without.get(_likeness(message))):
                found = alike.popleft()
            if found is None:
                merged.append(message)
            elif found >= taken:
                merged.extend(self.all[taken : found + 1])
                taken = found + 1
        self.all = [*merged, *self.all[taken:]]


def _likeness(message: BaseMessage) -> str:
    ids = [call.get("id") for call in calls_of(message)]
    answered = getattr(message, "tool_call_id", None)
    return repr((message.type, message.content, answered, ids))


def _lineage(steps: dict[str, Step]) -> set[str]:
    """Give the checkpoints whose writes led to the newest one."""
    line: set[str] = set()
    at = next(reversed(steps), None)
    applied = True
    while at in steps and at not in line:
        step = steps[at]
        if applied:
            line.add(at)
        applied = not step.is_fork
        at = step.parent
    return line


def _channel_of(values: dict[str, Any]) -> str | None:
    held = {name: len(_messages(value)) for name, value in values.items()}
    if held.get("messages"):
        return "messages"
    return max(held, key=held.__getitem__) if any(held.values()) else None


def _messages(value: Any) -> list[BaseMessage]:
    if isinstance(value, dict) and not is_message(value) and "value" in value:
        value = value["value"]  # An overwrite of the channel.
    values = value if isinstance(value, list | tuple) else [value]
    found = [message_of(one) for one in values if is_message(one)]
    return [message for message in found if message is not None]


def _is_ours(interrupts: Any) -> bool:
    """Tell whether the guard asked."""
    for one in interrupts if isinstance(interrupts, list | tuple) else [interrupts]:
        value = one.get("value") if isinstance(one, dict) else None
        if isinstance(value, dict) and value.get("type") == QUESTION:
            return True
    return False
