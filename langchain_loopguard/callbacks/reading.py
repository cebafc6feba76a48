"""Which batch is it, and what was its conversation before?

Finds the AI message behind a tool call or a model call, reads the history up to it into the
conversation's reader, and has the batch counted once. What is to be done about a batch is not
decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage

from langchain_loopguard.callbacks.conversations import RUN, Conversations, new_batch
from langchain_loopguard.callbacks.marks import Fate, ending_of, fate, is_plain, replace, restore
from langchain_loopguard.callbacks.runs import MISSING
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.history import without_foreign_answers
from langchain_loopguard.messages import (
    MessageReader,
    is_human_turn,
    makes_calls,
    tool_calls_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult

    from langchain_loopguard.callbacks.conversations import Batch, Conversation, Session
    from langchain_loopguard.callbacks.host import Task
    from langchain_loopguard.callbacks.runs import Key, Run, RunTree
    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.options import OnDetectedInCallbacks, Scope


_HINTS = frozenset({"loop_guard", "readOnlyHint", "annotations"})
"""Metadata of a tool's run in which a tool may declare what it is."""


@dataclass(slots=True, eq=False)
class History:
    """What a model call is about to continue.

    Attributes:
        conversation: The conversation.
        messages: Its messages, from the last batch on.
        batch: The last batch, if it has its answers although none of its tools was started, and
            nobody has decided about it.
        ending: The facts of the error in which the run is to end here, because another process
            was to end it; see `marks.ending_of`.
    """

    conversation: Conversation
    messages: Sequence[BaseMessage]
    batch: Batch | None
    ending: Mapping[str, Any] | None = None


class Reading:
    """Reads messages and calls into the conversations of one handler."""

    def __init__(
        self,
        policy: LoopGuardPolicy,
        runs: RunTree,
        *,
        on_detected: OnDetectedInCallbacks,
        scope: Scope,
        messages_key: str,
        max_conversations: int,
        tell: Callable[[Decision], None],
    ) -> None:
        """Take the handler's options; `tell` gets what answers have revealed."""
        self.runs = runs
        self.conversations = Conversations(self._new_reader, max_conversations)
        self._policy = policy
        self._on_detected = on_detected
        self._scope = scope
        self._messages_key = messages_key
        self._tell = tell

    def is_marked(self, run: Run) -> bool:
        """Tell whether anything around a run is perhaps to be written into messages."""
        return run.in_graph and self.conversations.is_marked(run.session)

    def marked_around(self, run: Run) -> list[Conversation]:
        """Give the conversations of a run in which something is to be written into messages."""
        if not self.is_marked(run):
            return []
        found = [self.conversations.find(key) for key in run.keys(self._scope)]
        return [kept for kept in found if kept is not None and (kept.marks or kept.before)]

    # --- Model calls ----------------------------------------------------------------------

    def model_spoke(self, run: Run, response: LLMResult) -> None:
        """Remember an AI message with calls until its tools start.

        It is not counted yet: it may be a structured answer, or an attempt that is thrown away.
        """
        generation = response.generations[0][0] if response.generations[0] else None
        message = getattr(generation, "message", None)
        if isinstance(message, AIMessage) and makes_calls(message):
            keys = run.keys(self._scope)
            session = self.conversations.session(run.session)
            session.hear(keys, message)
            if run.prompt is not None:
                session.open(message, run.prompt)
            task = self.runs.get(run.attempt) if keys[0] != keys[1] else None
            if task is not None and keys[0] not in task.holds:
                task.holds += (keys[0],)

    def model_starts(
        self, run: Run, task: Task | None, messages: Sequence[BaseMessage], *, asks: bool
    ) -> History | None:
        """Read what a model call continues.

        Args:
            run: The model's run.
            task: The graph task around it, if any.
            messages: What the model is sent.
            asks: Whether a loop is asked about here. If so, a loop that ran was let run.

        Returns:
            `None` if the messages are no conversation, a question on the side for instance.
        """
        task_key, agent_key = run.keys(self._scope)
        inner = self.conversations.find(task_key) is not None
        kept = self._conversation(task_key if inner else agent_key, run)
        history, at = self._choose(kept, run, task, messages)
        if history is None:
            return None
        if kept.restored_in is not run.session:
            # The state was loaded anew since.
            kept.restored_in = run.session
            restore(history)
        if at is not None and is_plain(history[at:]):
            # What follows would say the same of nearly every model call, and take longer.
            known = kept.batches.get(_key(history[at]))
            if known is not None and known.started:
                return History(kept, history[at:], None)
        rest, is_new = self._read(kept, history, at, asks=asks)
        first = rest[0] if len(rest) > 1 else None
        if not isinstance(first, AIMessage) or not makes_calls(first):
            return History(kept, rest, None)
        known = kept.batches.get(_key(first))
        elsewhere = is_new and known is None and self._ran_elsewhere(run, kept, first)
        if is_new and known is None:
            known = self._count(kept, first)
        what = self._settle(kept, rest, known, asks=asks, passed=elsewhere)
        if known is None or elsewhere or what is not Fate.OPEN:
            return History(kept, rest, None, ending_of(rest))
        # Of what was counted before, only a tool that does not exist leaves no trace.
        return History(kept, rest, known if is_new or not known.started else None)

    def close(self, history: History, sent: Sequence[BaseMessage], *, hint: bool) -> None:
        """Take in the answers of the last batch, and tell the model what they revealed.

        The hint is added to the last answer itself: the model and the state have this object,
        and nothing but tool messages may stand between calls and answers.

        Args:
            history: What the model call continues.
            sent: What the model is sent.
            hint: Whether the model is told. Not where it isn't called, since the message may be
                saved at any moment, and not where it reads the answer to a question instead.
        """
        reader = history.conversation.reader
        revealed = reader.read(history.messages)
        if revealed is not None and revealed.findings:
            self._told(history.conversation, revealed)
        notice = reader.take_notice(history.messages)
        if notice is None or not hint:
            return
        for message in (history.messages[-1], *sent[-1:]):
            if isinstance(message, ToolMessage) and message.tool_call_id == notice.tool_call_id:
                replace(message, notice.content, notice.additional_kwargs)

    def _choose(
        self, kept: Conversation, run: Run, task: Task | None, messages: Sequence[BaseMessage]
    ) -> tuple[Sequence[BaseMessage] | None, int | None]:
        """Choose what to read: the graph's state, or what the model is sent.

        The state is whole where the prompt was trimmed, and free of the questions that a node
        asks a model on the side. But a loop inside one node is not in the state.

        Returns:
            What to read, `None` if nothing is, and the reader's place in it.
        """
        reader = kept.reader
        state = task.messages(self._messages_key) if task is not None else None
        sent_at = None
        if state:
            at = reader.place(state)
            if at is not None or not reader.counted:
                return state, at
            sent_at = reader.place(messages)
            if sent_at is None:
                return state, None
        if any(map(makes_calls, messages)):
            return messages, sent_at if state else reader.place(messages)
        # No tool calls: the first prompt of a turn, a text agent's, or a question on the side.
        human = next((m for m in reversed(messages) if is_human_turn(m)), None)
        if human is None:
            return None, None
        if human.id is not None:
            return None if state else [human], None
        # Without an id only its text tells a new turn: a text agent's prompt grows.
        text = str(human.content)
        if run.session is kept.restored_in or run.session is kept.prompted_in:
            run.prompt = text  # A question on the side, unless what comes of it are calls that run.
        else:
            kept.prompted_in = run.session
            self._turn(kept, text)
        return None, None

    def _turn(self, kept: Conversation, text: str) -> None:
        """Take in a human text without an id, with which a person may have spoken."""
        if kept.reader.counted and not text.startswith(kept.prompt):
            kept.reader.guard.human_message()
        kept.prompt = text

    def _read(
        self,
        kept: Conversation,
        history: Sequence[BaseMessage],
        at: int | None,
        *,
        asks: bool,
    ) -> tuple[Sequence[BaseMessage], bool]:
        """Read up to the last batch, and count the batches before it.

        Args:
            kept: The conversation.
            history: Its messages.
            at: The reader's place in them.
            asks: As for `model_starts`.

        Returns:
            The history from the last batch on, and whether that batch is not counted yet. Its
            answers are not read: it may have to be decided about first.
        """
        if at is None and kept.reader.counted and _went_back(kept.reader, history):
            kept.begin_anew(self._new_reader())
        rest = without_foreign_answers(history[at or 0 :])
        places = [place for place, message in enumerate(rest) if makes_calls(message)]
        if not places:
            self._told(kept, kept.reader.read(rest))
            return rest, False
        counted = at is not None and places[0] == 0
        previous = 0
        for place, following in zip(places, [*places[1:], None], strict=True):
            decision = None
            if not counted or place > 0:
                revealed = kept.reader.read(rest[previous : place + 1])
                if len(places) == 1 + counted:
                    # Of a history that is read for the first time, somebody has heard already.
                    self._told(kept, revealed)
                previous = place
                if following is not None:
                    decision = kept.reader.check(rest[place])
            if following is not None:
                batch = rest[place : following + 1]
                self._settle(kept, batch, kept.batches.get(_key(batch[0])), decision, asks=asks)
        return rest[previous:], not counted or len(places) > 1

    def _settle(
        self,
        kept: Conversation,
        batch: Sequence[BaseMessage],
        known: Batch | None,
        decision: Decision | None = None,
        *,
        asks: bool,
        passed: bool = False,
    ) -> Fate:
        """Have the reader know what became of the batch that it has counted last.

        Not where it was decided here, since the reader knows of that.

        Args:
            kept: The conversation.
            batch: The batch's AI message and what follows.
            known: What is remembered of it.
            decision: What the guard said, where nothing is remembered.
            asks: As for `model_starts`.
            passed: Whether it has run in another agent.
        """
        what = fate(batch)
        if known is not None:
            decision = known.decision if known.answer is None else None
        if decision is None or decision.action < Action.ASK:
            return what
        # A loop that has run where a person is asked about loops was let run.
        passed = passed or what is Fate.PASSED
        ends = self._on_detected == "raise" or decision.action is Action.STOP
        if what is Fate.LET_RUN or (passed and asks):
            kept.reader.approve(decision)
            if known is not None:
                known.answer = RUN
        elif what is Fate.REFUSED or (what is Fate.LEFT and ends and self._on_detected != "warn"):
            kept.reader.refuse(decision)
        return what

    # --- Tool calls -----------------------------------------------------------------------

    def tool_starts(
        self,
        run: Run,
        task: Task | None,
        call: dict[str, Any],
        session: Session,
        tags: Sequence[Any] | None,
        *,
        asks: bool,
    ) -> tuple[Conversation, Batch]:
        """Find the batch of a call that starts, and have it counted if it wasn't.

        Args:
            run: The tool's run.
            task: The graph task around it, if any.
            call: The call; its `id` is filled in if the host gave none.
            session: The run's session.
            tags: The tool's tags.
            asks: As for `model_starts`.
        """
        if not _HINTS.isdisjoint(run.metadata):
            run.tool_name = call["name"]
        found = self._heard(run, session, call) or self._in_state(run, task, call, asks=asks)
        if found is None:
            found = self._known(run, call) or self._direct(run, call, tags)
        kept, batch = found
        batch.started = True
        run.conversation, run.batch = kept, batch
        run.call_id = call["id"]
        return found

    def tool_ended(self, run: Run, output: Any, status: str) -> None:
        """Note what a tool gave. The answers of an AI message are read from its history."""
        batch, kept = run.batch, run.conversation
        if batch is None or kept is None:
            return
        batch.take(str(run.call_id), output, status=status)
        if batch.message is None:
            answers = list(batch.outputs.values())
            self._told(kept, kept.reader.record(batch.decision.record, answers))

    def _heard(
        self, run: Run, session: Session, call: dict[str, Any]
    ) -> tuple[Conversation, Batch] | None:
        for key in run.keys(self._scope):
            for message in reversed(session.spoken.get(key, ())):
                call_id = _id_in(message, call)
                if call_id is not None:
                    call["id"] = call_id
                    kept = self._conversation(key, run)
                    text = session.opened_by(message) if session.openings else None
                    if text is not None:
                        self._turn(kept, text)
                    return kept, self._counted(kept, message)
        return None

    def _in_state(
        self, run: Run, task: Task | None, call: Mapping[str, Any], *, asks: bool
    ) -> tuple[Conversation, Batch] | None:
        # No model was heard in this session: a resume, or a handler that sees tools only.
        state = task.messages(self._messages_key) if task is not None and call["id"] else None
        for at, message in reversed(list(enumerate(state or ()))):
            if is_human_turn(message):
                break
            if isinstance(message, AIMessage) and _id_in(message, call) is not None:
                kept = self._conversation(run.keys(self._scope)[1], run)
                history = (state or ())[: at + 1]
                self._read(kept, history, kept.reader.place(history), asks=asks)
                return kept, self._counted(kept, message)
        return None

    def _known(self, run: Run, call: Mapping[str, Any]) -> tuple[Conversation, Batch] | None:
        for key in run.keys(self._scope):
            kept = self.conversations.find(key)
            batch = kept.batch_of(call["id"]) if kept is not None else None
            if kept is not None and batch is not None:
                return self._conversation(key, run), batch
        return None

    def _direct(
        self, run: Run, call: dict[str, Any], tags: Sequence[Any] | None
    ) -> tuple[Conversation, Batch]:
        """Take a call that no AI message is known for as a batch of one."""
        key = run.direct_key(self._scope)
        known = self.conversations.find(key)
        before = known.session if known is not None else None
        kept = self._conversation(key, run)
        if run.in_graph and before not in {None, run.session} and run.resume is MISSING:
            # A new input to the graph: as good as a user turn.
            kept.reader.guard.human_message()
        last = kept.last
        if last is not None and last.parent == run.parent and run.parent is not None:
            # `Runnable.with_retry` tags each attempt after the first.
            retried = any(str(tag).startswith("retry:attempt:") for tag in tags or ())
            again = retried or call["id"] in last.call_ids
            if again and {**last.calls[0], "id": None} == {**call, "id": None}:
                call["id"] = last.calls[0]["id"]
                return kept, last
        call["id"] = call["id"] or str(run.id)
        decision = kept.reader.guard.check([call])
        return kept, kept.add(new_batch(str(run.id), [dict(call)], decision, parent=run.parent))

    # --- Counting -------------------------------------------------------------------------

    def _counted(self, kept: Conversation, message: AIMessage) -> Batch:
        known = kept.batches.get(_key(message))
        # Without a message id the call ids are all there is, and they may come again.
        if known is not None and (message.id or not known.complete):
            return known
        last = kept.last
        if (
            last is not None
            and last.message is not None
            and kept.reader.waits
            and last.complete
            and kept.reader.place([last.message]) is not None
        ):
            # Answers that never came in a message list: those that the tools gave. A reader that
            # is past the batch has its answers, and would count it anew.
            self._told(kept, kept.reader.read([last.message, *last.outputs.values()]))
        return self._count(kept, message)

    def _count(self, kept: Conversation, message: AIMessage) -> Batch:
        kept.marks.clear()
        kept.before = None
        calls = tool_calls_of(message)
        decision = kept.reader.check(message, calls)
        return kept.add(new_batch(_key(message), calls, decision, message=message))

    def _ran_elsewhere(self, run: Run, kept: Conversation, message: AIMessage) -> bool:
        """Tell whether another agent of this session has run a batch and handed it over.

        Agents that hand over to each other pass on all their messages, so each of them has the
        others' batches in its history.
        """
        if not message.id:
            return False
        session = self.conversations.session(run.session)
        for key in session.keys:
            other = self.conversations.find(key)
            batch = other.batches.get(message.id) if other is not None else None
            if batch is not None and other is not kept and batch.dealt_with:
                return True
        return message.id in session.ran

    def _conversation(self, key: Key, run: Run) -> Conversation:
        kept = self.conversations.get_again(key, run.session)
        if kept is None:
            live = run.session in self.runs
            if not live:
                self.conversations.trim_sessions(self.runs)
            kept = self.conversations.get(key, run.session, live=live)
            holder = self.runs.holder(run, key, self._scope)
            if holder is not None and key not in holder.holds:
                holder.holds += (key,)
        if run.tool_name is not None:
            # What a tool declares comes with its run, so of parallel calls the first time only
            # that of the one which starts first.
            kept.reader.guard.declare(run.tool_name, run.metadata)
        return kept

    def _new_reader(self) -> MessageReader:
        return MessageReader(LoopGuard(self._policy))

    def _told(self, kept: Conversation, revealed: Decision | None) -> None:
        """Tell what the answers of a batch have revealed, unless something was told of it."""
        if revealed is None or not revealed.findings:
            return
        last = kept.last
        told = last is not None and last.told and bool(last.decision.findings)
        if last is None or not told or last.decision.record is not revealed.record:
            self._tell(revealed)


def _key(message: BaseMessage) -> str:
    return message.id or ",".join(str(call.get("id")) for call in tool_calls_of(message))


def _id_in(message: AIMessage, call: Mapping[str, Any]) -> str | None:
    """Find a call in an AI message: by id, or by name and arguments where none came along.

    Returns:
        The call's id, `None` if the message makes no such call.
    """
    wanted = call["id"]
    if wanted:
        # As below without copies, for speed alone.
        for raw in message.tool_calls:
            if type(raw) is dict and type(raw.get("id")) is str and raw["id"] == wanted:
                return raw["id"]
    for made in tool_calls_of(message):
        if call["id"]:
            if made.get("id") == call["id"]:
                return str(made["id"])
        elif made.get("name") == call["name"] and made.get("args") == call["args"]:
            return str(made.get("id"))
    return None


def _went_back(reader: MessageReader, history: Sequence[BaseMessage]) -> bool:
    """Tell a history that was taken back (a fork) from one that lost its beginning."""
    human = reader.human_id
    return human is not None and any(message.id == human for message in history)
