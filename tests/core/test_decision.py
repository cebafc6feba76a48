"""Does a decision say what was found, to each reader in their own words?"""

import json

import pytest

from langchain_loopguard.core.decision import Action, Decision, Finding
from langchain_loopguard.core.detector import BatchRecord


def finding(action=Action.ASK, *, tools=("bash",), to_model="Stop.", to_person="5 times."):
    return Finding(
        "a_rule",
        action,
        tools=tools,
        count=5,
        threshold=4,
        since=2,
        loop="a_rule:1f",
        to_model=to_model,
        to_person=to_person,
    )


def decide(*findings):
    return Decision(max(f.action for f in findings), findings, BatchRecord("x"))


NOTHING = Decision(Action.ALLOW, (), BatchRecord("x"))


def test_actions_are_ordered_from_harmless_to_final():
    assert sorted(Action, reverse=True) == [Action.STOP, Action.ASK, Action.WARN, Action.ALLOW]


def test_a_tool_is_named_once_in_the_order_of_the_calls():
    assert finding(tools=["b", "a", "b"]).tools == ("b", "a")


def test_a_finding_as_a_dict_is_json_and_holds_no_text():
    found = finding().as_dict()
    assert json.loads(json.dumps(found)) == found
    assert found == {
        "rule": "a_rule",
        "action": "ask",
        "tools": ["bash"],
        "count": 5,
        "threshold": 4,
        "since": 2,
    }


def test_without_findings_nothing_is_said():
    assert (NOTHING.to_model, NOTHING.to_person) == ("", "")


def test_the_model_is_told_the_first_finding_only():
    both = decide(finding(to_model="First."), finding(Action.WARN, to_model="Second."))
    assert both.to_model == "First."


def test_a_person_is_told_every_finding_each_in_its_line():
    both = decide(finding(to_person="First."), finding(Action.WARN, to_person="Second."))
    assert both.to_person == "First.\nSecond."


@pytest.mark.parametrize(
    ("decision", "expected"),
    [(decide(finding()), "This call was not run. Stop."), (NOTHING, "This call was not run.")],
)
def test_a_refusal_says_that_the_call_was_not_run(decision, expected):
    assert decision.refusal == expected


def test_a_decision_is_shown_without_its_texts():
    shown = repr(decide(finding()))
    assert shown == (
        "Decision(ASK, findings=[Finding('a_rule', ASK, tools=('bash',), count=5, threshold=4, "
        "since=2)])"
    )
