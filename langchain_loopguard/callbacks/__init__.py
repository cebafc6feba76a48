"""How does a handler in `config["callbacks"]` stop an agent before a repeated tool call runs?

The public name is `LoopGuardCallbackHandler`. One file answers one question: `runs` to which
conversation an event belongs, `conversations` what is remembered of it, `questions` which of a
batch's calls asks, `host` what LangGraph can be asked, `refusal` how a call is refused, and
`handler` what is done with each event.
"""

from __future__ import annotations

from langchain_loopguard.callbacks.handler import LoopGuardCallbackHandler

__all__ = ["LoopGuardCallbackHandler"]
