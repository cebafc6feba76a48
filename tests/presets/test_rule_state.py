"""Is the state of a system's rule small, read again, and does it forget what is oldest first?"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_loopguard import GuardStateError, LoopGuard, LoopGuardPolicy
from langchain_loopguard.presets.hermes import Hermes, HermesAgent
from langchain_loopguard.presets.signals import AutoGpt, SignalA, SignalB, SignalC
from langchain_loopguard.presets.takt import Takt
from tests.presets.plays import HUMAN, UNKNOWN, between, call, guard_of, run, verdicts
from tests.presets.stories import (
    FAILS,
    NEWS,
    READ,
    SAME_ERROR,
    A,
    of,
)
from tests.presets.test_rules import ALL, RULES

STEPS = st.lists(
    st.one_of(
        st.just(HUMAN),
        st.builds(
            call,
            st.sampled_from(["bash", "read_file", "edit"]),
            say=st.sampled_from(["a", "b\nc", "", "x is not a valid tool", UNKNOWN]),
            fails=st.booleans(),
            n=st.integers(0, 2),
        ),
        st.lists(st.builds(call, n=st.integers(0, 1)), min_size=1, max_size=4),
    ),
    max_size=40,
)


@pytest.mark.parametrize("rules", ALL.values(), ids=ALL)
@given(steps=STEPS)
@settings(max_examples=15)
def test_storing_the_state_at_every_step_changes_no_verdict(rules, steps):
    assert verdicts(rules, steps, reload=True) == verdicts(rules, steps)


@pytest.mark.parametrize("rules", ALL.values(), ids=ALL)
def test_the_state_stays_small_after_two_thousand_calls(rules):
    guard = guard_of(rules)
    tools = ["read_file", "bash", "é" * 400, "edit", "run" * 90]
    for step in range(400):
        if step > 200:  # a tool of a new name at every step, too
            tools = [*tools[:3], f"{step}{'tool' * 30}"]
        run(
            guard,
            [
                call(
                    tool,
                    n=step,
                    say=f"{step}\n{'x' * (step % 700)}{place}",
                    fails=(step // 40 + place) % 2 == 0,
                )
                for place, tool in enumerate(tools)
            ],
        )
    assert len(json.dumps(guard.to_state()["rules"])) <= 6_000  # the guard itself needs room too
    assert len(json.dumps(guard.to_state())) <= 8_192


@pytest.mark.parametrize("rule", RULES)
def test_a_state_of_another_form_is_a_state_error(rule):
    state = guard_of((rule,)).to_state()
    state["rules"][rule.rule] = ["x", {"y": 1}]
    with pytest.raises(GuardStateError):
        LoopGuard.from_state(LoopGuardPolicy(rules=(rule,)), state)


@pytest.mark.parametrize("rule", RULES)
def test_a_state_of_another_form_is_a_value_error(rule):
    for state in ("x", None, 5, [], {"y": 1}, ["x", {"y": 1}], [1] * 12):
        with pytest.raises(ValueError):  # noqa: PT011 - the words differ, some are Python's own
            rule.build().load_state(state)


@pytest.mark.parametrize(
    ("rule", "part", "what"),
    [(SignalB(), 2, "AAA="), (SignalB(), 2, "A" * 100_000), (SignalA(), 1, "AAA=")],
)
def test_packed_numbers_of_another_width_are_an_error(rule, part, what):
    state = rule.build().to_state()
    state[part] = what
    with pytest.raises(ValueError, match="numbers"):
        rule.build().load_state(state)


FAILED_READS = [call("read_file", n=n, say=f"{n * 'x'} broke", fails=True) for n in range(100)]
FAILED_TOOLS = [c | {"name": f"tool{n}"} for n, c in enumerate(FAILED_READS)]
READS = [call("read_file", n=n, say=str(n)) for n in range(100)]
EDIT = call("edit", old="x", say="no match", fails=True)
EDITS = [call("edit", n=n, say=f"{n * 'x'} no", fails=True) for n in range(90)]


@pytest.mark.parametrize(
    ("rules", "ones", "others", "limit"),
    [
        pytest.param((SignalA(note_at=2),), [A], NEWS, 48, id="signal A"),
        pytest.param(of("pr_32089"), [A, A], NEWS, 224, id="#32089"),
        pytest.param(of("crewai"), between([A] * 4, NEWS), NEWS[9:], 192, id="crewAI"),
        pytest.param((SignalC(note_at=2),), [SAME_ERROR[0]], FAILED_READS, 24, id="signal C"),
        pytest.param((AutoGpt(failures=1),), [FAILS[0]], FAILED_READS, 96, id="AutoGPT"),
        pytest.param(
            (Hermes(tool_warn_after=999),), [FAILS[0]], FAILED_READS, 64, id="hermes calls"
        ),
        pytest.param(
            (Hermes(exact_warn_after=999, tool_warn_after=2),),
            [FAILS[0]],
            FAILED_TOOLS,
            48,
            id="hermes tools",
        ),
        pytest.param((Hermes(noprog_warn_after=1),), [READ], READS, 64, id="hermes results"),
        pytest.param(
            (HermesAgent(tool_failures_note=999, tool_failures_stop=999),),
            [FAILS[0]],
            FAILED_READS,
            56,
            id="hermes-agent calls",
        ),
        pytest.param(
            (HermesAgent(call_failures_note=999, tool_failures_note=2),),
            [FAILS[0]],
            FAILED_TOOLS,
            40,
            id="hermes-agent tools",
        ),
        pytest.param((HermesAgent(),), [READ], READS, 40, id="hermes-agent results"),
        pytest.param(
            (Takt(failed_edits=2, failures=999, recent=100),), [EDIT], EDITS, 32, id="takt edits"
        ),
    ],
)
def test_what_was_touched_last_is_remembered(rules, ones, others, limit):
    remembered = verdicts(rules, [*ones, *others[: limit - len(set(map(str, ones)))], ones[0]])
    forgotten = verdicts(rules, [*ones, *others[:limit], ones[0]])
    assert (remembered != [], forgotten) == (True, [])


@pytest.mark.parametrize(("others", "action"), [(31, "ask"), (32, "warn")])
def test_takt_remembers_32_troubles(others, action):
    tools = [[call(f"nope{n}", say="unknown tool", fails=True)] * 2 for n in range(others + 1)]
    steps = [step for pair in [*tools, tools[0]] for step in pair]
    assert verdicts(of("takt"), steps)[-1].split()[1] == action


@pytest.mark.parametrize(("lines", "known"), [(599, True), (600, False)])
def test_signal_b_remembers_600_lines(lines, known):
    text = "\n".join(f"line {n}" for n in range(lines))
    steps = [A, call(say=text), call(say="ok\n"), call(say="ok\n\n"), call(say="ok\n\n\n")]
    assert bool(verdicts(of("signal_b"), steps)) is known


@pytest.mark.parametrize(("others", "known"), [(31, True), (32, False)])
def test_signal_b_remembers_32_whole_results(others, known):
    long = call(say="\n".join(f"line {n}" for n in range(700)))
    steps = [long, *(call(say=f"word {n}") for n in range(others)), long, long, long]
    # Known as a whole, the long result opens a streak of three; else only the second time.
    assert bool(verdicts(of("signal_b"), steps)) is known


def test_a_held_finding_names_eight_tools():
    guard = guard_of(of("takt"))
    for _ in range(2):
        run(guard, [call(f"tool{n}", say="boom", fails=True) for n in range(10)])
    held = guard.to_state()["rules"]["takt"][0]
    assert held[6] == [f"tool{n}" for n in range(8)]
