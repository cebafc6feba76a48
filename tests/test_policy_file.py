"""Does a policy come out of a file as it went in?"""

from __future__ import annotations

import json

import pytest

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.policy_file import PolicyFileError, named_policy


@pytest.mark.parametrize("name", ["default", *LoopGuardPolicy.preset_names()])
def test_a_policy_comes_out_as_it_went_in(name, tmp_path):
    policy = named_policy(name)
    policy.to_file(tmp_path / "policy.json")
    assert LoopGuardPolicy.from_file(tmp_path / "policy.json") == policy


def test_a_file_holds_every_number(tmp_path):
    LoopGuardPolicy().to_file(tmp_path / "policy.json")
    written = json.loads((tmp_path / "policy.json").read_text())
    assert written["max_refusals"] == 3
    assert written["rules"][0]["rule"] == "same_answer"


def test_what_a_file_leaves_out_has_its_default(tmp_path):
    (tmp_path / "policy.json").write_text('{"max_refusals": 1}')
    assert LoopGuardPolicy.from_file(tmp_path / "policy.json") == LoopGuardPolicy(max_refusals=1)


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    (tmp_path / "policy.json").write_text('{"max_refusals": 1}', encoding="utf-8-sig")
    assert LoopGuardPolicy.from_file(tmp_path / "policy.json").max_refusals == 1


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        pytest.param("{", "policy.json: not JSON", id="no JSON"),
        pytest.param("[]", "not a policy: must be an object of fields$", id="a list"),
        pytest.param('{"a": 1}', "a: no such field; the fields are rules,", id="an unknown field"),
        pytest.param('{"max_refusals": -1}', "max_refusals: must be greater", id="a number"),
        pytest.param('{"max_refusals": "3"}', "max_refusals: must be a whole number", id="a text"),
        pytest.param('{"probation": "no"}', "probation: must be true or false", id="no bool"),
        pytest.param('{"poll_tools": "x"}', "poll_tools: must be a list$", id="no list"),
        pytest.param('{"poll_tools": [5]}', "poll_tools.0: must be a string", id="no names"),
        pytest.param('{"rules": [5]}', "rules.0: must be an object of fields", id="no rule"),
        pytest.param('{"rules": [{}]}', "rules.0: must name its rule", id="a rule without a name"),
        pytest.param(
            '{"rules": [{"rule": "nope"}]}',
            "rules.0: there is no such rule; there are same_answer, .* takt",
            id="an unknown rule",
        ),
        pytest.param(
            '{"rules": [{"rule": "same_answer", "aks": 1}]}',
            "policy: same_answer.aks: no such field; the fields are warn, ask, ask_poller",
            id="an unknown field of a rule",
        ),
        pytest.param(
            '{"rules": [{"rule": "signal_a", "ask": 1}]}',
            "policy: signal_a.ask: no such field; the fields are note_at, ask_at",
            id="an unknown field of another system's rule",
        ),
        pytest.param(
            '{"rules": [{"rule": "same_error", "warn": 9}]}',
            "policy: same_error: warn and ask must not fall: warn <= ask; here warn is 9, ask is 8",
            id="numbers out of order",
        ),
        pytest.param(
            '{"stagnation": {"window": 1}}', "stagnation.window: must be greater", id="an inner one"
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


@pytest.mark.parametrize("name", ["gemini-cli", "gemini_cli", " Gemini-CLI "])
def test_a_preset_is_found_however_it_is_spelled(name):
    assert named_policy(name) == LoopGuardPolicy.preset("gemini_cli")


def test_a_name_that_is_none_is_refused_with_the_names():
    with pytest.raises(ValueError, match=r"neither a file nor a policy's name.*default, seed"):
        named_policy("nope")
