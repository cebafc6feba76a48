"""What the guard says about a step, and in which words.

A rule makes a `Finding`, the guard collects the findings of one step into a `Decision`. Two
readers with different needs get two texts. The model reads what to do instead, without the
guard's own terms and without the repeated call: a quoted call invites one more repetition. The
person reads what was counted, against which number, and since when.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard.core.step import Step


class Action(enum.IntEnum):
    """What is to happen with a step, from harmless to final; the numbers order them."""

    ALLOW = 0
    """Nothing was found."""
    WARN = 1
    """The model is warned, every call runs."""
    ASK = 2
    """A loop is detected: a person decides, or the step is refused when nobody can be asked."""
    STOP = 3
    """The same loop was refused too often: the run ends."""


class Finding:
    """What one rule found at one step.

    Attributes:
        rule: The rule's name, as in the policy.
        action: What the rule asks for.
        tools: The names of the tools in the loop, in the order of the calls.
        count: How often it was seen, the first occurrence included.
        threshold: The number that `count` reached.
        since: Number of the step where the loop began, counted from 1 over the guard's life.
        loop: Names the loop, so that a later finding can be known as the same one.
        to_model: What the model reads.
        to_person: What a person reads.
    """

    __slots__ = (
        "action",
        "count",
        "loop",
        "rule",
        "since",
        "threshold",
        "to_model",
        "to_person",
        "tools",
    )

    def __init__(
        self,
        rule: str,
        action: Action,
        *,
        tools: Sequence[str],
        count: int,
        threshold: int,
        since: int,
        loop: str,
        to_model: str,
        to_person: str,
    ) -> None:
        """Keep the parts as given; `tools` is made a tuple without repeats."""
        self.rule = rule
        self.action = action
        self.tools = tuple(dict.fromkeys(tools))
        self.count = count
        self.threshold = threshold
        self.since = since
        self.loop = loop
        self.to_model = to_model
        self.to_person = to_person

    def as_dict(self) -> dict[str, Any]:
        """Give the finding in JSON types, for payloads and reports; holds no arguments."""
        return {
            "rule": self.rule,
            "action": self.action.name.lower(),
            "tools": list(self.tools),
            "count": self.count,
            "threshold": self.threshold,
            "since": self.since,
        }

    def __repr__(self) -> str:
        """Show the finding without its two texts."""
        return (
            f"Finding({self.rule!r}, {self.action.name}, tools={self.tools!r}, "
            f"count={self.count}, threshold={self.threshold}, since={self.since})"
        )


class Decision:
    """What the guard says about one step.

    Attributes:
        action: The strongest action of the findings, `Action.ALLOW` without any.
        findings: What the rules found, the strongest first.
        record: The step; hand it to `LoopGuard.record_results` once the results are known.
    """

    __slots__ = ("action", "findings", "record")

    def __init__(self, action: Action, findings: tuple[Finding, ...], record: Step) -> None:
        """Keep the parts as given."""
        self.action = action
        self.findings = findings
        self.record = record

    @property
    def to_model(self) -> str:
        """What the model reads: the strongest finding's words, empty without findings."""
        return self.findings[0].to_model if self.findings else ""

    @property
    def refusal(self) -> str:
        """What stands in place of the result of a call that was not run."""
        return f"This call was not run. {self.to_model}".strip()

    @property
    def to_person(self) -> str:
        """What a person reads: every finding's words, one a line, empty without findings."""
        return "\n".join(finding.to_person for finding in self.findings)

    def __repr__(self) -> str:
        """Show the action and the findings."""
        return f"Decision({self.action.name}, findings={list(self.findings)!r})"
