"""A tool-call loop detector for LangChain and LangGraph agents.

The core loads at once. The adapters load when their name is first used, because
`langgraph.graph` and `langchain.agents` take longer to import than everything here together; so
does the seed's detector, which nothing else needs.
"""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from langchain_loopguard.core.decision import Action, Decision, Finding
from langchain_loopguard.core.errors import GuardStateError, LoopDetectedError
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.policy import LoopGuardPolicy, PolicyFileError

if TYPE_CHECKING:
    from langchain_loopguard.adapters.callback import LoopGuardCallbackHandler
    from langchain_loopguard.adapters.middleware import LoopGuardMiddleware
    from langchain_loopguard.adapters.node import LoopGuardNode, LoopGuardState
    from langchain_loopguard.adapters.subagents import guard_subagents
    from langchain_loopguard.adapters.wiring import add_loop_guard, guard_stats
    from langchain_loopguard.langchain.errors import InvalidResumeError
    from langchain_loopguard.seed.detector import BatchRecord, LoopDetector, RepeatOutcome
    from langchain_loopguard.seed.observation import is_costly_batch, is_observation_batch
    from langchain_loopguard.seed.results import hash_results
    from langchain_loopguard.seed.signature import batch_signature, call_signature

__all__ = [
    "Action",
    "BatchRecord",
    "Decision",
    "Finding",
    "GuardStateError",
    "InvalidResumeError",
    "LoopDetectedError",
    "LoopDetector",
    "LoopGuard",
    "LoopGuardCallbackHandler",
    "LoopGuardMiddleware",
    "LoopGuardNode",
    "LoopGuardPolicy",
    "LoopGuardState",
    "PolicyFileError",
    "RepeatOutcome",
    "__version__",
    "add_loop_guard",
    "batch_signature",
    "call_signature",
    "guard_stats",
    "guard_subagents",
    "hash_results",
    "is_costly_batch",
    "is_observation_batch",
]

try:
    __version__ = version("langchain-loopguard")
except PackageNotFoundError:  # A copy of the files that was never installed.
    __version__ = "0"

# Name -> the module that holds it, and the extra that brings what the module imports (None:
# nothing beyond the package's own dependencies).
_LATER: dict[str, tuple[str, str | None]] = {
    "InvalidResumeError": ("langchain_loopguard.langchain.errors", None),
    "BatchRecord": ("langchain_loopguard.seed.detector", None),
    "LoopDetector": ("langchain_loopguard.seed.detector", None),
    "RepeatOutcome": ("langchain_loopguard.seed.detector", None),
    "batch_signature": ("langchain_loopguard.seed.signature", None),
    "call_signature": ("langchain_loopguard.seed.signature", None),
    "hash_results": ("langchain_loopguard.seed.results", None),
    "is_costly_batch": ("langchain_loopguard.seed.observation", None),
    "is_observation_batch": ("langchain_loopguard.seed.observation", None),
    "LoopGuardCallbackHandler": ("langchain_loopguard.adapters.callback", None),
    "LoopGuardMiddleware": ("langchain_loopguard.adapters.middleware", "langchain"),
    "LoopGuardNode": ("langchain_loopguard.adapters.node", "langgraph"),
    "LoopGuardState": ("langchain_loopguard.adapters.node", "langgraph"),
    "add_loop_guard": ("langchain_loopguard.adapters.wiring", "langgraph"),
    "guard_stats": ("langchain_loopguard.adapters.wiring", "langgraph"),
    "guard_subagents": ("langchain_loopguard.adapters.subagents", "langchain"),
}

_HOSTS = {"langchain", "langgraph"}


def __getattr__(name: str) -> Any:
    """Load an adapter, or a part of the seed, when its name is first used.

    Raises:
        AttributeError: If the package has no such name.
        ImportError: If the adapter's host isn't installed; the message names the extra.
    """
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = _LATER[name]
    try:
        value = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        # Only a missing host is cured by an extra; a missing module of our own is a fault.
        if extra is None or (error.name or "").partition(".")[0] not in _HOSTS:
            raise
        raise ImportError(
            f"{name} needs {error.name}, which isn't installed: "
            f"pip install 'langchain-loopguard[{extra}]'",
            name=error.name,
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
