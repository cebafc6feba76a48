"""What does a replay report of one run?"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest

from langchain_loopguard import Action, LoopGuard, LoopGuardPolicy
from langchain_loopguard.replay import Conversation, ConversationError, replay
from tests.conversations import load, policy_for, read_through
from tests.replay.made_runs import batch, repeating, run, working

CASES = [Conversation.from_dict(case) for case in load("cases")]
PAIR = [("search", "x", "none"), ("read", "y", "none")]


def test_a_batch_of_two_calls_counts_as_one_batch_and_two_calls():
    report = replay(run("go", *[batch(*PAIR, number=at) for at in range(8)]))
    assert report.held is not None
    assert (report.held.step, report.held.call) == (6, 11)


def test_a_batch_that_was_held_back_counts_as_saved():
    report = replay(repeating(10))
    assert report.held is not None
    assert report.held.before
    assert (report.held.steps_after, report.held.calls_after) == (5, 5)
    assert report.saved == 5


def test_a_batch_whose_answers_showed_the_loop_counts_as_run():
    report = replay(repeating(10))
    assert report.ask is not None
    assert not report.ask.before
    assert (report.ask.step, report.ask.calls_after) == (5, 5)


def test_a_run_without_a_loop_saves_nothing():
    report = replay(working(30))
    assert not report.looped
    assert (report.saved, report.warn, report.ask, report.held, report.stop) == (0,) + (None,) * 4


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_replay_says_what_the_live_guard_says(case):
    """The guard itself is handed the same events, by other code than the replay's."""
    policy = policy_for({"expect": case.extra["expect"]})
    live = read_through(case.events, policy)
    report = replay(case, policy)
    found = [(one.step, one.rule, one.action, one.count) for one in report.findings]
    assert found == [(at, f.rule, f.action, f.count) for at, f in live.findings]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_unattended_replay_says_what_an_unattended_guard_says(case):
    live = read_through(case.events, unattended=True)
    report = replay(case, unattended=True)
    assert (report.stop and report.stop.step) == live.stop
    assert [one.step for one in report.findings] == [at for at, _ in live.findings]


def test_a_note_of_approval_lets_the_loop_go_on():
    loop = [batch(("f", 1, "none"), number=at) for at in range(17)]
    told = run("go", *loop[:6], {"type": "note", "text": "approve"}, *loop[6:])
    asked = [one.step for one in replay(told).findings if one.before and one.action is Action.ASK]
    assert asked == [6, 17]  # Its numbers have doubled.


def test_an_approved_batch_lets_the_loop_go_on():
    loop = [batch(("f", 1, "none"), number=at) for at in range(17)]
    loop[5]["approved"] = True
    asked = [one.step for one in replay(run("go", *loop)).findings if one.before]
    assert asked == [6, 16, 17]


def test_an_unattended_replay_ends_at_the_stop():
    report = replay(repeating(30), unattended=True)
    assert report.stop is not None
    assert [mark.number for mark in report.steps][-1] == report.stop.step == 9
    assert (report.step_count, report.stop.steps_after) == (30, 22)


def test_events_of_unknown_types_are_ignored():
    told = run("go", {"type": "thought", "text": "hm"}, batch(("f", 1, "a")))
    assert replay(told).step_count == 1


def test_a_batch_without_calls_is_none():
    assert replay(run({"type": "batch", "calls": []})).step_count == 0


def test_steps_say_which_calls_are_equal():
    first, second, again = replay(
        run(batch(("f", 1, "a")), batch(("f", 2, "a")), batch(("f", 1, "a")))
    ).steps
    assert first.calls[0].identity == again.calls[0].identity != second.calls[0].identity


def test_steps_say_which_results_came_before():
    results = [("f", 1, "a"), ("f", 1, "b"), ("f", 1, "a"), ("f", 2, "a"), ("f", 2)]
    steps = replay(run(*[batch(one, number=at) for at, one in enumerate(results)])).steps
    found = [step.calls[0].novelty for step in steps]
    assert found == ["new", "new", "known", "new", "missing"]


def test_steps_count_turns_and_calls():
    steps = replay(run(batch(("f", 1, "a")), "go", batch(*PAIR), batch(("g", 1, "a")))).steps
    found = [(step.turn, step.call, len(step.calls)) for step in steps]
    assert found == [(0, 1, 1), (1, 2, 2), (1, 4, 1)]


def test_tokens_and_time_are_summed_and_told_from_a_fire_on():
    loop = [batch(("f", 1, "a"), number=at, tokens=10, at=60.0 * at) for at in range(9)]
    report = replay(run("go", *loop))
    assert (report.tokens, report.seconds) == (90, 480)
    assert (report.held.tokens_after, report.held.seconds_after) == (40, 180)


def test_without_steps_the_verdicts_are_the_same():
    with_steps, without = replay(repeating(9)), replay(repeating(9), steps=False)
    assert without.steps == ()
    assert without.findings == with_steps.findings


def test_a_report_holds_no_argument_and_no_answer():
    loop = [batch(("search", "private-argument", "private-answer"), number=at) for at in range(9)]
    text = json.dumps(replay(run("go", *loop)).as_dict())
    assert "private" not in text


def test_a_report_can_be_sent_to_another_process():
    report = replay(repeating(9))
    assert pickle.loads(pickle.dumps(report)) == report  # noqa: S301 - its own


def test_the_live_guard_is_what_runs(monkeypatch):
    seen = []
    check = LoopGuard.check
    monkeypatch.setattr(
        LoopGuard, "check", lambda self, calls: seen.append(1) or check(self, calls)
    )
    replay(repeating(7))
    assert len(seen) == 7


def test_another_policy_gives_other_verdicts():
    assert replay(repeating(7), LoopGuardPolicy.preset("pr_32089")).ask.step == 3


# --- Conversations -------------------------------------------------------------------------------


def test_a_conversation_goes_to_its_own_form_and_back():
    told = repeating(3, label="loop")
    assert Conversation.from_dict(told.to_dict()) == told


def test_what_else_a_source_says_is_kept():
    assert repeating(1, label="loop").extra == {"label": "loop"}


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        pytest.param({}, "events: must be a list, not null", id="no events"),
        pytest.param({"events": {}}, "events: must be a list, not an object", id="no list"),
        pytest.param({"events": [3]}, r"events\[0\]: must be an object", id="no object"),
        pytest.param({"events": [{"type": 3}]}, r"events\[0\]: must be", id="no type"),
        pytest.param(
            {"events": [{"type": "batch", "calls": [3]}]}, r"events\[0\].calls", id="no calls"
        ),
        pytest.param(
            {"events": [{"type": "batch", "calls": [], "results": "x"}]},
            r"events\[0\].results: must be a list or null, not a text",
            id="no results",
        ),
    ],
)
def test_what_is_no_conversation_is_refused_with_its_place(data, wrong):
    with pytest.raises(ConversationError, match=wrong):
        Conversation.from_dict(data)


def test_an_outcome_of_another_word_is_unknown():
    assert Conversation.from_dict({"events": [], "outcome": "great"}).outcome == "unknown"


def test_importing_the_replay_loads_no_host():
    """LangChain takes longer to load than most inputs to replay."""
    code = "import sys, langchain_loopguard.replay; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    hosts = {"langchain_core", "langgraph", "rich", "typer", "ijson", "psycopg", "fsspec", "dask"}
    assert not hosts & set(done.stdout.split())
