"""The guard for agents made with `create_agent`; see `adapters.middleware`."""

from langchain_loopguard.adapters.middleware import LoopGuardMiddleware
from langchain_loopguard.langchain.options import OnDetected

__all__ = ["LoopGuardMiddleware", "OnDetected"]
