"""Does each system find the incident where the published replay says so?"""

import json
from importlib import resources

import pytest

from langchain_loopguard.core.decision import Action
from langchain_loopguard.presets import PRESETS
from tests.presets.plays import call, findings
from tests.presets.stories import of

COMMANDS = {"git status --short": "S", "git diff --stat": "T", "git diff src/app/main.py": "D"}
WARN, ASK, STOP = Action.WARN, Action.ASK, Action.STOP

FIRST = {
    "pr_32089": {("pr_32089", ASK): 7},
    "pr_47797": {("pr_47797", ASK): 39},
    "hermes_agent": {("hermes_agent", WARN): 39, ("hermes_agent", STOP): 45},
    "gemini_cli": {("gemini_cli", WARN): 45, ("gemini_cli", STOP): 46},
    "openclaw": {("openclaw", WARN): 46},
    "crewai": {("crewai", STOP): 19},
    "signals": {
        ("signal_a", WARN): 7,
        ("signal_a", ASK): 21,
        ("signal_b", WARN): 7,
        ("signal_b", ASK): 12,
        ("signal_b", STOP): 16,
    },
}
"""Preset -> rule and action -> place of the first one from 0; the others never find it. crewAI's
19 is the 20th call."""


def tell(*, variants_print="", diffs=1):
    """Tell the incident: `variants_print` is added to what each variant of a command prints."""
    text = resources.files("langchain_loopguard.demo").joinpath("incident.json").read_text()
    data = json.loads(text)
    steps, diffed = [], 0
    for place, letter in enumerate(data["sequence"]):
        command = data["commands"][letter]["command"]
        result = data["answers"][data["commands"][letter]["answer"]]
        kind = COMMANDS.get(command, "V")
        if kind == "V":
            result += variants_print.format(place)
        if kind == "D":
            command += f" {diffed % diffs}"
            diffed += 1
        steps.append(call(command=command, say=result))
    return steps


def first(rules, steps):
    found = {}
    for place, _, one in findings(rules, steps):
        found.setdefault((one.rule, one.action), place)
    return found


@pytest.mark.parametrize("name", PRESETS)
def test_the_incident_is_found_at_the_published_call(name):
    assert first(of(name), tell()) == FIRST.get(name, {})


def test_diffs_of_two_files_hide_the_incident_from_gemini():
    assert first(of("gemini_cli"), tell(diffs=2)) == {}


def test_diffs_of_two_files_move_signal_a_to_29():
    assert first(of("signal_a"), tell(diffs=2))[("signal_a", ASK)] == 29


def test_variants_that_print_a_new_line_move_signal_b_to_38():
    found = first(of("signal_b"), tell(variants_print="variant {}\n"))
    assert found[("signal_b", ASK)] == 38
