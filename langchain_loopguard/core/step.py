"""One step: the tool calls of one AI message, and what came back for them.

A step is read once and handed to every rule. A rule may look at arguments and results through it
and keeps nothing but hashes, counts and tool names, because its counters are stored with the
conversation.

Calls and results are compared by xxh3 in 64 bits. That is no cryptographic hash: somebody who
computes for it can make two calls look equal. Equal calls always have equal hashes, so no repeat
hides behind a collision; the harm is a warning or a question that comes too early.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from langchain_loopguard.core.kinds import ToolKind
    from langchain_loopguard.core.results import Result

_MASK = 0xFFFFFFFFFFFFFFFF

_SLEEPS = re.compile(
    rb"(?i)(?:(?:[\"';&|(]|\\n|\b(?:do|then)\b)\s*|time\.|start-)sleep(?: +-\w+)?[ (]+\d"
)
"""A command: `sleep 60` at its beginning or behind `;`, `&&` or `do`, `time.sleep(5)`,
`Start-Sleep -Seconds 5`. Not a sentence about sleep."""


class Call(NamedTuple):
    """One tool call of a step."""

    id: str | None
    """The call's id, `None` when it has none."""
    name: str
    """The tool's name, `""` when it has none."""
    arguments: Any
    """The arguments as they came."""
    canonical: bytes
    """The arguments in canonical form, see `core.canonical`."""
    identity: int
    """64 bits by which the rules know the call, see `core.calls.identity_of`."""
    kind: ToolKind
    """What kind of tool is called."""
    waits: bool
    """Whether the call itself waits: of a poller, or with a `sleep` in its arguments."""


def sleeps(canonical: bytes) -> bool:
    """Tell whether the arguments of a call hold a command to sleep."""
    return canonical.find(b"leep") >= 0 and _SLEEPS.search(canonical) is not None


class Step:
    """One step, counted and about to run.

    Attributes:
        number: The step's number, from 1 over the guard's life; 0 for one that was not counted.
        calls: The calls in their order.
        identity: 64 bits for the step's calls, whatever their order.
        results: What came back for each call, in the calls' order, `None` for a missing result;
            empty until `LoopGuard.record_results` took them in.
        waits: Whether it waits, or follows on waiting, as far as its calls and earlier results say.
        used: Whether the step is closed: its results were recorded, or it was refused.
    """

    __slots__ = ("calls", "identity", "number", "results", "used", "waits")

    def __init__(self, number: int, calls: tuple[Call, ...]) -> None:
        """Keep the parts as given."""
        self.number = number
        self.calls = calls
        self.identity = sum([call.identity for call in calls]) & _MASK
        self.results: tuple[Result | None, ...] = ()
        self.waits = True in [call.waits for call in calls]
        self.used = not calls

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools called, each once, in the calls' order."""
        return tuple(dict.fromkeys([call.name for call in self.calls]))

    def __repr__(self) -> str:
        """Show the number, the tools and whether the step is closed."""
        return f"Step({self.number}, {list(self.tools)!r}, used={self.used})"
