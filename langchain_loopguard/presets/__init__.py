"""Which rules does another system run, by its name?

Every system in the comparison has a row, those without a detector too: their preset has no rules
and finds nothing. A preset is used like any policy, in a live agent as well as on past runs. Each
row says what it re-tells and when that was read; `README.md` has the table for people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from langchain_loopguard.presets.gglib import Gglib, RepeatedBatch
from langchain_loopguard.presets.hermes import Hermes, HermesAgent
from langchain_loopguard.presets.openclaw import OpenClaw
from langchain_loopguard.presets.signals import AutoGpt, Pr32089, SignalA, SignalB, SignalC
from langchain_loopguard.presets.streaks import (
    AgentSight,
    Cline,
    CrewAI,
    DeepseekHarness,
    KimiCode,
    OpencodeV1,
    Pr37109,
    Pr46272,
    RooCode,
)
from langchain_loopguard.presets.takt import Takt
from langchain_loopguard.presets.windows import GeminiCli, OpenHands, Pr47797, Pr47845

if TYPE_CHECKING:
    from langchain_loopguard.presets.frame import PresetConfig


class Preset(NamedTuple):
    """One system's rules.

    Attributes:
        title: What a person knows the system by.
        types: Its rules' numbers; empty for a system that has no loop detector.
        source: The repository and the version or commit that is re-told.
        read: The day or month when that was read, as far as it is known.
    """

    title: str
    types: tuple[type[PresetConfig], ...]
    source: str
    read: str = "2026-10"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its rules."""
        return tuple(kind.model_fields["rule"].default for kind in self.types)

    @property
    def rules(self) -> tuple[PresetConfig, ...]:
        """Its rules by their published numbers."""
        return tuple(kind.model_validate({}) for kind in self.types)


_UNDATED = "2026-10 or before"
"""The first review of these systems gives October 2026 for those that it dates."""

PRESETS: dict[str, Preset] = {
    "seed": Preset("seed", (RepeatedBatch,), "the documents of gglib's detector", _UNDATED),
    "signals": Preset(
        "opencode signals A, B, C", (SignalA, SignalB, SignalC), "the review's own design"
    ),
    "hermes": Preset("hermes tool-loop-guard", (Hermes,), "hermes-tool-loop-guard@1.0.0", _UNDATED),
    "hermes_agent": Preset(
        "hermes-agent", (HermesAgent,), "NousResearch/hermes-agent@06c25ac", "2026-11"
    ),
    "gglib": Preset("gglib", (Gglib,), "the documents of gglib's detector", _UNDATED),
    "opencode_v1": Preset("opencode v1", (OpencodeV1,), "anomalyco/opencode@v1.18.30"),
    "pr_32089": Preset("opencode #32089", (Pr32089,), "anomalyco/opencode#32089"),
    "pr_37109": Preset("opencode #37109", (Pr37109,), "anomalyco/opencode#37109"),
    "pr_46272": Preset("opencode #46272", (Pr46272,), "anomalyco/opencode#46272"),
    "pr_47797": Preset("opencode #47797", (Pr47797,), "anomalyco/opencode#47797"),
    "pr_47845": Preset("opencode #47845", (Pr47845,), "anomalyco/opencode#47845"),
    "kimi_code": Preset("kimi-code", (KimiCode,), "MoonshotAI/kimi-code"),
    "deepseek_harness": Preset("deepseek-harness", (DeepseekHarness,), "deepseek-harness"),
    "gemini_cli": Preset("gemini-cli", (GeminiCli,), "google-gemini/gemini-cli@56da16d"),
    "openclaw": Preset("OpenClaw", (OpenClaw,), "openclaw/openclaw@dd0ecdd4"),
    "openhands": Preset("OpenHands", (OpenHands,), "openhands-sdk@1.58.2", "2026-11-30"),
    "cline": Preset("Cline", (Cline,), "cline/cline@95e54e4"),
    "roo_code": Preset("Roo Code", (RooCode,), "RooCodeInc/Roo-Code@b867ec9"),
    "crewai": Preset("crewAI", (CrewAI,), "crewai@1.15.30", "2026-11-30"),
    "autogpt": Preset("AutoGPT", (AutoGpt,), "Significant-Gravitas/AutoGPT@0edeafc"),
    "takt": Preset("takt", (Takt,), "nrslib/takt@11c18844"),
    "claude_code": Preset("Claude Code", (), "anthropics/claude-code"),
    "codex": Preset("Codex", (), "openai/codex"),
    "pi": Preset("pi", (), "pi"),
    "agentsight": Preset(
        "AgentSight", (AgentSight,), "agentic-os-org/ANOLISA agentsight 0.14.0", "2026-11-30"
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


def rule_types() -> dict[str, type[PresetConfig]]:
    """List every system's rules by their names in a policy file."""
    types = (kind for system in PRESETS.values() for kind in system.types)
    return {kind.model_fields["rule"].default: kind for kind in types}
