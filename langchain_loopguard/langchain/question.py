"""What is a person asked when a loop is found?

One mapping of JSON types that approval screens read already: LangChain's `HITLRequest`
(`action_requests`, `review_configs`), Agent Inbox's older form (`action_request`, `config`), and
the guard's own keys, which neither minds. Knows no graph and no answer; see `replies`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_loopguard.core.calls import call_name
from langchain_loopguard.core.decision import Action, Finding
from langchain_loopguard.langchain.cost import (
    cost_in_words,
    cost_of,
    number_of,
    steps_before,
    times_of,
)
from langchain_loopguard.langchain.masks import mask_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.langchain.messages import MessageStep
    from langchain_loopguard.langchain.options import Options

QUESTION = "loop_detected"
"""The `type` of a question, by which the guard knows its own."""

_SHOWN_STEPS = 3
"""Steps whose calls and results a question shows. Two show that they are equal, one more that
it goes on."""

_SHOWN_RESULT = 600
"""Characters of a result in the question; a screen shows a few hundred."""

_SHOWN_IN_MESSAGE = 160

_MAX_DEPTH = 32
"""Deeper values are cut, and so is one that holds itself."""

_MAX_VALUES = 100_000
"""So many values are shown: a list that holds another one ten times, and so on, unfolds into more
than any memory holds."""

_MAX_INT = 2**63
"""A checkpoint can't hold integers beyond 64 bits, so they are shown as text."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of earlier questions about a loop; `Reader.asked_before` gives it.

    Attributes:
        times: How often a person was asked for it in this thread.
        steps: Steps since it was found to have begun, or to have begun again.
        steps_in_all: Steps since it began before the first question.
    """

    times: int = 0
    steps: int = 0
    steps_in_all: int = 0


def make_question(
    decision: Decision,
    step: MessageStep,
    messages: Sequence[BaseMessage],
    *,
    asked: Asked,
    options: Options,
    editable: bool = True,
) -> dict[str, Any]:
    """Put the question to a person, in JSON types.

    `asked` is what is known of earlier questions; `editable` says whether the adapter can run
    other calls than the model made.
    """
    wording, shows = options.wording, options.show_content
    calls = step.open_calls or step.calls
    cost = cost_of(messages, step.index, asked.steps)
    in_all = cost_of(messages, step.index, max(asked.steps, asked.steps_in_all))
    before = steps_before(messages, step.index, min(_SHOWN_STEPS, max(asked.steps, 1)))
    repeated = [_shown_step(one, shows) for one in before]
    lines = [decision.to_person, cost_in_words(cost, "Since the loop began")]
    if asked.times:
        told = {"times": times_of(asked.times), "calls": number_of(in_all["calls"], "call")}
        lines.insert(0, wording.say("asked_again", **told))
        lines.append(cost_in_words(in_all, "Over all questions"))
    last = next((text for one in reversed(repeated) for text in one["results"]), "")
    if last:
        lines.append(f"The last result: {_cut(last, _SHOWN_IN_MESSAGE)}")
    message = "\n".join(line for line in lines if line)
    requests = [
        {"name": _name(call), "args": _arguments(call, shows), "description": message}
        for call in calls
    ]
    allowed = ["approve", *(["edit"] if editable else []), "reject", "respond"]
    payload: dict[str, Any] = {
        "type": QUESTION,
        "message": message,
        "findings": [finding.as_dict() for finding in decision.findings],
        "choices": [
            {"value": value, "label": wording.say(f"choice_{value}")}
            for value in ("continue", "always", "stop")
        ],
        "free_text": wording.say("free_text"),
        "repeated": repeated,
        "cost": cost,
        "cost_in_all": in_all,
        "asked_before": asked.times,
        "tool_call_ids": [json_value(call.get("id") or "") for call in calls],
        "action_requests": requests,
        "review_configs": [
            {"action_name": item["name"], "allowed_decisions": list(allowed)} for item in requests
        ],
    }
    if options.agent_inbox:
        payload |= _for_agent_inbox(message, requests, editable=editable)
    return payload


def findings_of(question: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Read back what was found out of a question that another process put."""
    text = str(question.get("message") or "")
    return tuple(
        Finding(
            str(one.get("rule", "")),
            Action.ASK,
            tools=[str(tool) for tool in one.get("tools", ())],
            count=int(one.get("count", 0)),
            threshold=int(one.get("threshold", 0)),
            since=int(one.get("since", 0)),
            loop="",
            to_model="",
            to_person=text if at == 0 else "",
        )
        for at, one in enumerate(question.get("findings") or [{}])
    )


def reply_schema(calls: Sequence[Any]) -> dict[str, Any]:
    """Describe the answers as a JSON schema, for screens that draw a form.

    It names the plain forms. More are accepted, see `replies.FORMS`, so it isn't enforced.
    """
    text = {"type": "string", "minLength": 1}
    choices = [{"const": value} for value in ("continue", "always", "stop")]
    kinds = {"enum": ["approve", "edit", "reject", "respond"]}
    decisions = {
        "type": "array",
        "items": {"type": "object", "properties": {"type": kinds}, "required": ["type"]},
        "minItems": len(calls),
        "maxItems": len(calls),
    }
    each = {"type": "object", "properties": {"decisions": decisions}, "required": ["decisions"]}
    return {"title": "Answer to a detected loop", "anyOf": [*choices, text, each]}


def _for_agent_inbox(
    message: str, requests: list[dict[str, Any]], *, editable: bool
) -> dict[str, Any]:
    # Agent Inbox shows one action. Several calls are shown under the first one's name, and can't
    # be edited there.
    single = len(requests) == 1
    args = requests[0]["args"] if single else {}
    shown = [{"name": item["name"], "args": item["args"]} for item in requests]
    return {
        "description": message,
        "action_request": {
            "action": requests[0]["name"] if requests else QUESTION,
            "args": args if single else {"calls": shown},
        },
        "config": {
            "allow_accept": True,
            "allow_edit": single and editable,
            "allow_ignore": True,
            "allow_respond": True,
        },
    }


def _shown_step(step: MessageStep, shows: str) -> dict[str, Any]:
    return {
        "calls": [{"name": _name(call), "args": _arguments(call, shows)} for call in step.calls],
        "results": [_shown_text(_text_of(result), shows) for result in step.results],
    }


def _text_of(message: BaseMessage) -> str:
    try:
        return str(message.text)
    except Exception:  # noqa: BLE001 - content of no known form has no text
        return ""


def _shown_text(text: str, shows: str) -> str:
    if shows == "none":
        return f"({len(text):,} characters)"
    # What is cut before it is masked could leave half a secret.
    return _cut(mask_value(text) if shows == "masked" else text, _SHOWN_RESULT)


def _cut(text: str, most: int) -> str:
    return str(json_value(text if len(text) <= most else f"{text[: most - 3]}..."))


def _name(call: Any) -> str:
    return call_name(call) or "unknown tool"


def _arguments(call: Mapping[str, Any], shows: str) -> dict[str, Any]:
    args = json_value(call.get("args"))
    if shows == "none":
        return dict.fromkeys(args, "...") if isinstance(args, dict) else {}
    if shows == "masked":
        args = mask_value(args)
    if isinstance(args, dict):
        return args
    # Screens need an object; arguments that could not be parsed are shown as they came.
    return {} if args is None else {"input": args}


def json_value(value: Any) -> Any:
    """Make of a value one that any store and any screen takes.

    Ordinary ones stay as they are. Nothing that a value's own methods do is an error: a question
    that fails would let the loop run.
    """
    return _json(value, (), [_MAX_VALUES])


def _json(value: Any, path: tuple[int, ...], left: list[int]) -> Any:
    try:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if -_MAX_INT <= value < _MAX_INT else hex(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(value)
        if isinstance(value, Mapping | list | tuple | set | frozenset):
            if len(path) >= _MAX_DEPTH or id(value) in path or left[0] <= 0:
                return "..."
            left[0] -= len(value)
            path = (*path, id(value))
            if isinstance(value, Mapping):
                return {
                    str(_json(str(k), path, left)): _json(v, path, left) for k, v in value.items()
                }
            return [_json(item, path, left) for item in value]
        # A lone surrogate can't be stored by any checkpointer.
        return str(value).encode("utf-8", "replace").decode("utf-8")
    except Exception:  # noqa: BLE001 - the value is somebody else's, and so are its methods
        return type(value).__name__
