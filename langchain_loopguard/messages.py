"""How do LangChain messages and the guard's batches map onto each other?

What an AI message, its tool messages and a human message are to a guard is said here alone.
`MessageReader` reads a message list into a guard and counts every message once, however often the
same list is read; the adapters differ only in when they call it.

A batch is the tool calls of one AI message. Its answers are the tool messages that follow it
directly, for ids may start anew in every turn. A human message is a user turn unless a
framework wrote it. Odd shapes never raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from xxhash import xxh3_128_hexdigest

from langchain_loopguard.core import stored
from langchain_loopguard.core.answers import encode_text
from langchain_loopguard.core.batch import Batch
from langchain_loopguard.core.calls import call_id, call_name, read_call
from langchain_loopguard.core.decision import Action, Decision, allowed
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.results import hash_answer
from langchain_loopguard.failures import failed_by_text
from langchain_loopguard.spare import filled, spared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_loopguard.core.decision import Finding
    from langchain_loopguard.core.detector import BatchRecord
    from langchain_loopguard.core.policy import LoopGuardPolicy

SOURCE = "loop_guard"
"""What `additional_kwargs["lc_source"]` says on messages that the guard wrote."""

NOTICE_MARK = "[Notice, not part of the tool's answer]"
"""How a hint to the model begins."""

NOT_RUN = "This call was not run: the conversation went on before it was answered."
"""What the model is told of a call that an interrupted turn left open."""

STOPPED = "This call was not run: the run was ended because the same step was repeated."
"""What the model is told of the calls with which a run ended."""

SKIPPED = "This call got no answer."
"""What the model is told of a call that the tools left out."""

_STUBS = frozenset({NOT_RUN, STOPPED, SKIPPED})
"""What the guard also says of calls that it never judged a loop."""

_LONGEST_ID = 200
"""Characters of an id that is kept as it is; longer ones are hashed. The ids of a batch of
thousands of calls must not fill the state, nor must one that a provider made up."""

_LONGEST_NOTICE = 2000
"""Characters of a stored hint; the guard's own have a few hundred."""

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
    calls = message.tool_calls
    if len(calls) == 1 and not message.invalid_tool_calls:  # Told apart for speed alone.
        return [plain_call(calls[0])]
    return [plain_call(call) for call in (*message.tool_calls, *message.invalid_tool_calls)]


def makes_calls(message: BaseMessage) -> bool:
    """Tell whether `tool_calls_of` would list any, without a copy of them."""
    return isinstance(message, AIMessage) and bool(message.tool_calls or message.invalid_tool_calls)


def plain_call(call: Any) -> dict[str, Any]:
    """Copy a call; of one that is no mapping, what can be read. An id is text or `None`."""
    if type(call) is dict:
        copy = dict(call)
        if type(copy.get("id")) is not str and copy.get("id") is not None:
            copy["id"] = call_id(call)
        if type(copy.get("name")) is not str and "name" in copy:
            copy["name"] = call_name(call)
        return copy
    name, args, given_id = read_call(call)
    return {"name": name, "args": args, "id": given_id}


def refusal_messages(calls: Sequence[Mapping[str, Any]], text: str) -> list[ToolMessage]:
    """Answer every call with the same refusal, so that the history stays valid."""
    return [
        ToolMessage(
            content=text,
            tool_call_id=str(call.get("id") or ""),
            name=call_name(call) or None,
            status="error",
            additional_kwargs={"lc_source": SOURCE},
        )
        for call in calls
    ]


def final_message(text: str) -> AIMessage:
    """Make the message with which the guard ends a run."""
    return AIMessage(content=text, additional_kwargs={"lc_source": SOURCE})


def is_refusal(message: BaseMessage) -> bool:
    """Tell whether a tool message says that the guard wrote it in place of an answer.

    It says so in its metadata, which no tool's text can imitate. A tool that is code in this
    process can make a message with any metadata, so a `MessageReader` believes it only of a
    batch that it would have refused itself.
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
    if SOURCE not in message.additional_kwargs:
        return message
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
    if type(content) is str:
        kept: Any = content.replace(call_id, "") if call_id in content else content
    elif type(content) is list:
        kept = [_block_without(block, call_id) for block in content]
    else:
        return message
    return message if kept == content else message.model_copy(update={"content": kept})


def _block_without(block: Any, text: str) -> Any:
    if type(block) is str:
        return block.replace(text, "")
    if type(block) is dict and type(block.get("text")) is str:
        return {**block, "text": block["text"].replace(text, "")}
    return block


def _mark_of(message: BaseMessage) -> dict[str, Any]:
    mark = message.additional_kwargs.get(SOURCE)
    return dict(mark) if isinstance(mark, dict) else {}


def _notices(message: ToolMessage) -> int:
    """Count the notices at the end of an answer's content: marked as such and worded so."""
    added = _mark_of(message).get("notices")
    content = message.content
    if type(added) is not int or type(content) is not list or not 0 < added <= len(content):
        return 0
    return added if all(map(_is_notice, content[-added:])) else 0


def _is_notice(block: Any) -> bool:
    # The types are asked: content that nobody checked may lie about its class.
    if type(block) is not dict or block.get("type") != "text":
        return False
    text = block.get("text")
    return type(text) is str and text.startswith(f"\n{NOTICE_MARK} ")


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
        # The name of the agent whose batch was counted last.
        self._agent: str | None = None
        self._open = False
        self._decision: Decision | None = None
        # Whether the batch counted last was found to be a loop; of use with `_decision` alone.
        self._asked = False
        # What was found in prose since the last batch.
        self._in_prose: tuple[Finding, ...] = ()
        self._told = ""
        self._notice = ""
        self._empty: dict[str, Any] | None = None

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
            if type(message) is ToolMessage:
                continue  # As below; it takes three times as long to ask what a message is not.
            if is_human_turn(message):
                self._turn(message)
            elif isinstance(message, AIMessage) and not makes_calls(message):
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

    def check(self, message: BaseMessage, calls: list[dict[str, Any]] | None = None) -> Decision:
        """Count the calls of an AI message that are about to run and say what is to happen.

        A message without calls is prose: see `LoopGuard.prose`, and `LoopGuard.heard` for that of
        another agent than the one that made the last calls. What is found in prose holds nothing
        back, since nothing is about to run; the next batch carries it as a warning.

        Asked again about the same message it gives the same decision and counts nothing. In
        another process, where the decision is not at hand, a message already counted is
        allowed: its verdict was carried out before its count was saved.

        Args:
            message: The message.
            calls: What `tool_calls_of` lists of it, where that is known.
        """
        key = _key(message)
        if key == self._last and message.id:
            if self._decision is None:
                record = self.guard.record_for(tool_calls_of(message))
                record.used = not self._open
                self._decision = allowed(record)
            return self._decision
        if calls is None:
            calls = tool_calls_of(message)
        agent = _agent_of(message)
        if calls:
            self._decision = self._with_prose(self.guard.check(calls))
            self._agent = agent
        else:
            text = _prose(message)
            if None not in (agent, self._agent) and agent != self._agent:
                self.guard.heard(text)
            self._decision = self.guard.prose(text)
            self._in_prose = self._decision.findings
        self._asked = self._decision.action >= Action.ASK
        self._last = key
        self._last_calls = _calls_key(calls)
        self._open = bool(calls)
        self._told = self._notice = ""
        return self._decision

    def approve(self, decision: Decision) -> None:
        """A person let the batch run: clear what was found and count anew."""
        self.guard.approve(decision)
        self._decision = allowed(decision.record)

    def refuse(self, decision: Decision) -> None:
        """The batch was refused: its answers are the guard's own and are not counted."""
        self.guard.refuse(decision)
        self._open = False

    def leave(self) -> None:
        """A part of the batch was answered without its tools: its answers are not counted."""
        self._open = False

    @property
    def counted(self) -> bool:
        """Whether any batch was counted yet."""
        return self._last is not None

    @property
    def waits(self) -> bool:
        """Whether the batch counted last may still get answers."""
        return self._open

    @property
    def pending_bytes(self) -> int:
        """How many bytes of arguments are remembered of a batch that has no answers yet."""
        record = None if self._decision is None else self._decision.record
        return sum(map(len, record.canonical)) if isinstance(record, Batch) else 0

    @property
    def human_id(self) -> str | None:
        """The id of the user turn that was read last, if it had one; hashed if it was long."""
        return self._human

    def forget_step(self) -> None:
        """Be as one that `from_state` makes of `to_state`: keep nothing of a call."""
        self._told = self._to_tell()
        self._decision = None
        self._notice = ""

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
            if type(message) is ToolMessage or not isinstance(message, AIMessage):
                continue
            if _key(message) == self._last:
                return index
            if by_calls is None and not message.id and self._last_calls:
                by_calls = index if _calls_key(tool_calls_of(message)) == self._last_calls else None
        return by_calls

    def to_state(self) -> dict[str, Any]:
        """Give the reader and its guard in JSON types; what is as at the beginning is left out."""
        if self._empty is None:
            beginning = MessageReader(LoopGuard(self.guard.policy))
            self._empty = beginning._whole_state()
        return spared(self._whole_state(), self._empty)

    def _whole_state(self) -> dict[str, Any]:
        return {
            "v": _STATE_VERSION,
            "human": self._human,
            "last": self._last,
            "calls": self._last_calls,
            "agent": self._agent,
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
        version = state.get("v") if type(state) is dict else None
        if type(version) is not int or version != _STATE_VERSION:
            found = stored.shown(version)
            msg = f"the loop guard's state has version {found}, not {_STATE_VERSION}"
            raise GuardStateError(msg)
        reader = cls(LoopGuard(policy))
        reader._empty = reader._whole_state()
        try:
            state = filled(state, reader._empty)
            reader.guard = LoopGuard.from_state(policy, state["guard"])
            reader._human = _stored_id(state["human"])
            reader._last = _stored_id(state["last"])
            reader._last_calls = stored.text(state["calls"])
            reader._agent = _stored_id(state["agent"])
            reader._open = stored.flag(state["open"])
            reader._told = stored.text(state["told"], _LONGEST_NOTICE)
        except GuardStateError:
            raise
        except Exception as error:  # whatever it holds, and whatever that does
            found = stored.shown(error)
            raise GuardStateError(f"the loop guard's state has a wrong place: {found}") from error
        return reader

    def _turn(self, message: BaseMessage) -> None:
        # A human message without an id is taken as new: a user turn too many costs a count, one
        # too few stops a good run.
        known = None if message.id is None else _short(str(message.id))
        if known is None or known != self._human:
            self.guard.human_message()
            self._human = known
            self._in_prose = ()

    def _with_prose(self, decision: Decision) -> Decision:
        """Add what was found in the prose before a batch to what was found about the batch."""
        found, self._in_prose = self._in_prose, ()
        if not found:
            return decision
        for finding in found:
            finding.action = Action.WARN
        action = max(decision.action, Action.WARN)
        return Decision(action, (*decision.findings, *found), decision.record)

    def _close(self, messages: Sequence[BaseMessage], index: int) -> Decision | None:
        """Record the answers of the batch at `index`, unless some may still be to come."""
        end = index + 1
        while end < len(messages) and isinstance(messages[end], ToolMessage):
            end += 1
        answers: list[ToolMessage] = []
        refused = False
        for message in messages[index + 1 : end]:
            if isinstance(message, ToolMessage):
                answer = _without_own_id(without_notice(message))
                answers.append(answer)
                refused = refused or is_refusal(answer)
        if end == len(messages) and len(answers) < len(tool_calls_of(messages[index])):
            return None
        told = self._to_tell()
        self._open = False
        record = self._record_of(messages[index])
        if refused:
            if self._decision is not None and self._asked:
                self.guard.refuse(self._decision)
                return None
            # No loop was found here, or it was let run, so the guard can't have refused it.
            # What it says elsewhere too tells nothing of the call; all else is an answer.
            answers = [answer for answer in answers if not _is_stub(answer)]
        after = self.record(record, answers)
        self._notice = after.to_model or told
        return after

    def record(self, record: BatchRecord, answers: Sequence[ToolMessage]) -> Decision:
        """Record the answers of a batch, which need not stand in any message list."""
        results: Sequence[Any] = [_result(answer) for answer in answers]
        if self.guard.policy.reads_failures:
            results = failed_by_text(record, results)
        return self.guard.record_results(record, results)

    def _to_tell(self) -> str:
        """Give what the model is to be told once the open batch has its answers."""
        if not self._open:
            return ""
        return self._decision.to_model if self._decision is not None else self._told

    def _record_of(self, message: BaseMessage) -> BatchRecord:
        if self._decision is not None:
            return self._decision.record
        return self.guard.record_for(tool_calls_of(message))


def _result(answer: ToolMessage) -> dict[str, Any]:
    # The guard takes messages too, but reads a `dict` in half the time.
    content, status = answer.content, answer.status
    return {"tool_call_id": answer.tool_call_id, "content": content, "status": status}


def _key(message: BaseMessage) -> str:
    given = message.id
    if given:
        return _short(str(given))
    calls = _calls_key(tool_calls_of(message))
    return f"calls:{calls}" if calls else f"text:{hash_answer(message.content):x}"


def _agent_of(message: BaseMessage) -> str | None:
    """Read the name of the agent that wrote a message, `None` where agents have no names."""
    name = message.name
    return _short(name) if type(name) is str and name else None


def _prose(message: BaseMessage) -> str:
    try:
        return str(message.text)
    except Exception:  # noqa: BLE001 - content of no known form has no text
        return ""


def _calls_key(calls: Sequence[Mapping[str, Any]]) -> str:
    if len(calls) == 1:  # Told apart for speed alone.
        return _short(str(call_id(calls[0])))
    return _short(",".join(str(call_id(call)) for call in calls)) if calls else ""


def _short(key: str) -> str:
    """Give an id that any store takes and that has a bounded length."""
    if len(key) <= _LONGEST_ID and key.isascii():
        return key
    return f"xxh3:{xxh3_128_hexdigest(encode_text(key))}"


def _stored_id(value: Any) -> str | None:
    return None if value is None else stored.text(value)


def _is_stub(message: ToolMessage) -> bool:
    return is_refusal(message) and type(message.content) is str and message.content in _STUBS
