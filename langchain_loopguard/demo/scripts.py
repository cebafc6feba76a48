"""Which tool calls does the demo's agent make, and what are their results?

The incident is a real session re-told: the order of the 200 calls is as it was, the results are
stand-ins that stay the same for the same command. No command is ever run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One shell command that the model asks for.

    Attributes:
        command: The command line, the tool's only argument.
        result: The tool's result, each time.
        failed: Whether the result is an error.
    """

    command: str
    result: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """A run of the demo, written in advance.

    Attributes:
        title: Its name in a heading.
        story: One or two sentences for the reader.
        calls: The calls in order, one a model turn.
    """

    title: str
    story: str
    calls: tuple[ScriptedCall, ...]


def incident() -> Script:
    """The 200 calls of the session that polled three git commands for 87 minutes."""
    text = resources.files(__package__).joinpath("incident.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    calls = {
        letter: ScriptedCall(entry["command"], data["answers"][entry["answer"]])
        for letter, entry in data["commands"].items()
    }
    return Script(
        title="The incident",
        story=(
            "The 200 tool calls of a real session: an agent polled three git commands for"
            " about 87 minutes, first in different spellings, then in a fixed rotation."
        ),
        calls=tuple(calls[letter] for letter in data["sequence"]),
    )


def failing_call(times: int = 30) -> Script:
    """One failing call, repeated; the plainest loop there is."""
    call = ScriptedCall(
        command="pytest tests/test_login.py",
        result="ERROR: file or directory not found: tests/test_login.py",
        failed=True,
    )
    return Script(
        title="One failing call",
        story=f"The same failing call, {times} times in a row.",
        calls=(call,) * times,
    )
