"""What does a user of the package import?

The core loads at once. The adapters load when their name is first used, because
`langgraph.graph` and `langchain.agents` take longer to import than everything here together.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from langchain_loopguard.core.decision import Action, Decision, Finding
from langchain_loopguard.core.detector import BatchRecord, LoopDetector, RepeatOutcome
from langchain_loopguard.core.errors import LoopDetectedError
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.results import hash_results
from langchain_loopguard.core.signature import batch_signature, call_signature
from langchain_loopguard.core.traits import is_costly_batch, is_observation_batch

if TYPE_CHECKING:
    from langchain_loopguard.callbacks import LoopGuardCallbackHandler
    from langchain_loopguard.middleware import LoopGuardMiddleware
    from langchain_loopguard.node import LoopGuardNode, LoopGuardState, add_loop_guard
    from langchain_loopguard.subagents import guard_subagents

__all__ = [
    "Action",
    "BatchRecord",
    "Decision",
    "Finding",
    "LoopDetectedError",
    "LoopDetector",
    "LoopGuard",
    "LoopGuardCallbackHandler",
    "LoopGuardMiddleware",
    "LoopGuardNode",
    "LoopGuardPolicy",
    "LoopGuardState",
    "RepeatOutcome",
    "add_loop_guard",
    "batch_signature",
    "call_signature",
    "guard_subagents",
    "hash_results",
    "is_costly_batch",
    "is_observation_batch",
]

# Adapter name -> the module that holds it, and the extra that brings what the module imports
# (None: nothing beyond the package's own dependencies).
_ADAPTERS: dict[str, tuple[str, str | None]] = {
    "LoopGuardCallbackHandler": ("langchain_loopguard.callbacks", None),
    "LoopGuardMiddleware": ("langchain_loopguard.middleware", "langchain"),
    "LoopGuardNode": ("langchain_loopguard.node", "langgraph"),
    "LoopGuardState": ("langchain_loopguard.node", "langgraph"),
    "add_loop_guard": ("langchain_loopguard.node", "langgraph"),
    "guard_subagents": ("langchain_loopguard.subagents", "langchain"),
}

_HOSTS = {"langchain", "langgraph"}


def __getattr__(name: str) -> Any:
    """Load an adapter when its name is first used.

    Raises:
        AttributeError: If the package has no such name.
        ImportError: If the adapter's host isn't installed; the message names the extra.
    """
    if name not in _ADAPTERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = _ADAPTERS[name]
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
