"""Which errors leave an adapter, and what do they say?

LangGraph's retries and error handlers swallow ordinary exceptions and let a `GraphBubbleUp` pass.
Where LangGraph is loaded, every error made here is one; `bubbling` adds the base class then, so
that nothing of LangGraph is imported for it. Catch by the plain names.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.errors import LoopDetectedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_loopguard.core.decision import Decision

_E = TypeVar("_E", bound=Exception)

NOBODY_TO_ASK = (
    "The loop guard ended a run, since nobody could be asked what to do: nothing saves this "
    "thread. To be asked, compile the graph with a checkpointer and call it with a thread id "
    "(`create_agent(..., checkpointer=...)`, `builder.compile(checkpointer=...)`); on a server, "
    "call it on a thread. Or choose another `on_detected`."
)
"""The log line of the default mode where no question could be resumed."""

RAISED = (
    "The calls were not run. Choose on_detected='interrupt' to ask a person, or 'refuse' to let "
    "the agent try something else."
)
"""What the reader of the error can do where an adapter is set to raise."""

ENDED = (
    "The calls were not run, and the loop is not refused again: it was refused as often as "
    "`LoopGuardPolicy.max_refusals` allows, or its rule ends a run at once. Look at why these "
    "calls bring nothing new."
)
"""The same where the guard says `Action.STOP`."""


class InvalidResumeError(ValueError):
    """A graph was resumed with a value that is no answer; the question is still open.

    It is raised as a `GraphBubbleUp`: LangGraph saves an ordinary exception with the value, and
    every later resume of the thread would get the same wrong value again.
    """

    def __repr__(self) -> str:
        """Leave out the value, which `str` quotes: LangChain logs the `repr`."""
        return f"{type(self).__name__}(<the value was no answer>)"


def bubbling(kind: type[_E]) -> type[_E]:
    """Make of an error class one that LangGraph lets through, where LangGraph is loaded."""
    errors = sys.modules.get("langgraph.errors")
    if errors is None:
        return kind
    made: type[_E] = _bubbling(kind, errors.GraphBubbleUp)  # type: ignore[arg-type]
    return made


def is_signal(error: BaseException) -> bool:
    """Tell whether LangGraph means something by an exception: a question, a way, an answer."""
    errors = sys.modules.get("langgraph.errors")
    return errors is not None and isinstance(error, errors.GraphBubbleUp)


@functools.cache
def _bubbling(kind: Any, base: Any) -> Any:
    def reduce(error: Any) -> tuple[Any, ...]:
        return _again, (kind, error.args)

    name = f"Graph{kind.__name__}"
    return type(name, (kind, base), {"__reduce__": reduce, "__module__": __name__})


def _again(kind: type[_E], args: tuple[Any, ...]) -> _E:
    return bubbling(kind)(*args)


def loop_error(decision: Decision, cure: str = "") -> LoopDetectedError:
    """Make the error for a decision with a finding; `cure` says what its reader can do."""
    finding = decision.findings[0]
    cure = cure or (ENDED if decision.action is Action.STOP else RAISED)
    message = " ".join(part for part in (decision.to_person, cure) if part)
    return bubbling(LoopDetectedError)(
        finding.loop, finding.tools, finding.count, finding.threshold, message
    )


def error_of_facts(facts: Mapping[str, Any]) -> LoopDetectedError:
    """Make the error that `facts_of` wrote, perhaps in another process; odd parts are left out."""
    tools = facts.get("tools")
    count, threshold = (
        value if type(value) is int else 0 for value in map(facts.get, ("count", "threshold"))
    )
    return bubbling(LoopDetectedError)(
        str(facts.get("signature", "")),
        [str(tool) for tool in tools] if isinstance(tools, list | tuple) else (),
        count,
        threshold,
        str(facts.get("message", "")),
    )
