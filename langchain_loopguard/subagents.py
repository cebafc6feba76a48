"""Guards for the sub-agents of deepagents; see `adapters.subagents`."""

from langchain_loopguard.adapters.subagents import guard_subagents

__all__ = ["guard_subagents"]
