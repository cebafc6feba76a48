"""How do LangChain messages and the guard's batches map onto each other?

The only file that knows `AIMessage`, `HumanMessage` and `ToolMessage`. `MessageReader` reads a
message list into a guard and counts every message once, however often the same list is read;
the adapters differ only in when they call it.

A batch is the tool calls of one AI message. Its answers are the tool messages that follow it
directly, for ids may start anew in every turn. A human message is a user turn unless a
framework wrote it. Odd shapes never raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_loopguard.core.decision import Action, Decision
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.results import hash_answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_loopguard.core.detector import BatchRecord
    from langchain_loopguard.core.policy import LoopGuardPolicy

SOURCE = "loop_guard"
"""What `additional_kwargs["lc_source"]` says on messages that the guard wrote."""

NOTICE_MARK = "[Notice, not part of the tool's answer]"
"""How a hint to the model begins."""

_SHORTEST_ID = 8
"""Characters of a call's id that is looked for in its answer: shorter ones, which some local
models give, stand in any text."""

_STATE_VERSION = 1


def is_human_turn(message: BaseMessage) -> bool:
    """Tell whether a person spoke: a human message that no framework put there.

    LangChain marks the human messages of its own making, a summary for instance, with
    `additional_kwargs["lc_source"]`.
    """
    return isinstance(message, HumanMessage) and not message.additional_kwargs.get("lc_source")


def tool_calls_of(message: BaseMessage) -> list[dict[str, Any]]:
    """List the calls of an AI message, those that could not be parsed included.

    A call that could not be parsed carries its raw text as arguments: repeats of it count by
    name and text.
    """
    if not isinstance(message, AIMessage):
        return []
    return [dict(call) for call in (*message.tool_calls, *message.invalid_tool_calls)]


def refusal_messages(calls: Sequence[Mapping[str, Any]], text: str) -> list[ToolMessage]:
    """Answer every call with the same refusal, so that the history stays valid."""
    return [
        ToolMessage(
            content=text,
            tool_call_id=str(call.get("id") or ""),
            name=call.get("name"),
            status="error",
            additional_kwargs={"lc_source": SOURCE},
        )
        for call in calls
    ]


def is_refusal(message: BaseMessage) -> bool:
    """Tell whether the guard wrote this tool message in place of an answer.

    Judged by the message's metadata, which no tool's text can imitate.
    """
    return isinstance(message, ToolMessage) and message.additional_kwargs.get("lc_source") == SOURCE


def with_notice(message: ToolMessage, text: str) -> ToolMessage:
    """Copy an answer and add what the model is to be told, as a text block of its own.

    The only place where a hint may stand: providers reject anything but tool messages between
    calls and their answers. The copy has the same id and says in its metadata what was added,
    which no tool's text can imitate, so that the guard never counts its own words. Several
    guards may each add theirs; the same words are added once.
    """
    content = message.content
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    mark = _mark_of(message)
    added = _notices(message)
    notice = {"type": "text", "text": f"\n{NOTICE_MARK} {text}"}
    if notice in blocks[len(blocks) - added :]:
        return message
    if not added:
        mark["was_text"] = isinstance(content, str)
    mark["notices"] = added + 1
    marked = {**message.additional_kwargs, SOURCE: mark}
    return message.model_copy(update={"content": [*blocks, notice], "additional_kwargs": marked})


def without_notice(message: ToolMessage) -> ToolMessage:
    """Undo `with_notice`; any other message is returned as it is."""
    added = _notices(message)
    if not added:
        return message
    kept: Any = message.content[:-added]
    if _mark_of(message).get("was_text") and len(kept) == 1 and isinstance(kept[0], dict):
        kept = kept[0].get("text", "")
    return message.model_copy(update={"content": kept})


def _without_own_id(message: ToolMessage) -> ToolMessage:
    """Take the id of the answered call out of an answer, so that equal answers are equal.

    Frameworks write it there: deepagents in place of an answer that is too long, LangChain in
    the answer to a call that can't be parsed.
    """
    call_id, content = message.tool_call_id, message.content
    if len(call_id) < _SHORTEST_ID:
        return message
    if isinstance(content, str):
        kept: Any = content.replace(call_id, "") if call_id in content else content
    else:
        kept = [_block_without(block, call_id) for block in content]
    return message if kept == content else message.model_copy(update={"content": kept})


def _block_without(block: Any, text: str) -> Any:
    if isinstance(block, str):
        return block.replace(text, "")
    if isinstance(block, dict) and isinstance(block.get("text"), str):
        return {**block, "text": block["text"].replace(text, "")}
    return block


def _mark_of(message: BaseMessage) -> dict[str, Any]:
    mark = message.additional_kwargs.get(SOURCE)
    return dict(mark) if isinstance(mark, dict) else {}


def _notices(message: ToolMessage) -> int:
    """Count the notices at the end of an answer's content."""
    added = _mark_of(message).get("notices")
    if type(added) is not int or added < 1 or not isinstance(message.content, list):
        return 0
    return added if added <= len(message.content) else 0


class MessageReader:
    """Reads the messages of one conversation into a guard, each message once.

    It knows its place by the id of the AI message that it counted last (by that message's tool
    call ids when it has none). When that message is gone, because the history was trimmed or
    summarised, every message in the list is later than it: what is dropped from a history is
    its beginning.
    """

    def __init__(self, guard: LoopGuard) -> None:
        """Start at the beginning of a conversation."""
        self.guard = guard
        self._human: str | None = None
        self._last: str | None = None
        self._last_calls = ""
        self._open = False
        self._decision: Decision | None = None
        self._told = ""
        self._notice = ""

    def read(self, messages: Sequence[BaseMessage]) -> Decision | None:
        """Catch up with a message list: user turns, batches and their answers.

        The calls of a last AI message that nothing follows are left alone: `check` counts them.

        Returns:
            What the answers that were read last revealed, `None` without any.
        """
        at = self.place(messages)
        if at is None:
            self._open = False
            at = -1
        after = self._close(messages, at) if self._open else None
        for index in range(at + 1, len(messages)):
            message = messages[index]
            if is_human_turn(message):
                self._turn(message)
            elif isinstance(message, AIMessage) and not tool_calls_of(message):
                self.check(message)
            elif index + 1 < len(messages) and isinstance(message, AIMessage):
                self.check(message)
                after = self._close(messages, index)
        return after

    def take_notice(self, messages: Sequence[BaseMessage]) -> ToolMessage | None:
        """Give the last answer with what the model is to be told about its batch, once.

        Args:
            messages: The list that was read last.

        Returns:
            A copy to put in the last message's place before the next model call; `None` when
            there is nothing to tell, or the last message is no answer that could carry it.
        """
        text, self._notice = self._notice, ""
        if not text or not messages:
            return None
        last = messages[-1]
        return with_notice(last, text) if isinstance(last, ToolMessage) else None

    def check(self, message: BaseMessage) -> Decision:
        """Count the calls of an AI message that are about to run and say what is to happen.

        A message without calls is prose: see `LoopGuard.prose`.

        Asked again about the same message it gives the same decision and counts nothing. In
        another process, where the decision is not at hand, a message already counted is
        allowed: its verdict was carried out before its count was saved.
        """
        key = _key(message)
        if key == self._last and message.id:
            if self._decision is None:
                record = self.guard.record_for(tool_calls_of(message))
                record.used = not self._open
                self._decision = Decision(Action.ALLOW, (), record)
            return self._decision
        calls = tool_calls_of(message)
        self._decision = self.guard.check(calls) if calls else self.guard.prose(_prose(message))
        self._last = key
        self._last_calls = _calls_key(message)
        self._open = bool(calls)
        self._told = self._notice = ""
        return self._decision

    def approve(self, decision: Decision) -> None:
        """A person let the batch run: clear what was found and count anew."""
        self.guard.approve(decision)
        self._decision = Decision(Action.ALLOW, (), decision.record)

    def refuse(self, decision: Decision) -> None:
        """The batch was refused: its answers are the guard's own and are not counted."""
        self.guard.refuse(decision)
        self._open = False

    @property
    def counted(self) -> bool:
        """Whether any batch was counted yet."""
        return self._last is not None

    @property
    def human_id(self) -> str | None:
        """The id of the user turn that was read last, if it had one."""
        return self._human

    def place(self, messages: Sequence[BaseMessage]) -> int | None:
        """Find the message counted last; the latest one, since ids may repeat.

        A history that was stored without message ids is found again by the ids of the calls.

        Returns:
            Its index, `None` when it is gone or nothing was counted yet.
        """
        if self._last is None:
            return None
        by_calls = None
        for index in range(len(messages) - 1, -1, -1):
            message = messages[index]
            if not isinstance(message, AIMessage):
                continue
            if _key(message) == self._last:
                return index
            if by_calls is None and not message.id and self._last_calls:
                by_calls = index if _calls_key(message) == self._last_calls else None
        return by_calls

    def to_state(self) -> dict[str, Any]:
        """Give the reader and its guard in JSON types."""
        return {
            "v": _STATE_VERSION,
            "human": self._human,
            "last": self._last,
            "calls": self._last_calls,
            "open": self._open,
            "told": self._to_tell(),
            "guard": self.guard.to_state(),
        }

    @classmethod
    def from_state(cls, policy: LoopGuardPolicy, state: Any) -> MessageReader:
        """Take up where `to_state` left off.

        Raises:
            GuardStateError: If the state is of another version or of another form.
        """
        version = state.get("v") if isinstance(state, dict) else None
        if version != _STATE_VERSION:
            msg = f"the loop guard's state has version {version!r}, not {_STATE_VERSION}"
            raise GuardStateError(msg)
        reader = cls(LoopGuard.from_state(policy, state.get("guard", {})))
        reader._human = state.get("human")
        reader._last = state.get("last")
        reader._last_calls = str(state.get("calls", ""))
        reader._open = bool(state.get("open"))
        reader._told = str(state.get("told", ""))
        return reader

    def _turn(self, message: BaseMessage) -> None:
        # A human message without an id is taken as new: a user turn too many costs a count, one
        # too few stops a good run.
        if message.id is None or message.id != self._human:
            self.guard.human_message()
            self._human = message.id

    def _close(self, messages: Sequence[BaseMessage], index: int) -> Decision | None:
        """Record the answers of the batch at `index`, unless some may still be to come."""
        calls = tool_calls_of(messages[index])
        end = index + 1
        while end < len(messages) and isinstance(messages[end], ToolMessage):
            end += 1
        answers = [
            _without_own_id(without_notice(m))
            for m in messages[index + 1 : end]
            if isinstance(m, ToolMessage)
        ]
        if end == len(messages) and len(answers) < len(calls):
            return None
        told = self._to_tell()
        self._open = False
        record = self._record(messages[index])
        if any(is_refusal(answer) for answer in answers):
            if self._decision is not None:
                self.guard.refuse(self._decision)
            return None
        after = self.guard.record_results(record, answers)
        self._notice = after.to_model or told
        return after

    def _to_tell(self) -> str:
        """Give what the model is to be told once the open batch has its answers."""
        if not self._open:
            return ""
        return self._decision.to_model if self._decision is not None else self._told

    def _record(self, message: BaseMessage) -> BatchRecord:
        if self._decision is not None:
            return self._decision.record
        return self.guard.record_for(tool_calls_of(message))


def _key(message: BaseMessage) -> str:
    if message.id:
        return message.id
    calls = _calls_key(message)
    return f"calls:{calls}" if calls else f"text:{hash_answer(message.content):x}"


def _prose(message: BaseMessage) -> str:
    return str(message.text)


def _calls_key(message: BaseMessage) -> str:
    return ",".join(str(call.get("id")) for call in tool_calls_of(message))
