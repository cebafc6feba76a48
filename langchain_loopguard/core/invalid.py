"""Says in words what is wrong with a policy: the field, and what is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

_KINDS = {
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "model_type": "must be an object of fields",
    "callable_type": "must be a function",
}
"""Kind of error -> what the value must be, where pydantic's own words are of Python."""


def in_words(error: ValidationError, model: type[BaseModel], prefix: str = "") -> str:
    """Put each fault of a model in one phrase that names its field.

    Args:
        error: What pydantic found.
        model: The model that was to be made.
        prefix: What to put before each field's name, such as a rule's name and a full stop.
    """
    faults = []
    for fault in error.errors(include_url=False):
        kind, text = fault["type"], fault["msg"]
        where = prefix + ".".join(map(str, fault["loc"]))
        if kind in _KINDS:
            text = _KINDS[kind]
        elif kind == "extra_forbidden":
            text = f"no such field; the fields are {fields_of(model)}"
        elif kind == "value_error":
            text = text.removeprefix("Value error, ")
        else:
            text = text.replace("Input should be a valid ", "must be a ")
            text = text.replace("Input should", "must")
        named = kind == "value_error" and not fault["loc"]
        faults.append(f"{prefix}{text}" if named else f"{where}: {text}")
    return "; ".join(faults)


def fields_of(model: type[BaseModel]) -> str:
    """List a model's fields, but for a rule's name."""
    return ", ".join(name for name in model.model_fields if name != "rule")
