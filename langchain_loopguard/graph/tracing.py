"""What does a trace keep of the guard's own steps?

That they ran and for how long. Their input is the whole state and their output may be a whole
history, which the trace of the model's call holds anyway, and which nobody expects a second
time under the guard's name. LangChain's own middlewares keep it out in the same way.
"""

from __future__ import annotations

from typing import Any

try:
    from langgraph.types import TracePolicy, omit_payload
except ImportError:  # Before LangGraph had it, spans were recorded as they came.
    TRACE_POLICY: Any = None
else:
    TRACE_POLICY = TracePolicy(process_inputs=omit_payload, process_outputs=omit_payload)

__all__ = ["TRACE_POLICY", "node_options"]


def node_options() -> dict[str, Any]:
    """Give the options for a node in a graph, as far as this LangGraph has them."""
    return {} if TRACE_POLICY is None else {"trace_policy": TRACE_POLICY}
