"""Did the same batch come back to back, with the same answers?

The seed's detector as a rule: it asks the moment `LoopDetector.check` finds a loop, and never
warns. What it cannot see is written there: a cycle of any period, and a quiet poll.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from langchain_loopguard.core import stored
from langchain_loopguard.core.decision import Action, Finding
from langchain_loopguard.core.detector import BatchRecord, LoopDetector
from langchain_loopguard.core.errors import LoopDetectedError
from langchain_loopguard.core.observation import DEFAULT_OBSERVATION_TOOLS, ToolKinds
from langchain_loopguard.core.rules.base import Rule, RuleConfig, ToolNames

if TYPE_CHECKING:
    from langchain_loopguard.core.batch import Batch, Outcome

_MASK = 0xFFFFFFFFFFFFFFFF
_PARTS = 4
"""Parts of a stored run."""


class RepeatedBatch(RuleConfig):
    """The seed's detector; its numbers are the seed's and were never measured."""

    rule: Literal["repeated_batch"] = "repeated_batch"

    max_strikes: int = Field(default=2, ge=0)
    """How many equal batches in a row may run; 0 lets none run at all."""

    max_observation_steps: int | None = Field(default=15, ge=0)
    """The same for batches that only read, and the ceiling for the others while their answers
    change. `None` turns the difference off."""

    observation_tools: ToolNames = DEFAULT_OBSERVATION_TOOLS
    """Parts of the names of tools that only read; an empty tuple turns the difference off."""

    def build(self) -> Rule:
        """Make a fresh detector with these numbers."""
        return _RepeatedBatchRule(self)


class _RepeatedBatchRule:
    def __init__(self, config: RepeatedBatch) -> None:
        self._detector = LoopDetector(
            max_strikes=config.max_strikes,
            observation_tools=config.observation_tools,
            max_observation_steps=config.max_observation_steps,
        )
        self._kinds = ToolKinds(config.observation_tools)

    def check(self, batch: Batch) -> Finding | None:
        read_only, costly = self._kinds.of(batch.names)
        try:
            self._detector.check_batch(batch.key, batch.names, read_only=read_only, costly=costly)
        except LoopDetectedError as loop:
            return _finding(loop, batch)
        return None

    def record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        self._detector.record_results(BatchRecord(batch.key), _answers(batch, outcome))
        return None

    def human_message(self) -> None:
        self._detector.break_run()

    def approve(self, loop: str) -> None:  # noqa: ARG002 - there is one run, so one loop
        self._detector.break_run()

    def to_state(self) -> dict[str, Any]:
        return self._detector.to_state()

    def load_state(self, state: Any) -> None:
        kept = stored.mapping(state, _PARTS)
        if kept:
            stored.text(kept["signature"])  # Not longer than a batch's key.
        self._detector.load_state(kept)


def _answers(batch: Batch, outcome: Outcome) -> int | None:
    """Hash the answers together with their calls, as stored states have it."""
    hashed = 0
    for key, answer in zip(batch.keys, outcome.results, strict=True):
        if answer is None:
            return None
        hashed += (key ^ answer.digest) * (key | 1)
    return hashed & _MASK


def _finding(loop: LoopDetectedError, batch: Batch) -> Finding:
    tools = ", ".join(dict.fromkeys(loop.tools))
    return Finding(
        "repeated_batch",
        Action.ASK,
        tools=loop.tools,
        count=loop.count,
        threshold=loop.threshold,
        since=max(1, batch.number - loop.count + 1),
        loop=loop.signature,
        to_model=(
            "The same step was taken again and again and brings the same answer. Use what you "
            "already know, try a different approach, or say what is missing and finish."
        ),
        to_person=(
            f"The agent called {tools} {loop.count} times in a row with the same arguments "
            f"({loop.threshold} are allowed)."
        ),
    )
