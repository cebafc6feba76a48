"""Is a policy valid, and does it say what is wrong when it is not?"""

import ast
import inspect
import itertools
import json
import textwrap

import pytest
from pydantic import ValidationError

from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.rules import (
    NothingNew,
    RepeatedBatch,
    RuleConfig,
    SameAnswer,
    SameError,
    SameNumbers,
    UnbrokenCall,
)
from langchain_loopguard.core.stagnation import Stagnation

ALL = (SameAnswer(), NothingNew(), UnbrokenCall(), SameError(), SameNumbers(), RepeatedBatch())

POLICIES = [
    pytest.param(LoopGuardPolicy(), id="default"),
    pytest.param(LoopGuardPolicy.seed(), id="seed"),
    pytest.param(LoopGuardPolicy.signals(), id="signals"),
    pytest.param(LoopGuardPolicy.hermes(hard_stop=True), id="hermes, hard stop"),
    pytest.param(LoopGuardPolicy(rules=ALL), id="all own rules"),
    pytest.param(LoopGuardPolicy(rules=(), stagnation=None, max_refusals=0), id="nothing"),
    pytest.param(
        LoopGuardPolicy(
            rules=(SameAnswer(ask=7), *LoopGuardPolicy.preset("takt").rules),
            stagnation=Stagnation(max_repeats=2, window=9),
            probation=False,
            poll_tools=("job",),
            read_only_tools=("a",),
            changing_tools=("b",),
            shell_tools=("c",),
        ),
        id="own and foreign rules, all fields",
    ),
]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_survives_json(policy):
    assert LoopGuardPolicy.model_validate_json(policy.model_dump_json()) == policy
    assert LoopGuardPolicy.model_validate(
        json.loads(json.dumps(policy.model_dump(mode="json")))
    ) == (policy)


def test_a_rule_is_given_by_its_name_and_the_numbers_that_differ():
    policy = LoopGuardPolicy.model_validate({"rules": [{"rule": "same_answer", "ask": 6}]})
    assert policy.rules == (SameAnswer(ask=6),)


def test_a_policy_and_its_rules_are_frozen():
    policy = LoopGuardPolicy()
    with pytest.raises(ValidationError, match="frozen"):
        policy.max_refusals = 5
    with pytest.raises(ValidationError, match="frozen"):
        policy.rules[0].ask = 6


def test_the_default_runs_every_own_rule_but_the_seeds():
    assert LoopGuardPolicy().rules == ALL[:-1]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_refusals": -1}, r"max_refusals\n.*greater than or equal to 0"),
        ({"max_refusals": "many"}, r"max_refusals\n.*valid integer"),
        ({"max_refusals": 1.5}, r"max_refusals\n.*valid integer"),
        ({"probation": "perhaps"}, r"probation\n.*valid boolean"),
        ({"poll_tools": "job"}, r"poll_tools\n.*valid tuple"),
        ({"poll_tools": [1]}, r"poll_tools.0\n.*valid string"),
        ({"read_only_tools": None}, r"read_only_tools\n.*valid tuple"),
        ({"stagnation": 5}, r"stagnation\n.*Stagnation"),
        ({"stagnation": {"window": 1}}, r"stagnation.window\n.*greater than or equal to 2"),
        ({"max_refusal": 1}, r"max_refusal: no such field; the fields are rules, max_refusals, "),
        ({"max_refusals": True}, r"max_refusals\n.*valid integer"),
        ({"max_refusals": "3"}, r"max_refusals\n.*valid integer"),
        ({"probation": "no"}, r"probation\n.*valid boolean"),
        ({"poll_tools": [""]}, r"poll_tools\n.*blank is neither"),
        ({"shell_tools": ["bash", " "]}, r"shell_tools\n.*blank is neither"),
        ({"rules": [{"rule": "unbroken_call", "ask": 30}]}, "ask and ask_shell must not fall"),
        ({"rules": 5}, r"rules\n.*valid tuple"),
        ({"rules": [{"rule": "same_answer", "ask": 1}]}, r"ask\n.*greater than or equal to 2"),
        ({"rules": [{"rule": "same_answer", "asks": 5}]}, r"asks\n.*not permitted"),
        ({"rules": [{"rule": "same_answers"}]}, r"(?s)same_answers.*'same_answer', 'nothing_new'"),
        ({"rules": [{"rule": "takt", "no_such": 5}]}, r"no_such\n.*not permitted"),
        ({"rules": [{}]}, r"rules.0"),
        ({"rules": [5]}, r"rules.0"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(fields, named):
    with pytest.raises(ValidationError, match=named):
        LoopGuardPolicy(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"read_only_tools": ("job", "x"), "changing_tools": ("job",)},
        {"read_only_tools": ("job", "x"), "shell_tools": ("job", "y")},
    ],
)
def test_a_tool_that_reads_and_changes_is_refused(fields):
    with pytest.raises(ValidationError, match=r"read_only_tools: \['job'\] are listed as"):
        LoopGuardPolicy(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"read_only_tools": ("job",), "poll_tools": ("job",)},
        {"changing_tools": ("job",), "shell_tools": ("job",)},
        {"poll_tools": ("job",), "shell_tools": ("job",)},
    ],
)
def test_a_tool_may_be_in_two_lists_that_agree(fields):
    assert LoopGuardPolicy(**fields)


def test_a_rule_may_be_listed_once():
    with pytest.raises(ValidationError, match=r"listed again: \['nothing_new', 'same_answer'\]"):
        LoopGuardPolicy(rules=(SameAnswer(), NothingNew(), SameAnswer(ask=6), NothingNew()))


@pytest.mark.parametrize("rule", [type(rule) for rule in ALL], ids=lambda rule: rule.__name__)
def test_every_number_of_a_rule_is_explained_and_bounded(rule):
    body = ast.parse(textwrap.dedent(inspect.getsource(rule))).body[0].body
    explained = {
        field.target.id
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }
    for name, field in rule.model_fields.items():
        if field.annotation in (int, int | None):
            assert name in explained
            assert field.metadata, f"{name} has no bound"


def test_a_rule_without_counters_of_its_own_cannot_be_built():
    with pytest.raises(NotImplementedError):
        RuleConfig(rule="x").build()


# --- Other numbers ----------------------------------------------------------------------------


def test_a_foreign_rule_is_tuned_like_an_own_one():
    tuned = LoopGuardPolicy.hermes().tune(hermes={"hard_stop_enabled": True})
    assert tuned == LoopGuardPolicy.hermes(hard_stop=True)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (
            {"same_answer": {"asks": 7}},
            r"same_answer\.asks: no such field; .* warn, ask, ask_poller",
        ),
        ({"same_answer": {"ask": 2}}, "warn <= ask <= ask_poller; here warn is 3, ask is 2, ask_p"),
        ({"same_answer": 7}, r"same_answer: must be None or the numbers.*\{\"ask\": 7\}, not 7"),
        (
            {"unbroken_call": {"ask": 30}},
            "ask and ask_shell must not fall: ask <= ask_shell; here ask is 30",
        ),
    ],
)
def test_a_bad_change_is_named_with_what_is_allowed(changes, named):
    with pytest.raises(ValueError, match=named):
        LoopGuardPolicy().tune(**changes)


# --- Presets ------------------------------------------------------------------------------------


def test_presets_take_the_policys_other_fields():
    for policy in (
        LoopGuardPolicy.seed(max_refusals=7),
        LoopGuardPolicy.signals(max_refusals=7),
        LoopGuardPolicy.hermes(max_refusals=7),
        LoopGuardPolicy.preset("takt", max_refusals=7),
    ):
        assert policy.max_refusals == 7


@pytest.mark.parametrize("name", ["kimi_code", "kimi-code", "Kimi-Code", " kimi_code "])
def test_a_presets_name_may_be_spelled_freely(name):
    assert LoopGuardPolicy.preset(name).rules[0].rule == "kimi_code"


def test_an_unknown_preset_lists_those_there_are():
    with pytest.raises(ValueError, match=r"'nope'; there are seed, signals, hermes"):
        LoopGuardPolicy.preset("nope")


def test_a_preset_without_a_name_lists_those_there_are():
    with pytest.raises(ValueError, match=r"name: must be one of seed, .*not None"):
        LoopGuardPolicy.preset(None)


def test_a_preset_takes_no_other_rules():
    with pytest.raises(ValueError, match=r"rules: a preset has its own"):
        LoopGuardPolicy.seed(rules=())


def test_hermes_holds_calls_back_only_when_told_to():
    soft, hard = LoopGuardPolicy.hermes(), LoopGuardPolicy.hermes(hard_stop=True)
    assert (soft.rules[0].hard_stop_enabled, hard.rules[0].hard_stop_enabled) == (False, True)


def test_a_policy_is_written_to_a_file_and_read_again(tmp_path):
    policy = LoopGuardPolicy(max_refusals=5)
    policy.to_file(tmp_path / "policy.json")
    assert LoopGuardPolicy.from_file(tmp_path / "policy.json") == policy


@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_a_part_of_a_tools_name_is_not_blank(blank):
    with pytest.raises(ValueError, match="blank"):
        RepeatedBatch(observation_tools=("read", blank))


@pytest.mark.parametrize("name", LoopGuardPolicy.preset_names())
def test_the_rules_of_other_systems_go_by_the_status_of_an_answer(name):
    assert not LoopGuardPolicy.preset(name).reads_failures


def test_whether_the_text_of_an_answer_may_tell_of_a_failure():
    assert LoopGuardPolicy().reads_failures
    assert not LoopGuardPolicy(failures_in_text=False).reads_failures
    assert LoopGuardPolicy.seed(failures_in_text=True).reads_failures
