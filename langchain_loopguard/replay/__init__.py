"""What the guard would have done on runs that are over.

`replay` hands one `Conversation` to the live guard; `read_runs` finds the conversations in files,
directories and checkpointers; `work_on_runs` does work on all of them, on every core; `score`
says in one number how much of a run went nowhere.
"""

from __future__ import annotations

from langchain_loopguard.replay.conversation import (
    Conversation,
    ConversationError,
    Problem,
    WorkError,
)
from langchain_loopguard.replay.run import replay
from langchain_loopguard.replay.score import Score, assert_no_loop, loop_evaluator, score
from langchain_loopguard.replay.verdicts import Fire, FoundAt, ReplayedStep, ReplayReport
from langchain_loopguard.replay.work import read_runs, work_on_runs

__all__ = [
    "Conversation",
    "ConversationError",
    "Fire",
    "FoundAt",
    "Problem",
    "ReplayReport",
    "ReplayedStep",
    "Score",
    "WorkError",
    "assert_no_loop",
    "loop_evaluator",
    "read_runs",
    "replay",
    "score",
    "work_on_runs",
]
