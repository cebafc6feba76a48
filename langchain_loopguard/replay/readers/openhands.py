"""Reads the events of OpenHands, of the server (to 1.x) and of the agent SDK.

Server: an event has an `action` with `args`, or an `observation` with `content` and a `cause`, the
id of its action. Calls of one model response share the id in `tool_call_metadata`. An event file
holds one, a trajectory is a list of them; an evaluation's `output.jsonl` has them under `history`,
in older versions as pairs. A run failed if `success` is false or the observation is an `error`.

SDK: events have a `kind`: an `ActionEvent` with `tool_name`, `tool_call_id`, `llm_response_id`, an
`ObservationEvent`, an `AgentErrorEvent` for a call that failed, a `UserRejectObservation`, and a
`MessageEvent` for what was said.

Facts: `openhands.events.serialization` 0.62 and `openhands.sdk.event` 1.58, read 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers.base import (
    Events,
    Format,
    as_dict,
    call,
    dicts_of,
    first_text,
    located,
    one_run,
    parsed_arguments,
)

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Outcome

_NO_CALLS = frozenset(
    "message system recall change_agent_state condensation condensation_request null start pause "
    "resume stop loop_recovery send_pr push finish reject delegate_start".split()
)
"""Actions that no tool runs: what is said, and the harness's own."""
_NO_ARGS = frozenset(
    "thought hidden confirmation_state security_risk blocking wait_for_response image_urls "
    "file_urls return_all".split()
)
_SDK_CALLS = frozenset({"ActionEvent"})
_SDK_RESULTS = frozenset({"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"})
_SDK = _SDK_CALLS | _SDK_RESULTS | frozenset(
    "MessageEvent SystemPromptEvent PauseEvent Condensation CondensationRequest "
    "ConversationStateUpdateEvent CondensationSummaryEvent ConversationErrorEvent TokenEvent "
    "InterruptEvent HookExecutionEvent LLMCompletionLogEvent StreamingDeltaEvent".split()
)  # fmt: skip


def _is_event(value: Any) -> bool:
    if value.get("kind") in _SDK:
        return "source" in value
    return ("action" in value and "args" in value) or (
        "observation" in value and isinstance(value["observation"], str) and "content" in value
    )


def _is_history(value: Any) -> bool:
    history = value["history"]
    first = history[0] if isinstance(history, list) and history else None
    return _is_event(first[0] if isinstance(first, list) else first)


def _read_events(run: Events, values: list[Any]) -> None:
    reader = _Reader(run)
    for number, event in enumerate(values, 1):
        with located(f"event {number}"):
            reader.add(event)


def _read_history(run: Events, values: list[Any]) -> None:
    history: list[Any] = []
    for one in values[0]["history"]:
        history.extend(one if isinstance(one, list) else [one])
    run.name = first_text(values[0], "instance_id", "id")
    run.outcome = _outcome(values[0])
    _read_events(run, dicts_of(history, "history"))


def _outcome(value: dict[str, Any]) -> Outcome:
    result = as_dict(value.get("test_result"))
    resolved = as_dict(result.get("report")).get("resolved", result.get("resolved"))
    if isinstance(resolved, bool):
        return "success" if resolved else "fail"
    return "unknown"


class _Reader:
    """Adds events one by one."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self._ids: dict[str, str] = {}
        self._response = ""

    def add(self, event: dict[str, Any]) -> None:
        """Add one event.

        Raises:
            ConversationError: If it is a call without a tool's name.
        """
        kind = event.get("kind")
        if kind in _SDK_CALLS:
            told = as_dict(event.get("tool_call"))
            function = as_dict(told.get("function")) or told
            given = parsed_arguments(function.get("arguments", event.get("action")))
            self._begin(event.get("tool_call_id"), event.get("tool_name"), given,
                        first_text(event, "llm_response_id"), event)  # fmt: skip
        elif kind in _SDK_RESULTS:
            observation = as_dict(event.get("observation"))
            found = (observation.get(key) for key in ("content", "output", "error"))
            content = next((one for one in found if one), None)
            content = content or event.get("error") or event.get("rejection_reason")
            failed = kind == "AgentErrorEvent" or _exited(observation)
            self.events.result(event.get("tool_call_id"), content or observation, failed=failed)
        elif kind == "MessageEvent" or event.get("action") == "message":
            if event.get("source") == "user":
                self.events.user()
        elif "action" in event:
            self._action(event)
        elif "observation" in event:
            self._observation(event)

    def _action(self, event: dict[str, Any]) -> None:
        name = event.get("action")
        if name in _NO_CALLS or event.get("source") == "environment":
            return
        told = as_dict(event.get("tool_call_metadata"))
        call_id = first_text(told, "tool_call_id") or first_text(event, "id")
        call_id = call_id or f"event-{len(self.events.events)}"
        self._ids[first_text(event, "id")] = call_id
        args = as_dict(event.get("args"))
        args = {key: value for key, value in args.items() if key not in _NO_ARGS}
        response = first_text(as_dict(told.get("model_response")), "id")
        self._begin(call_id, told.get("function_name") or name, args, response, event)

    def _begin(
        self, call_id: Any, name: Any, args: Any, response: str, event: dict[str, Any]
    ) -> None:
        one = call(call_id, name, args)
        if response and response == self._response:
            self.events.more_calls([one])
        else:
            self.events.step([one], at=event.get("timestamp"))
        self._response = response

    def _observation(self, event: dict[str, Any]) -> None:
        call_id = self._ids.get(first_text(event, "cause"))
        if call_id is None:
            return
        success = event.get("success")
        failed = None if not isinstance(success, bool) else not success
        extras = as_dict(event.get("extras"))
        failed = _exited(extras) if failed is None else failed
        if event.get("observation") == "error":
            failed = True
        self.events.result(call_id, event.get("content"), failed=failed)


def _exited(extras: dict[str, Any]) -> bool | None:
    for told in (extras, as_dict(extras.get("metadata"))):
        if isinstance(told.get("is_error"), bool):
            return bool(told["is_error"])
        if type(told.get("exit_code")) is int:
            return told["exit_code"] not in {0, -1}  # It is -1 while the command still runs.
    return None


OPENHANDS = Format(
    "OpenHands events", _is_event, one_run(_read_events), group=lambda _: "", exact=True
)
"""OpenHands' events, one a value."""

OPENHANDS_OUTPUT = Format("OpenHands evaluation", _is_history, one_run(_read_history), exact=True)
"""OpenHands' evaluation output, a run a value."""
