"""Reads the runs of smolagents: `RunResult.dict()`, `agent.memory.get_full_steps()`, or its steps.

A step has `tool_calls` and one text of `observations` for all of them; a `CodeAgent`'s one call is
`python_interpreter`. A step with an `error` failed. A step with a `task` is the user's. A run ended
in `success` when it gave a final answer within its steps, which is no judge's word: the outcome is
`fail` for `max_steps_error`, else unknown.

Facts: `smolagents.memory` and `RunResult` of smolagents 1.26, read 2026-11.
"""

from __future__ import annotations

from typing import Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.base import (
    Events,
    Format,
    as_dict,
    call,
    dicts_of,
    first_text,
    located,
    one_run,
)

_SAID = frozenset({"observations", "action_output", "code_action", "model_output"})
_OTHER = frozenset({"task", "plan", "system_prompt"})


def _is_step(step: Any) -> bool:
    return isinstance(step, dict) and (
        ("tool_calls" in step and bool(_SAID & step.keys()))
        or ("task" in step and step.keys() <= {"task", "task_images"})
        or ("plan" in step and "model_output_message" in step)
        or step.keys() == {"system_prompt"}
    )


def _matches(value: Any) -> bool:
    steps = value["steps"] if isinstance(value, dict) else value
    return isinstance(steps, list) and bool(steps) and all(_is_step(step) for step in steps[:50])


def _read(run: Events, values: list[Any]) -> None:
    whole = as_dict(values[0])
    run.name = first_text(whole, "id", "run_id")
    run.outcome = "fail" if whole.get("state") == "max_steps_error" else "unknown"
    for number, step in enumerate(dicts_of(whole.get("steps", values[0]), "steps"), 1):
        with located(f"step {number}"):
            _add_step(run, step, number)


def _add_step(events: Events, step: dict[str, Any], number: int) -> None:
    if "task" in step:
        events.user()
    calls = []
    # A step whose tool failed has its calls in the model's message alone.
    message = as_dict(step.get("model_output_message"))
    told = step.get("tool_calls") or (message.get("tool_calls") if step.get("error") else None)
    for at, one in enumerate(dicts_of(told, "tool_calls")):
        function = as_dict(one.get("function")) or one
        # A code agent numbers its calls by the step; other ids may come back in a later step.
        call_id = first_text(one, "id") or f"{number}.{at}"
        calls.append(call(call_id, function.get("name"), function.get("arguments")))
    if not calls and not (_SAID | _OTHER) & step.keys():
        raise ConversationError("neither a step of an agent nor a task")
    timing = as_dict(step.get("timing"))
    events.step(calls, usage=step.get("token_usage"), at=timing.get("start_time"))
    error = step.get("error")
    content = step.get("observations") or as_dict(error).get("message") or step.get("action_output")
    if content is not None:
        for one in calls:
            events.result(one["id"], content, failed=bool(error))


SMOLAGENTS = Format("smolagents run", _matches, one_run(_read), exact=True)
