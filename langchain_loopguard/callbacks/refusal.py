"""How is one tool call refused from inside `on_tool_start`?

By an exception that LangGraph's `ToolNode` (and so `create_agent`) turns into an error
`ToolMessage`, as it does with a call whose arguments are wrong. Everywhere else the same
exception is a `LoopDetectedError`. Imports LangGraph, so it is loaded only inside a graph.
"""

from __future__ import annotations

from langgraph.prebuilt.tool_node import ToolInvocationError

from langchain_loopguard.callbacks.marks import WITHHELD
from langchain_loopguard.core.errors import LoopDetectedError


class RefusedCallError(LoopDetectedError, ToolInvocationError, RuntimeError):
    """A call that was not run; `message` is for the model, `str()` for a person.

    A `RuntimeError` as well, because LangGraph's default retry policy doesn't retry those.
    """

    message: str

    def __init__(
        self, error: LoopDetectedError, text: str, tool: str, *, by_person: bool = False
    ) -> None:
        """Refuse a call of `tool` with `text`, because of `error`.

        Args:
            error: What was detected.
            text: What the model is told.
            tool: The tool's name.
            by_person: Whether the text is a person's, which is not to be logged.
        """
        # The bases' own constructors want a validation error and format it.
        Exception.__init__(self, WITHHELD if by_person else text)
        self._shown = WITHHELD if by_person else text
        self.signature = error.signature
        self.tools = error.tools
        self.count = error.count
        self.threshold = error.threshold
        self.message = text
        self._reason = str(error)
        self.tool_name = tool
        self.tool_kwargs = {}
        self.source = error  # type: ignore[assignment] # no validation failed here
        self.filtered_errors = []

    def __str__(self) -> str:
        """Say what was detected."""
        return self._reason

    def __repr__(self) -> str:
        """Say what the model is to read: a `ToolNode` that handles every error shows it this.

        LangChain logs it too, so a person's words are not in it; they take the place of
        `WITHHELD` once the `ToolNode` has made an answer of it.
        """
        return self._shown
