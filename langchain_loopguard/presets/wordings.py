"""What is said of a finding, to the model and to a person?

The model reads what to do instead, and never the call again, since a quoted call
invites one more, and no word of the guard's own. The person reads what was counted and by
which system's number.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from langchain_loopguard.core.decision import Action

if TYPE_CHECKING:
    from collections.abc import Iterable

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
_LOOK_ELSEWHERE = (
    "The last steps showed nothing that you had not seen before. Decide with what you know, "
    "look somewhere else, or say what is missing and finish."
)
_NO_SUCH_TOOL = (
    "There is no such tool. Use only the tools that you were given, or finish without it."
)
_BAD_ARGUMENTS = (
    "The arguments do not fit. Read what the tool asks for and give exactly that, or do it "
    "in another way."
)
_NO_ARGUMENTS = (
    "The arguments were empty. Write them out, in several smaller steps if they are long, or "
    "say what blocks you and finish."
)


class Kind(enum.Enum):
    """What was counted: what the model is to do, and what a person reads."""

    SAME_CALL = _USE_IT, "The agent called {tools} {count} times in a row with the same arguments"
    SAME_CALL_AGAIN = _USE_IT, "The agent called {tools} {count} times with the same arguments"
    SAME_STEP = _USE_IT, "{count} messages in a row made the same calls of {tools}"
    SAME_RESULT = _USE_IT, "The same call of {tools} gave the same result {count} times"
    SAME_RESULT_AGAIN = (
        _USE_IT,
        "The same call of {tools} gave the same result {count} times in this run",
    )
    SAME_OUTPUT = _USE_IT, "{count} commands in a row, the last by {tools}, gave the same output"
    NOTHING_NEW = _LOOK_ELSEWHERE, "{count} calls in a row, the last of {tools}, showed nothing new"
    CYCLE = _LEAVE_IT, "The agent went through the same calls of {tools} {count} times"
    IN_TURN = _LEAVE_IT, "{count} calls in a row went back and forth between two calls of {tools}"
    SAME_FAILURE = _FIX_IT, "The same call of {tools} failed {count} times"
    TOOL_FAILURE = _FIX_IT, "{tools} failed {count} times"
    SAME_ERROR = _FIX_IT, "{tools} failed {count} times with the same error"
    FAILURES = _FIX_IT, "{count} of the last calls failed, the last one of {tools}"
    NO_SUCH_TOOL = (
        _NO_SUCH_TOOL,
        "{count} calls in a row, the last of {tools}, were of missing tools",
    )
    BAD_ARGUMENTS = _BAD_ARGUMENTS, "{tools} refused its arguments {count} times"
    NO_ARGUMENTS = _NO_ARGUMENTS, "{count} messages in a row called {tools} without arguments"
    NO_SUCCESS = _FIX_IT, "{count} steps in a row, the last with {tools}, had no call that worked"

    def to_model(self, action: Action, *, ran: bool) -> str:
        """Word what to do instead, and that the step was not run when that is so."""
        advice: str = self.value[0]
        return advice if ran or action is Action.WARN else f"This step was not run. {advice}"

    def to_person(self, tools: Iterable[str], times: int) -> str:
        """Word what was counted."""
        text: str = self.value[1]
        return text.format(tools=", ".join(dict.fromkeys(tools)), count=times)
