"""What is a person asked about a loop, and what did they answer?

Both directions are plain data, so this file knows no graph. The question is one mapping of JSON
types that approval screens already read: LangChain's `HITLRequest` (`action_requests`,
`review_configs`), Agent Inbox's older form (`action_request`, `config`), and the guard's own
keys, which neither minds. The answer may come in the words of each of them. What is not
understood is refused rather than guessed: a guess would run a tool that nobody approved.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from langchain_loopguard.core.calls import call_id, call_name
from langchain_loopguard.cost import cost_in_words
from langchain_loopguard.errors import InvalidResumeError

if TYPE_CHECKING:
    from langchain_loopguard.core.decision import Decision

__all__ = [
    "CallAnswer",
    "InvalidResumeError",
    "Resume",
    "interrupt_payload",
    "parse_resume",
    "resume_schema",
]

ACCEPTED_FORMS = (
    '"continue", "stop", any other text (it is passed to the model), true, false, '
    '{"type": "continue" | "stop" | "feedback", "message": TEXT}, '
    '{"decisions": [{"type": "approve" | "edit" | "reject" | "respond", ...}]} with one decision '
    'per tool call, or [{"type": "accept" | "ignore" | "response" | "edit", "args": ...}]'
)
"""Every form of an answer, as the error for a wrong one names them."""

# Whole answers only: "no, use the other file" is text for the model. The lists hold what people
# type at a yes-or-no question and what the forms below call the same two choices.
QUESTION = "loop_detected"
"""The `type` of a question, by which the guard knows its own."""

_CONTINUE = frozenset(
    {"accept", "allow", "approve", "continue", "go on", "ok", "okay", "proceed", "resume", "true"}
    | {"y", "yes"}
)
_STOP = frozenset(
    {"abort", "cancel", "deny", "end", "false", "halt", "ignore", "n", "no", "quit", "stop"}
)
_NEEDS_TEXT = frozenset({"feedback", "respond", "response", "text"})
_REFUSE = _NEEDS_TEXT | {"reject"}
_TYPE_KEYS = ("type", "action", "choice", "decision", "answer")
_TEXT_KEYS = ("message", "args", "text", "feedback", "content", "response", "reason")

NO_REASON = (
    "A person declined this step and it was not run. Do not make the same call again: use what "
    "you already know, try a different approach, or say what is missing and finish."
)
"""What the model is told when a person refuses a call and gives no reason."""

_MAX_SHOWN = 200
"""Characters of a wrong answer that its error quotes: enough to recognise what was sent."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _MAX_SHOWN
"""Looks at no more of a value than it shows."""

_MAX_DEPTH = 32
"""Deeper values are cut in the question, and so is one that holds itself."""

_CUT = "..."

_MAX_VALUES = 100_000
"""So many values are shown. A list that holds another one ten times, and so on, unfolds into more
than any memory holds; what a model can write in one message has far fewer."""

_MAX_INT = 2**63
"""A checkpoint can't hold integers beyond 64 bits, so the question shows those as text."""


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What a person decided about one call of the batch.

    Attributes:
        kind: `run` it, `refuse` it, or `respond` in the tool's place.
        text: What the model is told instead of an answer; for `respond` the answer itself.
        name: The tool to run, when the person changed the call, else `None`.
        args: The arguments to run it with, when the person changed the call, else `None`.
    """

    kind: Literal["run", "refuse", "respond"]
    text: str = ""
    name: str | None = None
    args: dict[str, Any] | None = None

    @property
    def edited(self) -> bool:
        """Whether the person changed the call."""
        return self.args is not None


@dataclass(frozen=True, slots=True)
class Resume:
    """What a person decided about the batch.

    Attributes:
        kind: `continue` runs the whole batch as it is, `stop` ends the run, `feedback` refuses
            the whole batch and tells the model `text`; `decisions` means that `calls` holds one
            answer for each call, in the order of the question.
        text: What the model is told; the reason of a stop, if one was given.
        calls: One answer for each call, empty unless `kind` is `decisions`.
    """

    kind: Literal["continue", "stop", "feedback", "decisions"]
    text: str = ""
    calls: tuple[CallAnswer, ...] = ()


def interrupt_payload(
    decision: Decision,
    calls: Sequence[Mapping[str, Any]],
    *,
    cost: Mapping[str, Any] | None = None,
    agent_inbox: bool = True,
) -> dict[str, Any]:
    """Put the question to a person: JSON types only, `HITLRequest` with further keys.

    Args:
        decision: What the guard found.
        calls: The calls that wait for the answer, as the model made them.
        cost: What the loop has cost so far, see `langchain_loopguard.cost.loop_cost`.
        agent_inbox: Whether to add the older form that Agent Inbox reads. Screens that read
            `HITLRequest` don't mind it.

    Returns:
        `type` (`"loop_detected"`), `message`, `findings`, `choices` and, where it is known,
        `cost` are the guard's;
        `action_requests` and `review_configs` are read by screens made for LangChain's
        human-in-the-loop middleware, `action_request`, `config` and `description` by Agent Inbox.
    """
    message = "\n".join(text for text in (decision.to_person, cost_in_words(cost or {})) if text)
    requests = [
        {"name": _name(call), "args": _arguments(call), "description": message} for call in calls
    ]
    payload: dict[str, Any] = {
        "type": QUESTION,
        "message": message,
        "findings": [finding.as_dict() for finding in decision.findings],
        "choices": [
            {"value": "continue", "label": "Run the calls and count anew"},
            {"value": "stop", "label": "End the run"},
            {"value": "TEXT", "label": "Refuse the calls and tell the model this text"},
        ],
        "action_requests": requests,
        "review_configs": [
            {
                "action_name": item["name"],
                "allowed_decisions": ["approve", "edit", "reject", "respond"],
            }
            for item in requests
        ],
    }
    if cost:
        payload["cost"] = dict(cost)
    if agent_inbox:
        payload |= _for_agent_inbox(message, requests)
    return payload


def _for_agent_inbox(message: str, requests: list[dict[str, Any]]) -> dict[str, Any]:
    # Agent Inbox shows one action. Several calls are shown under the first one's name, and can't
    # be edited there.
    single = len(requests) == 1
    shown: Any = (
        requests[0]["args"]
        if single
        else {"calls": [{"name": item["name"], "args": item["args"]} for item in requests]}
    )
    return {
        "description": message,
        "action_request": {
            "action": requests[0]["name"] if requests else "loop_detected",
            "args": shown,
        },
        "config": {
            "allow_accept": True,
            "allow_edit": single,
            "allow_ignore": True,
            "allow_respond": True,
        },
    }


def resume_schema(calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Describe the answers to a question as a JSON schema, for screens that draw a form.

    It names the plain forms. More are accepted, see `ACCEPTED_FORMS`, so it isn't enforced;
    `parse_resume` is what decides.

    Args:
        calls: The calls that are asked about.
    """
    text = {"type": "string", "minLength": 1}

    def form(kind: str, properties: Mapping[str, Any], *optional: str) -> dict[str, Any]:
        required = ["type", *(key for key in properties if key not in optional)]
        return {
            "type": "object",
            "properties": {"type": {"const": kind}, **properties},
            "required": required,
        }

    action = {
        "type": "object",
        "properties": {"name": text, "args": {"type": "object"}},
        "required": ["name", "args"],
    }
    decision = {
        "anyOf": [
            form("approve", {}),
            form("edit", {"edited_action": action}),
            form("reject", {"message": text}, "message"),
            form("respond", {"message": text}),
        ]
    }
    return {
        "title": "Answer to a detected loop",
        "anyOf": [
            {"title": "Run the calls and count anew", "const": "continue"},
            {"title": "End the run", "const": "stop"},
            {"title": "Refuse the calls and tell the model this text", **text},
            {
                "title": "Decide about each call",
                "type": "object",
                "properties": {
                    "decisions": {
                        "type": "array",
                        "items": decision,
                        "minItems": len(calls),
                        "maxItems": len(calls),
                    }
                },
                "required": ["decisions"],
            },
        ],
    }


def parse_resume(value: Any, calls: Sequence[Mapping[str, Any]] | int) -> Resume:
    """Read the answer that a graph was resumed with.

    Args:
        value: What the person's side sent, in any form of `ACCEPTED_FORMS`.
        calls: The calls that were asked about, or their number.

    Returns:
        The answer. Decisions that all say "run it" become `continue`, and decisions that all
        refuse with one text become `feedback`, so that one meaning has one form.

    Raises:
        InvalidResumeError: If the value is none of the forms, decides about another number of
            calls than were asked about, or decides differently about calls that share an id. The
            message names the accepted forms.
    """
    count = calls if isinstance(calls, int) else len(calls)
    try:
        resume = _parsed(value, count)
    except InvalidResumeError:
        raise
    except Exception as error:  # a value's own methods may do anything
        raise _invalid(value, "a value that can't be read") from error
    if resume.calls and not isinstance(calls, int):
        _check_told_apart(value, resume.calls, calls)
    return resume


def _parsed(value: Any, count: int) -> Resume:
    if _is_list(value) and len(value) == 1:
        # Agent Inbox answers the whole question with a list of one.
        value = value[0]
    if isinstance(value, bool):
        return Resume("continue" if value else "stop")
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, Mapping):
        if "decisions" in value:
            return _from_decisions(value["decisions"], count)
        return _from_mapping(value, count)
    if _is_list(value):
        return _from_decisions(value, count)
    raise _invalid(value, f"a value of type {_kind(value)}")


def _check_told_apart(
    value: Any, answers: Sequence[CallAnswer], calls: Sequence[Mapping[str, Any]]
) -> None:
    """Refuse decisions that no host could carry out: it knows a call by its id alone.

    Some local models give the calls of a batch one id. To let one of them run would run the
    other one too.
    """
    first: dict[Any, CallAnswer] = {}
    for call, answer in zip(calls, answers, strict=True):
        other = first.setdefault(call_id(call) or "", answer)
        if other != answer and "run" in {other.kind, answer.kind}:
            raise _invalid(value, "different decisions about calls that share an id")


def _from_text(text: str) -> Resume:
    word = " ".join(text.split()).strip(" .!").lower()
    if not word:
        raise _invalid(text, "an empty text")
    if word in _CONTINUE:
        return Resume("continue")
    if word in _STOP:
        return Resume("stop")
    return Resume("feedback", text.strip())


def _from_mapping(value: Mapping[Any, Any], count: int) -> Resume:
    word = _type_of(value)
    text = _text_of(value)
    if word in _CONTINUE:
        return Resume("continue")
    if word in _STOP:
        return Resume("stop", text)
    if word in _REFUSE:
        if word in _NEEDS_TEXT and not text:
            raise _invalid(value, f"a {word!r} without a text")
        if word == "respond" and count == 1:
            return _joined((CallAnswer("respond", text),))
        return Resume("feedback", text or NO_REASON)
    if word == "edit":
        if count != 1:
            raise _invalid(value, f"one edit for {count} calls")
        return _joined((_edit(value),))
    raise _invalid(value, "a mapping without a known type")


def _from_decisions(decisions: Any, count: int) -> Resume:
    if not _is_list(decisions):
        raise _invalid(decisions, "decisions that are no list")
    if len(decisions) != count:
        raise _invalid(decisions, f"{len(decisions)} decisions for {count} calls")
    answers: list[CallAnswer] = []
    for decision in decisions:
        if not isinstance(decision, Mapping):
            raise _invalid(decision, "a decision that is no mapping")
        word = _type_of(decision)
        if word in _STOP and word not in {"deny", "ignore", "no"}:
            return Resume("stop", _text_of(decision))
        answers.append(_call_answer(decision, word))
    return _joined(tuple(answers))


def _call_answer(decision: Mapping[Any, Any], word: str) -> CallAnswer:
    text = _text_of(decision)
    if word in _CONTINUE:
        return CallAnswer("run")
    if word == "edit":
        return _edit(decision)
    if word in _NEEDS_TEXT and not text:
        raise _invalid(decision, f"a {word!r} without a text")
    if word == "respond":
        return CallAnswer("respond", text)
    if word in _REFUSE or word in _STOP:
        return CallAnswer("refuse", text or NO_REASON)
    raise _invalid(decision, "a decision without a known type")


def _joined(answers: tuple[CallAnswer, ...]) -> Resume:
    kinds = {answer.kind for answer in answers}
    texts = {answer.text for answer in answers}
    if kinds == {"run"} and not any(answer.edited for answer in answers):
        return Resume("continue")
    if kinds == {"refuse"} and len(texts) == 1:
        return Resume("feedback", texts.pop())
    return Resume("decisions", calls=answers)


def _edit(value: Mapping[Any, Any]) -> CallAnswer:
    # LangChain: {"edited_action": {"name", "args"}}; Agent Inbox: {"args": {"action", "args"}}.
    action = value.get("edited_action", value.get("args"))
    if isinstance(action, Mapping):
        name = action.get("name", action.get("action"))
        args = action.get("args")
        if isinstance(name, str) and name and isinstance(args, Mapping):
            return CallAnswer("run", name=name, args={str(key): args[key] for key in args})
    raise _invalid(value, "an edit without the name and the arguments to run instead")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _type_of(value: Mapping[Any, Any]) -> str:
    for key in _TYPE_KEYS:
        word = value.get(key)
        if isinstance(word, str):
            return word.strip().lower()
        if isinstance(word, bool):
            return "continue" if word else "stop"
    return ""


def _text_of(value: Mapping[Any, Any]) -> str:
    for key in _TEXT_KEYS:
        text = value.get(key)
        if isinstance(text, str) and text.strip():
            return text.strip()
    return ""


def _name(call: Mapping[str, Any]) -> str:
    return call_name(call) or "unknown tool"


def _arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    args = _Shown().value(call.get("args"))
    if isinstance(args, dict):
        return args
    # Screens need an object; arguments that could not be parsed are shown as they came.
    return {} if args is None else {"input": args}


class _Shown:
    """Makes arguments such that any store and any screen takes them.

    Ordinary ones are shown as they are. Nothing that a value's own methods do is an error: a
    question that fails would let the loop run.
    """

    def __init__(self) -> None:
        self._left = _MAX_VALUES

    def value(self, value: Any, path: tuple[int, ...] = ()) -> Any:
        try:
            return self._value(value, path)
        except Exception:  # noqa: BLE001 - the value is somebody else's, and so are its methods
            return _kind(value)

    def _value(self, value: Any, path: tuple[int, ...]) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if -_MAX_INT <= value < _MAX_INT else hex(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(value)
        if isinstance(value, Mapping | list | tuple | set | frozenset):
            if len(path) >= _MAX_DEPTH or id(value) in path or self._left <= 0:
                return _CUT
            self._left -= len(value)
            return self._container(value, (*path, id(value)))
        return _text(str(value))

    def _container(self, value: Any, path: tuple[int, ...]) -> Any:
        if isinstance(value, Mapping):
            return {self._key(key): self.value(item, path) for key, item in value.items()}
        return [self.value(item, path) for item in value]

    def _key(self, key: Any) -> str:
        try:
            return _text(str(key))
        except Exception:  # noqa: BLE001 - as above
            return _kind(key)


def _text(text: str) -> str:
    # A lone surrogate can't be stored by any checkpointer.
    return text.encode("utf-8", "replace").decode("utf-8")


def _kind(value: Any) -> str:
    try:
        return str(type(value).__name__)
    except Exception:  # noqa: BLE001 - a metaclass may do anything
        return "object"


def _invalid(value: Any, what: str) -> InvalidResumeError:
    try:
        shown = _SHORT.repr(value)
    except Exception:  # noqa: BLE001 - the value is somebody else's, and so is its repr
        shown = _kind(value)
    if len(shown) > _MAX_SHOWN:
        shown = shown[:_MAX_SHOWN] + "..."
    return InvalidResumeError(
        f"This is no answer to a detected loop: {what}, {shown}. Accepted are {ACCEPTED_FORMS}. "
        "The question is still open."
    )
