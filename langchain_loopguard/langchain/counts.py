"""What does a reader keep of a conversation beside the guard's own counts?

All of it is in JSON types and bounded; of a message it holds ids, hashes and the guard's own
warnings, never an argument or a result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage
from xxhash import xxh3_64_hexdigest

from langchain_loopguard.core import state as stored
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.kinds import declared_traits
from langchain_loopguard.langchain.messages import key_of, short
from langchain_loopguard.langchain.question import Asked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_loopguard.core.decision import Decision

VERSION = 2
"""The version of saved counts; those of another one are not read."""

_RECENT = 8
"""Keys of AI messages by which a history is known again. A fork or a repeated model call goes
back a step or two; a bound without a measurement."""
_WARNINGS = 4
"""Warnings that stand in each request, the newest. Thirty equal calls give two or three."""
_EMITTED = 32
"""Loops and thresholds of which it is known that they were emitted."""
_LOOPS = 16
"""Names of loops of which it is known how often a person was asked."""
_LONGEST_WARNING = 2000
_TOOLS = 64
"""Tools whose declarations are saved; an agent has some dozens at most."""
_LONGEST_NAME = 128
_ARGUMENTS = 16
"""Arguments that a tool may name as those that identify a call."""
_LARGEST = 2**53
"""Of a limit; a larger number loses digits in some readers of JSON."""


@dataclass
class Counts:
    """The place in a conversation, and what was said about it.

    Attributes:
        by_run: Whether runs are reported, so that human messages begin no turn.
        first: The id of the conversation's first message.
        human: The id of the human message read last.
        last: The key of the AI message counted last.
        recent: The keys of the last AI messages.
        is_open: Whether the step counted last may still get results.
        first_caller: The agent that made the first step.
        caller: The agent that made the last one.
        pending: What the model is to read once the open step has its results.
        warnings: The warnings of this turn, by the id of the result they stand at.
        emitted: What was emitted in this turn.
        asked: For a loop, how often a person was asked, and the step where it began.
        tools: What tools declare of themselves, by name: another process that takes a run up
            must reach the same verdict before it has seen the tools.
    """

    by_run: bool = False
    first: str = ""
    human: str = ""
    last: str = ""
    recent: list[str] = field(default_factory=list)
    is_open: bool = False
    first_caller: str = ""
    caller: str = ""
    pending: str = ""
    warnings: dict[str, str] = field(default_factory=dict)
    emitted: list[str] = field(default_factory=list)
    asked: dict[str, list[int]] = field(default_factory=dict)
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)

    def declare(self, name: str, metadata: Any) -> bool:
        """Note what a tool declares; tells whether it declares anything new."""
        known = _declared(metadata)
        if not known or self.tools.get(name) == known or len(name) > _LONGEST_NAME:
            return False
        if len(self.tools) >= _TOOLS and name not in self.tools:
            return False
        self.tools[name] = known
        return True

    def remember(self, key: str) -> None:
        """Note an AI message as the one counted last; one without a key leaves the place."""
        self.last = key or self.last
        if self.last and self.last not in self.recent:
            self.recent.append(self.last)
            del self.recent[:-_RECENT]

    def place(self, messages: Sequence[BaseMessage]) -> int | None:
        """Find the message counted last: -1 before the first one, `None` where it is gone."""
        if not self.last:
            return -1
        for index in range(len(messages) - 1, -1, -1):
            message = messages[index]
            if isinstance(message, AIMessage) and key_of(message) == self.last:
                return index
        return None

    def known_place(self, messages: Sequence[BaseMessage]) -> int:
        """Find the last message that was read before: what stands before it is no news."""
        for index in range(len(messages) - 1, -1, -1):
            message = messages[index]
            if isinstance(message, AIMessage) and key_of(message) in self.recent:
                return index
            if self.human and short(message.id or "") == self.human:
                return index
        return -1

    def is_new(self, decision: Decision, what: str) -> bool:
        """Note that a loop at its threshold is emitted; tells whether it is for the first time."""
        finding = decision.findings[0]
        key = _digest(f"{what} {finding.loop} {finding.threshold}")
        if key in self.emitted:
            return False
        self.emitted = [*self.emitted, key][-_EMITTED:]
        return True

    def warn(self, at: str, text: str) -> None:
        """Add a warning below the result `at`."""
        old = self.warnings.get(at)
        self.warnings[at] = (f"{old}\n{text}" if old else text)[:_LONGEST_WARNING]
        self.warnings = dict(list(self.warnings.items())[-_WARNINGS:])

    def note_question(self, decision: Decision) -> None:
        """Note that a person answered a question about these loops."""
        for loop in _loops(decision):
            times, since = self.asked.pop(loop, (0, decision.findings[0].since))
            self.asked[loop] = [times + 1, since]
        self.asked = dict(list(self.asked.items())[-_LOOPS:])

    def asked_before(self, decision: Decision) -> Asked:
        """Say how often a person was asked for one of these loops, and since which step."""
        known = [self.asked[loop] for loop in _loops(decision) if loop in self.asked]
        number = decision.record.number
        since = min((finding.since for finding in decision.findings), default=number)
        times = max((times for times, _ in known), default=0)
        first = min((first for _, first in known), default=since)
        return Asked(times, steps=max(number - since, 0), steps_in_all=max(number - first, 0))

    def to_state(self) -> dict[str, Any]:
        """Give it in JSON types, without what is as at the beginning."""
        return {
            name: value.copy() if type(value) in {list, dict} else value
            for name, value in vars(self).items()
            if value
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Counts:
        """Read what `to_state` gave; raises what an odd value raises."""
        counts = cls()
        for name in ("first", "human", "last", "first_caller", "caller"):
            setattr(counts, name, stored.text(state.get(name, "")))
        counts.by_run = stored.flag(state.get("by_run", False))
        counts.is_open = stored.flag(state.get("is_open", False))
        counts.pending = stored.text(state.get("pending", ""), _LONGEST_WARNING)
        counts.recent = [stored.text(key) for key in state.get("recent", ())][-_RECENT:]
        counts.emitted = [stored.text(key) for key in state.get("emitted", ())][-_EMITTED:]
        counts.warnings = {
            stored.text(at): stored.text(text, _LONGEST_WARNING)
            for at, text in dict(state.get("warnings", {})).items()
        }
        counts.asked = {
            stored.text(loop): [stored.count(times), stored.count(since)]
            for loop, (times, since) in dict(state.get("asked", {})).items()
        }
        counts.tools = {
            stored.text(name): _declared(metadata)
            for name, metadata in list(dict(state.get("tools", {})).items())[:_TOOLS]
        }
        return counts


def _loops(decision: Decision) -> list[str]:
    """Name the loops of a decision, and its calls: one loop may get another name later."""
    named = [finding.loop for finding in decision.findings if finding.action >= Action.ASK]
    if not named:
        return []
    return [_digest(name) for name in (*named, f"{decision.record.identity}")]


def _declared(metadata: Any) -> dict[str, Any]:
    """Keep what a tool declares, in JSON types and within bounds, as `metadata` would say it."""
    traits = declared_traits(metadata)
    names = list(traits.pop("identity", ()))
    if names and len(names) <= _ARGUMENTS and all(len(name) <= _LONGEST_NAME for name in names):
        traits["identity"] = names
    if traits.get("limit", 0) > _LARGEST:
        del traits["limit"]
    return {"loop_guard": traits} if traits else {}


def _digest(text: str) -> str:
    return xxh3_64_hexdigest(text.encode("utf-8", "backslashreplace"))
