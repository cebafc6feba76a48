"""The guard's own rules, one file each: a frozen model of the rule's numbers, and its counters."""

from langchain_loopguard.core.rules.base import Rule, RuleConfig
from langchain_loopguard.core.rules.ceiling import Ceiling
from langchain_loopguard.core.rules.cycle import Cycle
from langchain_loopguard.core.rules.error import Error
from langchain_loopguard.core.rules.in_vain import InVain
from langchain_loopguard.core.rules.repeat import Repeat
from langchain_loopguard.core.rules.stall import Stall

OWN_RULES: tuple[type[RuleConfig], ...] = (Repeat, Stall, Ceiling, Error, InVain, Cycle)
"""Every rule of the guard's own; a new one is a file here and a name in this row."""

__all__ = [
    "OWN_RULES",
    "Ceiling",
    "Cycle",
    "Error",
    "InVain",
    "Repeat",
    "Rule",
    "RuleConfig",
    "Stall",
]
