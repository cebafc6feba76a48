"""opencode pull request #37109: the terminal printed the same three times in a row.

Whatever the commands were; only tools whose name looks like a terminal's count, and calls of
other tools between neither count nor reset.

Readings: judged after the output, so the ask meets the next terminal call, once for each further
equal output. No reset by a user message is described, so there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core import stored
from langchain_loopguard.core.rules.base import ToolNames
from langchain_loopguard.core.rules.foreign import ForeignRule
from langchain_loopguard.core.rules.harnesses.frame import Call, HarnessRule, Hit
from langchain_loopguard.core.rules.harnesses.keys import fingerprint
from langchain_loopguard.core.rules.harnesses.ladder import rung
from langchain_loopguard.core.rules.harnesses.wordings import Kind

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.rules.base import Rule


class Pr37109(ForeignRule):
    """Numbers for equal output of a terminal."""

    title: ClassVar[str] = "opencode #37109"

    rule: Literal["pr_37109"] = "pr_37109"

    ask_at: int = Field(default=3, ge=1)
    """Equal outputs in a row; a person is asked."""

    terminal_tools: ToolNames = ("bash", "shell", "terminal", "command")
    """Parts of the names, in any case, of tools that run commands."""

    def build(self) -> Rule:
        """Make a fresh counter."""
        return _Pr37109Rule(self)


class _Pr37109Rule(HarnessRule):
    human_resets = False

    def __init__(self, config: Pr37109) -> None:
        super().__init__(config)
        self._ask_at = config.ask_at
        self._parts = tuple(part.lower() for part in config.terminal_tools)
        self._last = -1
        self._count = 0
        self._since = 0

    def after(self, call: Call, answer: Answer | None) -> Hit | None:
        name = call.name.lower()
        if answer is None or not any(part in name for part in self._parts):
            return None
        said = fingerprint(answer.digest)
        if said != self._last:
            self._last, self._count, self._since = said, 0, call.number
        self._count += 1
        found = rung(self._count, ask_at=self._ask_at)
        if found is None:
            return None
        action, threshold = found
        return Hit(
            action,
            Kind.SAME_OUTPUT,
            self._count,
            threshold,
            self._since,
            "",
            tools=(call.name,),
            hold=call.tool,
        )

    def clear(self) -> None:
        self._last, self._count, self._since = -1, 0, 0

    def counters(self) -> list[int]:
        return [self._last, self._count, self._since]

    def load_counters(self, counters: Any) -> None:
        last, count, since = stored.entries(counters, 3)
        self._last, self._count, self._since = map(stored.number, (last, count, since))
