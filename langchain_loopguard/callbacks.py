"""The callback handler, under the name by which it is imported since the first release."""

from __future__ import annotations

from langchain_loopguard.adapters.callback import LoopGuardCallbackHandler

__all__ = ["LoopGuardCallbackHandler"]
