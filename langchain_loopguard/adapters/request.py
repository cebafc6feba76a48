"""What does the middleware change in the request to a model, and in the model's answer?

Warnings stand in the request only, so the saved thread stays as the tools wrote it. A last answer
is asked for without tools. Results that two guards gave for one call are taken out, since a model
API refuses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage
from langgraph.types import Command

from langchain_loopguard.langchain.errors import error_of_facts
from langchain_loopguard.langchain.marks import ends_of, final_message
from langchain_loopguard.langchain.messages import last_step, makes_calls
from langchain_loopguard.langchain.repair import complete, surplus_results, without_calls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_loopguard.adapters.gate import Gate

_TOOL_SETTINGS = {"tools", "tool_choice", "parallel_tool_calls"}
"""Model settings that some providers refuse in a call without tools."""


class Asked(NamedTuple):
    """A request as the guard sends it, how the run ends then, and results that are too many."""

    request: ModelRequest[Any]
    ends: Mapping[str, Any]
    surplus: list[str]

    def answered(
        self, response: ModelResponse[Any]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Give the answer without what a last answer must not hold."""
        if self.ends and response.structured_response is None:
            said = [one for one in response.result if not isinstance(one, ToolMessage)]
            response.result[:] = [_final_answer(one, self.ends) for one in said]
        if self.surplus:
            removed = [RemoveMessage(id=one) for one in self.surplus]
            return ExtendedModelResponse(response, Command(update={"messages": removed}))
        return response


def ask_model(gate: Gate, request: ModelRequest[Any], state_key: str) -> Asked:
    """Make the request of a model call as the guard sends it; nothing is saved for it.

    Raises:
        LoopDetectedError: If the run was to end in it once its calls had results.
    """
    saved, counts = request.state["messages"], request.state.get(state_key)
    ends = ends_of(saved)
    if ends.get("as") == "raise":
        raise error_of_facts(ends)
    messages: list[Any] | None = None
    reader = gate.open(counts, saved)
    if reader is not None:
        gate.read(reader, saved)
        gate.declare(reader, request.tools)
        messages = reader.request(request.messages)
        gate.keep(reader, counts, saved)
    surplus: list[Any] = []
    sent = messages or request.messages
    # One result behind its call, as nearly always, can't be one too many.
    plain = len(sent) > 1 and isinstance(sent[-1], ToolMessage) and isinstance(sent[-2], AIMessage)
    step = None if plain else last_step(sent)
    if step is not None and len(step.results) > 1:
        surplus = surplus_results(step)
        if surplus:
            messages = [m for m in sent if m not in surplus]
        if step.apart:
            moved = complete(messages or request.messages, gate.options.wording.skipped)
            messages = moved or messages
    if messages is not None:
        request = request.override(messages=messages)
    if ends:
        settings = {k: v for k, v in request.model_settings.items() if k not in _TOOL_SETTINGS}
        request = request.override(tools=[], tool_choice=None, model_settings=settings)
    return Asked(request, ends, [one.id for one in surplus if one.id])


def _final_answer(message: Any, ends: Mapping[str, Any]) -> Any:
    """Give the words of a model's last answer, those of the guard where it has none."""
    if not makes_calls(message):
        return message
    return without_calls(message) if message.text.strip() else final_message(str(ends["text"]))
