"""Does the guard make one decision of its rules' findings, and keep its books?"""

import copy
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.detector import BatchRecord
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.guard import STATE_VERSION, LoopGuard
from langchain_loopguard.core.ledger import LedgerReading
from langchain_loopguard.core.packing import unpack
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.rules import NothingNew, SameAnswer, UnbrokenCall
from tests.core.plays import HUMAN, call, run

READ = call("read_file", path="a", say="text")
GIVEN = [{"name": "read_file", "args": {"path": "a"}, "id": "1"}]
ANSWER = [{"tool_call_id": "1", "content": "text"}]
ALLOW, WARN, ASK, STOP = Action


def told(guard, times, step=READ):
    for _ in range(times):
        decisions = run(guard, step)
    return [decision for _, decision in decisions]


def plain(state):
    """A state without the order in which sets of hashes happen to be written."""
    if isinstance(state, dict):
        return {
            key: sorted(unpack(value)) if key in ("new", "old") else plain(value)
            for key, value in state.items()
        }
    if isinstance(state, list) and len(state) == 4 and isinstance(state[3], bool):
        return [*state[:2], sorted(unpack(state[2])), state[3]]
    return [plain(value) for value in state] if isinstance(state, list) else state


def stored(guard, policy=None):
    return LoopGuard.from_state(
        policy or guard.policy, json.loads(json.dumps(guard.to_state(), allow_nan=False))
    )


# --- Decisions ----------------------------------------------------------------------------------


def test_a_first_batch_is_allowed_and_says_nothing():
    checked, recorded = told(LoopGuard(), 1)
    assert (checked.action, checked.findings, checked.to_model) == (ALLOW, (), "")
    assert (recorded.action, recorded.findings, recorded.record) == (ALLOW, (), checked.record)


def test_a_warning_comes_with_the_answers_and_holds_nothing():
    checked, recorded = told(LoopGuard(), 3)
    assert (checked.action, recorded.action) == (ALLOW, WARN)


def test_an_ask_out_of_the_answers_comes_again_before_the_next_run():
    guard = LoopGuard()
    assert [decision.action for decision in told(guard, 5)] == [ALLOW, ASK]
    assert guard.check(GIVEN).action is ASK


def test_the_strongest_finding_decides_and_comes_first():
    policy = LoopGuardPolicy(rules=(NothingNew(warn=1, ask=99), SameAnswer()))
    _, recorded = told(LoopGuard(policy), 5)
    assert recorded.action is ASK
    assert [(f.rule, f.action) for f in recorded.findings] == [
        ("same_answer", ASK),
        ("nothing_new", WARN),
    ]


def test_a_policy_without_rules_allows_all():
    guard = LoopGuard(LoopGuardPolicy(rules=()))
    assert {decision.action for decision in told(guard, 60)} == {ALLOW}
    assert guard.to_state()["progress"] is None


def test_without_a_policy_the_default_is_used():
    assert LoopGuard().policy == LoopGuardPolicy()


@pytest.mark.parametrize("empty", [[], (), None])
def test_an_empty_batch_is_allowed_not_counted_and_breaks_nothing(empty):
    guard = LoopGuard()
    told(guard, 4)
    before = guard.to_state()
    decision = guard.check(empty)
    assert (decision.action, decision.record.used, decision.record.signature) == (ALLOW, True, "")
    guard.record_results(decision.record, ANSWER)
    guard.refuse(decision)
    assert guard.to_state() == before
    assert told(guard, 1)[1].action is ASK


# --- Records ------------------------------------------------------------------------------------


def test_a_record_is_used_once():
    guard = LoopGuard()
    decision = guard.check(GIVEN)
    guard.record_results(decision.record, ANSWER)
    before = guard.to_state()
    for _ in range(9):
        again = guard.record_results(decision.record, ANSWER)
        assert (again.action, again.record) == (ALLOW, decision.record)
    assert guard.to_state() == before


@pytest.mark.parametrize("record", [BatchRecord("bash:1"), None, "bash:1"])
def test_another_kind_of_record_records_nothing(record):
    guard = LoopGuard()
    before = guard.to_state()
    assert guard.record_results(record, ANSWER).action is ALLOW
    assert guard.to_state() == before


def test_a_refused_batch_records_nothing():
    guard = LoopGuard()
    decision = guard.check(GIVEN)
    guard.refuse(decision)
    before = guard.to_state()
    assert guard.record_results(decision.record, ANSWER).action is ALLOW
    assert guard.to_state() == before


def test_records_may_come_late_and_out_of_order():
    guard = LoopGuard()
    first, second = guard.check(GIVEN), guard.check(GIVEN)
    guard.record_results(second.record, ANSWER)
    guard.record_results(first.record, ANSWER)
    assert guard.ledger() == LedgerReading(2, 1)


def test_a_rebuilt_record_records_like_the_lost_one():
    guard, other = LoopGuard(), LoopGuard()
    for _ in range(6):
        decision = guard.check(GIVEN)
        one = guard.record_results(decision.record, ANSWER)
        other.check(GIVEN)
        other = stored(other)
        two = other.record_results(other.record_for(GIVEN), ANSWER)
        assert repr(one) == repr(two)
    assert plain(guard.to_state()) == plain(other.to_state())


def test_messages_and_mappings_are_answers():
    guard, other = LoopGuard(), LoopGuard()
    for _ in range(3):
        guard.record_results(guard.check(GIVEN).record, ANSWER)
        message = ToolMessage("text", tool_call_id="1")
        other.record_results(other.check(GIVEN).record, [message])
    assert plain(guard.to_state()) == plain(other.to_state())


# --- Refusals -----------------------------------------------------------------------------------


def refusals(policy, times):
    """Refuse what is asked about and give the actions."""
    guard = LoopGuard(policy)
    told(guard, 5)
    actions = []
    for _ in range(times):
        decision = guard.check(GIVEN)
        guard.refuse(decision)
        actions.append(decision.action)
    return actions


@pytest.mark.parametrize("allowed", [0, 1, 3, 5])
def test_after_so_many_refusals_of_a_loop_the_run_ends(allowed):
    policy = LoopGuardPolicy(max_refusals=allowed)
    assert refusals(policy, allowed + 2) == [*[ASK] * allowed, STOP, STOP]


def test_the_default_refuses_three_times():
    assert refusals(LoopGuardPolicy(), 4) == [ASK, ASK, ASK, STOP]


def test_refusals_of_two_loops_are_counted_apart():
    guard = LoopGuard(LoopGuardPolicy(rules=(SameAnswer(),)))
    other = call("search", q="b", say="none")
    told(guard, 5, [READ, other])
    for name, args in (("read_file", READ["args"]), ("search", other["args"])) * 3:
        decision = guard.check([{"name": name, "args": args, "id": "1"}])
        assert decision.action is ASK
        guard.refuse(decision)
    assert guard.check(GIVEN).action is STOP


def test_a_decision_is_refused_once():
    guard = LoopGuard()
    told(guard, 5)
    decision = guard.check(GIVEN)
    for _ in range(9):
        guard.refuse(decision)
    assert guard.check(GIVEN).action is ASK


def test_a_batch_that_ran_after_all_is_not_refused():
    guard = LoopGuard()
    told(guard, 5)
    decision = guard.check(GIVEN)
    guard.record_results(decision.record, ANSWER)
    guard.refuse(decision)
    assert guard.to_state()["refused"] == {}


def test_a_refused_warning_is_no_refusal():
    policy = LoopGuardPolicy(rules=LoopGuardPolicy.preset("openclaw").rules, max_refusals=1)
    guard = LoopGuard(policy)
    for _ in range(60):
        decision = guard.check(GIVEN)
        if decision.action is WARN:
            break
        guard.record_results(decision.record, ANSWER)
    assert decision.action is WARN
    guard.refuse(decision)
    assert guard.to_state()["refused"] == {}


def test_a_user_turn_forgets_refusals():
    guard = LoopGuard()
    told(guard, 5)
    for _ in range(3):
        guard.refuse(guard.check(GIVEN))
    guard.human_message()
    assert guard.to_state()["refused"] == {}
    told(guard, 2)
    assert guard.check(GIVEN).action is ASK


def test_sixteen_refused_loops_are_remembered_the_latest():
    policy = LoopGuardPolicy(rules=(UnbrokenCall(ask=2, ask_shell=2),), probation=False)
    guard = LoopGuard(policy)
    for n in range(20):
        step = [{"name": "edit", "args": {"n": n}, "id": "1"}]
        guard.check(step)
        guard.refuse(guard.check(step))
    refused = guard.to_state()["refused"]
    assert len(refused) == 16
    again = guard.check([{"name": "edit", "args": {"n": 19}, "id": "1"}])
    assert again.findings[0].loop == list(refused)[-1]


def test_a_loop_refused_again_is_forgotten_last():
    policy = LoopGuardPolicy(rules=(UnbrokenCall(ask=2, ask_shell=2),), probation=False)
    guard = LoopGuard(policy)
    for n in [*range(16), 0, 16]:
        step = [{"name": "edit", "args": {"n": n}, "id": "1"}]
        guard.check(step)
        guard.refuse(guard.check(step))
    assert (
        guard.to_state()["refused"][
            guard.check([{"name": "edit", "args": {"n": 0}, "id": "1"}]).findings[0].loop
        ]
        == 2
    )


# --- Approvals ----------------------------------------------------------------------------------


def test_after_an_approval_the_loop_is_found_anew():
    guard = LoopGuard()
    told(guard, 5)
    guard.approve(guard.check(GIVEN))
    actions = [told(guard, 1)[1].action for _ in range(5)]
    assert actions == [ALLOW, ALLOW, WARN, WARN, ASK]


def test_an_approval_forgets_the_refusals_of_the_loop():
    guard = LoopGuard()
    told(guard, 5)
    for _ in range(3):
        guard.refuse(guard.check(GIVEN))
    guard.approve(guard.check(GIVEN))
    told(guard, 5)
    assert guard.check(GIVEN).action is ASK


def test_an_approval_lets_every_default_rule_go():
    policy = LoopGuardPolicy(rules=(SameAnswer(), NothingNew(warn=3, ask=5)))
    guard = LoopGuard(policy)
    _, recorded = told(guard, 5)
    guard.approve(recorded)
    assert {told(guard, 1)[1].action for _ in range(2)} == {ALLOW}


def test_an_approval_of_a_foreign_rules_finding_leaves_the_others():
    rules = (*LoopGuardPolicy.preset("openhands").rules, *LoopGuardPolicy.preset("seed").rules)
    guard = LoopGuard(LoopGuardPolicy(rules=rules, probation=False))
    decision = next(d for _ in range(30) if (d := told(guard, 1)[0]).findings)
    before = guard.to_state()["rules"]
    guard.approve(decision)
    after = guard.to_state()["rules"]
    approved = {finding.rule for finding in decision.findings}
    assert {name for name in before if before[name] != after[name]} == approved
    assert approved != set(before)


def test_an_approval_of_nothing_changes_nothing():
    guard = LoopGuard()
    told(guard, 4)
    before = guard.to_state()
    guard.approve(guard.check([]))
    assert guard.to_state() == before


def test_an_approved_batch_may_run_and_is_recorded():
    guard = LoopGuard()
    told(guard, 5)
    decision = guard.check(GIVEN)
    guard.approve(decision)
    guard.record_results(decision.record, ANSWER)
    assert guard.ledger().batches == 6


# --- The state ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [LoopGuardPolicy(), LoopGuardPolicy.seed(), LoopGuardPolicy(rules=(), stagnation=None)],
    ids=["default", "seed", "nothing"],
)
def test_a_state_is_json_and_gives_the_same_state(policy):
    guard = LoopGuard(policy)
    for n in range(12):
        told(guard, 1, [READ, call("edit", n=n % 3, say=f"line {n}", fails=True)])
        guard.prose("Shall I?")
    guard.human_message()
    told(guard, 2)
    assert plain(stored(guard).to_state()) == plain(guard.to_state())


def test_a_state_holds_no_argument_and_no_answer():
    guard = LoopGuard()
    for n in range(12):
        told(guard, 1, call("edit", secret="hunter2", say="password", fails=n % 2 == 0))
        guard.prose("swordfish")
    text = json.dumps(guard.to_state())
    assert not any(word in text for word in ("hunter2", "password", "swordfish", "secret"))


def test_taking_a_state_changes_nothing_and_shares_nothing():
    guard = LoopGuard()
    told(guard, 5)
    state = guard.to_state()
    kept = copy.deepcopy(state)
    other = LoopGuard.from_state(guard.policy, state)
    told(guard, 3)
    told(other, 3, call("search", q="b", say="none"))
    other.human_message()
    assert state == kept


def test_a_rule_that_the_state_does_not_know_starts_empty():
    small, large = LoopGuardPolicy(rules=(NothingNew(),)), LoopGuardPolicy()
    guard = LoopGuard(small)
    told(guard, 8)
    other = stored(guard, large)
    # `same_answer` counts from here, `nothing_new` from before.
    assert [f.rule for f in told(other, 1)[1].findings] == ["nothing_new"]


def test_counters_of_a_rule_that_the_policy_no_longer_lists_are_dropped():
    guard = LoopGuard()
    told(guard, 4)
    other = stored(guard, LoopGuardPolicy(rules=(NothingNew(),), probation=False, stagnation=None))
    assert list(other.to_state()["rules"]) == ["nothing_new"]
    assert (other.to_state()["probation"], other.to_state()["stagnation"]) == (None, None)


def test_a_state_without_memory_is_read_by_a_policy_that_needs_one():
    guard = LoopGuard(LoopGuardPolicy.seed())
    told(guard, 2)
    other = stored(guard, LoopGuardPolicy())
    assert told(other, 5)[1].action is ASK


def test_numbers_of_another_policy_hold_from_the_next_batch_on():
    guard = LoopGuard()
    told(guard, 4)
    other = stored(guard, LoopGuardPolicy(rules=(SameAnswer(ask=9),)))
    assert told(other, 1)[1].action is WARN


@pytest.mark.parametrize(
    "state",
    [None, [], {}, "x", 1, {"v": 0}, {"v": STATE_VERSION + 1}, {"v": "1"}, {"v": None}, {"w": 1}],
)
def test_a_state_of_another_version_is_refused_with_both_versions(state):
    with pytest.raises(GuardStateError, match=f"this release reads {STATE_VERSION}"):
        LoopGuard.from_state(LoopGuardPolicy(), state)


def lived():
    """A guard whose every part holds something."""
    guard = LoopGuard()
    for n in range(9):
        told(guard, 1, [READ, call("edit", n=n, say=f"a\nb\nline {n}", fails=True)])
        told(guard, 1, call("search", page=n, say="none"))
        guard.prose("Shall I?")
    guard.refuse(guard.check(GIVEN))
    guard.human_message()
    told(guard, 5)
    guard.refuse(guard.check(GIVEN))
    guard.prose("Shall I?")
    told(guard, 9, call("edit", text="x", say="no", fails=True))
    return guard.to_state()


LIVED = lived()


@pytest.mark.parametrize("part", [part for part in LIVED if part not in {"v", "step_lines"}])
def test_a_state_with_a_part_missing_is_refused(part):
    state = {name: value for name, value in LIVED.items() if name != part}
    with pytest.raises(GuardStateError, match=part):
        LoopGuard.from_state(LoopGuardPolicy(), state)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("batches", "x"),
        ("batches", None),
        ("refused", [1]),
        ("refused", {"x": "y"}),
        ("rules", None),
        ("rules.same_answer", []),
        ("rules.same_answer.counts", [[1, 2]]),
        ("rules.same_answer.last", ["xyz"]),
        ("rules.nothing_new", {"count": 3}),
        ("rules.nothing_new.tools", 5),
        ("rules.unbroken_call", [["1f", 2]]),
        ("rules.same_error", [[1, "1f", 2]]),
        ("rules.same_numbers", ["1f", "1f", 3]),
        ("progress", {"new": ""}),
        ("progress.new", "abc"),
        ("progress.new", 5),
        ("progress.frames", [[1]]),
        ("probation", []),
        ("probation.watched", ["1f"]),
        ("probation.flagged", ["xyz"]),
        ("stagnation", ["xyz"]),
        ("stagnation", 5),
        ("ledger", None),
        ("ledger.counts", [1, 2, 3]),
        ("ledger.run", ["1f", 1]),
        ("ledger.old", "\u00e9"),
    ],
)
def test_a_state_of_another_form_is_refused(path, value):
    state = copy.deepcopy(LIVED)
    *parents, last = path.split(".")
    place = state
    for key in parents:
        place = place[key]
    place[last] = value
    with pytest.raises(GuardStateError, match="not one that `to_state` gave"):
        LoopGuard.from_state(LoopGuardPolicy(), state)


def nodes(value, path=()):
    yield path
    children = value.items() if isinstance(value, dict) else ()
    children = enumerate(value) if isinstance(value, list) else children
    for key, child in children:
        yield from nodes(child, (*path, key))


PATHS = [path for path in nodes(LIVED) if path]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=9),
    lambda some: (
        st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=3), some, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(PATHS), st.none() | ANY_JSON), min_size=1, max_size=3))
def test_any_state_is_refused_or_gives_a_guard_that_works(changes):
    state = copy.deepcopy(LIVED)
    for path, value in changes:
        place = state
        try:
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    try:
        guard = LoopGuard.from_state(LoopGuardPolicy(), state)
    except GuardStateError:
        return
    for step in (READ, [READ, READ], call("edit", n=1, say="line 1", fails=True), HUMAN, READ):
        if step is HUMAN:
            guard.human_message()
        else:
            run(guard, step)
    guard.prose("Shall I?")
    guard.refuse(guard.check(GIVEN))
    guard.ledger()
    stored(guard)


@settings(max_examples=100)
@given(ANY_JSON)
def test_anything_else_is_no_state(value):
    with pytest.raises(GuardStateError):
        LoopGuard.from_state(LoopGuardPolicy(), value)


def test_a_guard_state_error_is_a_value_error_and_travels():
    with pytest.raises(GuardStateError) as caught:
        LoopGuard.from_state(LoopGuardPolicy(), {})
    assert isinstance(caught.value, ValueError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


# --- Tools --------------------------------------------------------------------------------------


def test_a_declared_tool_keeps_its_counts():
    # The hash of a call is the tool's name and arguments, not its traits.
    guard = LoopGuard()
    told(guard, 4, call("job", say="pending"))
    guard.declare("job", {"readOnlyHint": True})
    assert told(guard, 1, call("job", say="pending"))[1].action is ASK


def test_the_same_arguments_to_two_tools_are_two_calls():
    guard = LoopGuard()
    steps = [call("read_file", path="a", say="x"), call("open_file", path="a", say="x")]
    for _ in range(2):
        for step in steps:
            assert told(guard, 1, step)[1].action is ALLOW


@pytest.mark.parametrize("said", [None, 3, b"done", ["done"], object()])
def test_prose_that_is_no_text_is_not_counted(said):
    guard = LoopGuard()
    decisions = [guard.prose(said) for _ in range(10)]
    assert {decision.action for decision in decisions} == {Action.ALLOW}


# --- Other agents -------------------------------------------------------------------------------

HAND_OVER = call("transfer_to_worker", say="Transferred.")


def handed_over(times, report):
    """Hand over again and again; what was found, and the guard."""
    guard, found = LoopGuard(), []
    for n in range(times):
        found += [finding for _, decision in run(guard, HAND_OVER) for finding in decision.findings]
        guard.heard(report(n))
    return found, guard


def test_what_another_agent_reports_is_as_good_as_an_answer():
    assert handed_over(30, lambda n: f"Chapter {n} is done.")[0] == []


@pytest.mark.parametrize(
    "report", ["I can't.", "", "  \n", None, 7, "took 3 ms\nat 12:03:07"], ids=repr
)
def test_a_report_without_news_is_not(report):
    assert handed_over(30, lambda n: report)[0]


def test_a_report_that_is_new_by_a_clock_alone_is_not():
    assert handed_over(30, lambda n: f"I can't. ({n} ms)")[0]


def test_reports_without_end_do_not_fill_the_state():
    _, guard = handed_over(1, lambda n: "")
    for n in range(2000):
        guard.heard("\n".join(f"{n} {line}" for line in range(40)))
    assert len(json.dumps(guard.to_state())) < 8192
    LoopGuard.from_state(guard.policy, guard.to_state())


def test_a_policy_without_the_idea_of_progress_hears_nothing():
    guard = LoopGuard(LoopGuardPolicy.seed())
    before = guard.to_state()
    guard.heard("Chapter 1 is done.")
    assert guard.to_state() == before


@pytest.mark.parametrize("before", [1, 3])
def test_the_answer_to_another_call_leaves_a_call_without_one(before):
    guard = LoopGuard()
    told(guard, before)
    decision = guard.check([{"name": "search", "args": {"q": "x"}, "id": "1"}])
    guard.record_results(decision.record, [{"tool_call_id": "2", "content": "x", "status": "ok"}])
    assert guard.ledger().not_evaluated == 1
