"""What holds for every conversation, whatever is in it?

A state stored before every event says the same, it is never larger than 8,000 bytes, and no value
that a model or a tool may send makes the guard raise.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.rules import (
    NothingNew,
    RepeatedBatch,
    SameAnswer,
    SameError,
    SameNumbers,
    UnbrokenCall,
)
from tests.core.odd import (
    HOSTILE,
    Colour,
    ForeverNew,
    HostileBytes,
    HostileDict,
    HostileFloat,
    HostileInt,
    HostileList,
    HostileSet,
    HostileText,
    Plain,
)

SIZE = 8000
"""Bytes of JSON that a state may have."""

EARLY = LoopGuardPolicy(
    rules=(
        SameAnswer(warn=2, ask=3, ask_poller=4, ask_clock=3),
        NothingNew(warn=2, ask=3, after_work=1),
        UnbrokenCall(ask=3, ask_shell=4),
        SameError(warn=2, ask=3),
        SameNumbers(ask=3),
        RepeatedBatch(),
    ),
    max_refusals=2,
    poll_tools=("job",),
)
"""Small numbers, so that short conversations reach every one of them."""


def size(guard):
    return len(json.dumps(guard.to_state()))


# --- Conversations of few words, so that much of them repeats ------------------------------------

CALLS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["read_file", "edit", "bash", "sleep", "job", ""]),
        "args": st.sampled_from([{}, {"p": "a"}, {"p": "b"}, {"n": 1}, {"n": 2}, "odd"]),
        "say": st.sampled_from(
            [
                *("", "ok", "done in 1s", "done in 2s", "line 1", "line 2", "x\n" * 50),
                *("a\nb\nc\nd", "a\nb\nc\n12:01", "a\nb\nc\n12:02"),
                [{"type": "text", "text": "ok"}],
                None,
            ]
        ),
        "status": st.sampled_from(["success", "success", "error"]),
    }
)
BATCHES = st.lists(CALLS, max_size=4)
EVENTS = st.lists(
    st.one_of(
        BATCHES,
        BATCHES,
        BATCHES.map(lambda batch: [batch] * 3),  # three times in a row
        st.sampled_from(["human", "prose", "approve"]),
    ),
    max_size=30,
).map(
    lambda events: [
        one
        for event in events
        for one in (event if event and isinstance(event[0], list) else [event])
    ]
)


def tell(events, policy, *, refuse, reload):
    """Tell a conversation and give everything that the guard said."""
    guard, said, asked = LoopGuard(policy), [], None

    def keep(guard):
        return LoopGuard.from_state(policy, json.loads(json.dumps(guard.to_state())))

    for event in events:
        if reload:
            guard = keep(guard)
        if event == "human":
            guard.human_message()
        elif event == "prose":
            said.append(repr(guard.prose("Shall I?")))
        elif event == "approve":
            if asked is not None:
                guard.approve(asked)
        else:
            calls = [
                {"name": c["name"], "args": c["args"], "id": f"c{n}"} for n, c in enumerate(event)
            ]
            results = [
                {"tool_call_id": f"c{n}", "content": c["say"], "status": c["status"]}
                for n, c in enumerate(event)
                if c["say"] is not None
            ]
            decision = guard.check(calls)
            said.append(repr(decision))
            asked = decision if decision.action >= Action.ASK else asked
            if refuse and decision.action >= Action.ASK:
                guard.refuse(decision)
            else:
                record = decision.record
                if reload and calls:
                    guard = keep(guard)
                    record = guard.record_for(calls)
                revealed = guard.record_results(record, results)
                said.append(repr(revealed))
                asked = revealed if revealed.action >= Action.ASK else asked
        assert size(guard) <= SIZE
    return [*said, repr(guard.ledger())]


@pytest.mark.parametrize("refuse", [False, True], ids=["runs on", "refused"])
@pytest.mark.parametrize("policy", [LoopGuardPolicy(), EARLY], ids=["default", "early"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(events=EVENTS)
def test_a_state_stored_before_every_event_says_the_same(policy, refuse, events):
    straight = tell(events, policy, refuse=refuse, reload=False)
    assert tell(events, policy, refuse=refuse, reload=True) == straight


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(events=EVENTS)
def test_the_same_conversation_gets_the_same_verdicts(events):
    one, other = (tell(events, EARLY, refuse=True, reload=False) for _ in range(2))
    assert one == other


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(events=EVENTS)
def test_after_a_stop_a_loop_stays_stopped(events):
    guard = LoopGuard(EARLY)
    step = [{"name": "edit", "args": {"p": "stopped"}, "id": "1"}]
    actions = []
    for _ in range(12):
        decision = guard.check(step)
        actions.append(decision.action)
        guard.refuse(decision)
    stopped = actions.index(Action.STOP)
    assert set(actions[stopped:]) == {Action.STOP}


# --- Size ---------------------------------------------------------------------------------------

NAMES = {
    "one tool": ["search"],
    "40 tools": [f"tool_{n}" for n in range(40)],
    "long names": [f"{n}{'n' * 1000}" for n in range(40)],
    "ever new names": [f"tool_{n}" for n in range(3000)],
    "names that are not ascii": [f"{n}{'工具' * 40}" for n in range(40)],
}
ANSWERS = {
    "new": lambda n: {"content": f"a{n}\nb{n}\nc{n}\nd{n}"},
    "failing": lambda n: {"content": f"error {'x' * (n % 50)}", "status": "error"},
    "new or failing": lambda n: ANSWERS["failing" if n % 3 else "new"](n),
    "failing and counting": lambda n: {
        "content": f"error {'x' * (n % 50)}\n{9**9 - n} steps left\n{8**9 - n} more",
        "status": "error",
    },
    "unknown": None,
    "the same": lambda n: {"content": "a\nb\nc\nd"},
}


def live(names, answer, *, calls=3000, different=40, per_batch=1):
    """Run calls, refuse what is asked about, let a person speak now and then; give the sizes."""
    guard, sizes = LoopGuard(), []
    for n in range(0, calls, per_batch):
        batch = [
            {"name": names[k % len(names)], "args": {"v": k % different}, "id": str(k)}
            for k in range(n, n + per_batch)
        ]
        decision = guard.check(batch)
        if decision.action >= Action.ASK and n % 3:
            guard.refuse(decision)
        results = [{"id": c["id"], **answer(n)} for c in batch] if answer else []
        guard.record_results(decision.record, results)
        guard.prose(f"turn {n}")
        if n % 500 == 499:
            guard.human_message()
        if n % 25 == 0 or per_batch > 1:
            sizes.append(size(guard))
    return sizes


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("names", NAMES)
def test_a_state_is_small_whatever_the_tools_are_called_and_answer(names, answer):
    assert max(live(NAMES[names], ANSWERS[answer], different=10**9)) <= SIZE


@pytest.mark.parametrize("different", [1, 30, 10**9], ids=["one", "thirty", "all different"])
def test_a_state_is_small_after_ten_thousand_calls(different):
    sizes = live(NAMES["40 tools"], ANSWERS["new"], calls=10_000, different=different)
    assert max(sizes) <= SIZE


@pytest.mark.parametrize("answer", ["new", "failing"])
def test_a_state_is_small_after_batches_of_ten_thousand_calls(answer):
    sizes = live(
        NAMES["long names"], ANSWERS[answer], calls=30_000, different=10**9, per_batch=10_000
    )
    assert max(sizes) <= SIZE


# --- Any values ---------------------------------------------------------------------------------

VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=20),
        st.binary(max_size=9),
        st.sampled_from([Colour.RED, int, len, Plain(x=1), object(), ForeverNew(), "\ud800"]),
    ),
    lambda some: st.one_of(
        st.lists(some, max_size=4),
        st.lists(some, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=5) | st.integers(), some, max_size=4),
        st.lists(st.text(max_size=3), max_size=3).map(frozenset),
    ),
    max_leaves=8,
)
ODD_CALLS = st.lists(
    st.one_of(
        st.fixed_dictionaries({}, optional={"name": VALUES, "args": VALUES, "id": VALUES}),
        st.builds(SimpleNamespace, name=VALUES, args=VALUES, id=VALUES),
        VALUES,
    ),
    max_size=4,
)
ODD_RESULTS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {}, optional={"tool_call_id": VALUES, "id": VALUES, "content": VALUES, "status": VALUES}
        ),
        st.builds(SimpleNamespace, content=VALUES, tool_call_id=VALUES),
        VALUES,
    ),
    max_size=4,
)


def use(calls, results):
    """Do with these calls and results all that can be done."""
    guard = LoopGuard(EARLY)
    for n in range(5):
        decision = guard.check(calls)
        revealed = guard.record_results(decision.record, results)
        json.dumps([f.as_dict() for d in (decision, revealed) for f in d.findings])
        repr((decision.to_model, decision.to_person, decision, decision.record))
        guard.record_for(calls)
        if n == 2:
            guard.human_message()
        if n == 3:
            guard.approve(decision)
    guard.refuse(guard.check(calls))
    json.dumps(guard.to_state())


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(ODD_CALLS, ODD_RESULTS)
def test_any_values_are_taken(calls, results):
    use(calls, results)


@settings(max_examples=100)
@given(st.text())
def test_any_prose_is_taken(text):
    guard = LoopGuard()
    for _ in range(7):
        guard.prose(text)
    guard.human_message()


HOSTILES = {
    "text": lambda: HostileText("abcd"),
    "dict": lambda: HostileDict(a=1),
    "list": lambda: HostileList([1]),
    "set": lambda: HostileSet([1]),
    "int": lambda: HostileInt(3),
    "float": lambda: HostileFloat(2.5),
    "bytes": lambda: HostileBytes(b"ab"),
    **HOSTILE,
}
FAILED = {"tool_call_id": "1", "content": "boom abcd", "status": "error"}
PLACES = {
    "a call": lambda v: ([v], [FAILED]),
    "a name": lambda v: ([{"name": v, "args": {}, "id": "1"}], [FAILED]),
    "the arguments": lambda v: ([{"name": "t", "args": v, "id": "1"}], [FAILED]),
    "an argument": lambda v: ([{"name": "t", "args": {"x": v}, "id": "1"}], [FAILED]),
    "a call's id": lambda v: ([{"name": "t", "args": {}, "id": v}], [FAILED]),
    "a result": lambda v: ([{"name": "t", "args": {}, "id": "1"}], [v]),
    "a result's id": lambda v: (
        [{"name": "t", "args": {}, "id": "1"}],
        [{"tool_call_id": v, "content": "x"}],
    ),
    "a content": lambda v: ([{"name": "t", "args": {}, "id": "1"}], [{**FAILED, "content": v}]),
    "a block": lambda v: ([{"name": "t", "args": {}, "id": "1"}], [{**FAILED, "content": [v]}]),
    "a status": lambda v: ([{"name": "t", "args": {}, "id": "1"}], [{**FAILED, "status": v}]),
}


@pytest.mark.parametrize(
    ("place", "kind"), [(place, kind) for place in PLACES for kind in HOSTILES]
)
def test_values_that_fight_back_are_taken(place, kind):
    use(*PLACES[place](HOSTILES[kind]()))
