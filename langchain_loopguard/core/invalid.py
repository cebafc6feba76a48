"""What is said of a policy that is not valid?

Pydantic tells where a value is by the way it took through the types, and what it should be by
the types' names in Python. A person who wrote a file, or one number, reads rules and fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_loopguard.core.presets import PRESETS
from langchain_loopguard.core.rules import OWN_RULES, RuleConfig
from langchain_loopguard.core.rules.foreign import foreign_rule, whose_rule
from langchain_loopguard.core.stagnation import Stagnation

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

__all__ = ["fields_of", "in_words"]

_OWN: dict[str, type[RuleConfig]] = {rule.model_fields["rule"].default: rule for rule in OWN_RULES}

_FOREIGN = tuple(dict.fromkeys(name for preset in PRESETS.values() for name in preset.names))

_RULE_PARTS = 2
"""Parts of the way to a rule: `rules` and its place."""

_OBJECT = "must be an object of fields"

_NUMBER, _BOOL = "must be a whole number", "must be true or false"

_WORDS = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _NUMBER),
    **dict.fromkeys(("bool_type", "bool_parsing"), _BOOL),
    "tuple_type": "must be a list",
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "union_tag_not_found": 'must name its rule, as in {"rule": "same_answer"}',
}
"""Kind of error -> what the value must be, where pydantic's own words are of Python."""


def in_words(error: ValidationError, data: Any) -> str:
    """Say what is wrong with a policy, each fault with its field.

    Args:
        error: What was found.
        data: What was to become the policy.
    """
    return "; ".join(_fault(one, data) for one in error.errors(include_url=False))


def fields_of(model: type[BaseModel]) -> str:
    """List a model's fields, but for a rule's name."""
    return ", ".join(name for name in model.model_fields if name != "rule")


def _fault(error: ErrorDetails, data: Any) -> str:
    where = [str(part) for part in error["loc"]]
    model: type[BaseModel] | None = Stagnation if where[:1] == ["stagnation"] else None
    if where[:1] == ["rules"] and len(where) > _RULE_PARTS:
        # Behind the place the tags of the union that it went through.
        name = _name_of_rule(data, int(where[1]))
        model = _rule(name)
        inner = where[_RULE_PARTS + 1 :]
        if model is not None:
            where = [str(name), *(inner[1:] if name in _OWN else inner)]
        else:
            where = where[:_RULE_PARTS]
    path = ".".join(where)
    text = _text(error, model)
    return f"{path}: {text}" if path else text


def _text(error: ErrorDetails, model: type[BaseModel] | None) -> str:
    kind, text = error["type"], error["msg"]
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "union_tag_invalid":
        return f"there is no such rule; there are {', '.join(dict.fromkeys((*_OWN, *_FOREIGN)))}"
    if kind == "extra_forbidden":
        return "no such field" + (f"; the fields are {fields_of(model)}" if model else "")
    if kind == "value_error":
        return text.removeprefix("Value error, ") + _values(text, error["input"], model)
    return text.replace("Input should be a valid ", "must be a ").replace("Input should", "must")


def _values(text: str, given: Any, model: type[BaseModel] | None) -> str:
    """Give the numbers that a fault names, those left out as they are by default."""
    if model is None or not isinstance(given, Mapping):
        return ""
    words = dict.fromkeys(re.findall(r"\w+", text))
    numbers = {
        name: given.get(name, model.model_fields[name].default)
        for name in words
        if name in model.model_fields
    }
    told = ", ".join(f"{name} is {number!r}" for name, number in numbers.items())
    return f"; here {told}" if told else ""


def _name_of_rule(data: Any, place: int) -> Any:
    try:
        rule = data["rules"][place]
    except (LookupError, TypeError):
        return None
    return rule.get("rule") if isinstance(rule, Mapping) else getattr(rule, "rule", None)


def _rule(name: Any) -> type[RuleConfig] | None:
    if not isinstance(name, str):
        return None
    return foreign_rule(name) if whose_rule({"rule": name}) == "foreign" else _OWN.get(name)
