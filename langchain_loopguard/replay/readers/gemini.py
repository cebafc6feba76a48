"""Reads the contents of the Gemini API, which Gemini CLI saves as checkpoints too.

Contents are messages of `parts` with one key each: `functionCall` (of the role `model`),
`functionResponse`, `text`; the Python SDK writes `function_call`. Older models give calls no id, so
that a response belongs to the first open call of its name. A response with a key `error` failed.

Facts: Google's API reference of `Content` and google-genai 3.6, read 2026-11.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers.base import (
    Dialect,
    Events,
    as_dict,
    call,
    dicts_of,
    events_by_message,
)

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Event

_CALL = ("functionCall", "function_call")
_RESPONSE = ("functionResponse", "function_response")
_CODE = ("executableCode", "executable_code")
_CODE_RESULT = ("codeExecutionResult", "code_execution_result")
_OK = frozenset({"OUTCOME_OK", "Outcome.OUTCOME_OK"})
_RUN = "code_execution"
_PIDS = re.compile(r"(?m)^(?:Background PIDs|Process Group PGID): .*\n?")


def part_of(part: dict[str, Any], keys: tuple[str, str] = _RESPONSE) -> dict[str, Any]:
    """Return what a part holds under a key, in either spelling; empty for another part."""
    return as_dict(part.get(keys[0]) or part.get(keys[1]))


def response_of(given: dict[str, Any]) -> Any:
    """Return a function's response, without the process ids that Gemini CLI's shell adds to it."""
    response = given.get("response")
    output = as_dict(response).get("output")
    if isinstance(output, str):
        return {**as_dict(response), "output": _PIDS.sub("", output)}
    return response


def _knows(message: Any) -> bool:
    keys = (*_CALL, *_RESPONSE)
    return message.get("role") == "model" or any(
        key in part for key in keys for part in message["parts"]
    )


class _Reader:
    """Adds messages one by one, and knows which calls wait for a response."""

    def __init__(self) -> None:
        self._waiting: list[Event] = []

    def add(self, events: Events, message: dict[str, Any]) -> None:
        """Add one message."""
        parts = dicts_of(message.get("parts"), "parts")
        calls: list[Event] = []
        for part in parts:
            if given := part_of(part, _CALL):
                calls.append(call(given.get("id"), given.get("name"), given.get("args")))
            elif given := part_of(part, _CODE):
                calls.append(call(None, _RUN, given))
        if calls:
            for at, one in enumerate(calls):
                one["id"] = one["id"] or f"{len(events.events)}.{at}"
            self._waiting = list(calls)
            events.step(calls)
        for part in parts:
            self._add_response(events, part)
        if message.get("role") == "user" and any("text" in part for part in parts):
            events.user()

    def _add_response(self, events: Events, part: dict[str, Any]) -> None:
        if given := part_of(part):
            content = response_of(given)
            failed = True if as_dict(content).get("error") else None
            events.result(
                self._answered(given.get("id"), given.get("name")), content, failed=failed
            )
        elif given := part_of(part, _CODE_RESULT):
            failed = given.get("outcome") not in _OK
            events.result(self._answered(None, _RUN), given.get("output"), failed=failed)

    def _answered(self, call_id: Any, name: Any) -> str:
        same = [one for one in self._waiting if one["id"] == call_id]
        named = [one for one in self._waiting if one["name"] == name]
        for one in [*same, *named][:1]:
            self._waiting.remove(one)
            return str(one["id"])
        return call_id if isinstance(call_id, str) else ""


def _events_of(messages: list[Any]) -> list[Event]:
    return events_by_message(_Reader().add)(messages)


GEMINI = Dialect("Gemini contents", _knows, _events_of)
