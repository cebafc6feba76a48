"""In which words does an adapter speak, and how are they replaced?

Every sentence of the adapters is a field here; what was found is worded by the core. Knows
nothing of when a sentence is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Wording:
    """The sentences of the adapters; `{...}` is filled in where a field's line names it.

    Pass it, or a mapping with some of the fields, as `wording=`.
    """

    not_run: str = "This call was not run: the conversation went on before it had a result."
    """To the model, for a call that an interrupted turn left open."""
    stopped: str = "This call was not run: the run was ended because the same step was repeated."
    """To the model, for the calls with which a run ended."""
    skipped: str = "This call has no result."
    """To the model, for a call that the tools left out."""
    unparsed: str = "Error: the arguments of this call are not valid JSON. Fix them and try again."
    """To the model, for a call whose arguments could not be parsed."""
    refused: str = "This call was not run. {found}"
    """To the model, for a refused call; `{found}` is the core's advice."""
    declined: str = (
        "A person declined this step and it was not run. Do not make the same call again: use "
        "what you already know, try a different approach, or say what is missing and finish."
    )
    """To the model, where a person refuses without a word."""
    wrap_up: str = (
        "No more tools can be used now. Answer the user with what you have found so far, and say "
        "what is missing."
    )
    """To the model, behind `refused` in mode `wrap_up`."""
    warning: str = "[Warning, not part of the tool's result] {found}"
    """To the model, in the request only, below a result."""
    final: str = "Stopped. {found}"
    """To the user: the message that ends a run; `{found}` is the core's report."""
    reason: str = " Reason: {reason}"
    """Behind `final`, where a person gave a reason."""
    nobody: str = " Nobody could be asked how to go on."
    """Behind `final`, where a person was to be asked and no thread is saved."""
    asked_again: str = (
        "You were asked {times} before, and this loop went on each time: {calls} since it began, "
        "and it still brings nothing new."
    )
    """To the person, from the second question about one loop on, before everything else."""
    choice_continue: str = "Run the calls; asked again after twice as many"
    """The label of the choice `continue`."""
    choice_always: str = "Run the calls and never stop this loop again in this thread"
    """The label of the choice `always`."""
    choice_stop: str = "End the run"
    """The label of the choice `stop`."""
    free_text: str = "Any other text refuses the calls and is passed on to the model"
    """What the question says about answers that are no choice."""

    def say(self, name: str, **values: object) -> str:
        """Fill one sentence in; braces that name none of the values stay as they are."""
        text: str = getattr(self, name)
        for key, value in values.items():
            text = text.replace(f"{{{key}}}", str(value))
        return text.rstrip()


def wording_of(value: Any) -> Wording:
    """Read the option `wording`.

    Raises:
        ValueError: If it is neither a `Wording` nor a mapping of its fields to texts.
    """
    if value is None or isinstance(value, Wording):
        return value or Wording()
    known = [field.name for field in fields(Wording)]
    if not isinstance(value, Mapping) or not all(type(text) is str for text in value.values()):
        raise ValueError(f"wording: must be a Wording or a mapping of texts, not {value!r}")
    unknown = sorted(str(key) for key in value if key not in known)
    if unknown:
        raise ValueError(f"wording: {unknown} are no fields of it; they are {', '.join(known)}")
    return replace(Wording(), **value)
