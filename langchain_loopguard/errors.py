"""Which errors leave an adapter, so that the host lets them through?

LangGraph's retries, error handlers and tool nodes swallow ordinary exceptions and let a
`GraphBubbleUp` pass, so both errors here are one wherever LangGraph is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.errors import LoopDetectedError

try:
    from langgraph.errors import GraphBubbleUp as _BubbleUp
except ImportError:  # No graph then, so nothing that swallows.
    _BubbleUp = Exception  # type: ignore[assignment,misc]

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_loopguard.core.decision import Decision

__all__ = [
    "NO_CHECKPOINTER",
    "RAISED",
    "GraphLoopDetectedError",
    "InvalidResumeError",
    "error_of",
    "loop_detected_error",
]

NO_CHECKPOINTER = (
    "A person was to be asked, but this graph has no checkpointer, so it could not be resumed. "
    "Give it one (`create_agent(..., checkpointer=...)`, `builder.compile(checkpointer=...)`), or "
    "choose another `on_detected`: 'raise', 'refuse', 'warn' or, not with the callback handler, "
    "'wrap_up'."
)
"""What to do when an adapter was to interrupt a graph that can't be resumed."""

RAISED = (
    "The calls were not run. Choose on_detected='interrupt' to ask a person, or 'refuse' to let "
    "the agent try something else."
)
"""What to do when an adapter was told to raise."""

_ENDED = (
    "The calls were not run, and nobody is asked any more: the loop was refused as often as "
    "`LoopGuardPolicy.max_refusals` allows, or its rule ends a run at once. Look at why these "
    "calls bring nothing new."
)
"""The same when the guard ended the run, whatever it was told: to ask or to refuse once more has
been tried or is not what the rule wants."""


class GraphLoopDetectedError(LoopDetectedError, _BubbleUp):
    """`LoopDetectedError` as the adapters raise it; catch it by that name."""


class InvalidResumeError(ValueError, _BubbleUp):
    """A graph was resumed with a value that is no answer; the question is still open.

    An ordinary exception would be saved with the value, and every later resume of the thread
    would get the same wrong value again. LangGraph saves nothing of a `GraphBubbleUp`.
    """

    def __repr__(self) -> str:
        """Leave out the value, which `str` quotes: LangChain logs the `repr`."""
        return f"{type(self).__name__}(<the value was no answer>)"


def loop_detected_error(decision: Decision, cure: str = "") -> GraphLoopDetectedError:
    """Make the error for a decision that asks or stops.

    Args:
        decision: What the guard found; needs at least one finding.
        cure: What the reader of the error can do about it, as a sentence.
    """
    finding = decision.findings[0]
    if cure == RAISED and decision.action is Action.STOP:
        cure = _ENDED
    message = " ".join(part for part in (decision.to_person, cure) if part)
    return GraphLoopDetectedError(
        finding.loop, finding.tools, finding.count, finding.threshold, message
    )


def error_of(facts: Mapping[str, Any]) -> GraphLoopDetectedError:
    """Make the error of `core.errors.facts_of`; what is of another kind is left out."""
    tools = facts.get("tools")
    return GraphLoopDetectedError(
        str(facts.get("signature", "")),
        [str(tool) for tool in tools] if isinstance(tools, list | tuple) else (),
        _count(facts.get("count")),
        _count(facts.get("threshold")),
        str(facts.get("message", "")),
    )


def _count(value: Any) -> int:
    return value if type(value) is int else 0
