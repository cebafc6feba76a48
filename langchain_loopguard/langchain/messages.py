"""What are an AI message, its calls and the messages behind it to a guard?

A step is the calls of one AI message; its results are the tool messages up to the next AI
message, matched by id, whatever else stands between them. Reading keeps nothing and changes
nothing, and odd shapes never raise. Must not know how loops are found or what is done about them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from xxhash import xxh3_128_hexdigest

from langchain_loopguard.core.calls import call_arguments, call_id, call_name
from langchain_loopguard.langchain.marks import mark_of, result_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_UNPARSED = "The arguments of this call are not valid JSON."
_NO_RESULT = "There is no result."

_SHORTEST_ID = 8
"""Characters of a call's id that is looked for in its result: shorter ones, which some local
models give, stand in any text."""

_LONGEST_ID = 64
"""Characters of an id that is kept as it is; longer ones are hashed, to bound the state."""

_NO_TOOL = re.compile(r"\AError: .{0,300}? is not a valid tool, try one of (?=\[)", re.DOTALL)
"""How LangGraph's `ToolNode` answers a call of a tool that doesn't exist. The name is made up
again each time, so with it in place each such error would be a new one."""


def makes_calls(message: BaseMessage) -> bool:
    """Tell whether `calls_of` lists any."""
    return isinstance(message, AIMessage) and bool(message.tool_calls or message.invalid_tool_calls)


def calls_of(message: BaseMessage) -> list[dict[str, Any]]:
    """List the calls of an AI message, those that could not be parsed last.

    These carry their raw text as arguments: repeats of them count by name and text.
    """
    if not isinstance(message, AIMessage):
        return []
    return [plain_call(call) for call in (*message.tool_calls, *message.invalid_tool_calls)]


def plain_call(call: Any) -> dict[str, Any]:
    """Copy a call; of one that is no mapping, what can be read. An id is text or `None`."""
    if type(call) is dict:
        copy = dict(call)
        if type(copy.get("id")) is not str and copy.get("id") is not None:
            copy["id"] = call_id(call)
        if type(copy.get("name")) is not str and "name" in copy:
            copy["name"] = call_name(call)
        return copy
    return {"name": call_name(call), "args": call_arguments(call), "id": call_id(call)}


def id_of(call: Any) -> str | None:
    """Read the id of a call, `None` where it is no text."""
    found = call.get("id") if type(call) is dict else call_id(call)
    return found if type(found) is str else None


def caller_of(message: BaseMessage) -> str:
    """Read the name of the agent that wrote a message, `""` where agents have no names."""
    return short(message.name) if type(message.name) is str else ""


def key_of(message: BaseMessage) -> str:
    """Name a message: by its id, else by the ids of its calls, else `""`."""
    found = message.id
    if found:
        plain = type(found) is str and len(found) <= _LONGEST_ID and found.isascii()
        return found if plain else short(str(found))
    ids = [id_of(call) or "" for call in calls_of(message)]
    return f"calls:{short(','.join(ids))}" if any(ids) else ""


def short(text: str) -> str:
    """Shorten an id to what any store takes."""
    if len(text) <= _LONGEST_ID and text.isascii():
        return text
    return f"xxh3:{xxh3_128_hexdigest(text.encode('utf-8', 'backslashreplace'))}"


@dataclass(slots=True, eq=False)
class MessageStep:
    """The calls of one AI message, and what stands behind them.

    Attributes:
        index: Where the AI message stands.
        message: The AI message.
        calls: Its calls but for those that a person answered elsewhere, which never ran.
        waiting: Those of them without a result that a tool can still give.
        unparsed: Those without a result whose arguments could not be parsed.
        results: The tool messages up to the next AI message.
        others: What else stands there: a person's remark, a node's picture.
        apart: Whether one of `others` stands before a result, which a model API refuses.
        last: Whether no AI message follows.
    """

    index: int
    message: AIMessage
    calls: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    unparsed: list[dict[str, Any]] = field(default_factory=list)
    results: list[ToolMessage] = field(default_factory=list)
    others: list[BaseMessage] = field(default_factory=list)
    apart: bool = False
    last: bool = True

    @property
    def open_calls(self) -> list[dict[str, Any]]:
        """The calls to decide about: those without a result."""
        return [*self.waiting, *self.unparsed]

    @property
    def decided_calls(self) -> list[dict[str, Any]]:
        """The calls that a decision is about; of a late step all, which have results already."""
        return self.calls if self.late else self.open_calls

    @property
    def by_tools(self) -> list[ToolMessage]:
        """The results that tools, or the host in their place, gave."""
        return [result for result in self.results if result_by(result) == "tool"]

    @property
    def held_back(self) -> bool:
        """Whether the guard refused the step; only calls of unknown tools have other results."""
        return any(result_by(one) == "guard" and not mark_of(one).skipped for one in self.results)

    @property
    def late(self) -> bool:
        """Whether every call has a result before anybody decided: the host gave them all."""
        return bool(self.results) and not self.waiting and not self.unparsed

    @property
    def complete(self) -> bool:
        """Whether no further result is to come; an unparsed call never gets one."""
        return not self.last or (bool(self.results) and not self.waiting)

    def for_core(self) -> list[dict[str, Any]]:
        """List the results as `LoopGuard.record_results` takes them.

        A call that nobody can answer gets a failure of its own where others have results of tools.
        Without any result nothing is known: some tools speak in another way than by messages.
        """
        given = self.by_tools
        results = [_for_core(result) for result in given]
        if given or not self.waiting:
            results += [_failure(call, _UNPARSED) for call in self.unparsed]
        if given:
            results += [_failure(call, _NO_RESULT) for call in self.waiting]
        return results


def step_at(messages: Sequence[BaseMessage], index: int) -> MessageStep:
    """Read the step of the AI message at `index`."""
    message = messages[index]
    if not isinstance(message, AIMessage):
        raise TypeError(f"no AI message stands at {index}")
    step = MessageStep(index, message)
    by_person = set()
    for at in range(index + 1, len(messages)):
        other = messages[at]
        if isinstance(other, ToolMessage):
            step.results.append(other)
            step.apart = step.apart or bool(step.others)
            if result_by(other) == "person":
                by_person.add(other.tool_call_id)
        elif isinstance(other, AIMessage):
            step.last = False
            break
        else:
            step.others.append(other)
    done = {result.tool_call_id for result in step.results}
    parsed = [plain_call(call) for call in message.tool_calls]
    unparsed = [plain_call(call) for call in message.invalid_tool_calls]
    step.calls = [call for call in (*parsed, *unparsed) if call.get("id") not in by_person]
    step.waiting = [call for call in parsed if call.get("id") not in done]
    step.unparsed = [call for call in unparsed if call.get("id") not in done]
    return step


def last_step(messages: Sequence[BaseMessage]) -> MessageStep | None:
    """Read the step of the last AI message, `None` where there is none.

    Hosts look for it in the same way, so it is that one whose calls run next, whatever a person
    or a node has put behind it. A step may have no calls.
    """
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], AIMessage):
            return step_at(messages, index)
    return None


def with_warnings(
    messages: Sequence[BaseMessage], warnings: Mapping[str, str]
) -> list[BaseMessage] | None:
    """Copy the messages of a request with warnings below the results that they are about.

    Providers refuse anything but tool messages between calls and their results. A text stays a
    text. `warnings` holds the texts by the id of the tool message, or by its `tool_call_id`, of
    which the last one is meant. `None` where no such result is among the messages.
    """
    left = dict(warnings)
    copies = list(messages)
    for index in range(len(copies) - 1, -1, -1):
        message = copies[index]
        if not left:
            break
        if isinstance(message, ToolMessage):
            text = left.pop(message.id or "", None) or left.pop(message.tool_call_id, None)
            if text:
                copies[index] = message.model_copy(update={"content": _below(message, text)})
    return None if len(left) == len(warnings) else copies


def _below(message: ToolMessage, text: str) -> Any:
    content = message.content
    if text in str(message.text):  # another guard said it
        return content
    if isinstance(content, str):
        return f"{content}\n\n{text}"
    return [*content, {"type": "text", "text": text}]


def written_by_node(messages: Sequence[BaseMessage], index: int) -> bool:
    """Tell whether a human message follows a tool's result, so that the model's turn goes on."""
    while index > 0 and isinstance(messages[index], HumanMessage):
        index -= 1
    before = messages[index]
    return isinstance(before, ToolMessage) and result_by(before) == "tool"


def _for_core(result: ToolMessage) -> dict[str, Any]:
    """Take out of a result what differs although it says the same: the id of its own call."""
    own, content = result.tool_call_id, result.content
    if type(content) is str:
        if len(own) >= _SHORTEST_ID and own in content:
            content = content.replace(own, "")
        if result.status == "error" or content.startswith("Error: "):
            content = _NO_TOOL.sub("Error: this is not a valid tool, try one of ", content)
    elif type(content) is list and len(own) >= _SHORTEST_ID:
        content = [_block_without(block, own) for block in content]
    return {"tool_call_id": own, "content": content, "status": result.status}


def _block_without(block: Any, text: str) -> Any:
    if type(block) is str:
        return block.replace(text, "")
    if type(block) is dict and type(block.get("text")) is str:
        return {**block, "text": block["text"].replace(text, "")}
    return block


def _failure(call: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {"tool_call_id": id_of(call), "content": text, "status": "error"}
