"""Does a policy hold own and other systems' rules, and come out of a file as it went in?"""

import json
import subprocess
import sys

import pytest
from pydantic import ValidationError

from langchain_loopguard.policy import (
    LoopGuardPolicy,
    PolicyFileError,
    files_of,
    named_policy,
    policy_text,
)
from langchain_loopguard.presets import PRESETS
from langchain_loopguard.presets.windows import GeminiCli


def test_a_preset_is_found_by_any_spelling():
    assert LoopGuardPolicy.preset(" Gemini-CLI").rules == (GeminiCli(),)


@pytest.mark.parametrize(
    ("name", "said"),
    [("nope", "no preset is called 'nope'"), ("", "no preset is called ''"), (5, "not 5$")],
)
def test_a_wrong_name_lists_the_right_ones(name, said):
    with pytest.raises(ValueError, match=rf"(?=.*seed, signals.*agentsight).*{said}"):
        LoopGuardPolicy.preset(name)


def test_presets_have_their_own_rules():
    with pytest.raises(ValueError, match="rules: a preset has its own"):
        LoopGuardPolicy.seed(rules=())


def test_the_named_presets_take_other_options():
    signals = LoopGuardPolicy.signals(max_refusals=1)
    assert [rule.rule for rule in signals.rules] == list(PRESETS["signals"].names)
    assert signals.max_refusals == 1
    assert LoopGuardPolicy.seed().rules == PRESETS["seed"].rules
    assert LoopGuardPolicy.hermes().rules == PRESETS["hermes"].rules
    assert LoopGuardPolicy.hermes(hard_stop=True).rules[0].hard_stop_enabled


@pytest.mark.parametrize("name", ["default", *PRESETS])
def test_a_policy_comes_out_of_a_file_as_it_went_in(name, tmp_path):
    policy = named_policy(name)
    policy.to_file(tmp_path / "policy.json")
    assert LoopGuardPolicy.from_file(tmp_path / "policy.json") == policy
    assert LoopGuardPolicy.model_validate_json(policy.model_dump_json()) == policy


def test_a_file_holds_every_number():
    written = json.loads(policy_text(LoopGuardPolicy.preset("kimi_code")))
    assert written["rules"] == [{"rule": "kimi_code", "notes_at": [3, 5, 8], "stop_at": 12}]
    assert written["max_refusals"] == 3


def test_what_a_file_leaves_out_has_its_default(tmp_path):
    (tmp_path / "policy.json").write_text('{"max_refusals": 1}', encoding="utf-8-sig")
    assert LoopGuardPolicy.from_file(tmp_path / "policy.json") == LoopGuardPolicy(max_refusals=1)


def test_a_file_holds_own_and_other_systems_rules(tmp_path):
    rules = [{"rule": "cline", "stop_at": 9}, {"rule": "repeat"}]
    (tmp_path / "policy.json").write_text(json.dumps({"rules": rules}))
    cline, repeat = LoopGuardPolicy.from_file(tmp_path / "policy.json").rules
    assert (cline.stop_at, repeat.rule) == (9, "repeat")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        pytest.param("{", "policy.json: not JSON", id="no JSON"),
        pytest.param("[]", "must be an object of fields", id="a list"),
        pytest.param('{"a": 1}', "a: no such field; the fields are rules,", id="a field"),
        pytest.param('{"max_refusals": -1}', "max_refusals: must be greater", id="a number"),
        pytest.param('{"max_refusals": "3"}', "max_refusals: must be a whole number", id="a text"),
        pytest.param('{"poll_tools": "x"}', "poll_tools: must be a list", id="no list"),
        pytest.param('{"rules": 5}', "rules: must be a list", id="no rules"),
        pytest.param('{"rules": [5]}', "must name its rule", id="no rule"),
        pytest.param('{"rules": [{}]}', "must name its rule", id="a rule without a name"),
        pytest.param(
            '{"rules": [{"rule": "nope"}]}', "there is no rule 'nope'; .* repeat.* takt", id="rule"
        ),
        pytest.param(
            '{"rules": [{"rule": "signal_a", "ask": 1}]}',
            "signal_a.ask: no such field; the fields are note_at, ask_at",
            id="a field of another system's rule",
        ),
        pytest.param(
            '{"rules": [{"rule": "kimi_code", "stop_at": 0}]}',
            "kimi_code.stop_at: must be greater",
            id="a number of another system's rule",
        ),
        pytest.param(
            '{"rules": [{"rule": "cline", "note_at": 9}]}',
            "cline.*note_at and stop_at must not fall",
            id="numbers out of order",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_field(text, wrong, tmp_path):
    (tmp_path / "policy.json").write_text(text)
    with pytest.raises(PolicyFileError, match=wrong):
        LoopGuardPolicy.from_file(tmp_path / "policy.json")


def test_a_file_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        LoopGuardPolicy.from_file(tmp_path / "none.json")


@pytest.mark.parametrize("name", ["nope", ""])
def test_a_name_that_is_none_is_refused_with_the_names(name):
    with pytest.raises(ValueError, match=r"neither a file nor a policy's name.*default, seed"):
        named_policy(name)


def test_a_name_of_a_policy_reads_no_file():
    assert (files_of(" Default"), files_of("gemini-cli"), files_of("a.json")) == (
        [],
        [],
        ["a.json"],
    )


def test_numbers_of_another_systems_rule_can_be_tuned():
    tuned = LoopGuardPolicy.signals().tune(signal_a={"ask_at": 9}, signal_c=None)
    assert [(rule.rule, rule.ask_at) for rule in tuned.rules] == [("signal_a", 9), ("signal_b", 8)]


def test_a_rule_may_be_listed_once():
    with pytest.raises(ValidationError, match="listed"):
        LoopGuardPolicy(rules=[{"rule": "cline"}, {"rule": "cline"}])


def test_a_policy_of_own_rules_imports_no_other_systems():
    code = (
        "import sys\nfrom langchain_loopguard.policy import LoopGuardPolicy\n"
        "LoopGuardPolicy.model_validate({'rules': [{'rule': 'repeat'}]}).tune(repeat={})\n"
        "assert 'langchain_loopguard.presets.frame' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
