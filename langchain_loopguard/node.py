"""The guard for graphs of one's own; see `adapters.node` and `adapters.wiring`."""

from langchain_loopguard.adapters.node import LoopGuardNode, LoopGuardState
from langchain_loopguard.adapters.wiring import add_loop_guard, guard_stats
from langchain_loopguard.langchain.options import OnDetected

__all__ = ["LoopGuardNode", "LoopGuardState", "OnDetected", "add_loop_guard", "guard_stats"]
