"""opencode v1's `doom_loop`: three equal calls running within one message.

Known by tool and raw JSON, so another order of the keys is another call. The original looks at
the last three *parts* of a message, and a text part among them hides the loop; a batch holds
calls only, so here text between calls hides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import (
    Call,
    HarnessRule,
    Hit,
    calls_of,
)
from langchain_loopguard.core.rules.harnesses.wordings import Kind

if TYPE_CHECKING:
    from langchain_loopguard.core.batch import Batch
    from langchain_loopguard.core.decision import Finding
    from langchain_loopguard.core.rules.base import Rule


class OpencodeV1(ForeignRule):
    """How many equal calls make a loop."""

    title: ClassVar[str] = "opencode v1"

    rule: Literal["opencode_v1"] = "opencode_v1"

    ask_at: int = Field(default=3, ge=1)
    """Equal calls in a row within one message; a person is asked."""

    def build(self) -> Rule:
        """Make a rule; it keeps nothing from one message to the next."""
        return _OpencodeV1Rule(self)


class _OpencodeV1Rule(HarnessRule):
    def __init__(self, config: OpencodeV1) -> None:
        super().__init__(config)
        self._ask_at = config.ask_at

    def check(self, batch: Batch) -> Finding | None:
        hit: Hit | None = None
        last, count = -1, 0
        for call in calls_of(batch):
            key = call.raw_key()
            count = count + 1 if key == last else 1
            last = key
            if count >= self._ask_at:
                hit = _hit(call, key, count, self._ask_at)
        return self.finding(hit, batch, ran=False)

    def counters(self) -> None:
        """There is nothing to keep."""

    def load_counters(self, counters: Any) -> None:
        """There is nothing to load."""
        if counters is not None:
            raise ValueError("this rule counts nothing")


def _hit(call: Call, key: int, count: int, ask_at: int) -> Hit:
    return Hit(Action.ASK, Kind.SAME_CALL, count, ask_at, call.number, str(key), tools=(call.name,))
