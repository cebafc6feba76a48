"""What does a program get when a loop is detected?

One error type for every place that can raise it. It names the tools and the numbers and says
what to do; it never holds the arguments of a call, which may be private and long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


class LoopDetectedError(Exception):
    """The agent repeats the same tool calls and should not run them again.

    Attributes:
        signature: The signature of the repeated step.
        tools: The names of its tools, each once, in the order of the calls.
        count: How often the step came.
        threshold: How often it was allowed to come.
        message: The wording given, `""` when it is made from the other attributes.
    """

    def __init__(
        self,
        signature: str,
        tools: Iterable[str],
        count: int,
        threshold: int,
        message: str = "",
    ) -> None:
        """Keep the facts.

        Args:
            signature: The signature of the repeated step.
            tools: The names of its tools.
            count: How often the step came.
            threshold: How often it was allowed to come.
            message: A wording to use instead of the one made from the facts.
        """
        # Pickle builds the error again from what is handed on here.
        super().__init__(signature, tuple(tools), count, threshold, message)
        self.signature = signature
        self.tools: tuple[str, ...] = self.args[1]
        self.count = count
        self.threshold = threshold
        self.message = message

    def __str__(self) -> str:
        if self.message:
            return self.message
        tools = ", ".join(self.tools) or "a tool without a name"
        return (
            f"Loop detected: the same call of {tools} came {self.count} times in a row, "
            f"{self.threshold} allowed. Do not run it again: let the model try something else, "
            "or ask a person and call `break_run()` when they have answered. If it may repeat "
            "that often, raise `max_strikes` or `max_observation_steps`, or name the tool in "
            "`observation_tools` if it only reads."
        )


class GuardStateError(ValueError):
    """A stored state is not one that this release wrote."""


def facts_of(error: LoopDetectedError) -> dict[str, Any]:
    """Write an error in JSON types, so that another process can raise it."""
    return {
        "signature": error.signature,
        "tools": list(error.tools),
        "count": error.count,
        "threshold": error.threshold,
        "message": str(error),
    }
