"""Which options do the adapters have in common, and what is said when one is wrong?

Everything that is wrong at construction is a `ValueError` that names the option, what it was and
what it may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from langchain_loopguard.core.policy import LoopGuardPolicy

__all__ = [
    "OnDetected",
    "OnDetectedInCallbacks",
    "Scope",
    "check_choice",
    "check_flag",
    "check_name",
    "check_tools",
    "policy_of",
]

OnDetected = Literal["interrupt", "raise", "refuse", "warn", "wrap_up"]
"""What happens when a loop is detected: a person is asked, the run ends in an error, the calls
are refused, nothing is held back, or the model answers once more without tools."""

OnDetectedInCallbacks = Literal["interrupt", "raise", "refuse", "warn"]
"""The same for a callback handler, which can't send the model on without tools."""

Scope = Literal["thread", "handler"]
"""Over what a callback handler counts."""


def policy_of(policy: LoopGuardPolicy | None) -> LoopGuardPolicy:
    """Give the policy, the default one for `None`."""
    if policy is not None and not isinstance(policy, LoopGuardPolicy):
        raise ValueError(f"policy: must be a LoopGuardPolicy or None, not {policy!r}")
    return LoopGuardPolicy() if policy is None else policy


def check_choice(option: str, value: Any, choices: Any) -> None:
    """Check that an option is one of the choices of a `Literal`."""
    allowed = get_args(choices)
    if value not in allowed:
        shown = ", ".join(repr(choice) for choice in allowed)
        raise ValueError(f"{option}: must be one of {shown}, not {value!r}")


def check_name(option: str, value: Any) -> None:
    """Check that an option is a name."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{option}: must be a name that is not empty, not {value!r}")


def check_flag(option: str, value: Any) -> None:
    """Check that an option is a bool: any text would count as true, `"no"` too."""
    if not isinstance(value, bool):
        raise ValueError(  # noqa: TRY004 - one type for everything that is wrong at construction
            f"{option}: must be True or False, not {value!r}"
        )


def check_tools(option: str, value: Any) -> None:
    """Check that an option is a list of tools; one tool can be iterated over too, and is none."""
    one = isinstance(value, str | bytes | Mapping) or callable(getattr(value, "invoke", None))
    if one or not isinstance(value, Iterable):
        raise ValueError(f"{option}: must be a list of tools, not {value!r}")
