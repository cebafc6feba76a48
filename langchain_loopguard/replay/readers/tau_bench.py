"""Reads the results of tau-bench and tau2-bench.

tau-bench: a list of runs with `traj` (chat messages) and `reward`. tau2: runs under
`simulations`, with `messages` and `reward_info`; the simulated user may call tools too, which are
none of the agent's. A reward of 1 is a solved task.

Facts: tau-bench 0.1 and tau2-bench 0.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.readers import openai_chat
from langchain_loopguard.replay.readers.base import Events, Format, first_text, one_run

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Outcome


def _matches(value: Any) -> bool:
    if isinstance(value.get("traj"), list):
        return True
    return isinstance(value.get("messages"), list) and (
        "reward_info" in value or "termination_reason" in value
    )


def _read(run: Events, values: list[Any]) -> None:
    value = values[0]
    given = value["traj"] if isinstance(value.get("traj"), list) else value["messages"]
    messages: list[dict[str, Any]] = []
    for message in given:
        if isinstance(message, dict) and message.get("requestor") != "user":
            inner = message.get("tool_messages")
            messages.extend(inner if isinstance(inner, list) else [message])
    task, trial = first_text(value, "task_id"), first_text(value, "trial")
    run.name = first_text(value, "id") or (f"task {task}, trial {trial or 0}" if task else "")
    run.outcome = _outcome(value)
    run.events = openai_chat.events_of(messages)


def _outcome(value: dict[str, Any]) -> Outcome:
    reward = value.get("reward")
    info = value.get("reward_info")
    if reward is None and isinstance(info, dict):
        reward = info.get("reward")
    if not isinstance(reward, int | float):
        return "unknown"
    return "success" if reward >= 1 - 1e-6 else "fail"


TAU_BENCH = Format("tau-bench results", _matches, one_run(_read), exact=True)
