"""What did a person answer to a question about a loop?

The answer may come in the words of each screen there is. What is not understood is refused rather
than guessed: a guess would run a tool that nobody approved. Plain data in, plain data out.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_loopguard.core.calls import call_id
from langchain_loopguard.langchain.errors import InvalidResumeError, bubbling

FORMS = (
    '"continue", "always", "stop", any other text (it is passed to the model), true, false, '
    '{"approved": true | false}, {"type": "continue" | "always" | "stop" | "cancelled" | '
    '"feedback", "message": "..."}, {"decisions": [{"type": "approve" | "edit" | "reject" | '
    '"respond", ...}]} with one decision per tool call, [{"type": "accept" | "ignore" | '
    '"response" | "edit", "args": ...}], or {"__agui_cancelled__": true}'
)
"""Every form of an answer, as the error for a wrong one names them."""

# Whole answers only: "no, use the other file" is text for the model. The lists hold what people
# type at a yes-or-no question and what the forms above call the same choices.
_CONTINUE = frozenset(
    {"accept", "allow", "approve", "approved", "continue", "go on", "ok", "okay", "proceed"}
    | {"resume", "true", "y", "yes"}
)
_ALWAYS = frozenset({"always", "always allow", "always approve", "always continue", "always_allow"})
_STOP = frozenset(
    {"abort", "cancel", "cancelled", "canceled", "deny", "end", "false", "halt", "ignore", "n"}
    | {"no", "quit", "stop"}
)
_SINGLE_NO = frozenset({"deny", "ignore", "n", "no", "false"})
"""Words that refuse one call of several, and end the run where they are the whole answer."""
_NEEDS_TEXT = frozenset({"feedback", "respond", "response", "text"})
_REFUSE = _NEEDS_TEXT | {"reject", "rejected"}
_TYPE_KEYS = ("type", "action", "choice", "decision", "answer")
_FLAG_KEYS = ("approved", "accepted", "confirmed")
_TEXT_KEYS = ("message", "args", "text", "feedback", "content", "response", "reason")
_CANCELLED = "__agui_cancelled__"
_LITERAL = "TEXT"
"""What a button sends whose maker took a placeholder for a value."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 200
"""Looks at no more of a wrong answer than its error quotes."""


@dataclass(frozen=True, slots=True)
class CallReply:
    """What a person decided about one call.

    Attributes:
        kind: `run` it, `refuse` it, or `respond` in the tool's place.
        text: What the model reads, for `respond` the result itself; may be empty for a refusal.
        args: The arguments to run instead and, in `name`, the tool, where the person changed it.
    """

    kind: Literal["run", "refuse", "respond"]
    text: str = ""
    name: str = ""
    args: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person decided about a step.

    Attributes:
        kind: `continue` runs it as it is, `always` does so for this loop from now on, `stop` ends
            the run, `text` refuses it and tells the model `text`; `decisions` means that `calls`
            holds one answer for each call, in the order of the question.
        text: What the model reads, or the reason of a stop; may be empty.
        calls: One answer for each call, empty unless `kind` is `decisions`.
    """

    kind: Literal["continue", "always", "stop", "text", "decisions"]
    text: str = ""
    calls: tuple[CallReply, ...] = ()


def read_reply(value: Any, calls: Sequence[Any], *, editable: bool = True) -> Reply:
    """Read the answer that a graph was resumed with, in any of `FORMS`, as JSON text too.

    Decisions that all say the same become that one answer, so that one meaning has one form.
    Without `editable` the adapter can't run other calls than the model made.

    Raises:
        InvalidResumeError: If it is none of the forms, decides about another number of calls,
            or differently about calls that share an id. The question is still open then.
    """
    try:
        reply = _read(value, len(calls))
        _check_apart(value, reply.calls, calls)
    except InvalidResumeError:
        raise
    except Exception as error:  # a value's own methods may do anything
        raise _invalid(value, "a value that can't be read") from error
    if not editable and any(call.args is not None for call in reply.calls):
        raise _invalid(value, "an edit, which a callback handler can't carry out")
    return reply


def _read(value: Any, count: int) -> Reply:
    if _is_list(value) and len(value) == 1:
        value = value[0]  # Agent Inbox answers the whole question with a list of one.
    if isinstance(value, bool):
        return Reply("continue" if value else "stop")
    if isinstance(value, str):
        return _from_text(value, count)
    if isinstance(value, Mapping):
        return _from_mapping(value, count)
    if _is_list(value):
        return _from_decisions(value, count)
    raise _invalid(value, f"a value of type {type(value).__name__}")


def _from_text(text: str, count: int) -> Reply:
    word = _word(text)
    if not word or text == _LITERAL:
        raise _invalid(text, "no text")
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return _read(json.loads(text), count)
        except (ValueError, RecursionError):
            return Reply("text", text.strip())
    if word in _CONTINUE:
        return Reply("continue")
    if word in _ALWAYS:
        return Reply("always")
    return Reply("stop") if word in _STOP else Reply("text", text.strip())


def _from_mapping(value: Mapping[Any, Any], count: int) -> Reply:
    if value.get(_CANCELLED) is True or _word(value.get("status")) in {"cancelled", "canceled"}:
        return Reply("stop")
    if "decisions" in value:
        return _from_decisions(value["decisions"], count)
    if _word(value.get("status")) == "resolved" and "payload" in value:
        return _read(value["payload"], count)
    word, text = _type_of(value), _text_of(value)
    if word in _CONTINUE:
        return Reply("continue")
    if word in _ALWAYS:
        return Reply("always")
    if word in _STOP:
        return Reply("stop", text)
    if word in _REFUSE or word == "edit":
        if count != 1 and word == "edit":
            raise _invalid(value, f"one edit for {count} calls")
        call = _call_reply(value, word)
        if call.kind == "refuse" or (call.kind == "respond" and count != 1):
            return Reply("text", call.text)
        return Reply("decisions", calls=(call,))
    raise _invalid(value, "a mapping without a known type")


def _from_decisions(decisions: Any, count: int) -> Reply:
    if not _is_list(decisions):
        raise _invalid(decisions, "decisions that are no list")
    if len(decisions) != count:
        raise _invalid(decisions, f"{len(decisions)} decisions for {count} calls")
    replies: list[CallReply] = []
    for decision in decisions:
        word = _type_of(decision) if isinstance(decision, Mapping) else _word(decision)
        if word in _STOP - _SINGLE_NO:
            return Reply("stop", _text_of(decision))
        replies.append(_call_reply(decision, word))
    texts = {call.text for call in replies}
    if all(call.kind == "run" and call.args is None for call in replies):
        return Reply("continue")
    if all(call.kind == "refuse" for call in replies) and len(texts) == 1:
        return Reply("text", texts.pop())
    return Reply("decisions", calls=tuple(replies))


def _call_reply(decision: Any, word: str) -> CallReply:
    text = _text_of(decision)
    if word in _CONTINUE | _ALWAYS:
        return CallReply("run")
    if word == "edit":
        return _edit(decision)
    if word in _NEEDS_TEXT and not text:
        raise _invalid(decision, f"a {word!r} without a text")
    if word == "respond":
        return CallReply("respond", text)
    if word in _REFUSE or word in _SINGLE_NO:
        return CallReply("refuse", text)
    raise _invalid(decision, "a decision without a known type")


def _edit(value: Mapping[Any, Any]) -> CallReply:
    # LangChain: {"edited_action": {"name", "args"}}; Agent Inbox: {"args": {"action", "args"}}.
    action = value.get("edited_action", value.get("args"))
    if isinstance(action, Mapping):
        name, args = action.get("name", action.get("action")), action.get("args")
        if isinstance(name, str) and name and isinstance(args, Mapping):
            return CallReply("run", name=name, args={str(key): args[key] for key in args})
    raise _invalid(value, "an edit without the name and the arguments to run instead")


def _check_apart(value: Any, replies: Sequence[CallReply], calls: Sequence[Any]) -> None:
    """Refuse decisions that no host could carry out: it knows a call by its id alone."""
    first: dict[str, CallReply] = {}
    for call, reply in zip(calls, replies, strict=False):
        other = first.setdefault(call_id(call) or "", reply)
        if other != reply and "run" in {other.kind, reply.kind}:
            raise _invalid(value, "different decisions about calls that share an id")


def _type_of(value: Mapping[Any, Any]) -> str:
    for key in _TYPE_KEYS:
        if isinstance(value.get(key), str):
            return _word(value[key])
        if isinstance(value.get(key), bool):
            return "continue" if value[key] else "stop"
    for key in _FLAG_KEYS:
        if isinstance(value.get(key), bool):
            return "approve" if value[key] else "reject"
    return ""


def _text_of(value: Any) -> str:
    for key in _TEXT_KEYS if isinstance(value, Mapping) else ():
        text = value.get(key)
        if isinstance(text, str) and text.strip():
            return text.strip()
    return ""


def _word(text: Any) -> str:
    return " ".join(text.split()).strip(" .!").lower() if isinstance(text, str) else ""


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _invalid(value: Any, what: str) -> InvalidResumeError:
    try:
        shown = _SHORT.repr(value)[:250]
    except Exception:  # noqa: BLE001 - the value is somebody else's, and so is its repr
        shown = "one that cannot be shown"
    return bubbling(InvalidResumeError)(
        f"This is no answer to a detected loop: {what}, {shown}. Accepted are {FORMS}. "
        "The question is still open."
    )
