"""What is a rule?

A rule sees every batch twice: in `check` before it runs and in `record` once its answers are
known. It says what it found or nothing, and leaves it to the guard to add up findings, to count
refusals and to talk. It must not know other rules, LangChain, or what is done with a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, model_validator

if TYPE_CHECKING:
    from langchain_loopguard.core.batch import Batch, Outcome
    from langchain_loopguard.core.decision import Finding


def _not_blank(names: tuple[str, ...]) -> tuple[str, ...]:
    if not all(name.strip() for name in names):
        raise ValueError("each must be a tool's name or a part of one, and a blank is neither")
    return names


ToolNames: TypeAlias = Annotated[tuple[str, ...], Strict(strict=False), AfterValidator(_not_blank)]
"""Names of tools, or parts of them, as a field of a policy or of a rule. A list will do."""

Steps: TypeAlias = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Strict(strict=False)]
"""Several counts at which something happens, as a field of a rule. A list will do."""


class Rule(Protocol):
    """The counters of one rule in one conversation."""

    def check(self, batch: Batch) -> Finding | None:
        """Count a batch that is about to run."""

    def record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        """Count what the batch got back; called at most once for a batch."""

    def human_message(self) -> None:
        """A person spoke: clear what had not been flagged."""

    def approve(self, loop: str) -> None:
        """A person let the loop go on: clear it and count anew."""

    def to_state(self) -> Any:
        """Give the counters in JSON types, of bounded size."""

    def load_state(self, state: Any) -> None:
        """Take over counters that `to_state` gave.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: If the state is of another form.
        """


class RuleConfig(BaseModel):
    """The numbers of one rule: frozen, checked once, no unknown fields, nothing converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rising: ClassVar[Sequence[tuple[str, ...]]] = ()
    """Names of fields whose numbers must not fall, each row in its order: a warning must not come
    after what it warns of."""

    needs_progress: ClassVar[bool] = False
    """Whether the rule reads what a batch brought (`core.progress`) and the tools' traits."""

    counts_in_check: ClassVar[bool] = True
    """Whether `check` counts. Otherwise it only asks again about what `record` asked about, and
    is called only after that."""

    rule: str
    """The rule's name: what a finding and a stored state call it."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for names in self.rising:
            counts: list[int] = []
            for name in names:
                value = getattr(self, name)
                counts += value if isinstance(value, tuple) else [value]
            if any(later < earlier for earlier, later in pairwise(counts)):
                listed = f"{', '.join(names[:-1])} and {names[-1]}"
                raise ValueError(f"{listed} must not fall: {' <= '.join(names)}")
        return self

    def build(self) -> Rule:
        """Make fresh counters that run by these numbers."""
        raise NotImplementedError
