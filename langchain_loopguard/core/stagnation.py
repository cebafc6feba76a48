"""Does the model say the same thing again and again?

Looks at prose only: a turn that calls tools is the other rules' business. It catches an agent
that answers in the same words for ever, in a hand-written loop for instance, where no tool call
ever repeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from xxhash import xxh3_64_intdigest

from langchain_loopguard.core import stored
from langchain_loopguard.core.decision import Action, Finding

if TYPE_CHECKING:
    from collections.abc import Sequence


_LONGEST_WINDOW = 200


class Stagnation(BaseModel):
    """The numbers of `StagnationDetector`. They are the seed's and were never measured."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    max_repeats: int = Field(default=5, ge=1)
    """How often the same prose may come within the window."""

    window: int = Field(default=20, ge=2, le=_LONGEST_WINDOW)
    """How many prose turns are looked back at, the current one included."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max_repeats >= self.window:
            msg = "max_repeats must be below window"
            raise ValueError(msg)
        return self


class StagnationDetector:
    """Counts equal prose among the last prose turns."""

    __slots__ = ("_recent", "config")

    def __init__(self, config: Stagnation | None = None) -> None:
        """Start with nothing said."""
        self.config = config or Stagnation()
        self._recent: list[int] = []

    def check(self, text: str) -> int:
        """Count a prose turn.

        Args:
            text: What the model said. Blank text is no prose and is not counted.

        Returns:
            How often the same text stands in the window when that is too often, otherwise 0.
        """
        said = text.strip() if type(text) is str else ""
        if not said:
            return 0
        digest = xxh3_64_intdigest(said.encode("utf-8", "surrogatepass"))
        self._recent = [*self._recent[1 - self.config.window :], digest]
        count = self._recent.count(digest)
        return count if count > self.config.max_repeats else 0

    def human_message(self) -> None:
        """A user turn: forget what was said."""
        self._recent = []

    def to_state(self) -> list[str]:
        """Give what is remembered in JSON types: one hash a turn of the window."""
        return [f"{digest:x}" for digest in self._recent]

    def load_state(self, state: Sequence[Any]) -> None:
        """Take over what `to_state` gave; raises on a state of another form."""
        self._recent = stored.digests(state, _LONGEST_WINDOW)[-self.config.window :]


def stagnation_finding(count: int, threshold: int, batch: int) -> Finding:
    """Put into words that the model said the same thing `count` times."""
    return Finding(
        "stagnation",
        Action.ASK,
        tools=(),
        count=count,
        threshold=threshold,
        since=max(1, batch),
        loop="stagnation",
        to_model=(
            "You have said this several times. Do not say it again: take the next step, ask for "
            "what is missing, or finish."
        ),
        to_person=f"The agent said the same thing {count} times (limit {threshold}).",
    )
