"""What does one run say about every candidate?

For each rule alone, at which level it would ask about the run, and how much that would save.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import orjson
from xxhash import xxh3_128_digest

from langchain_loopguard.replay.calibrate.ladder import FACTORS
from langchain_loopguard.replay.run import replay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.replay.calibrate.ladder import Grid
    from langchain_loopguard.replay.conversation import Conversation
    from langchain_loopguard.replay.labels import LabelKey, Labels

Kind: TypeAlias = Literal["good", "loop", "other"]
"""What a run is evidence for: `other` is neither."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What one run says about every candidate.

    Attributes:
        kind: What the run is evidence for.
        name: What a person knows it by.
        label: The label that was used, of those given beside the runs.
        digest: Equal for runs in which the same happened.
        calls: How many calls it has.
        saved: For each tuned rule and then for what is not tuned: for each level the calls saved,
            -1 where it is not asked about. `None` when no candidate asks.
    """

    kind: Kind
    name: str
    label: LabelKey | None
    digest: bytes
    calls: int
    saved: tuple[tuple[int, ...], ...] | None

    def asked(self, levels: Sequence[int]) -> bool:
        """Whether the candidate asks about the run."""
        return self.calls_saved(levels) >= 0

    def calls_saved(self, levels: Sequence[int]) -> int:
        """Give the calls saved by the candidate, -1 when it does not ask."""
        if self.saved is None:
            return -1
        # What is not tuned has one level.
        return max(saved[level] for saved, level in zip(self.saved, (*levels, 0), strict=True))


@dataclass(frozen=True, slots=True)
class MeasureWork:
    """Measures a run; made to be sent to another process.

    Attributes:
        grid: The candidates.
        labels: As for `measure`.
    """

    grid: Grid
    labels: Labels

    def __call__(self, run: Conversation) -> Measure:
        """Measure one run."""
        return measure(run, self.grid, self.labels)


def measure(conversation: Conversation, grid: Grid, labels: Labels | None = None) -> Measure:
    """Replay a run under every candidate that could ask about it.

    A policy asks about a run when one of its rules does, and a rule that does not ask at one
    number does not at a higher one; so most runs are replayed once, under the tightest policy.

    Args:
        conversation: The run.
        grid: The candidates.
        labels: What somebody says about runs; goes before what a run says itself.
    """
    saved: tuple[tuple[int, ...], ...] | None = None
    if replay(conversation, grid.tightest, marks=False).looped:
        saved = (
            *(tuple(_saved(conversation, grid, tuned)) for tuned in range(len(grid.places))),
            (_saved_by(conversation, grid.fixed),),
        )
    key = _label_key(conversation, labels or {})
    return Measure(
        kind=kind_of(conversation, labels),
        name=f"{conversation.source} {conversation.id}".strip(),
        label=key,
        digest=_digest(conversation),
        calls=conversation.calls,
        saved=saved,
    )


def _saved(conversation: Conversation, grid: Grid, tuned: int) -> list[int]:
    saved = [-1] * len(FACTORS)
    for level in reversed(range(len(FACTORS))):
        saved[level] = _saved_by(conversation, grid.alone[tuned][level])
        if saved[level] < 0:
            break
    return saved


def _saved_by(conversation: Conversation, policy: LoopGuardPolicy) -> int:
    report = replay(conversation, policy, marks=False)
    return report.saved if report.looped else -1


def _digest(conversation: Conversation) -> bytes:
    try:
        told = orjson.dumps(conversation.events, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # Not JSON all through, or text that is not UTF-8.
        told = repr(conversation.events).encode("utf-8", "backslashreplace")
    return xxh3_128_digest(told)


def kind_of(conversation: Conversation, labels: Labels | None = None) -> Kind:
    """Say what a run is evidence for.

    A label says it, from `labels` or from the run's own `label`: `benign` is good, `loop` is a
    loop, any other is neither. Without a label a successful run is good.
    """
    key = _label_key(conversation, labels or {})
    label = conversation.extra.get("label") if key is None else (labels or {})[key]
    if label is None:
        return "good" if conversation.outcome == "success" else "other"
    if label == "benign":
        return "good"
    return "loop" if label == "loop" else "other"


def _label_key(conversation: Conversation, labels: Labels) -> LabelKey | None:
    for source in (conversation.source, None):
        if (source, conversation.id) in labels:
            return source, conversation.id
    return None
