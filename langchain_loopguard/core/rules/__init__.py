"""The rules of the guard, one file each.

A rule is two things in one file: a frozen pydantic model with the rule's numbers, which a
policy lists, and the counters that run it, made by `build`. `AnyRule` lists every rule a policy
may hold. Other systems' rules are in `harnesses`.
"""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Discriminator, Field, Tag

from langchain_loopguard.core.rules.base import Rule, RuleConfig
from langchain_loopguard.core.rules.foreign import AnyForeignRule, ForeignRule, whose_rule
from langchain_loopguard.core.rules.nothing_new import NothingNew
from langchain_loopguard.core.rules.repeated_batch import RepeatedBatch
from langchain_loopguard.core.rules.same_answer import SameAnswer
from langchain_loopguard.core.rules.same_error import SameError
from langchain_loopguard.core.rules.same_numbers import SameNumbers
from langchain_loopguard.core.rules.unbroken_call import UnbrokenCall

_Own = SameAnswer | NothingNew | UnbrokenCall | SameError | SameNumbers | RepeatedBatch

OWN_RULES: tuple[type[RuleConfig], ...] = get_args(_Own)
"""The rules that are no other system's; a new one is a file here and a name in `_Own`."""

AnyRule = Annotated[
    Annotated[_Own, Field(discriminator="rule"), Tag("own")]
    | Annotated[AnyForeignRule, Tag("foreign")],
    Discriminator(whose_rule),
]

__all__ = [
    "OWN_RULES",
    "AnyRule",
    "ForeignRule",
    "NothingNew",
    "RepeatedBatch",
    "Rule",
    "RuleConfig",
    "SameAnswer",
    "SameError",
    "SameNumbers",
    "UnbrokenCall",
]
