"""Where are the rules of other systems, and how are they read from a policy file?

They are many files of which a run needs one or none, and importing them takes longer than the
whole rest of the core. So each is imported when its name is first used.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, SerializeAsAny

from langchain_loopguard.core.rules.base import RuleConfig

_CLASSES = {
    "autogpt": "AutoGpt",
    "cline": "Cline",
    "crewai": "CrewAI",
    "deepseek_harness": "DeepseekHarness",
    "gemini_cli": "GeminiCli",
    "gglib": "Gglib",
    "hermes": "Hermes",
    "hermes_agent": "HermesAgent",
    "kimi_code": "KimiCode",
    "openclaw": "OpenClaw",
    "opencode_v1": "OpencodeV1",
    "openhands": "OpenHands",
    "pr_32089": "Pr32089",
    "pr_37109": "Pr37109",
    "pr_46272": "Pr46272",
    "pr_47797": "Pr47797",
    "pr_47845": "Pr47845",
    "roo_code": "RooCode",
    "signal_a": "SignalA",
    "signal_b": "SignalB",
    "signal_c": "SignalC",
    "takt": "Takt",
}
"""Name of the rule, which is that of its file in `harnesses` -> the class of its numbers."""


class ForeignRule(RuleConfig):
    """The numbers of another system's rule."""

    title: ClassVar[str] = ""
    """What a person knows the system by."""


def foreign_rule(name: str) -> type[ForeignRule]:
    """Import a rule's class of numbers.

    Raises:
        KeyError: If no system has a rule of that name.
    """
    class_name = _CLASSES[name]
    module = importlib.import_module(f"{__package__}.harnesses.{name}")
    found: type[ForeignRule] = getattr(module, class_name)
    return found


def whose_rule(value: Any) -> str:
    """Tell by its name whether a rule, read or about to be read, is `foreign` or `own`."""
    name = value.get("rule") if isinstance(value, Mapping) else getattr(value, "rule", None)
    return "foreign" if isinstance(name, str) and name in _CLASSES else "own"


def _read(value: Any) -> Any:
    if isinstance(value, Mapping):
        return foreign_rule(value["rule"]).model_validate(value)
    return value


AnyForeignRule = Annotated[SerializeAsAny[ForeignRule], BeforeValidator(_read)]
"""A rule of another system as a field of a model: itself, or its fields with its name."""
