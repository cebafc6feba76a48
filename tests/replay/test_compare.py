"""What would the other systems have done on the same runs?"""

from __future__ import annotations

import pytest

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.presets import PRESETS
from langchain_loopguard.replay import Conversation, replay
from langchain_loopguard.replay.compare import (
    CompareWork,
    Standing,
    incident_run,
    systems,
)
from tests.conversations import load
from tests.replay.made_runs import repeating, working

SYSTEMS = systems()

# Calls of the incident, counted from 0: first note, first ask, first stop.
INCIDENT = {
    "signals.signal_a": (7, 21, None),
    "signals.signal_b": (7, 12, 16),
    "signals.signal_c": (None, None, None),
    "pr_32089": (None, 7, None),
    "pr_47797": (None, 39, None),
    "pr_47845": (None, None, None),
    "pr_46272": (None, None, None),
    "pr_37109": (None, None, None),
    "hermes_agent": (39, None, 45),
    "gemini_cli": (45, None, 46),
    "openclaw": (46, None, None),
    "gglib": (None, None, None),
    "seed": (None, None, None),
    "kimi_code": (None, None, None),
    "cline": (None, None, None),
    "roo_code": (None, None, None),
    "takt": (None, None, None),
    "crewai": (None, None, 19),
    "autogpt": (None, None, None),
    "opencode_v1": (None, None, None),
}


def from_zero(report):
    fires = (report.warn, report.ask, report.stop)
    return tuple(fire and fire.call - 1 for fire in fires)


@pytest.mark.parametrize("name", INCIDENT)
def test_the_incident_goes_as_it_was_told_of_each_system(name):
    system = next(system for system in SYSTEMS if system.name == name)
    assert from_zero(replay(incident_run(), system.policy)) == INCIDENT[name]


def test_the_default_warns_at_call_15_and_asks_at_call_18_of_the_incident():
    report = replay(incident_run())
    assert (report.warn.call, report.ask.call) == (15, 18)


def test_the_packaged_incident_is_the_one_of_the_cases():
    [case] = [case for case in load("cases") if case["id"] == "shape-incident"]
    told, packaged = Conversation.from_dict(case), incident_run()

    def shown(run):
        return [
            [
                (c["name"], c["args"], r["content"])
                for c, r in zip(b["calls"], b["results"], strict=True)
            ]
            for b in run.batches
        ]

    assert shown(told) == shown(packaged)


def test_every_preset_is_compared():
    assert set(PRESETS) | {"default"} <= {system.name for system in SYSTEMS}


def test_a_preset_of_several_rules_is_compared_rule_by_rule_too():
    parts = [system.name for system in SYSTEMS if system.name.startswith("signals.")]
    assert parts == ["signals.signal_a", "signals.signal_b", "signals.signal_c"]


def test_every_system_says_which_version_is_re_told_and_when_it_was_read():
    whole = [system for system in SYSTEMS if system.name in PRESETS]
    assert [system.name for system in whole if not (system.source and system.read)] == []


def test_a_system_without_rules_has_no_detector():
    assert {s.name for s in SYSTEMS if not s.detects} == {
        "claude_code",
        "codex",
        "pi",
    }


def test_a_policy_of_ones_own_takes_the_first_place():
    policy = LoopGuardPolicy(max_refusals=1)
    assert systems(policy, "mine")[0].policy is policy


def test_a_standing_counts_the_solved_runs_that_were_asked_about():
    standing = Standing(SYSTEMS[0])
    for run in (repeating(9, outcome="success"), repeating(9, outcome="fail"), working(9)):
        standing.add(replay(run))
    assert (standing.all.asked, standing.solved.runs, standing.solved.asked) == (2, 2, 1)


def test_a_standing_knows_the_middle_of_the_first_asks():
    standing = Standing(SYSTEMS[0])
    for times in (5, 6, 30):
        standing.add(replay(repeating(times)))
    assert standing.median_call == 5


def test_the_first_fire_is_the_earlier_one_of_ask_and_stop():
    report = replay(incident_run(), LoopGuardPolicy.preset("hermes_agent"))
    assert report.ask is None
    assert report.first_fire == report.stop


def test_a_comparison_keeps_no_findings():
    compared = CompareWork(SYSTEMS)(repeating(9))
    assert len(compared) == len(SYSTEMS)
    assert all(report.findings == () for report in compared)
