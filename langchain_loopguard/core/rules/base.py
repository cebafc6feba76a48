"""What a rule is, and how the guard's own rules word and hold what they find.

A rule sees every step twice: in `check` before it runs, and in `record` once its results are
known. It says what it found or nothing, and leaves it to the guard to pick the strongest finding
and to count refusals. It knows no other rule, no host, and not what is done with a finding.

A loop shows in the results of a step, but only a step that has not run can be stopped. So a rule
that counts in `record` finds the same loop again in the `check` of the next step that goes on with
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, model_validator

from langchain_loopguard.core.decision import Action, Finding

if TYPE_CHECKING:
    from langchain_loopguard.core.evidence import StepEvidence
    from langchain_loopguard.core.step import Step


def _not_blank(names: tuple[str, ...]) -> tuple[str, ...]:
    if not all(name.strip() for name in names):
        raise ValueError("each must be a tool's name or a part of one, and a blank is neither")
    return names


ToolNames: TypeAlias = Annotated[tuple[str, ...], Strict(strict=False), AfterValidator(_not_blank)]
"""Names of tools, or parts of them, as a field of a policy or of a rule. A list will do."""

Steps: TypeAlias = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Strict(strict=False)]
"""Several counts at which something happens, as a field of a rule. A list will do."""

Warn: TypeAlias = Annotated[int, Field(ge=2)]
"""A count at which the model is warned."""

Ask: TypeAlias = Annotated[int, Field(ge=2)]
"""A count at which the loop is detected and a person is asked."""

_LONGEST_NAME = 40
_MOST_TOOLS = 8


class Rule(Protocol):
    """The counters of one rule in one conversation."""

    def check(self, step: Step) -> Finding | None:
        """Look at a step that is about to run."""

    def record(self, step: Step, evidence: StepEvidence | None) -> Finding | None:
        """Count what a step got back; called at most once for a step.

        Args:
            step: The step, its `results` filled in.
            evidence: What it brought; `None` when no rule of the policy reads evidence.
        """

    def start_turn(self) -> None:
        """Clear the counts: a user's input begins a turn."""

    def approve(self, loop: str) -> None:
        """Count from the start: a person let the loop go on."""

    def to_state(self) -> Any:
        """Return the counters in JSON types, of bounded size."""

    def load_state(self, state: Any) -> None:
        """Take over counters that `to_state` returned.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: If the state is of another form.
        """


class RuleConfig(BaseModel):
    """The numbers of one rule: frozen, checked once, no unknown fields, nothing converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rising: ClassVar[Sequence[tuple[str, ...]]] = ()
    """Names of fields whose numbers must not fall, each row in its order: a warning must not come
    after what it warns of."""

    reads_evidence: ClassVar[bool] = False
    """Whether the rule reads what a step brought (`core.evidence`)."""

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


class OwnRule(Rule):
    """What the guard's own rules share: their wording and how they start again."""

    name: ClassVar[str]
    """The rule's name."""
    advice: ClassVar[str]
    """What the model reads: what to do instead. Never the repeated call itself, since a quoted
    call invites one more repetition, and no term of the guard's own."""
    fact: ClassVar[str]
    """What a person reads, with `{tools}` and `{count}`."""

    _config: Any

    def __init__(self, config: RuleConfig) -> None:
        """Start with empty counts."""
        self._config = config
        self.clear()

    def clear(self) -> None:
        """Forget all counts."""
        raise NotImplementedError

    def start_turn(self) -> None:
        """Clear the counts."""
        self.clear()

    def approve(self, loop: str) -> None:  # noqa: ARG002 - one loop shows in several counts
        """Clear the counts: what goes on is counted from the start."""
        self.clear()

    def found(
        self,
        action: Action,
        *,
        tools: Sequence[str],
        count: int,
        threshold: int,
        since: int,
        loop: object,
    ) -> Finding:
        """Put what was counted into words."""
        shown = ", ".join(dict.fromkeys(tools)) or "a tool without a name"
        return Finding(
            self.name,
            action,
            tools=tools,
            count=count,
            threshold=threshold,
            since=since,
            loop=f"{self.name}:{loop}",
            to_model=self.advice,
            to_person=f"{self.fact.format(tools=shown, count=count)}.",
        )

    def judge(
        self,
        count: int,
        warn: int | None,
        ask: int,
        *,
        tools: Sequence[str],
        since: int,
        loop: object,
    ) -> Finding | None:
        """Hold a count against its numbers; `warn` is `None` where nothing is to be warned of."""
        if count < (ask if warn is None else min(warn, ask)):
            return None
        action, threshold = (Action.ASK, ask) if count >= ask else (Action.WARN, warn or ask)
        return self.found(
            action, tools=tools, count=count, threshold=threshold, since=since, loop=loop
        )


def kept_names(names: Sequence[str]) -> list[str]:
    """Return what a state keeps of tools' names in clear: few, short, in ASCII."""
    names = names[:_MOST_TOOLS]
    return [name[:_LONGEST_NAME].encode("ascii", "replace").decode() for name in names]
