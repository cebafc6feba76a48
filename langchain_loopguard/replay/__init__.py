"""What would the guard have done on runs that are over?

`replay` hands one `Conversation` to the live guard; `read_runs` finds the conversations in files,
directories and checkpointers; `work_on_runs` does work on all of them, on every core.
"""

from __future__ import annotations

from langchain_loopguard.replay.conversation import Conversation, ConversationError
from langchain_loopguard.replay.parallel import WorkError, read_runs, work_on_runs
from langchain_loopguard.replay.problems import Problem
from langchain_loopguard.replay.run import Fire, Found, Mark, ReplayReport, replay

__all__ = [
    "Conversation",
    "ConversationError",
    "Fire",
    "Found",
    "Mark",
    "Problem",
    "ReplayReport",
    "WorkError",
    "read_runs",
    "replay",
    "work_on_runs",
]
