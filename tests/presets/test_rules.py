"""What do a user message, an approval, a stored state and odd input do to a system's rule?"""

import pytest
from pydantic import ValidationError

from langchain_loopguard import Action
from langchain_loopguard.presets import PRESETS, RULE_NAMES
from langchain_loopguard.presets.gglib import Gglib
from langchain_loopguard.presets.hermes import Hermes
from langchain_loopguard.presets.signals import AutoGpt, SignalB
from langchain_loopguard.presets.streaks import Cline
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
