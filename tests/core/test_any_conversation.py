"""What holds for every conversation, whatever is in it?

A state stored before every event says the same, it is never larger than 8 KB, what makes no
difference makes none, and no value that a model or a tool may send makes the guard raise.
"""

import json
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import Policy
from tests.conversations import load, policy_for, read_through
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

SIZE = 8192

EARLY = Policy(poll_tools=["job"], max_refusals=2).tune(
    repeat={"warn": 2, "ask": 3, "ask_across": 4, "patience": 5},
    stall={"warn": 2, "ask": 3, "ask_after_change": 4},
    ceiling={"changing": 3, "shell": 4, "total": 6},
    error={"warn": 2, "ask": 3, "patience": 4},
    in_vain={"ask_again": 2, "repeats": 2, "warn": 2, "ask": 3},
    cycle={"rounds": 2},
)
"""Small numbers, so that short conversations reach every one of them."""

ROUGHLY = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])


def stored(guard):
    return LoopGuard.from_state(guard.policy, json.loads(json.dumps(guard.to_state())))


def size(guard):
    return len(json.dumps(guard.to_state(), separators=(",", ":")))


# --- Told conversations ---------------------------------------------------------------------------

TOLD = [
    *load("cases"),
    *load("shapes"),
    *load("reports")[::6],
    *[run for run in load("corpus") if run.get("label")],
    *load("fresh")[::40],
]


def verdict(conversation, **how):
    told = read_through(conversation["events"], policy_for(conversation), **how)
    return [(number, repr(finding)) for number, finding in told.findings]


@pytest.mark.parametrize("part", range(8))
def test_a_state_stored_before_every_event_says_the_same_of_told_conversations(part):
    for conversation in TOLD[part::8]:
        straight = verdict(conversation)
        assert verdict(conversation, through_json=True) == straight, conversation["id"]


# --- Conversations of few words, so that much of them repeats -------------------------------------

CALLS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["read_file", "edit", "bash", "wait", "job", "think", ""]),
        "args": st.sampled_from(
            [{}, {"p": "a b"}, {"p": "it's"}, {"n": 1, "q": 2}, {"n": 2, "why": "x"}, "odd"]
        ),
        "say": st.sampled_from(
            [
                *("", "ok", "done in 1s", "done in 2s", "line 1", "line 2", "x\n" * 50),
                *("a\nb\nc\nd", "a\nb\nc\n12:01", "Error: bad", "pending"),
                [{"type": "text", "text": "ok"}],
                None,
            ]
        ),
        "status": st.sampled_from(["success", None, "error"]),
    }
)
STEPS = st.lists(CALLS, min_size=1, max_size=4)
EVENTS = st.lists(
    STEPS.map(lambda step: [step])
    | STEPS.map(lambda step: [step] * 4)
    | st.sampled_from([["turn"], ["observe"], ["approve"], ["always"]]),
    max_size=20,
).map(lambda parts: [event for part in parts for event in part])


def told(events, policy, *, refuse=False, reload=False, rename=lambda n: f"c{n}"):
    """Tell a conversation and give everything that the guard said."""
    guard, said, asked = LoopGuard(policy), [], None
    for event in events:
        guard = stored(guard) if reload else guard
        if event == "turn":
            guard.start_turn()
        elif event == "observe":
            guard.observe("a report")
        elif isinstance(event, str):
            if asked is not None:
                guard.approve(asked, always=event == "always")
        else:
            calls = [
                {"name": c["name"], "args": c["args"], "id": rename(n)} for n, c in enumerate(event)
            ]
            results = [
                {"tool_call_id": rename(n), "content": c["say"], "status": c["status"]}
                for n, c in enumerate(event)
                if c["say"] is not None
            ]
            decision = guard.check(calls)
            said.append(repr(decision))
            asked = decision if decision.action >= Action.ASK else asked
            if refuse and decision.action >= Action.ASK:
                guard.refuse(decision)
                continue
            guard, record = (
                (again := stored(guard), again.record_for(calls))
                if reload
                else (guard, decision.record)
            )
            revealed = guard.record_results(record, results)
            said.append(repr(revealed))
            asked = revealed if revealed.action >= Action.ASK else asked
        assert size(guard) <= SIZE
    return said


@pytest.mark.parametrize("refuse", [False, True], ids=["runs on", "refused"])
@ROUGHLY
@given(events=EVENTS)
def test_a_state_stored_before_every_event_says_the_same(refuse, events):
    straight = told(events, EARLY, refuse=refuse)
    assert told(events, EARLY, refuse=refuse, reload=True) == straight


def _other_words(call):
    arguments = call["args"]
    if not isinstance(arguments, dict):
        return call
    changed = {
        key: value.replace(" ", " \n\u200b ").replace("'", "\u2019")
        if isinstance(value, str)
        else value
        for key, value in reversed(arguments.items())
    }
    if len(changed.keys() - {"why"}):
        changed["why"] = "for another reason"
    return {**call, "args": changed}


@ROUGHLY
@given(events=EVENTS)
def test_order_of_keys_ids_white_space_quotes_and_reasons_make_no_difference(events):
    other = [
        event if isinstance(event, str) else [_other_words(call) for call in event]
        for event in events
    ]
    assert told(other, EARLY, rename=lambda n: f"other-{n}") == told(events, EARLY)


@ROUGHLY
@given(events=EVENTS)
def test_after_a_stop_a_loop_stays_stopped(events):
    guard = LoopGuard(EARLY)
    actions = []
    for _ in range(12):
        decision = guard.check([{"name": "edit", "args": {"p": "stopped"}, "id": "1"}])
        actions.append(decision.action)
        guard.refuse(decision)
    assert set(actions[actions.index(Action.STOP) :]) == {Action.STOP}


# --- Size -----------------------------------------------------------------------------------------

NAMES = {
    "one tool": ["search"],
    "40 tools": [f"tool_{n}" for n in range(40)],
    "long names": [f"{n}{'n' * 1000}" for n in range(40)],
    "new names each time": [f"tool_{n}" for n in range(3000)],
    "names that are not ASCII": [f"{n}{'工具' * 40}" for n in range(40)],
}
RESULTS = {
    "new": lambda n: {"content": f"a{n}\nb{n}\nc{n}\nd{n}"},
    "failing": lambda n: {"content": f"error {'x' * (n % 50)}", "status": "error"},
    "the same": lambda n: {"content": "ok"},
    "many lines": lambda n: {"content": "\n".join(f"{n} {k}" for k in range(30))},
}


@pytest.mark.parametrize(("calls_a_step", "most"), [(1, 400), (8, 800)])
@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("answer", ["refuse", "approve", "always"])
def test_the_state_stays_small_and_is_read_again(names, result, calls_a_step, most, answer):
    guard, tools, largest = LoopGuard(), NAMES[names], 0
    for start in range(0, most, calls_a_step):
        place = range(start, start + calls_a_step)
        calls = [
            {"name": tools[n % len(tools)], "args": {"v": n % 24}, "id": str(n)} for n in place
        ]
        results = [{"tool_call_id": str(n), **RESULTS[result](n)} for n in place]
        decision = guard.check(calls)
        if decision.action >= Action.ASK and answer == "refuse" and start % 3:
            guard.refuse(decision)
        elif decision.action >= Action.ASK and answer != "refuse":
            guard.approve(decision, always=answer == "always" and start % 5 == 0)
        guard.record_results(decision.record, results)
        if start // calls_a_step % 8 == 7:
            largest = max(largest, size(guard))
    assert largest <= SIZE
    assert stored(guard).to_state() == guard.to_state()


# --- Bad input ------------------------------------------------------------------------------------

ODD = [
    *HOSTILE.values(),
    ForeverNew,
    lambda: HostileText("x"),
    lambda: HostileDict(name="x", args={}, id="1", content="x", tool_call_id="1"),
    lambda: HostileList([1]),
    lambda: HostileSet({1}),
    lambda: HostileInt(5),
    lambda: HostileFloat(5),
    lambda: HostileBytes(b"x"),
    lambda: Plain(a=Plain()),
    lambda: Colour.RED,
    lambda: None,
    lambda: 5,
    lambda: "\ud800",
    lambda: float("nan"),
    lambda: SimpleNamespace(name=5, args=object(), id=b"1"),
]

PLACES = {
    "a call": lambda odd: ([odd], [{"id": "1", "content": "x"}]),
    "a name": lambda odd: ([{"name": odd, "args": {}, "id": "1"}], []),
    "arguments": lambda odd: ([{"name": "t", "args": odd, "id": "1"}], []),
    "an argument": lambda odd: ([{"name": "t", "args": {"a": odd, "why": odd}, "id": "1"}], []),
    "an id": lambda odd: (
        [{"name": "t", "args": {}, "id": odd}],
        [{"id": odd, "content": "x"}],
    ),
    "a result": lambda odd: ([{"name": "t", "args": {}, "id": "1"}], [odd]),
    "a content": lambda odd: (
        [{"name": "t", "args": {}, "id": "1"}],
        [{"id": "1", "content": odd}],
    ),
    "a block": lambda odd: (
        [{"name": "t", "args": {}, "id": "1"}],
        [{"id": "1", "content": [odd, {"type": "text", "text": odd}]}],
    ),
    "a status": lambda odd: (
        [{"name": "t", "args": {}, "id": "1"}],
        [{"id": "1", "content": "x", "status": odd}],
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("make", ODD)
def test_odd_values_never_raise_and_are_counted(place, make):
    guard = LoopGuard()
    for _ in range(6):
        calls, results = PLACES[place](make())
        decision = guard.check(calls)
        revealed = guard.record_results(decision.record, results)
    assert size(guard) <= SIZE
    assert stored(guard).to_state() == guard.to_state()
    assert revealed.action is Action.ASK, "six equal calls with six equal results"


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@ROUGHLY
@given(st.lists(st.tuples(st.text(max_size=8), ANY, ANY, ANY), max_size=8))
def test_any_values_never_raise(steps):
    guard = LoopGuard()
    for name, arguments, content, status in steps:
        calls = [{"name": name, "args": arguments, "id": "1"}, arguments]
        results = [{"id": "1", "content": content, "status": status}, content]
        guard.record_results(guard.check(calls).record, results)
        guard = stored(guard)
