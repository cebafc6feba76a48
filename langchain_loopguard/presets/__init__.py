"""Which rules does another system run, by its name?

Every system in the comparison has a row, those without a detector too: their preset has no rules
and finds nothing. A preset is used like any policy, in a live agent as well as on past runs. Each
row says what it re-tells and when that was read; `README.md` has the table for people.

A run needs one of them or none, and importing all takes 50 ms, so each is imported when its name
is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from langchain_loopguard.presets.frame import PresetConfig


class Preset(NamedTuple):
    """One system's rules.

    Attributes:
        title: What a person knows the system by.
        names: The names of its rules; empty for a system that has no loop detector.
        source: The repository and the version or commit that is re-told.
        read: The day or month when that was read, as far as it is known.
    """

    title: str
    names: tuple[str, ...]
    source: str
    read: str = "2026-10"

    @property
    def rules(self) -> tuple[PresetConfig, ...]:
        """Its rules by their published numbers."""
        return tuple(rule_type(name).model_validate({}) for name in self.names)


_RULES = {
    "repeated_batch": "gglib.RepeatedBatch",
    "signal_a": "signals.SignalA",
    "signal_b": "signals.SignalB",
    "signal_c": "signals.SignalC",
    "hermes": "hermes.Hermes",
    "hermes_agent": "hermes.HermesAgent",
    "gglib": "gglib.Gglib",
    "opencode_v1": "streaks.OpencodeV1",
    "pr_32089": "signals.Pr32089",
    "pr_37109": "streaks.Pr37109",
    "pr_46272": "streaks.Pr46272",
    "pr_47797": "windows.Pr47797",
    "pr_47845": "windows.Pr47845",
    "kimi_code": "streaks.KimiCode",
    "deepseek_harness": "streaks.DeepseekHarness",
    "gemini_cli": "windows.GeminiCli",
    "openclaw": "openclaw.OpenClaw",
    "openhands": "windows.OpenHands",
    "cline": "streaks.Cline",
    "roo_code": "streaks.RooCode",
    "crewai": "streaks.CrewAI",
    "autogpt": "signals.AutoGpt",
    "takt": "takt.Takt",
    "agentsight": "streaks.AgentSight",
}
"""Name of the rule -> where its numbers are."""

RULE_NAMES: tuple[str, ...] = tuple(_RULES)
"""The names of all systems' rules, as in a policy file."""

_UNDATED = "2026-10 or before"
"""The first review of these systems gives October 2026 for those that it dates."""

PRESETS: dict[str, Preset] = {
    "seed": Preset("seed", ("repeated_batch",), "the documents of gglib's detector", _UNDATED),
    "signals": Preset(
        "opencode signals A, B, C", ("signal_a", "signal_b", "signal_c"), "the review's own design"
    ),
    "hermes": Preset(
        "hermes tool-loop-guard", ("hermes",), "hermes-tool-loop-guard@1.0.0", _UNDATED
    ),
    "hermes_agent": Preset(
        "hermes-agent", ("hermes_agent",), "NousResearch/hermes-agent@06c25ac", "2026-11"
    ),
    "gglib": Preset("gglib", ("gglib",), "the documents of gglib's detector", _UNDATED),
    "opencode_v1": Preset("opencode v1", ("opencode_v1",), "anomalyco/opencode@v1.18.30"),
    "pr_32089": Preset("opencode #32089", ("pr_32089",), "anomalyco/opencode#32089"),
    "pr_37109": Preset("opencode #37109", ("pr_37109",), "anomalyco/opencode#37109"),
    "pr_46272": Preset("opencode #46272", ("pr_46272",), "anomalyco/opencode#46272"),
    "pr_47797": Preset("opencode #47797", ("pr_47797",), "anomalyco/opencode#47797"),
    "pr_47845": Preset("opencode #47845", ("pr_47845",), "anomalyco/opencode#47845"),
    "kimi_code": Preset("kimi-code", ("kimi_code",), "MoonshotAI/kimi-code"),
    "deepseek_harness": Preset("deepseek-harness", ("deepseek_harness",), "deepseek-harness"),
    "gemini_cli": Preset("gemini-cli", ("gemini_cli",), "google-gemini/gemini-cli@56da16d"),
    "openclaw": Preset("OpenClaw", ("openclaw",), "openclaw/openclaw@dd0ecdd4"),
    "openhands": Preset("OpenHands", ("openhands",), "openhands-sdk@1.58.2", "2026-11-30"),
    "cline": Preset("Cline", ("cline",), "cline/cline@95e54e4"),
    "roo_code": Preset("Roo Code", ("roo_code",), "RooCodeInc/Roo-Code@b867ec9"),
    "crewai": Preset("crewAI", ("crewai",), "crewai@1.15.30", "2026-11-30"),
    "autogpt": Preset("AutoGPT", ("autogpt",), "Significant-Gravitas/AutoGPT@0edeafc"),
    "takt": Preset("takt", ("takt",), "nrslib/takt@11c18844"),
    "claude_code": Preset("Claude Code", (), "anthropics/claude-code"),
    "codex": Preset("Codex", (), "openai/codex"),
    "pi": Preset("pi", (), "pi"),
    "agentsight": Preset(
        "AgentSight", ("agentsight",), "agentic-os-org/ANOLISA agentsight@0.14.0", "2026-11-30"
    ),
}
"""Preset name -> the system's rules."""


def preset(name: str) -> Preset:
    """Look a preset up; `-` and `_` and the case of the letters make no difference.

    Raises:
        ValueError: If there is none of that name; the message lists those there are.
    """
    if not isinstance(name, str):
        raise ValueError(f"name: must be one of {', '.join(PRESETS)}, not {name!r}")  # noqa: TRY004
    found = PRESETS.get(name.strip().lower().replace("-", "_"))
    if found is None:
        raise ValueError(f"no preset is called {name!r}; there are {', '.join(PRESETS)}")
    return found


def rule_type(name: str) -> type[PresetConfig]:
    """Import the model of a rule's numbers.

    Raises:
        KeyError: If no system has a rule of that name.
    """
    module, _, kind = _RULES[name].partition(".")
    found: type[PresetConfig] = getattr(importlib.import_module(f"{__name__}.{module}"), kind)
    return found
