"""Which rules does another system run, by its name?

Every system in the comparison has a row, those without a detector too: their preset has no rules
and finds nothing. A preset is used like any policy, in a live agent as well as on past runs.
"""

from __future__ import annotations

from typing import NamedTuple

from langchain_loopguard.core.rules import AnyRule, RepeatedBatch
from langchain_loopguard.core.rules.foreign import foreign_rule


class Preset(NamedTuple):
    """One system's rules.

    Attributes:
        title: What a person knows the system by.
        names: The names of its rules; empty for a system that has no loop detector.
    """

    title: str
    names: tuple[str, ...]

    @property
    def rules(self) -> tuple[AnyRule, ...]:
        """Its rules by their published numbers."""
        return tuple(
            RepeatedBatch() if name == "repeated_batch" else foreign_rule(name).model_validate({})
            for name in self.names
        )


PRESETS: dict[str, Preset] = {
    "seed": Preset("seed", ("repeated_batch",)),
    "signals": Preset("opencode signals A, B, C", ("signal_a", "signal_b", "signal_c")),
    "hermes": Preset("hermes tool-loop-guard", ("hermes",)),
    "hermes_agent": Preset("hermes-agent", ("hermes_agent",)),
    "gglib": Preset("gglib", ("gglib",)),
    "opencode_v1": Preset("opencode v1", ("opencode_v1",)),
    "pr_32089": Preset("opencode #32089", ("pr_32089",)),
    "pr_37109": Preset("opencode #37109", ("pr_37109",)),
    "pr_46272": Preset("opencode #46272", ("pr_46272",)),
    "pr_47797": Preset("opencode #47797", ("pr_47797",)),
    "pr_47845": Preset("opencode #47845", ("pr_47845",)),
    "kimi_code": Preset("kimi-code", ("kimi_code",)),
    "deepseek_harness": Preset("deepseek-harness", ("deepseek_harness",)),
    "gemini_cli": Preset("gemini-cli", ("gemini_cli",)),
    "openclaw": Preset("OpenClaw", ("openclaw",)),
    "openhands": Preset("OpenHands", ("openhands",)),
    "cline": Preset("Cline", ("cline",)),
    "roo_code": Preset("Roo Code", ("roo_code",)),
    "crewai": Preset("crewAI", ("crewai",)),
    "autogpt": Preset("AutoGPT", ("autogpt",)),
    "takt": Preset("takt", ("takt",)),
    "claude_code": Preset("Claude Code", ()),
    "codex": Preset("Codex", ()),
    "pi": Preset("pi", ()),
    "agentsight": Preset("AgentSight", ()),
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
