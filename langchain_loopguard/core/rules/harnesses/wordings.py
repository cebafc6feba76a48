"""What is said of a finding, to the model and to a person?

The model is told what to do instead. It is never told the call again, since a quoted call
invites one more, and no word of the guard's own. The person is told what was counted and by
which system's number.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from langchain_loopguard.core.decision import Action

if TYPE_CHECKING:
    from collections.abc import Iterable


class Kind(enum.StrEnum):
    """What was counted."""

    SAME_CALL = "same_call"
    """The same call, one after the other."""
    SAME_CALL_AGAIN = "same_call_again"
    """The same call, with others between."""
    SAME_ANSWER = "same_answer"
    """The same call with the same answer."""
    SAME_OUTPUT = "same_output"
    """The same answer of one command after the other."""
    NOTHING_NEW = "nothing_new"
    """Answers without a new line."""
    CYCLE = "cycle"
    """The same few calls in turn."""
    IN_TURN = "in_turn"
    """Two calls in turn, counted by calls."""
    SAME_FAILURE = "same_failure"
    """The same call, failed."""
    TOOL_FAILURE = "tool_failure"
    """One tool, failed, whatever the arguments."""
    SAME_ERROR = "same_error"
    """One tool, failed with one error."""
    FAILURES = "failures"
    """Failed calls of any tool."""
    NO_SUCH_TOOL = "no_such_tool"
    """Calls of tools that do not exist."""
    BAD_ARGUMENTS = "bad_arguments"
    """Calls that the tool refused for their arguments."""
    NO_ARGUMENTS = "no_arguments"
    """Calls without arguments."""
    NO_SUCCESS = "no_success"
    """Steps without a call that worked."""


_USE_IT = (
    "The same step would bring the same again. Use what you already have, try a different "
    "approach, or say what is missing and finish."
)
_LEAVE_IT = (
    "The last steps go round in a circle. Use what they have shown, do something that was not "
    "done before, or say what is missing and finish."
)
_FIX_IT = (
    "Trying again will fail again. Read the last error, find its cause and do something else, "
    "or say what blocks you and finish."
)

_TO_MODEL: dict[Kind, str] = {
    Kind.SAME_CALL: _USE_IT,
    Kind.SAME_CALL_AGAIN: _USE_IT,
    Kind.SAME_ANSWER: _USE_IT,
    Kind.SAME_OUTPUT: _USE_IT,
    Kind.NOTHING_NEW: (
        "The last steps showed nothing that you had not seen before. Decide with what you know, "
        "look somewhere else, or say what is missing and finish."
    ),
    Kind.CYCLE: _LEAVE_IT,
    Kind.IN_TURN: _LEAVE_IT,
    Kind.SAME_FAILURE: _FIX_IT,
    Kind.TOOL_FAILURE: _FIX_IT,
    Kind.SAME_ERROR: _FIX_IT,
    Kind.FAILURES: _FIX_IT,
    Kind.NO_SUCH_TOOL: (
        "There is no such tool. Use only the tools that you were given, or finish without it."
    ),
    Kind.BAD_ARGUMENTS: (
        "The arguments do not fit. Read what the tool asks for and give exactly that, or do it "
        "in another way."
    ),
    Kind.NO_ARGUMENTS: (
        "The arguments were empty. Write them out, in several smaller steps if they are long, or "
        "say what blocks you and finish."
    ),
    Kind.NO_SUCCESS: _FIX_IT,
}

_TO_PERSON: dict[Kind, str] = {
    Kind.SAME_CALL: "The agent called {tools} {count} times in a row with the same arguments",
    Kind.SAME_CALL_AGAIN: "The agent called {tools} {count} times with the same arguments",
    Kind.SAME_ANSWER: "The same call of {tools} gave the same answer {count} times",
    Kind.SAME_OUTPUT: "{count} commands in a row, the last by {tools}, gave the same output",
    Kind.NOTHING_NEW: "{count} calls in a row, the last of {tools}, showed nothing new",
    Kind.CYCLE: "The agent went through the same calls of {tools} {count} times",
    Kind.IN_TURN: "{count} calls in a row went back and forth between two calls of {tools}",
    Kind.SAME_FAILURE: "The same call of {tools} failed {count} times",
    Kind.TOOL_FAILURE: "{tools} failed {count} times",
    Kind.SAME_ERROR: "{tools} failed {count} times with the same error",
    Kind.FAILURES: "{count} of the last calls failed, the last one of {tools}",
    Kind.NO_SUCH_TOOL: "{count} calls in a row, the last of {tools}, were of missing tools",
    Kind.BAD_ARGUMENTS: "{tools} refused its arguments {count} times",
    Kind.NO_ARGUMENTS: "{count} messages in a row called {tools} without arguments",
    Kind.NO_SUCCESS: "{count} steps in a row, the last with {tools}, had no call that worked",
}

_DOES = {Action.WARN: "warns", Action.ASK: "asks", Action.STOP: "stops"}


def to_model(kind: Kind, action: Action, *, ran: bool) -> str:
    """Say what to do instead, and that the step was not run when that is so."""
    advice = _TO_MODEL[kind]
    return advice if ran or action is Action.WARN else f"This step was not run. {advice}"


def to_person(
    kind: Kind, action: Action, *, title: str, tools: Iterable[str], count: int, threshold: int
) -> str:
    """Say what was counted, and at which number the system of that title does what."""
    fact = _TO_PERSON[kind].format(tools=", ".join(dict.fromkeys(tools)), count=count)
    return f"{fact} ({title} {_DOES[action]} at {threshold})."
