"""gglib's `LoopDetector`: the same batch back to back.

The seed's detector with gglib's own default: a loop is a note to the model.
Refusing the batch, which was the default before, is `on_loop="refuse"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.decision import Action, Finding
from langchain_loopguard.core.observation import DEFAULT_OBSERVATION_TOOLS
from langchain_loopguard.core.rules.base import Rule, ToolNames
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.wordings import Kind, to_model, to_person
from langchain_loopguard.core.rules.repeated_batch import RepeatedBatch

if TYPE_CHECKING:
    from langchain_loopguard.core.batch import Batch, Outcome


class Gglib(ForeignRule):
    """The detector's numbers and what a loop leads to."""

    title: ClassVar[str] = "gglib"

    rule: Literal["gglib"] = "gglib"

    max_strikes: int = Field(default=2, ge=0)
    """How many equal batches in a row may run."""

    max_observation_steps: int | None = Field(default=15, ge=0)
    """The same for batches that only read, and the ceiling for the others while their answers
    change. `None` turns the difference off."""

    observation_tools: ToolNames = DEFAULT_OBSERVATION_TOOLS
    """Parts of the names of tools that only read."""

    on_loop: Literal["note", "refuse"] = "note"
    """Whether the model is told, or the batch is held back."""

    def build(self) -> Rule:
        """Make a fresh detector with these numbers."""
        return _GglibRule(self)


class _GglibRule(Rule):
    def __init__(self, config: Gglib) -> None:
        self._action = Action.WARN if config.on_loop == "note" else Action.ASK
        self._detector = RepeatedBatch(
            max_strikes=config.max_strikes,
            max_observation_steps=config.max_observation_steps,
            observation_tools=config.observation_tools,
        ).build()

    def check(self, batch: Batch) -> Finding | None:
        found = self._detector.check(batch)
        if found is None:
            return None
        return Finding(
            "gglib",
            self._action,
            tools=found.tools,
            count=found.count,
            threshold=found.threshold + 1,
            since=found.since,
            loop=f"gglib:{found.loop}",
            to_model=to_model(Kind.SAME_CALL, self._action, ran=False),
            to_person=to_person(
                Kind.SAME_CALL,
                self._action,
                title=Gglib.title,
                tools=found.tools,
                count=found.count,
                threshold=found.threshold + 1,
            ),
        )

    def record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        return self._detector.record(batch, outcome)

    def human_message(self) -> None:
        self._detector.human_message()

    def approve(self, loop: str) -> None:
        self._detector.approve(loop.removeprefix("gglib:"))

    def to_state(self) -> Any:
        return self._detector.to_state()

    def load_state(self, state: Any) -> None:
        self._detector.load_state(state)
