"""Does the table say what is to happen, for each row and for each call?"""

import pytest

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.errors import LoopDetectedError
from langchain_loopguard.langchain.errors import InvalidResumeError, error_of_facts
from langchain_loopguard.langchain.marks import mark_of, result_by
from langchain_loopguard.langchain.messages import last_step
from langchain_loopguard.langchain.options import MODES, Options
from langchain_loopguard.langchain.outcome import TABLE, Detected, decide, noticed, resolve
from langchain_loopguard.langchain.question import Asked
from langchain_loopguard.langchain.replies import CallReply, Reply
from tests.langchain.made import LOOK, decision, result, said

ACTIONS = {"none": Action.ALLOW, "warn": Action.WARN, "loop": Action.ASK, "final": Action.STOP}
STEP = last_step([said(1, LOOK, LOOK)])
LATE = last_step([said(1, LOOK), result(1)])


def outcome(action=Action.ASK, mode="interrupt", *, can_ask=True, reply=None, step=STEP, **options):
    return decide(
        decision(action), step, mode=mode, can_ask=can_ask, options=Options(**options), reply=reply
    )


def every_case():
    for found, action in ACTIONS.items():
        for mode in MODES:
            for can_ask in (True, False):
                for kind in ("-", "continue", "always", "stop", "text"):
                    yield found, action, mode, can_ask, kind


def test_the_table_in_every_case():
    used = set()
    for found, action, mode, can_ask, kind in every_case():
        got = outcome(action, mode, can_ask=can_ask, reply=None if kind == "-" else Reply(kind, ""))
        row = next(
            row
            for row in TABLE
            if row.found in {found, "*" if found != "none" else found}
            and row.mode in {mode, "*"}
            and row.can_ask in {None, can_ask}
            and row.reply in {kind, "*"}
        )
        used.add(row)
        assert (got.next, got.settle, got.emit) == row[4:7]
        assert bool(got.log) is row.logged
        runs = got.next in {"run", "ask"}
        assert len(got.runs(STEP.open_calls)) == (2 if runs else 0)
        assert got.prevented == (0 if runs else 2)
        assert bool(got.final) is (got.next in {"end", "answer"})
        assert bool(got.facts) is (got.next == "raise")
        messages = got.messages(STEP.open_calls)
        assert [message.tool_call_id for message in messages] == (
            [] if runs else ["call_1_0", "call_1_1"]
        )
        assert all(result_by(message) == "guard" for message in messages)
        assert got.asked is (kind != "-")
    assert {row.reply for row in TABLE if row not in used} == {"decisions"}


@pytest.mark.parametrize("action", [Action.WARN, Action.ASK, Action.STOP])
def test_observe_holds_nothing_back_and_ends_nothing(action):
    got = outcome(action, "observe")
    assert (got.next, got.settle, got.final, got.late_text) == ("run", "", "", "")


def test_where_nobody_can_be_asked_the_run_ends_and_the_log_says_how_to_be_asked():
    got = outcome(can_ask=False)
    assert got.next == "end"
    assert "checkpointer" in got.log
    assert "Nobody could be asked" in got.final
    assert "checkpointer" not in outcome(Action.STOP, can_ask=False).log


def test_each_call_gets_what_the_person_decided():
    calls = (CallReply("run", name="see", args={"at": 1}), CallReply("respond", "42"))
    got = outcome(reply=Reply("decisions", calls=calls))
    assert got.next == "run"
    assert got.runs(STEP.open_calls) == {"call_1_0"}
    assert got.edits(STEP.open_calls) == {"call_1_0": ("see", {"at": 1})}
    (message,) = got.messages(STEP.open_calls)
    assert (message.content, message.status, message.tool_call_id) == ("42", "success", "call_1_1")


def test_decisions_in_which_nothing_runs_are_advice():
    calls = (CallReply("refuse"), CallReply("respond", "42"))
    got = outcome(reply=Reply("decisions", calls=calls))
    assert (got.next, got.settle) == ("model", "advise")
    assert [message.status for message in got.messages(STEP.open_calls)] == ["error", "success"]


def test_a_reason_is_in_the_final_message():
    assert outcome(reply=Reply("stop", "too dear")).final.endswith("Reason: too dear")


@pytest.mark.parametrize("mode", ["refuse", "wrap_up"])
def test_the_model_is_told_below_a_result_that_the_host_gave(mode):
    got = outcome(mode=mode, step=LATE)
    assert [call.do for call in got.calls] == ["leave"]
    assert got.late_text.startswith("Try something else.")
    assert got.messages(LATE.calls) == []


def test_an_unparsed_call_fails_and_counts_as_a_result():
    step = last_step([said(1, LOOK, bad=["{"])])
    (message,) = outcome(Action.ALLOW, step=step).messages(step.open_calls)
    assert (message.tool_call_id, message.status) == ("bad_1_0", "error")
    assert result_by(message) == "tool"


def test_the_last_message_says_how_the_run_ends():
    first, last = outcome(mode="raise").messages(STEP.open_calls)
    assert not mark_of(first).ends
    ends = mark_of(last).ends
    assert ends["as"] == "raise"
    with pytest.raises(LoopDetectedError, match="the same 5 times"):
        raise error_of_facts(ends)
    assert mark_of(outcome(mode="wrap_up").messages(STEP.open_calls)[-1]).ends["as"] == "final"


def test_wording_replaces_a_text():
    got = outcome(mode="refuse", wording={"refused": "Nein. {found}"})
    assert got.calls[0].text == "Nein. Try something else."


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, ("warn", None)),
        ("wrap_up", ("wrap_up", None)),
        (True, ("interrupt", Reply("continue"))),
        ("use the other file", ("interrupt", Reply("text", "use the other file"))),
    ],
)
def test_a_callable_gives_a_mode_or_an_answer(given, wanted):
    detected = Detected(decision(), STEP.open_calls, True, Asked())
    assert resolve(Options(on_detected=lambda _: given), detected) == wanted


def test_a_callable_is_not_called_for_a_warning():
    detected = Detected(decision(Action.WARN), STEP.open_calls, True, Asked())
    assert resolve(Options(on_detected=lambda _: 1 / 0), detected) == ("warn", None)


def test_a_callable_that_gives_something_odd_is_told():
    with pytest.raises(InvalidResumeError):
        resolve(Options(on_detected=lambda _: 3.5), Detected(decision(), [LOOK], True, Asked()))


def test_what_results_reveal_holds_nothing_back():
    warning = decision(Action.WARN)
    got = noticed(warning, Options())
    assert (got.next, got.emit) == ("run", "warned")
    assert noticed(warning, Options(on_detected="observe")).emit == "observed"


@pytest.mark.parametrize("action", [Action.ALLOW, Action.ASK, Action.STOP])
def test_a_loop_is_emitted_when_its_next_step_is_about_to_run(action):
    assert noticed(decision(action), Options()).emit == ""
