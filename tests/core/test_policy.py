"""Is a policy right when it is made, and does a wrong one say which field and what is allowed?"""

import pytest
from pydantic import ValidationError

from langchain_loopguard.core.invalid import in_words
from langchain_loopguard.core.policy import Policy
from langchain_loopguard.core.rules import OWN_RULES, Cycle, Repeat, Stall


def names(policy):
    return [rule.rule for rule in policy.rules]


def test_the_default_runs_every_own_rule():
    assert [type(rule) for rule in Policy().rules] == list(OWN_RULES)


def test_the_numbers_of_the_default():
    numbers = {rule.rule: rule.model_dump(exclude={"rule"}) for rule in Policy().rules}
    assert numbers == {
        "repeat": {"warn": 4, "ask": 5, "ask_across": 12, "patience": 20},
        "stall": {"warn": 5, "ask": 8, "ask_after_change": 12},
        "ceiling": {"changing": 10, "shell": 20, "total": 50},
        "error": {"warn": 5, "ask": 8, "patience": 20},
        "in_vain": {"ask_again": 8, "repeats": 2, "warn": 10, "ask": 15},
        "cycle": {"rounds": 6, "longest": 8},
    }


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"max_refusals": -1}, "max_refusals: must be greater than or equal to 0"),
        ({"max_refusals": "3"}, "max_refusals: must be a whole number"),
        ({"max_refusals": True}, "max_refusals: must be a whole number"),
        ({"poll_tools": "wait"}, "poll_tools: must be a list"),
        ({"poll_tools": [" "]}, "poll_tools: each must be a tool's name"),
        ({"tool_limits": {"t": 0}}, "tool_limits.t: must be greater than or equal to 1"),
        ({"is_failure": 5}, "is_failure: must be a function"),
        ({"nope": 1}, "nope: no such field; the fields are rules, max_refusals,"),
        ({"rules": 5}, "rules: must be a list"),
        ({"rules": [5]}, "rules: each must name its rule"),
        ({"rules": [{"rule": "nope"}]}, "rules: there is no rule 'nope'; there are repeat, stall,"),
        (
            {"rules": [{"rule": "repeat", "ask": 1}]},
            "rules: repeat.ask: must be greater than or equal to 2",
        ),
        (
            {"rules": [{"rule": "stall", "nope": 1}]},
            "rules: stall.nope: no such field; the fields are warn, ask, ask_after_change",
        ),
        (
            {"rules": [{"rule": "repeat", "warn": 6}]},
            "ask_across and patience must not fall: warn <= ask <= ask_across <= patience",
        ),
        ({"rules": [Repeat(), Repeat(ask=6)]}, "rules: each kind may be listed once"),
        (
            {"read_only_tools": ["t"], "shell_tools": ["t"]},
            "read_only_tools: ['t'] are listed as changing_tools or shell_tools too",
        ),
    ],
)
def test_a_wrong_policy_names_the_field_and_what_is_allowed(given, told):
    with pytest.raises(ValidationError) as refused:
        Policy(**given)
    assert told in in_words(refused.value, Policy)


@pytest.mark.parametrize("rule", OWN_RULES)
def test_a_rules_numbers_are_not_converted(rule):
    field = next(name for name in rule.model_fields if name != "rule")
    with pytest.raises(ValidationError, match=field):
        rule(**{field: "5"})


def test_a_policy_can_not_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        Policy().max_refusals = 5


# --- Tuning ---------------------------------------------------------------------------------------


def test_a_rules_numbers_are_tuned():
    policy = Policy(max_refusals=1).tune(repeat={"ask": 7}, cycle=None)
    assert names(policy) == ["repeat", "stall", "ceiling", "error", "in_vain"]
    assert policy.rules[0] == Repeat(ask=7)
    assert policy.max_refusals == 1
    assert Policy().rules[0] == Repeat()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"nope": None}, r"rules: the policy has no \['nope'\]; its rules are \['repeat'"),
        ({"repeat": 5}, "repeat: must be None or the numbers to change"),
        ({"repeat": {"ask": 1}}, "repeat.ask: must be greater"),
        ({"repeat": {"nope": 1}}, "repeat.nope: no such field; the fields are warn, ask"),
        ({"cycle": {"longest": 9}}, "cycle.longest: must be less than or equal to 8"),
    ],
)
def test_a_wrong_change_is_told(change, told):
    with pytest.raises(ValueError, match=told):
        Policy().tune(**change)


def test_a_tool_has_a_limit_of_its_own():
    policy = Policy().for_tool("refund", repeat=2).for_tool("get_job", repeat=300)
    assert policy.tool_limits == {"refund": 2, "get_job": 300}
    assert policy.kind_of("get_job").poller
    assert not policy.kind_of("refund").poller


@pytest.mark.parametrize("repeat", [0, -1, "x", None])
def test_a_wrong_limit_is_told(repeat):
    with pytest.raises(ValueError, match=r"tool_limits\.refund"):
        Policy().for_tool("refund", repeat=repeat)


def test_tuning_keeps_what_is_no_data():
    policy = Policy(is_failure=lambda name, content: None, rules=(Stall(), Cycle()))
    assert policy.tune(cycle=None).is_failure is policy.is_failure
    assert policy.for_tool("t", repeat=3).is_failure is policy.is_failure


def test_a_policy_is_data_but_for_its_function():
    policy = Policy(is_failure=lambda name, content: None, tool_limits={"t": 3})
    assert "is_failure" not in policy.model_dump()
    assert Policy.model_validate_json(policy.model_dump_json()) == Policy(tool_limits={"t": 3})
