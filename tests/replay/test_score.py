"""The score of a run, and what a log of an observing guard allows."""

from __future__ import annotations

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langsmith.evaluation import run_evaluator
from typer.testing import CliRunner

from langchain_loopguard.cli.app import app
from langchain_loopguard.replay import assert_no_loop, loop_evaluator, score
from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.promote import Promotion
from tests.replay.made_runs import repeating, working


def messages(times):
    made = [HumanMessage("go")]
    for at in range(times):
        call = {"name": "search", "args": {"q": "x"}, "id": f"c{at}"}
        made += [AIMessage("", tool_calls=[call]), ToolMessage("none", tool_call_id=f"c{at}")]
    return made


def test_a_run_without_a_loop_has_1():
    assert score(working(20)).value == 1


def test_a_run_without_steps_has_1():
    assert score([{"role": "user", "content": "hi"}]).value == 1


@pytest.mark.parametrize(("times", "wasted"), [(3, 0), (7, 3), (30, 26)])
def test_the_steps_after_the_first_warning_that_brought_nothing_are_wasted(times, wasted):
    made = score(repeating(times))
    assert (made.wasted, made.value) == (wasted, 1 - wasted / times)


def test_the_findings_come_with_the_score():
    assert score(repeating(7)).findings[0].rule == "repeat"


@pytest.mark.parametrize("form", [list, lambda made: {"messages": made}], ids=["list", "state"])
def test_messages_are_scored_in_any_form(form):
    plain = [one.model_dump() for one in messages(7)]
    assert score(form(messages(7))).value == score(form(plain)).value == 1 - 3 / 7


def test_what_holds_no_messages_is_refused():
    with pytest.raises(ConversationError):
        score({"answer": 42})


def test_langsmith_takes_the_evaluator():
    evaluate = run_evaluator(loop_evaluator)
    assert evaluate is not None
    told = loop_evaluator(inputs={}, outputs={"messages": messages(7)}, reference_outputs={})
    assert (told["key"], told["score"]) == ("no_loop", 1 - 3 / 7)
    assert "repeat: search" in told["comment"] or "stall: search" in told["comment"]


def test_assert_no_loop_fails_with_the_reason():
    assert_no_loop(messages(2))
    with pytest.raises(AssertionError, match=r"score 0\.57 is below 1\.00: 3 of 7 steps"):
        assert_no_loop(messages(7))


def command(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def test_the_command_scores_and_fails_below_the_least(tmp_path):
    path = tmp_path / "runs.jsonl"
    runs = [working(10), repeating(7)]
    path.write_text("".join(json.dumps(run.to_dict()) + "\n" for run in runs))
    told = json.loads(command("score", path, "--json").output)
    assert [one["score"] for one in told["runs"]] == [1, 1 - 3 / 7]
    assert [command("score", path, "--least", least).exit_code for least in (0.5, 0.6)] == [0, 1]


# --- Promote -------------------------------------------------------------------------------------


def log(good, asked, *, failed=0):
    events = [{"thread": at, "action": "allow", "outcome": "success"} for at in range(good)]
    finding = {"action": "ask", "rule": "repeat", "tools": ["search"], "count": 5}
    events += [{"thread": at, **finding} for at in range(asked)]
    for at in range(failed):
        events.append({"thread": f"bad {at}", **finding})
        events.append({"thread": f"bad {at}", "outcome": "fail"})
    return events


@pytest.mark.parametrize(
    ("good", "asked", "holds"), [(299, 0, True), (298, 0, False), (473, 1, True), (300, 1, False)]
)
def test_asking_is_allowed_when_the_bound_is_within_the_share(good, asked, holds):
    found = Promotion(allowed=0.01)
    for event in log(good, asked):
        found.take(event)
    assert found.holds is holds


def test_the_command_says_whom_it_would_have_asked_about(tmp_path):
    path = tmp_path / "observed.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in log(300, 2, failed=3)))
    done = command("promote", path)
    assert done.exit_code == 1
    assert "Of the 300 that ended well, 2 would have been interrupted" in done.output
    assert "2 because of repeat: search, 5 times" in done.output
    assert "Of the 3 that failed, 3 would have been interrupted" in done.output


@pytest.mark.parametrize("line", ["{}", "[1]", "x", '{"thread": 1, "action": "shout"}'])
def test_a_line_that_is_no_event_ends_with_2(line, tmp_path):
    path = tmp_path / "observed.jsonl"
    path.write_text(line + "\n")
    assert command("promote", path).exit_code == 2
