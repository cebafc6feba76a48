"""Does a guard keep its promises whatever it is handed, in whatever order?"""

import json

import orjson
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from langchain_loopguard import LoopGuard, LoopGuardPolicy
from langchain_loopguard.core.decision import Action, Decision
from tests.core.odd import HostileDict, HostileObject, HostileText

SECRET = "S3CR3T"
MOST_STATE = 8192

odd = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.binary(max_size=4),
    st.recursive(
        st.integers() | st.sampled_from(["\ud800", SECRET, "", "a"]),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        ),
        max_leaves=6,
    ),
    st.sampled_from(["!object", "!text", "!dict"]),
)
names = st.sampled_from(["read_file", "edit", "bash", "wait", "search", "x" * 300, ""])
arguments = st.sampled_from([{"q": SECRET}, {"q": 1}, {"q": 2}, {}, None]) | odd
ids = st.sampled_from(["1", "2", None])
some_calls = st.lists(
    st.fixed_dictionaries({"name": names, "args": arguments, "id": ids}) | odd,
    min_size=1,
    max_size=3,
)
contents = st.sampled_from(["same", "", SECRET, "a\nb\nc\nd", "took 5 s", "took 6 s"]) | odd
statuses = st.sampled_from(["success", "error", None])
some_results = st.lists(
    st.fixed_dictionaries({"tool_call_id": ids, "content": contents, "status": statuses}) | odd,
    max_size=3,
)

# Made when used: hypothesis shows what it draws.
HOSTILE = {"!object": HostileObject, "!text": lambda: HostileText("a"), "!dict": HostileDict}


def made(value):
    """Put hostile values where their names are."""
    if isinstance(value, list):
        return [made(item) for item in value]
    if isinstance(value, dict):
        return {key: made(item) for key, item in value.items()}
    return HOSTILE[value]() if isinstance(value, str) and value in HOSTILE else value


class GuardMachine(RuleBasedStateMachine):
    """A guard, and one that is stored and restored before every step: they say the same."""

    policy = LoopGuardPolicy()

    def __init__(self):
        super().__init__()
        self.guard = LoopGuard(self.policy)
        self.other = LoopGuard(self.policy)
        self.decision = None
        self.calls = []
        self.given = (None, b"null")

    def restored(self):
        state = json.loads(json.dumps(self.other.to_state(), allow_nan=False))
        self.other = LoopGuard.from_state(self.policy, state)
        return self.other

    def twin(self, other):
        """Give the last decision as the other guard has it."""
        twin = Decision(self.decision.action, self.decision.findings, other.record_for(self.calls))
        twin.record.used = self.decision.record.used
        return twin

    @rule(calls=some_calls)
    def check(self, calls):
        self.calls = made(calls)
        self.decision = self.guard.check(self.calls)
        same(self.decision, self.restored().check(self.calls))

    @precondition(lambda self: self.decision is not None)
    @rule(results=some_results)
    def record(self, results):
        results, other = made(results), self.restored()
        twin, used = self.twin(other), self.decision.record.used
        before = orjson.dumps(self.guard.to_state())
        after = self.guard.record_results(self.decision.record, results)
        same(after, other.record_results(twin.record, results))
        if used:
            assert after.action is Action.ALLOW
            assert orjson.dumps(self.guard.to_state()) == before

    @rule(step=st.sampled_from([0, 1, 1, 1]))
    def repeat(self, step):
        """Do what a loop does, so that findings, refusals and stops come up."""
        for _ in range(4):
            self.check([{"name": "search", "args": {"q": SECRET, "n": step}, "id": "1"}])
            self.record([{"id": "1", "content": "same"}])

    @precondition(lambda self: self.decision is not None)
    @rule()
    def refuse(self):
        other = self.restored()
        other.refuse(self.twin(other))
        self.guard.refuse(self.decision)
        assert self.decision.record.used

    @precondition(lambda self: self.decision is not None)
    @rule(always=st.booleans())
    def approve(self, always):
        other = self.restored()
        other.approve(self.twin(other), always=always)
        self.guard.approve(self.decision, always=always)

    @rule()
    def start_turn(self):
        self.guard.start_turn()
        self.restored().start_turn()

    @rule(text=st.sampled_from(["I go on.", SECRET, "\ud800", ""]) | st.text(max_size=5))
    def observe(self, text):
        self.guard.observe(text)
        self.restored().observe(text)

    @invariant()
    def the_state_is_small_and_holds_no_secret(self):
        written = orjson.dumps(self.guard.to_state())
        assert len(written) <= MOST_STATE
        assert SECRET.encode() not in written

    @invariant()
    def a_state_that_was_given_stays_as_it_was(self):
        state, written = self.given
        assert orjson.dumps(state) == written
        state = self.guard.to_state()
        self.given = (state, orjson.dumps(state))

    @invariant()
    def both_have_counted_as_much(self):
        assert self.guard.to_state() == self.other.to_state()


def same(one, other):
    assert one.action is other.action
    assert [(f.rule, f.count, f.loop) for f in one.findings] == [
        (f.rule, f.count, f.loop) for f in other.findings
    ]
    assert (one.to_model, one.to_person) == (other.to_model, other.to_person)


POLICIES = {
    "default": LoopGuardPolicy(),
    "seed": LoopGuardPolicy.seed(),
    "early": LoopGuardPolicy(max_refusals=1).tune(repeat={"warn": 2, "ask": 2}),
    "signals": LoopGuardPolicy.signals(),
    "openclaw": LoopGuardPolicy.preset("openclaw"),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_a_guard_keeps_its_promises(policy):
    machine = type("Machine", (GuardMachine,), {"policy": policy}).TestCase
    machine.settings = settings(
        max_examples=15, stateful_step_count=12, suppress_health_check=list(HealthCheck)
    )
    machine("runTest").runTest()
