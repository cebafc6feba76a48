"""How does every sub-agent of a deep agent get a guard?

The middleware of a deep agent is not that of its sub-agents: neither of those that are listed
nor of the general-purpose one that `create_deep_agent` adds by itself. Each sub-agent keeps its
own counts in its own state, so sub-agents that run side by side never add up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_loopguard.adapters.middleware import LoopGuardMiddleware

logger = logging.getLogger("langchain_loopguard")


def guard_subagents(
    subagents: Iterable[Mapping[str, Any]] = (),
    guard: LoopGuardMiddleware | None = None,
    *,
    general_purpose: bool = True,
) -> list[Any]:
    """Give every sub-agent of `create_deep_agent` a loop guard.

    One that has a middleware of the guard's name keeps its own. One that was compiled before
    (`runnable`) or runs elsewhere (`graph_id`) can't be given one: a warning is logged.

    Args:
        subagents: What would be passed as `subagents`; it is not changed.
        guard: The guard for each of them, `LoopGuardMiddleware()` without one.
        general_purpose: Whether to list deepagents' general-purpose sub-agent too, so that it
            gets a guard: it then has the main agent's tools, but not its skills.

    Returns:
        The list to pass as `subagents`.

    Raises:
        ValueError: If an option has a value it can't have; the message names both.
        ImportError: If `general_purpose` is wanted and deepagents isn't installed.

    Examples:
        ```python
        agent = create_deep_agent(
            model,
            tools=[search],
            middleware=[LoopGuardMiddleware()],
            subagents=guard_subagents([researcher, writer]),
        )
        ```
    """
    guard = LoopGuardMiddleware() if guard is None else guard
    if not isinstance(guard, LoopGuardMiddleware):
        raise ValueError(  # noqa: TRY004 - one type for everything that is wrong at construction
            f"guard: must be a LoopGuardMiddleware or None, not {guard!r}"
        )
    listed = _listed(subagents)
    if general_purpose:
        try:
            from deepagents.middleware.subagents import GENERAL_PURPOSE_SUBAGENT  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ImportError(
                "general_purpose: needs deepagents, which isn't installed: pip install deepagents",
                name=error.name,
            ) from error

        if all(agent.get("name") != GENERAL_PURPOSE_SUBAGENT["name"] for agent in listed):
            listed.append(dict(GENERAL_PURPOSE_SUBAGENT))
    return [_guarded(subagent, guard) for subagent in listed]


def _listed(subagents: Any) -> list[dict[str, Any]]:
    wrong = "" if isinstance(subagents, Iterable) else f"be a list of sub-agents, not {subagents!r}"
    if isinstance(subagents, str | Mapping):
        wrong = f"be a list of sub-agents, not {subagents!r}"
    listed = [] if wrong else list(subagents)
    for subagent in listed:
        if not isinstance(subagent, Mapping):
            wrong = f"hold mappings, as create_deep_agent takes them, not {subagent!r}"
    if wrong:
        raise ValueError(f"subagents: must {wrong}")
    return [dict(subagent) for subagent in listed]


def _guarded(subagent: dict[str, Any], guard: LoopGuardMiddleware) -> dict[str, Any]:
    if "runnable" in subagent or "graph_id" in subagent:
        logger.warning(
            "The sub-agent %r was made elsewhere and can't be given a loop guard here.",
            subagent.get("name"),
        )
        return subagent
    middleware = list(subagent.get("middleware") or ())
    if all(other.name != guard.name for other in middleware):
        middleware.append(guard)
    return {**subagent, "middleware": middleware}
