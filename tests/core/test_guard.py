"""Does the guard make one decision of its rules' findings, and keep what a person said?"""

import json

import pytest
from langchain_core.messages import ToolMessage

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.errors import GuardStateError, LoopDetectedError, facts_of
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import Policy
from langchain_loopguard.core.rules import Repeat, Stall
from langchain_loopguard.core.step import Step
from tests.core.story import LINES, call, run

LOOK = call("read_file", path="a", say=LINES)
GIVEN = [{"name": "read_file", "args": {"path": "a"}, "id": "1"}]
RESULT = [{"tool_call_id": "1", "content": LINES}]
ALLOW, WARN, ASK, STOP = Action


def looping(policy=None, times=5, step=LOOK):
    """A guard that has seen a loop."""
    guard = LoopGuard(policy)
    for _ in range(times):
        run(guard, step)
    return guard


def actions(guard, times, step=LOOK):
    return [run(guard, step)[1].action for _ in range(times)]


# --- Decisions ------------------------------------------------------------------------------------


def test_a_first_step_is_allowed_and_says_nothing():
    before, after = run(LoopGuard(), LOOK)
    assert (before.action, before.findings, before.to_model, before.to_person) == (
        ALLOW,
        (),
        "",
        "",
    )
    assert (after.action, after.record) == (ALLOW, before.record)


def test_a_loop_is_warned_of_then_asked_about_then_held():
    guard = LoopGuard()
    assert actions(guard, 5) == [ALLOW, ALLOW, ALLOW, WARN, ASK]
    assert guard.check(GIVEN).action is ASK


def test_the_strongest_finding_decides_and_comes_first():
    guard = LoopGuard(Policy(rules=(Stall(warn=2), Repeat())))
    decision = [run(guard, LOOK)[1] for _ in range(5)][-1]
    assert [(one.rule, one.action) for one in decision.findings] == [
        ("repeat", ASK),
        ("stall", WARN),
    ]
    assert (decision.action, decision.to_model) == (ASK, decision.findings[0].to_model)
    assert len(decision.to_person.splitlines()) == 2


def test_a_finding_says_what_was_counted_and_never_an_argument():
    guard = looping(step=call("read_file", path="secret", say="hidden"))
    (found, *_) = guard.check(
        [{"name": "read_file", "args": {"path": "secret"}, "id": "1"}]
    ).findings
    assert found.as_dict() == {
        "rule": "repeat",
        "action": "ask",
        "tools": ["read_file"],
        "count": 5,
        "threshold": 5,
        "since": 1,
    }
    shown = f"{found!r} {found.to_model} {found.to_person} {json.dumps(guard.to_state())}"
    assert "secret" not in shown
    assert "hidden" not in shown
    assert "read_file" in found.to_person
    assert "read_file" not in found.to_model


def test_what_stands_in_place_of_a_result_says_that_the_call_did_not_run():
    decision = looping().check(GIVEN)
    assert decision.refusal == f"This call was not run. {decision.to_model}"


def test_a_policy_without_rules_allows_all_and_counts_nothing():
    guard = LoopGuard(Policy(rules=()))
    assert set(actions(guard, 60)) == {ALLOW}
    assert guard.to_state()["evidence"] is None


@pytest.mark.parametrize("empty", [[], ()])
def test_a_step_without_calls_is_not_counted_and_breaks_nothing(empty):
    guard = looping(times=4)
    before = guard.to_state()
    decision = guard.check(empty)
    guard.record_results(decision.record, RESULT)
    guard.refuse(decision)
    assert (decision.action, guard.to_state()) == (ALLOW, before)
    assert actions(guard, 1) == [ASK]


# --- Records --------------------------------------------------------------------------------------


def test_a_record_is_used_once():
    guard = LoopGuard()
    record = guard.check(GIVEN).record
    guard.record_results(record, RESULT)
    before = guard.to_state()
    assert {guard.record_results(record, RESULT).action for _ in range(9)} == {ALLOW}
    assert guard.to_state() == before


@pytest.mark.parametrize("record", [None, "bash:1", 5])
def test_anything_else_records_nothing(record):
    guard = LoopGuard()
    before = guard.to_state()
    assert guard.record_results(record, RESULT).action is ALLOW
    assert guard.to_state() == before


def test_a_record_is_rebuilt_in_another_process():
    guard = LoopGuard()
    for _ in range(5):
        guard.check(GIVEN)
        guard = LoopGuard.from_state(Policy(), json.loads(json.dumps(guard.to_state())))
        record = guard.record_for(GIVEN)
        assert isinstance(record, Step)
        decision = guard.record_results(record, RESULT)
    assert decision.action is ASK


def test_messages_are_results():
    guard = LoopGuard()
    for _ in range(5):
        message = ToolMessage(LINES, tool_call_id="1")
        decision = guard.record_results(guard.check(GIVEN).record, [message])
    assert decision.action is ASK


# --- What a person or a host says -----------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 3])
def test_after_so_many_refusals_of_a_loop_the_run_ends(most):
    guard = looping(Policy(max_refusals=most))
    said = []
    for _ in range(most + 2):
        decision = guard.check(GIVEN)
        said.append(decision.action)
        guard.refuse(decision)
        guard.refuse(decision)  # A second time counts nothing.
        assert guard.record_results(decision.record, RESULT).action is ALLOW
    assert said == [ASK] * most + [STOP] * 2


def test_refusals_of_two_loops_are_counted_apart():
    other = call("search", q="b", say="none")
    guard = looping(Policy(rules=(Repeat(),)), step=[LOOK, other])
    for _ in range(3):
        guard.refuse(guard.check(GIVEN))
    assert guard.check(GIVEN).action is STOP
    assert guard.check([{"name": "search", "args": {"q": "b"}, "id": "1"}]).action is ASK


def test_observing_is_letting_every_step_run():
    assert actions(LoopGuard(), 12)[4:] == [ASK] * 8


def test_an_approval_doubles_the_numbers_each_time():
    guard, asked = LoopGuard(), []
    for number in range(1, 50):
        decisions = run(guard, LOOK)
        if decisions[1].action is ASK:
            asked.append(number)
            guard.approve(decisions[1])
    assert asked == [5, 15, 35]


def test_an_approval_counts_for_other_loops_of_the_same_tools():
    guard = looping()
    guard.approve(guard.check(GIVEN))
    other = call("read_file", path="b", say="x")
    assert actions(guard, 10, other)[-1] is ASK
    assert ASK not in actions(LoopGuard(), 4, other)


def test_a_loop_approved_for_good_is_never_asked_about_again():
    guard = looping()
    guard.approve(guard.check(GIVEN), always=True)
    run_on = actions(guard, 120)
    guard.start_turn()
    guard = LoopGuard.from_state(Policy(), json.loads(json.dumps(guard.to_state())))
    assert {*run_on, *actions(guard, 120)} == {ALLOW}
    assert actions(guard, 5, call("read_file", path="b", say="x"))[-1] is ASK


def test_an_approval_forgets_refusals():
    guard = looping()
    for _ in range(2):
        guard.refuse(guard.check(GIVEN))
    guard.approve(guard.check(GIVEN))
    assert guard.to_state()["refused"] == {}


def test_a_turn_clears_counts_refusals_and_patience():
    guard = looping()
    guard.refuse(guard.check(GIVEN))
    guard.approve(guard.check(GIVEN))
    guard.start_turn()
    assert actions(guard, 5) == [ALLOW, ALLOW, ALLOW, WARN, ASK]
    guard.human_message()
    assert actions(guard, 4)[-1] is WARN


def test_what_another_agent_reports_clears_when_it_is_new_in_words():
    delegate = call("delegate", to="worker", say="done")
    guard = LoopGuard()
    found = []
    for word in "alpha beta gamma delta epsilon zeta eta theta".split():
        found += actions(guard, 1, delegate)
        guard.observe(f"finished part {word}")
    assert set(found) == {ALLOW}
    for number in range(8):
        found += actions(guard, 1, delegate)
        guard.observe(f"finished part theta {number}")
    guard.observe(None)
    assert ASK in found


def test_a_declaration_changes_how_a_tool_is_treated():
    guard = LoopGuard()
    guard.declare("read_file", {"loop_guard": {"limit": 2}})
    guard.declare("read_file", {"unrelated": 1})
    assert actions(guard, 2)[-1] is ASK


# --- State ----------------------------------------------------------------------------------------


def test_the_state_goes_on_where_it_was_left():
    guard = looping(times=4)
    again = LoopGuard.from_state(Policy(), json.loads(json.dumps(guard.to_state())))
    assert again.to_state() == guard.to_state()
    assert actions(again, 1) == [ASK]


@pytest.mark.parametrize("name", ["n" * 1000, "工具" * 200, "\ud800", ""])
def test_an_approval_of_a_tool_with_an_odd_name_is_stored(name):
    guard = looping(step=call(name, x=1, say="ok"))
    guard.approve(guard.check([{"name": name, "args": {"x": 1}, "id": "1"}]), always=True)
    stored = json.loads(json.dumps(guard.to_state()))
    assert LoopGuard.from_state(Policy(), stored).to_state() == stored


def test_a_rule_that_the_state_does_not_know_starts_empty():
    stored = looping(Policy(rules=(Repeat(),)), times=4).to_state()
    guard = LoopGuard.from_state(Policy(), stored)
    assert actions(guard, 1) == [ASK]
    assert LoopGuard.from_state(Policy(rules=()), stored).check(GIVEN).action is ALLOW


def changed(**parts):
    return {**looping().to_state(), **parts}


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (None, "version NoneType"),
        ({}, "version NoneType"),
        ({"v": 1}, "version 1, this release reads 2"),
        ({"v": 3}, "version 3, this release reads 2"),
        ({"v": True}, "version bool"),
        ({"v": 2}, "not one that `to_state` wrote"),
        (changed(steps=-1), "not one that `to_state` wrote"),
        (changed(refused={"x": "y"}), "not one that `to_state` wrote"),
        (changed(always=[5]), "not one that `to_state` wrote"),
        (changed(evidence={"seen": ["!", ""]}), "not one that `to_state` wrote"),
        (changed(rules=[]), "not one that `to_state` wrote"),
        *[
            (changed(rules={rule: part}), "not one that `to_state` wrote")
            for rule in "repeat stall ceiling error in_vain cycle".split()
            for part in ("x", [["x"]], [1] * 99)
        ],
    ],
)
def test_a_state_that_this_release_did_not_write_is_refused(stored, told):
    with pytest.raises(GuardStateError, match=told):
        LoopGuard.from_state(Policy(), stored)


# --- Errors ---------------------------------------------------------------------------------------


def test_the_error_of_a_loop_names_its_tools_and_numbers():
    error = LoopDetectedError("s", ["a", "b"], 4, 3)
    assert "a, b came 4 times in a row, 3 allowed" in str(error)
    assert str(LoopDetectedError("s", [], 4, 3, "own words")) == "own words"
    facts = facts_of(error)
    again = LoopDetectedError(**json.loads(json.dumps(facts)))
    assert (again.tools, str(again)) == (error.tools, str(error))
