"""How does an adapter take a step through the guard?

Read, check, resolve, decide, ask, settle, emit: in this order, and only in `take`. Where a person
is asked, it is decided again with the answer. An adapter finds the step, hands over how its host
asks, carries out what comes back, and saves the counts with it (`open` and `save`). A fault on the
way is logged and the step goes on unguarded; what a person said, and the host's own signals, are
never treated as a fault.

Must not know a host: nothing of LangGraph is imported, so the callback handler works without it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.guard import STATE_VERSION
from langchain_loopguard.langchain.counts import VERSION
from langchain_loopguard.langchain.errors import is_signal
from langchain_loopguard.langchain.history import Reader
from langchain_loopguard.langchain.marks import Mark, with_mark
from langchain_loopguard.langchain.messages import key_of
from langchain_loopguard.langchain.outcome import Detected, Outcome, decide, noticed, resolve
from langchain_loopguard.langchain.question import make_question, reply_schema
from langchain_loopguard.langchain.repair import edited_message
from langchain_loopguard.langchain.replies import read_reply
from langchain_loopguard.langchain.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_core.messages import AIMessage, BaseMessage

    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.langchain.messages import MessageStep
    from langchain_loopguard.langchain.options import Options
    from langchain_loopguard.langchain.telemetry import Adapter, Count


class Ask(Protocol):
    """How a host asks a person."""

    def __call__(self, question: dict[str, Any], schema: dict[str, Any], /) -> Any:
        """Give the answer, or raise the host's signal that the run waits for one."""


@dataclass(slots=True)
class Decided:
    """A step that was decided about.

    Attributes:
        step: The step.
        decision: What was found.
        outcome: What is done about it; an adapter carries it out as it stands.
        edited: The AI message with the calls that a person changed, `None` where none were.
    """

    step: MessageStep
    decision: Decision
    outcome: Outcome
    edited: AIMessage | None = None

    @property
    def message(self) -> AIMessage:
        """The AI message whose calls run."""
        return self.edited or self.step.message

    @property
    def approved(self) -> bool:
        """Whether a person let the step run."""
        return self.outcome.settle in {"approve", "always"}

    @property
    def as_made(self) -> bool:
        """Whether the calls run as the model made them and nothing is written."""
        step = self.step
        return not (self.decision.findings or step.unparsed or step.others or step.late)

    def results(self) -> list[BaseMessage]:
        """Make the messages that stand in the place of results.

        Where the host gave them all before anybody decided, its last one is marked for a last
        answer, in its own place.
        """
        last = self.step.results[-1] if self.step.late else None
        if last is not None and last.id and self.outcome.next == "answer":
            return [with_mark(last, Mark(ends=self.outcome.ends))]
        return [*self.outcome.messages(self.step.decided_calls)]

    def replaced(self, *, marks: bool) -> list[BaseMessage]:
        """Give the AI message that takes the place of the step's own, none where it stays.

        Args:
            marks: Whether an approval is noted on it, since no counts outlive the run.
        """
        message = self.edited
        if marks and self.approved:
            message = with_mark(self.message, Mark(approved=True))
        return [message] if message is not None and message.id else []

    def runs(self) -> frozenset[str | None]:
        """List the ids of the calls that run."""
        return self.outcome.runs(self.step.decided_calls)


_MOST_REMEMBERED = 512
_MOST_TOOLS = 256
_MOST_KEPT = 64
"""Readers that are cached, at most some 60 KB each; of runs that take turns beyond that, the
counts are read."""


class Gate:
    """Takes the steps of any number of conversations through the guard; safe in any thread.

    It keeps no counts: those are in a `Reader`, which the adapter saves or keeps.
    """

    def __init__(self, options: Options, adapter: Adapter, tools: Iterable[Any] = ()) -> None:
        """Start with empty statistics; `tools` declare themselves in their `metadata`."""
        self.options = options
        self.telemetry = Telemetry(adapter, fail_open=options.fail_open)
        self._tools: dict[str, Any] = {}
        self._note(tools)
        self._kept: dict[int, _Kept] = {}
        self._memory: dict[str, Reader] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what one process has cached."""
        return {"options": self.options, "telemetry": self.telemetry, "_tools": self._tools}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin with nothing cached."""
        vars(self).update(state, _kept={}, _memory={}, _lock=threading.Lock())

    def stats(self) -> Mapping[Count, int]:
        """Count what was done since it was made; see `Stats`."""
        return self.telemetry.stats.read()

    def open(self, counts: Any, messages: Sequence[BaseMessage] = ()) -> Reader | None:
        """Give the reader of saved counts, of `None` a new one; it is the caller's alone.

        To read counts takes longer than all else here. Within a run LangGraph hands a node the very
        object that it returned before, so a cached reader is known by that object, and by the
        history that it has read: two workers may begin with the same counts.

        Returns:
            `None` where the counts are those of a later release, which this one leaves alone.
        """
        with self._lock:
            kept = self._kept.pop(id(counts), None) if counts else None
        if kept is not None and kept.has_read(messages):
            return kept.reader
        try:
            reader = Reader.from_state(self.options, counts)
        except GuardStateError as error:
            self.telemetry.fault(error)
            if _is_later(counts):
                return None
            reader = Reader(self.options)
        reader.declare(self._tools.values())
        return reader

    def recall(self, key: str, messages: Sequence[BaseMessage]) -> Reader:
        """Give the reader that `remember` keeps for a conversation; it is the caller's alone."""
        with self._lock:
            reader = self._memory.pop(key, None)
        if reader is None or not reader.knows(messages):
            reader = Reader(self.options)
            reader.declare(self._tools.values())
        return reader

    def remember(self, key: str, reader: Reader) -> None:
        """Keep a reader in memory, for where nothing may be saved."""
        with self._lock:
            self._memory[key] = reader
            if len(self._memory) > _MOST_REMEMBERED:
                del self._memory[next(iter(self._memory))]

    def declare(self, reader: Reader, tools: Iterable[Any]) -> None:
        """Take in what tools declare of themselves that are seen only now."""
        found = [tool for tool in tools if getattr(tool, "metadata", None)]
        if found:
            self._note(found)
            reader.declare(found)

    def _note(self, tools: Iterable[Any]) -> None:
        for tool in tools:
            name = getattr(tool, "name", None)
            if type(name) is str and len(self._tools) < _MOST_TOOLS:
                self._tools[name] = tool

    def start_run(self, reader: Reader, messages: Sequence[BaseMessage]) -> None:
        """Begin a turn, see `Reader.start_run`."""
        try:
            self._notice(reader, reader.start_run(messages))
        except Exception as error:  # noqa: BLE001 - logged, or raised if the user wants so
            self.fault(error)

    def read(self, reader: Reader, messages: Sequence[BaseMessage]) -> None:
        """Take in what stands in the history, and emit what results revealed."""
        try:
            self._notice(reader, reader.read(messages))
        except Exception as error:  # noqa: BLE001 - as above
            self.fault(error)

    def take(
        self,
        reader: Reader,
        step: MessageStep,
        messages: Sequence[BaseMessage],
        *,
        ask: Ask | None,
        caller: str = "",
        editable: bool = True,
    ) -> Decided | None:
        """Read what stands before a step, and decide about it.

        Args:
            reader: The conversation's reader.
            step: The step whose calls wait, or whose results came before anybody decided.
            messages: The history that the step stands in.
            ask: How a person is asked, `None` where nobody can be; may raise the host's signal.
            caller: The agent's name, where the messages don't say it.
            editable: Whether the host can run other calls than the model made.

        Returns:
            What is done, or `None` after a fault: the step runs unguarded.

        Raises:
            InvalidResumeError: If the answer is none. The question stays open.
        """
        calls, can_ask, question = step.decided_calls, ask is not None, None
        # A step that was counted before, whose question is put again, must stay open: reading only
        # what stands before it would close it, and its results would never be recorded.
        if key_of(step.message) != reader.counts.last:
            self.read(reader, messages[: step.index])
        try:
            decision = reader.check(step, caller)
            if not decision.findings:  # Nearly every step; nothing further is to be emitted.
                self.telemetry.stats.add("checked")
                # Without a finding the calls run, in every mode.
                outcome = decide(decision, step, mode="warn", can_ask=False, options=self.options)
                return Decided(step, decision, outcome)
            asked = reader.counts.asked_before(decision)
            mode, reply = resolve(self.options, Detected(decision, calls, can_ask, asked))
            outcome = decide(
                decision, step, mode=mode, can_ask=can_ask, options=self.options, reply=reply
            )
            if outcome.next == "ask":
                question = make_question(
                    decision, step, messages, asked=asked, options=self.options, editable=editable
                )
        except Exception as error:  # noqa: BLE001 - as above
            self.fault(error)
            return None
        if question is None or ask is None:
            self.telemetry.stats.add("checked")
        else:
            try:
                value = ask(question, reply_schema(calls))
            except Exception:
                # It waits. A resume comes here again and has its answer.
                self.telemetry.stats.add("checked")
                self.telemetry.emit(decision, outcome)
                raise
            reply = read_reply(value, calls, editable=editable)
            outcome = decide(
                decision, step, mode=mode, can_ask=True, options=self.options, reply=reply
            )
        edited = None
        try:
            edits = outcome.edits(calls)
            if edits:
                edited = edited_message(step.message, edits)
            reader.settle(step, decision, outcome, edited)
            self.telemetry.emit(decision, outcome, is_new=reader.emit(decision, outcome.emit))
        except Exception as error:  # noqa: BLE001 - what was decided is carried out all the same
            self.fault(error)
        return Decided(step, decision, outcome, edited)

    def save(self, reader: Reader, messages: Sequence[BaseMessage] = ()) -> dict[str, Any] | None:
        """Give the counts to be saved; the reader, which has read `messages`, is not used any more.

        Returns:
            `None` after a fault: the counts saved before stay.
        """
        try:
            counts = reader.to_state()
            self.keep(reader, counts, messages)
        except Exception as error:  # noqa: BLE001 - as above
            self.fault(error)
            return None
        return counts

    def keep(self, reader: Reader, counts: Any, messages: Sequence[BaseMessage]) -> None:
        """Cache a reader that was made of these counts and has read on; see `open`."""
        if not counts:
            return
        reader.forget_step()
        last = messages[-1] if messages else None
        with self._lock:
            self._kept[id(counts)] = _Kept(counts, reader, len(messages), last)
            if len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]

    def _notice(self, reader: Reader, revealed: Decision | None) -> None:
        if revealed is not None and revealed.findings:
            outcome = noticed(revealed, self.options)
            self.telemetry.emit(revealed, outcome, is_new=reader.emit(revealed, outcome.emit))

    def fault(self, error: Exception) -> None:
        """Log a fault of the guard, or raise it; a signal of the host is none."""
        if is_signal(error):
            raise error
        self.telemetry.fault(error)


def _is_later(counts: Any) -> bool:
    """Tell whether a later release wrote the counts."""
    parts = (
        ((counts, VERSION), (counts.get("guard"), STATE_VERSION)) if type(counts) is dict else ()
    )
    versions = [(part.get("v"), own) for part, own in parts if type(part) is dict]
    return any(type(theirs) is int and theirs > own for theirs, own in versions)


class _Kept(NamedTuple):
    """A cached reader; `counts` is here so that no other object gets its `id`."""

    counts: Any
    reader: Reader
    read: int
    last: BaseMessage | None

    def has_read(self, messages: Sequence[BaseMessage]) -> bool:
        """Tell whether the reader has read these messages and perhaps not yet the last ones."""
        if self.last is None or len(messages) < self.read:
            return self.last is None
        return messages[self.read - 1] is self.last
