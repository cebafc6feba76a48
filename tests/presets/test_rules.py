"""What do a user message, an approval, a stored state and odd input do to a system's rule?"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from langchain_loopguard import Action, GuardStateError, LoopGuard, LoopGuardPolicy
from langchain_loopguard.presets import PRESETS, RULE_NAMES, preset
from langchain_loopguard.presets.gglib import Gglib
from langchain_loopguard.presets.hermes import Hermes, HermesAgent
from langchain_loopguard.presets.signals import AutoGpt, SignalA, SignalB, SignalC
from langchain_loopguard.presets.streaks import Cline
from langchain_loopguard.presets.takt import Takt
from langchain_loopguard.presets.windows import OpenHands
from tests.core.odd import HOSTILE
from tests.presets.plays import HUMAN, UNKNOWN, between, call, findings, guard_of, run, verdicts
from tests.presets.stories import (
    EVER_FAILS,
    FAILS,
    HARD,
    MISSING,
    NEWS,
    READ,
    SAME_ERROR,
    A,
    B,
    C,
    D,
    of,
)
from tests.presets.test_numbers import CASES

ALL = {**{name: of(name) for name in PRESETS}, "hermes hard": HARD}
RULES = [pytest.param(rule, id=rule.rule) for name in PRESETS for rule in of(name)]

# --- A user message ---------------------------------------------------------------------------

ONE_SHORT = {
    "repeated_batch": ([A, A], A, False),
    "gglib": ([A, A], A, False),
    "signal_a": ([A, A], A, True),
    "signal_b": ([A, A, A], A, False),
    "signal_c": (SAME_ERROR[:3], SAME_ERROR[3], True),
    "kimi_code": ([A, A], A, False),
    "deepseek_harness": ([A, A], A, False),
    "gemini_cli": ([A] * 4, A, False),
    "openclaw": ([A] * 10, A, False),
    "cline": ([A, A], A, True),
    "roo_code": ([A, A, A], A, True),
    "crewai": ([A], A, False),
    "agentsight": ([A] * 4, A, False),
    "autogpt": (FAILS[:3], FAILS[3], True),
    "takt": ([A] * 11, A, False),
    "hermes_agent": ([A, A], A, False),
    "hermes": (FAILS[:1], FAILS[1], False),
    "openhands": ([A, A, A], A, False),
    "pr_32089": ([A, A], A, True),
    "pr_47797": ([A, A], A, False),
    "pr_46272": ([A] * 9, A, False),
    "pr_37109": ([A, A], A, True),
}


@pytest.mark.parametrize(
    ("name", "before", "last", "survives"),
    [pytest.param(name, *case, id=name) for name, case in ONE_SHORT.items()],
)
def test_a_user_message_resets_what_it_resets_there(name, before, last, survives):
    assert verdicts(of(name), before) == []
    assert verdicts(of(name), [*before, last]) != []
    assert bool(verdicts(of(name), [*before, HUMAN, last])) is survives


@pytest.mark.parametrize(
    ("name", "steps", "last"),
    [
        pytest.param("openhands", [*[A] * 4, HUMAN, A], "3! stop 4/4", id="lifts a stop"),
        pytest.param("takt", [*[A] * 12, HUMAN, *[A] * 12], "23! warn 12/12", id="all chances"),
        pytest.param("signal_c", [*SAME_ERROR[:6], HUMAN, A], "6? ask 6/6", id="keeps an ask"),
        pytest.param("signal_b", [A, HUMAN, A, B, C], None, id="old lines are new"),
        pytest.param("crewai", [A, B, C, D] * 4 + [HUMAN, A, B, A, B], None, id="tally"),
    ],
)
def test_what_a_user_message_does_to_what_was_found(name, steps, last):
    assert (verdicts(of(name), steps) or [None])[-1] == last


# --- Going on ---------------------------------------------------------------------------------

FIRES = {
    name: (of(name), [*before, *[last] * 30])
    for name, (before, last, _) in ONE_SHORT.items()
    if name not in {"gglib", "hermes", "agentsight"}
} | {
    "gglib": ((Gglib(on_loop="refuse"),), [A] * 9),
    "crewai tally": (of("crewai"), between([A] * 9, NEWS)),
    "autogpt empty": (of("autogpt"), [call("t")] * 30),
    "autogpt failure": (of("autogpt"), [*FAILS, *FAILS]),
    "hermes call": (HARD, FAILS * 3),
    "hermes tool": (HARD, EVER_FAILS),
    "hermes result": (HARD, [READ] * 20),
}


@pytest.mark.parametrize(
    ("rules", "steps"), [pytest.param(*case, id=name) for name, case in FIRES.items()]
)
def test_an_approved_loop_is_counted_from_the_start(rules, steps):
    guard, played = guard_of(rules), iter(steps)
    asked = []
    while not asked:
        asked = [one for one in run(guard, next(played)) if one.action >= Action.ASK]
    for decision in asked:
        guard.approve(decision)
    assert run(guard, next(played))[0].action < Action.ASK


def test_forgetting_one_call_keeps_the_counts_of_another():
    guard, one, two = guard_of(of("signal_a")), call("one"), call("two")
    for step in [one, two] * 6:
        decisions = run(guard, step)
    guard.approve(decisions[1])  # of the second
    assert [run(guard, step)[0].action for step in (one, two)] == [Action.ASK, Action.ALLOW]


def test_an_approval_of_another_rules_loop_starts_the_counts_again():
    [rule] = of("cline")
    counters = rule.build()
    counters.load_state([None, [5, 2, 1]])
    counters.approve("repeat:a.b")
    assert counters.to_state() == rule.build().to_state()


def test_the_step_after_a_refused_one_has_a_chance_under_signal_b():
    guard = guard_of(of("signal_b"))
    for _ in range(9):
        run(guard, A)
    guard.refuse(guard.check([A]))
    assert guard.check([call(cmd="z")]).action is Action.ALLOW


@pytest.mark.parametrize(
    ("name", "asks"), [("pr_32089", 2), ("deepseek_harness", 7), ("pr_47797", 2), ("crewai", 1)]
)
def test_three_refusals_of_one_loop_end_the_run(name, asks):
    guard = guard_of(of(name))
    for _ in range(asks):
        assert run(guard, A)[0].action < Action.ASK
    for _ in range(3):
        decision = guard.check([A])
        assert decision.action is Action.ASK
        guard.refuse(decision)
    assert guard.check([A]).action is Action.STOP


# --- Wordings ---------------------------------------------------------------------------------

FOUND = [one for rules, steps, _ in CASES.values() for _, _, one in findings(rules, steps)]


def test_every_finding_tells_a_person_tools_count_and_number():
    for finding in FOUND:
        text = finding.to_person
        assert str(finding.count) in text, finding
        assert f" at {finding.threshold})" in text
        assert all(tool in text for tool in finding.tools)


def test_no_finding_quotes_a_call_or_a_rule_to_the_model():
    for finding in FOUND:
        words = finding.to_model.lower()
        assert len(words) > 40
        assert not [word for word in ("bash", "read_file", "signal", "guard") if word in words]


def test_only_what_is_held_back_is_said_not_to_have_run():
    told = {when: one.to_model for _, when, one in findings(of("signal_a"), [A] * 7)}
    assert told["?"].startswith("This step was not run.")
    assert not told["!"].startswith("This step was not run.")


@pytest.mark.parametrize(
    ("name", "steps", "since"),
    [
        ("gemini_cli", [C, *[A, B] * 5], 2),
        ("kimi_code", [B, A, A, A], 2),
        ("crewai", [B, *between([A] * 5, NEWS)], 2),
        ("agentsight", [B, *[A] * 5], 2),
        ("pr_32089", [B, A, B, A, A], 2),
        ("pr_37109", [NEWS[0], A, A, A], 2),
        ("signals", [NEWS[0], A, NEWS[1], A, NEWS[2], A], 2),
        ("openclaw", [B, *between([A] * 11, NEWS)], 2),
        ("openclaw", [B, *between([A] * 21, NEWS)][:32], 2),
        ("openclaw", [B, *[A] * 21], 2),
        ("openclaw", [C, *[A, B] * 5], 2),
        ("openclaw", [C, *MISSING[:11]], 2),
        ("openhands", [B, A, A, A, A], 2),
        ("openhands", [C, *[A, B] * 3], 2),
        ("openhands", [A, *FAILS[:3]], 2),
        ("autogpt", [B, *FAILS[:4]], 2),
        ("autogpt", [A, *[call("t")] * 5], 2),
        ("hermes", [A, *EVER_FAILS[:3]], 2),
        ("hermes", [A, *FAILS[:2]], 2),
        ("hermes", [A, READ, NEWS[0], READ, READ], 2),
        ("hermes_agent", [A, *FAILS[:6]], 2),
        ("hermes_agent", [A, *between([READ] * 6, NEWS)][:12], 2),
        ("hermes_agent", [READ, *EVER_FAILS[:3]], 2),
        ("hermes_agent", [READ, NEWS[0], READ], 1),
        ("takt", [B, *[A] * 12], 2),
        ("takt", [B, *MISSING[:2]], 2),
        ("takt", [A, *(call(n=n, say=UNKNOWN) for n in range(120))], 2),
    ],
)
def test_a_loop_begins_at_its_first_step(name, steps, since):
    *_, (_, _, last) = findings(of(name), steps)
    assert last.since == since


def test_a_short_cycle_in_a_long_tail_begins_at_its_first_step():
    *_, (_, _, last) = findings((OpenHands(alternations=2),), [C, D, A, B, A, B])
    assert last.since == 3


@pytest.mark.parametrize(
    ("steps", "words"), [([A], "times in a row with the same"), ([A, B], "went through the same")]
)
def test_a_person_is_told_a_streak_from_a_cycle(steps, words):
    *_, (_, _, last) = findings(of("gemini_cli"), steps * 5)
    assert words in last.to_person


def test_the_tools_of_a_cycle_are_all_named():
    *_, (_, _, last) = findings(of("pr_47797"), [call("one"), call("two")] * 3)
    assert last.tools == ("one", "two")


# --- State ------------------------------------------------------------------------------------

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


# --- Odd input and numbers --------------------------------------------------------------------


@pytest.mark.parametrize("rules", ALL.values(), ids=ALL)
def test_odd_calls_never_raise(rules):
    guard = guard_of(rules)
    odd = [make() for make in HOSTILE.values()]
    for value in [*odd, None, "", "{bad", b"x", float("nan"), {1: 2}, {"\ud800": 1}]:
        for calls in ([{"name": "t", "args": value, "id": "x"}] * 2, [value]):
            decision = guard.check(calls)
            guard.record_results(decision.record, [{"id": "x", "content": value}])


@pytest.mark.parametrize("rule", RULES)
def test_no_number_may_be_negative_or_unknown(rule):
    for name in [name for name, value in rule if type(value) is int]:
        with pytest.raises(ValidationError):
            type(rule)(**{name: -1})
    with pytest.raises(ValidationError):
        type(rule)(no_such_number=1)


@pytest.mark.parametrize(
    ("config", "fields", "what"),
    [
        (Cline, {"note_at": 9}, "note_at and stop_at must not fall"),
        (SignalB, {"ask_at": 50}, "notes_at, ask_at and stop_at must not fall"),
        (SignalB, {"notes_at": (5, 3)}, "notes_at, ask_at and stop_at must not fall"),
        (Hermes, {"idempotent_tools": ("",)}, "a blank is neither"),
        (Cline, {"note_at": True}, "valid integer"),
        (Cline, {"note_at": "3"}, "valid integer"),
    ],
)
def test_odd_numbers_are_refused(config, fields, what):
    with pytest.raises(ValidationError, match=what):
        config(**fields)


def test_a_list_will_do_as_in_a_policy_file():
    assert SignalB(notes_at=[3, 5]) == SignalB()


# --- The table --------------------------------------------------------------------------------


def test_a_preset_is_found_by_any_spelling():
    assert preset(" Gemini-CLI") is PRESETS["gemini_cli"]


@pytest.mark.parametrize("name", ["nope", "", 5])
def test_a_wrong_name_lists_the_right_ones(name):
    with pytest.raises(ValueError, match=r"seed, signals.*agentsight"):
        preset(name)


def test_every_rule_is_of_a_preset_and_called_as_it_says():
    assert {rule.rule for name in PRESETS for rule in of(name)} == set(RULE_NAMES)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_says_what_it_re_tells_and_when_that_was_read(name):
    assert PRESETS[name].source
    assert PRESETS[name].read.startswith("2026-1")


@pytest.mark.parametrize("rule", RULES)
def test_a_system_is_called_alike_in_preset_and_finding(rule):
    titles = {system.title for system in PRESETS.values()}
    assert rule.title in titles or rule.rule.startswith("signal_")


def test_rules_of_two_systems_run_side_by_side():
    assert verdicts((AutoGpt(), *of("kimi_code")), [A] * 3) == ["2? warn 3/3"]
