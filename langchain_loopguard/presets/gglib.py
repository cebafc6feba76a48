"""The seed's detector as a rule, twice: it asks, or as gglib's own default has it, it warns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from langchain_loopguard.core import state as stored
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.errors import LoopDetectedError
from langchain_loopguard.core.rules.base import ToolNames
from langchain_loopguard.presets.frame import Hit, Made, PresetConfig, PresetRule
from langchain_loopguard.presets.parts import fingerprint
from langchain_loopguard.presets.wordings import Kind
from langchain_loopguard.seed.detector import BatchRecord, LoopDetector
from langchain_loopguard.seed.observation import (
    DEFAULT_OBSERVATION_TOOLS,
    is_costly_batch,
    is_observation_batch,
)
from langchain_loopguard.seed.signature import join_signatures, sign_canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard.core.results import Result

_LONGEST_KEY = 120
"""Characters of a signature that a state keeps; a tool's name and 17 more. A step can hold
thousands of calls, so a longer one is hashed."""


class _Detector(PresetRule["DetectorConfig"]):
    def __init__(self, config: DetectorConfig) -> None:
        self.detector = LoopDetector(
            max_strikes=config.max_strikes,
            observation_tools=config.observation_tools,
            max_observation_steps=config.max_observation_steps,
        )
        super().__init__(config)

    def judge(self, calls: Sequence[Made]) -> Hit | None:
        given = [{"name": call.name} for call in calls]
        config, key = self.config, _key(calls)
        try:
            self.detector.check_batch(
                key,
                [call.name for call in calls],
                read_only=is_observation_batch(given, config.observation_tools),
                costly=is_costly_batch(given),
            )
        except LoopDetectedError as loop:
            since = max(1, calls[0].number - loop.count + 1)
            asks = getattr(config, "on_loop", "refuse") == "refuse"
            action, limit = Action.ASK if asks else Action.WARN, loop.threshold + 1
            return Hit(action, Kind.SAME_CALL, loop.count, limit, since, key)
        return None

    def judge_results(self, calls: Sequence[Made], results: Sequence[Result | None]) -> Hit | None:
        known = [result.digest for result in results if result is not None]
        pairs = sorted(zip((call.key for call in calls), known, strict=False))
        hashed = fingerprint(*(part for pair in pairs for part in pair))
        record = BatchRecord(_key(calls))
        self.detector.record_results(record, hashed if len(known) == len(calls) else None)
        return None

    def clear(self) -> None:
        self.detector.break_run()

    def to_state(self) -> Any:
        return self.detector.to_state()

    def load_state(self, state: Any) -> None:
        kept = stored.mapping(state, 4)
        if kept:
            stored.text(kept.get("signature"))  # Not longer than a key.
        self.detector.load_state(kept)


def _key(calls: Sequence[Made]) -> str:
    signature = join_signatures(sign_canonical(call.name, call.canonical) for call in calls)
    if len(signature) <= _LONGEST_KEY:
        return signature
    return f"{len(calls)} calls:{fingerprint(signature):x}"


class DetectorConfig(PresetConfig):
    """The seed's numbers, which were never measured."""

    counts = _Detector

    max_strikes: Annotated[int, Field(ge=0)] = 2
    """How many equal steps in a row may run; 0 lets none run at all."""
    max_observation_steps: Annotated[int, Field(ge=0)] | None = 15
    """The same for steps that only read, and the ceiling for the others while their results
    change. `None` turns the difference off."""
    observation_tools: ToolNames = DEFAULT_OBSERVATION_TOOLS
    """Parts of the names of tools that only read; an empty list turns the difference off."""


class RepeatedBatch(DetectorConfig):
    """The seed's detector: it asks the moment it finds a loop, and never warns."""

    title = "seed"
    rule: Literal["repeated_batch"] = "repeated_batch"


class Gglib(DetectorConfig):
    """gglib's `LoopDetector`: equal steps back to back, by its own default a note to the model."""

    title = "gglib"
    rule: Literal["gglib"] = "gglib"
    on_loop: Literal["note", "refuse"] = "note"
    """Whether the model is warned, or the step is stopped."""
