"""Does a reader count each step once, and see turns, callers and new conversations?"""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.langchain.history import Reader
from langchain_loopguard.langchain.marks import Mark, replacement, with_mark
from langchain_loopguard.langchain.messages import last_step
from langchain_loopguard.langchain.options import Options
from langchain_loopguard.langchain.outcome import decide
from langchain_loopguard.langchain.replies import Reply
from tests.langchain.made import LOOK, Talk, decision, result, said


def test_equal_steps_are_asked_about_and_every_restart_goes_on():
    talk = Talk().human()
    while not any(talk.asked):
        talk.step()
    assert 4 <= len(talk.asked) <= 8
    json.dumps(talk.reader.to_state())


def test_the_same_list_is_counted_once():
    talk = Talk().human()
    for _ in range(3):
        found = talk.step()
        assert talk.reader.check(last_step(talk.messages[:-1])) is found
        talk.reader.read(talk.messages)
        talk.reader.read(talk.messages)
    assert talk.reader.to_state()["guard"]["steps"] == 3


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(HumanMessage("Continue with the task."), id="text"),
        pytest.param(HumanMessage([{"type": "text", "text": "Screen:"}]), id="blocks"),
        pytest.param(
            HumanMessage("Sum", additional_kwargs={"lc_source": "summarization"}), id="made"
        ),
    ],
)
@pytest.mark.parametrize("run", [True, False])
def test_a_human_message_that_a_node_wrote_begins_no_turn(message, run):
    talk = Talk().human(run=run)
    for _ in range(9):
        talk.step()
        talk.messages.append(message.model_copy(update={"id": f"n_{len(talk.messages)}"}))
    assert any(talk.asked)


@pytest.mark.parametrize("run", [True, False])
def test_each_input_of_a_user_begins_a_turn(run):
    talk = Talk()
    for number in range(12):
        talk.human("An umbrella today?", run=run).step()
        talk.messages.append(AIMessage("Yes.", id=f"yes_{number}"))
    assert not any(talk.asked)


def test_a_run_without_a_human_message_is_a_turn_too():
    talk = Talk().human()
    for number in range(12):
        talk.reader.start_run(talk.messages)
        talk.step()
        talk.messages.append(AIMessage("Nothing to do.", id=f"end_{number}"))
    assert not any(talk.asked)


@pytest.mark.parametrize("who", [["continue"], lambda message: message.text == "Please do it."])
def test_an_input_that_no_user_wrote_begins_no_turn(who):
    talk = Talk(is_user_message=who).human()
    for number in range(12):
        talk.step()
        talk.messages.append(AIMessage("Done so far.", id=f"end_{number}"))
        talk.human("Continue.")
    assert any(talk.asked)


def test_agents_that_share_messages_are_told_apart():
    talk = Talk().human(run=False)
    for number, name in enumerate("a b c d e f g h".split()):
        talk.step(name=name, text="one\ntwo\nthree")
        talk.messages.append(AIMessage(f"As {name}: {number}", id=f"end_{name}", name=name))
    assert not any(talk.asked)


def test_agents_that_hand_over_for_ever_are_found():
    talk = Talk().human(run=False)
    for number in range(16):
        one, other = ("sales", "billing") if number % 2 else ("billing", "sales")
        talk.step((f"transfer_to_{other}", {}), name=one, text=f"Transferred to {other}.")
    assert any(talk.asked)


def test_an_unparsed_call_does_not_blind_the_rest():
    talk = Talk().human()
    for _ in range(9):
        talk.step(LOOK, bad=["{bad"])
    assert any(talk.asked)


def test_a_call_without_a_result_does_not_blind_the_rest():
    talk = Talk().human()
    for _ in range(9):
        talk.step(LOOK, ("lost", {}))
        talk.messages.pop()
    assert any(talk.asked)


def test_a_made_up_tool_is_one_error_whatever_its_name():
    step = last_step(
        [
            said(1, ("open_gate", {}), ("open_door", {})),
            result(
                1, "Error: open_gate is not a valid tool, try one of [look].", 0, status="error"
            ),
            result(
                1, "Error: open_door is not a valid tool, try one of [look].", 1, status="error"
            ),
        ]
    )
    first, second = step.for_core()
    assert (
        first["content"]
        == second["content"]
        == "Error: this is not a valid tool, try one of [look]."
    )
    assert "open_gate" in step.results[0].content


def test_an_unknown_source_on_a_result_does_not_blind():
    talk = Talk().human()
    for _ in range(9):
        talk.step()
        talk.messages[-1].additional_kwargs["lc_source"] = "my_cache"
    assert any(talk.asked)


def test_calls_that_a_person_rejected_elsewhere_are_no_part_of_a_step():
    source = {"lc_source": "hitl_interrupt_decision"}
    step = last_step([said(1, LOOK, LOOK), result(1, additional_kwargs=source)])
    assert [call["id"] for call in step.calls] == ["call_1_1"]


@pytest.mark.parametrize(
    ("keep", "known"),
    [
        pytest.param(lambda m: m, True, id="whole"),
        pytest.param(lambda m: m[-3:], True, id="trimmed"),
        pytest.param(lambda m: m[:3], True, id="forked"),
        pytest.param(lambda m: m[:1], True, id="back-at-the-first-message"),
        pytest.param(
            lambda _: [HumanMessage("Sum", additional_kwargs={"lc_source": "summarization"})],
            True,
            id="summarised",
        ),
        pytest.param(lambda _: [HumanMessage("Please do it.", id="new")], False, id="new-store"),
    ],
)
def test_a_history_is_known_again(keep, known):
    talk = Talk().human()
    for _ in range(4):
        talk.step()
    talk.reader.read(talk.messages)
    assert talk.reader.knows(keep(talk.messages)) is known


def test_an_unknown_history_is_a_new_conversation():
    talk = Talk().human()
    while not any(talk.asked):
        talk.step()
    talk.messages, talk.asked = [HumanMessage("Again.", id="new")], []
    talk.reader.start_run(talk.messages)
    for _ in range(3):
        talk.step()
    assert not any(talk.asked)


def test_a_step_that_is_taken_back_does_not_count_those_before_it_again():
    talk = Talk().human()
    for _ in range(3):
        talk.step()
    talk.reader.read(talk.messages)
    del talk.messages[-2:]
    talk.reader.read(talk.messages)
    assert talk.step().record.number == 4


def test_a_summary_keeps_the_counts():
    talk = Talk().human()
    for _ in range(4):
        talk.step()
    made = {"lc_source": "summarization"}
    talk.messages = [HumanMessage("So far.", id="sum", additional_kwargs=made), *talk.messages[-2:]]
    while len(talk.asked) < 8:
        talk.step()
    assert any(talk.asked)


def test_three_texts_of_a_person_end_nothing():
    talk = Talk().human()
    asked = 0
    while asked < 4:
        found = talk.step()
        assert found.action is not Action.STOP
        if found.action is Action.ASK:
            asked += 1
            outcome = talk.settle(found, Reply("text", "Try git log."))
            talk.messages[-1:] = outcome.messages(last_step(talk.messages[:-1]).open_calls)
        assert len(talk.asked) < 40
    assert talk.reader.counts.asked_before(found).times >= 1


def test_a_warning_stands_in_the_request_once_for_a_loop_and_threshold():
    talk = Talk(on_detected="warn").human()
    for _ in range(30):
        talk.step()
    saved = [message.content for message in talk.messages]
    talk.reader.read(talk.messages)
    request = talk.reader.request(talk.messages)
    added = [one for one, other in zip(request, talk.messages, strict=True) if one != other]
    assert 1 <= len(added) <= 4
    assert all(type(message.content) is str for message in added)
    assert [message.content for message in talk.messages] == saved


def test_a_warning_about_a_step_waits_for_its_results_over_a_restart():
    talk = Talk(on_detected="warn").human()
    talk.step()
    talk.messages.append(said(2, LOOK))
    step = last_step(talk.messages)
    talk.reader.read(talk.messages)
    talk.reader.check(step)
    found = decision(Action.WARN)
    outcome = decide(found, step, mode="warn", can_ask=True, options=talk.options)
    talk.reader.settle(step, found, outcome)
    again = Reader.from_state(talk.options, talk.reader.to_state())
    talk.messages.append(result(2))
    again.read(talk.messages)
    assert "Try something else." in again.request(talk.messages)[-1].content


def test_what_a_late_step_is_told_stands_below_its_result():
    talk = Talk(on_detected="refuse").human()
    talk.step()
    step = last_step(talk.messages)
    found = decision()
    outcome = decide(found, step, mode="refuse", can_ask=True, options=talk.options)
    talk.reader.settle(step, found, outcome)
    assert "Try something else." in talk.reader.request(talk.messages)[-1].content


def test_every_question_about_a_loop_is_counted():
    talk = Talk().human()
    times = []
    while len(times) < 4:
        found = talk.step()
        if found.action is Action.ASK:
            times.append(talk.reader.counts.asked_before(found).times)
            talk.settle(found, Reply("continue"))
    assert times == [0, 1, 2, 3]


def test_a_loop_that_a_person_stopped_did_not_go_on():
    talk = Talk().human()
    while not any(talk.asked):
        found = talk.step()
    talk.settle(found, Reply("stop"))
    assert talk.reader.counts.asked_before(found).times == 0


GUARDS = {"lc_source": "loop_guard"}


@pytest.mark.parametrize(
    ("kwargs", "refused"),
    [
        pytest.param(GUARDS, True, id="refused"),
        pytest.param({**GUARDS, "loop_guard": {"skipped": True}}, False, id="skipped-by-the-tools"),
    ],
)
def test_a_refused_step_is_known_again_though_a_tool_that_does_not_exist_answered(kwargs, refused):
    options = Options()
    messages = [HumanMessage("Please do it.", id="h")]
    for number in range(8):
        kwargs_here = kwargs if number == 5 else {}
        messages += [
            said(number, ("nowhere", {}), LOOK),
            result(number, "Error: nowhere is not a valid tool, try one of [look].", 0),
            result(number, "nothing", 1, additional_kwargs=kwargs_here),
        ]
    reader = Reader(options)
    reader.read(messages)
    assert bool(reader.to_state()["guard"]["refused"]) is refused


def test_mode_observe_warns_nobody():
    talk = Talk(on_detected="observe").human()
    for _ in range(9):
        talk.step()
    talk.reader.read(talk.messages)
    assert talk.reader.request(talk.messages) is None


def test_what_a_guard_does_by_itself_is_new_once():
    talk = Talk().human()
    while not any(talk.asked):
        found = talk.step()
    assert talk.reader.emit(found, "refused")
    assert not talk.reader.emit(found, "refused")
    again = Reader.from_state(talk.options, talk.reader.to_state())
    assert not again.emit(found, "refused")
    assert talk.reader.emit(found, "approved")
    assert talk.reader.emit(found, "approved")


def test_without_counts_the_marks_tell_what_a_person_approved():
    talk = Talk().human(run=False)
    while not any(talk.asked):
        talk.step()
    at = last_step(talk.messages).index
    talk.messages[at] = with_mark(talk.messages[at], Mark(approved=True))
    talk.messages.append(said(99, LOOK))
    fresh = Reader(talk.options)
    fresh.read(talk.messages)
    assert fresh.check(last_step(talk.messages)).action < Action.ASK


def test_the_guards_own_refusals_are_no_results():
    talk = Talk().human(run=False)
    while not any(talk.asked):
        talk.step()
    refused = replacement({"name": "look", "id": talk.messages[-1].tool_call_id}, "No.")
    talk.messages[-1] = refused
    fresh = Reader(talk.options)
    fresh.read(talk.messages)
    talk.messages.append(said(99, LOOK))
    fresh.read(talk.messages)
    assert fresh.check(last_step(talk.messages)).action is Action.ASK


@pytest.mark.parametrize(
    "state",
    [{"v": 1}, [], "x", {"v": 2}, {"v": 2, "guard": {}, "emitted": 3}, {"v": 2, "guard": None}],
)
def test_an_odd_state_is_told(state):
    with pytest.raises(GuardStateError):
        Reader.from_state(Options(), state)


def test_a_late_result_is_read_behind_a_remark():
    step = last_step(
        [said(1, LOOK), HumanMessage("And?"), ToolMessage("x", tool_call_id="call_1_0")]
    )
    assert step.apart
    assert step.late
