"""Which batch is it, and what was its conversation before?

Finds the AI message behind a tool call or a model call, reads the history up to it into the
conversation's reader, and has the batch counted once. What is to be done about a batch is not
decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage

from langchain_loopguard.callbacks.conversations import Batch, Conversation, Conversations
from langchain_loopguard.callbacks.runs import MISSING
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.history import is_approved, without_foreign_answers
from langchain_loopguard.messages import (
    MessageReader,
    is_human_turn,
    is_refusal,
    tool_calls_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult

    from langchain_loopguard.callbacks.host import Task
    from langchain_loopguard.callbacks.runs import Key, Run, RunTree
    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.core.policy import LoopGuardPolicy


@dataclass(slots=True, eq=False)
class History:
    """What a model call is about to continue.

    Attributes:
        conversation: The conversation.
        messages: Its messages, from the last batch on.
        batch: The last batch, if it has its answers although none of its tools was started.
    """

    conversation: Conversation
    messages: Sequence[BaseMessage]
    batch: Batch | None


class Reading:
    """Reads messages and calls into the conversations of one handler."""

    def __init__(
        self,
        policy: LoopGuardPolicy,
        runs: RunTree,
        *,
        scope: str,
        messages_key: str,
        max_conversations: int,
        tell: Callable[[Decision], None],
    ) -> None:
        """Take the handler's options; `tell` gets what answers have revealed."""
        self.runs = runs
        self.conversations = Conversations(self._new_reader, max_conversations)
        self._policy = policy
        self._scope = scope
        self._messages_key = messages_key
        self._tell = tell

    def knows(self, run: Run, call_id: str | None) -> bool:
        """Tell whether a call's batch was seen, in this session or before.

        Without a call id: whether anything of the conversation was seen.
        """
        kept = [self.conversations.find(key) for key in self._keys(run)]
        if call_id is None:
            return any(item is not None for item in kept)
        if any(item is not None and item.batch_of(call_id) is not None for item in kept):
            return True
        call = {"id": call_id}
        spoken = self.conversations.session(run.session).spoken.values()
        return any(_id_in(message, call) is not None for heard in spoken for message in heard)

    def refusals_around(self, run: Run) -> dict[str, str] | None:
        """Give the refusals around a run that were not marked in their tool messages yet."""
        if not self.conversations.session(run.session).refused:
            return None
        kept = self.conversations.find(run.agent_key(self._scope))
        return kept.refusals if kept is not None else None

    # --- Model calls ----------------------------------------------------------------------

    def model_spoke(self, run: Run, response: LLMResult) -> None:
        """Remember an AI message with calls until its tools start.

        It is not counted yet: it may be a structured answer, or an attempt that is thrown away.
        """
        generation = response.generations[0][0] if response.generations[0] else None
        message = getattr(generation, "message", None)
        if isinstance(message, AIMessage) and tool_calls_of(message):
            session = self.conversations.session(run.session)
            for key in dict.fromkeys(self._keys(run)):
                session.hear(key, message)

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
        task_key, agent_key = self._keys(run)
        inner = self.conversations.find(task_key) is not None
        kept = self._conversation(task_key if inner else agent_key, run)
        history = self._choose(kept, task, messages)
        if history is None:
            return None
        rest, is_new = self._read(kept, history, asks=asks)
        batch = None
        refused = any(is_refusal(message) for message in rest[1:])
        if len(rest) > 1 and isinstance(rest[0], AIMessage) and not refused:
            known = kept.batches.get(_key(rest[0]))
            if is_new and known is None and self._ran_elsewhere(run, kept, rest[0]):
                decision = self._count(kept, rest[0]).decision
                if asks and decision.action >= Action.ASK:
                    kept.reader.approve(decision)
            elif is_new:
                batch = known or self._count(kept, rest[0])
            elif known is not None and not known.started:
                batch = known
        return History(kept, rest, batch)

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
        self._told(reader.read(history.messages))
        notice = reader.take_notice(history.messages)
        if notice is None or not hint:
            return
        for message in (history.messages[-1], *sent[-1:]):
            if isinstance(message, ToolMessage) and message.tool_call_id == notice.tool_call_id:
                message.content = notice.content
                message.additional_kwargs = notice.additional_kwargs

    def _choose(
        self, kept: Conversation, task: Task | None, messages: Sequence[BaseMessage]
    ) -> Sequence[BaseMessage] | None:
        """Choose what to read: the graph's state, or what the model is sent.

        The state is whole where the prompt was trimmed, and free of the questions that a node
        asks a model on the side. But a loop inside one node is not in the state.
        """
        reader = kept.reader
        state = task.messages(self._messages_key) if task is not None else None
        if state and (
            not reader.counted or reader.place(state) is not None or reader.place(messages) is None
        ):
            return state
        if any(tool_calls_of(message) for message in messages):
            return messages
        # No tool calls: the first prompt of a turn, a text agent's, or a question on the side.
        human = next((m for m in reversed(messages) if is_human_turn(m)), None)
        if human is None:
            return None
        if human.id is not None:
            return None if state else [human]
        # Without an id only its text tells a new turn: a text agent's prompt grows.
        text = str(human.content)
        if reader.counted and not text.startswith(kept.prompt):
            reader.guard.human_message()
        kept.prompt = text
        return None

    def _read(
        self, kept: Conversation, history: Sequence[BaseMessage], *, asks: bool
    ) -> tuple[Sequence[BaseMessage], bool]:
        """Read up to the last batch, and count the batches before it.

        Returns:
            The history from the last batch on, and whether that batch is not counted yet.
        """
        at = kept.reader.place(history)
        if at is None and kept.reader.counted and _went_back(kept.reader, history):
            kept.reader = self._new_reader()
            kept.batches.clear()
        rest = without_foreign_answers(history[at or 0 :])
        first = 0 if at is None else 1
        places = [i for i in range(first, len(rest)) if tool_calls_of(rest[i])]
        if not places:
            self._told(kept.reader.read(rest))
            return rest, False
        previous = 0
        for place, following in zip(places, [*places[1:], None], strict=True):
            revealed = kept.reader.read(rest[previous : place + 1])
            if len(places) == 1:
                # Of a history that is read for the first time, somebody has heard already.
                self._told(revealed)
            previous = place
            if following is None:
                break
            decision = kept.reader.check(rest[place])
            if decision.action >= Action.ASK:
                ran = not any(is_refusal(message) for message in rest[place + 1 : following])
                if is_approved(rest[place]) or (asks and ran):
                    # It ran although it was a loop, so a person let it.
                    kept.reader.approve(decision)
        return rest[previous:], True

    # --- Tool calls -----------------------------------------------------------------------

    def tool_starts(
        self, run: Run, task: Task | None, call: dict[str, Any], *, asks: bool, retried: bool
    ) -> tuple[Conversation, Batch]:
        """Find the batch of a call that starts, and have it counted if it wasn't.

        Args:
            run: The tool's run.
            task: The graph task around it, if any.
            call: The call; its `id` is filled in if the host gave none.
            asks: As for `model_starts`.
            retried: Whether the same call was tried before and failed.
        """
        found = self._heard(run, call) or self._in_state(run, task, call, asks=asks)
        if found is None:
            found = self._known(run, call) or self._direct(run, call, retried=retried)
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
            results = list(batch.outputs.values())
            self._told(kept.reader.guard.record_results(batch.decision.record, results))

    def _heard(self, run: Run, call: dict[str, Any]) -> tuple[Conversation, Batch] | None:
        session = self.conversations.session(run.session)
        for key in self._keys(run):
            for message in reversed(session.spoken.get(key, ())):
                call_id = _id_in(message, call)
                if call_id is not None:
                    call["id"] = call_id
                    kept = self._conversation(key, run)
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
                kept = self._conversation(run.agent_key(self._scope), run)
                self._read(kept, (state or ())[: at + 1], asks=asks)
                return kept, self._counted(kept, message)
        return None

    def _known(self, run: Run, call: Mapping[str, Any]) -> tuple[Conversation, Batch] | None:
        for key in self._keys(run):
            kept = self.conversations.find(key)
            batch = kept.batch_of(call["id"]) if kept is not None else None
            if kept is not None and batch is not None:
                return self._conversation(key, run), batch
        return None

    def _direct(
        self, run: Run, call: dict[str, Any], *, retried: bool
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
            again = retried or call["id"] in last.call_ids
            if again and {**last.calls[0], "id": None} == {**call, "id": None}:
                call["id"] = last.calls[0]["id"]
                return kept, last
        call["id"] = call["id"] or str(run.id)
        decision = kept.reader.guard.check([call])
        return kept, kept.add(Batch(str(run.id), [dict(call)], decision, parent=run.parent))

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
            and last.complete
            and kept.reader.place([last.message]) is not None
        ):
            # Answers that never came in a message list: those that the tools gave. A reader that
            # is past the batch has its answers, and would count it anew.
            self._told(kept.reader.read([last.message, *last.outputs.values()]))
        return self._count(kept, message)

    def _count(self, kept: Conversation, message: AIMessage) -> Batch:
        kept.refusals.clear()
        decision = kept.reader.check(message)
        return kept.add(Batch(_key(message), tool_calls_of(message), decision, message))

    def _ran_elsewhere(self, run: Run, kept: Conversation, message: AIMessage) -> bool:
        """Tell whether another agent of this session has run a batch and handed it over.

        Agents that hand over to each other pass on all their messages, so each of them has the
        others' batches in its history.
        """
        if not message.id:
            return False
        for key in self.conversations.session(run.session).keys:
            other = self.conversations.find(key)
            batch = other.batches.get(message.id) if other is not None else None
            if batch is not None and other is not kept and (batch.started or batch.answer):
                return True
        return False

    def _conversation(self, key: Key, run: Run) -> Conversation:
        live = run.session in self.runs
        if not live:
            self.conversations.trim_sessions(self.runs)
        kept = self.conversations.get(key, run.session, live=live)
        kept.session = run.session
        return kept

    def _keys(self, run: Run) -> tuple[Key, Key]:
        return run.task_key(self._scope), run.agent_key(self._scope)

    def _new_reader(self) -> MessageReader:
        return MessageReader(LoopGuard(self._policy))

    def _told(self, decision: Decision | None) -> None:
        if decision is not None and decision.findings:
            self._tell(decision)


def _key(message: AIMessage) -> str:
    return message.id or ",".join(str(call.get("id")) for call in tool_calls_of(message))


def _id_in(message: AIMessage, call: Mapping[str, Any]) -> str | None:
    """Find a call in an AI message: by id, or by name and arguments where none came along.

    Returns:
        The call's id, `None` if the message makes no such call.
    """
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
