"""Is the question to a person plain data, and is every form of the answer understood?"""

import json
import math

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_loopguard import LoopGuard, LoopGuardPolicy
from langchain_loopguard.interrupts import (
    NO_REASON,
    CallAnswer,
    InvalidResumeError,
    Resume,
    interrupt_payload,
    parse_resume,
)

CALL = {"name": "search", "args": {"q": "a"}, "id": "c1", "type": "tool_call"}
OTHER = {**CALL, "id": "c2"}


def found(calls):
    guard = LoopGuard(LoopGuardPolicy.seed())
    for _ in range(2):
        guard.check(calls)
    return guard.check(calls)


def payload(*calls):
    calls = calls or (CALL,)
    return interrupt_payload(found(list(calls)), list(calls))


class Broken:
    """An answer that can't even be shown."""

    def __repr__(self):
        raise RuntimeError


class TestTheQuestion:
    def test_passes_the_type_guard_of_agent_chat_ui(self):
        question = payload(CALL, CALL)
        assert all(
            isinstance(item["name"], str) and isinstance(item["args"], dict)
            for item in question["action_requests"]
        )
        assert all(
            isinstance(item["action_name"], str) and isinstance(item["allowed_decisions"], list)
            for item in question["review_configs"]
        )
        assert len(question["action_requests"]) == len(question["review_configs"]) == 2

    def test_passes_the_type_guard_of_agent_inbox(self):
        question = payload()
        assert question["action_request"] == {"action": "search", "args": {"q": "a"}}
        assert set(question["config"]) == {
            "allow_accept",
            "allow_edit",
            "allow_ignore",
            "allow_respond",
        }

    def test_shows_every_call_of_a_batch_to_agent_inbox_and_forbids_to_edit_them_there(self):
        question = payload(CALL, {**CALL, "name": "open"})
        assert [call["name"] for call in question["action_request"]["args"]["calls"]] == [
            "search",
            "open",
        ]
        assert question["config"]["allow_edit"] is False

    def test_says_what_was_counted_and_what_may_be_answered(self):
        question = payload()
        assert question["type"] == "loop_detected"
        assert "search" in question["message"]
        assert question["findings"][0]["count"] == 3
        assert [choice["value"] for choice in question["choices"]] == ["continue", "stop", "TEXT"]

    @pytest.mark.parametrize(
        "args",
        [
            pytest.param({"n": 2**70}, id="integer-beyond-64-bits"),
            pytest.param({"x": math.nan, "y": math.inf}, id="not-a-number"),
            pytest.param({1: (1, 2), None: {3}}, id="keys-and-containers"),
            pytest.param({"t": "\ud800"}, id="lone-surrogate"),
            pytest.param('{"q": ', id="unparsed-text"),
            pytest.param(None, id="missing"),
            pytest.param({"o": object}, id="any-object"),
        ],
    )
    def test_holds_json_types_only_and_survives_a_checkpoint(self, args):
        question = payload({**CALL, "args": args})
        json.dumps(question, allow_nan=False)
        serde = JsonPlusSerializer()
        assert serde.loads_typed(serde.dumps_typed(question)) == question

    def test_ends_for_arguments_that_hold_themselves(self):
        args: dict = {}
        args["self"] = [args, args]
        json.dumps(payload({**CALL, "args": args}))

    def test_shows_a_call_without_a_name(self):
        assert payload({"args": {}, "id": None})["action_requests"][0]["name"] == "unknown tool"


EDIT = CallAnswer("run", name="search", args={"q": "b"})
ANSWERS = [
    pytest.param("continue", Resume("continue"), id="continue"),
    pytest.param(" Yes. ", Resume("continue"), id="yes"),
    pytest.param("go on", Resume("continue"), id="go-on"),
    pytest.param(True, Resume("continue"), id="true"),
    pytest.param("stop", Resume("stop"), id="stop"),
    pytest.param("No!", Resume("stop"), id="no"),
    pytest.param(False, Resume("stop"), id="false"),
    pytest.param("no, use the cache", Resume("feedback", "no, use the cache"), id="text"),
    pytest.param({"type": "continue"}, Resume("continue"), id="type-continue"),
    pytest.param({"type": "stop"}, Resume("stop"), id="type-stop"),
    pytest.param(
        {"type": "stop", "message": "too dear"}, Resume("stop", "too dear"), id="type-stop-why"
    ),
    pytest.param(
        {"type": "feedback", "message": "use b"}, Resume("feedback", "use b"), id="type-feedback"
    ),
    pytest.param({"type": "approve"}, Resume("continue"), id="type-approve"),
    pytest.param({"action": "continue"}, Resume("continue"), id="action-continue"),
    pytest.param({"decision": True}, Resume("continue"), id="decision-true"),
    pytest.param({"decisions": [{"type": "approve"}]}, Resume("continue"), id="hitl-approve"),
    pytest.param(
        {"decisions": [{"type": "reject"}]}, Resume("feedback", NO_REASON), id="hitl-reject"
    ),
    pytest.param(
        {"decisions": [{"type": "reject", "message": "use b"}]},
        Resume("feedback", "use b"),
        id="hitl-reject-why",
    ),
    pytest.param(
        {"decisions": [{"type": "respond", "message": "it is 4"}]},
        Resume("decisions", calls=(CallAnswer("respond", "it is 4"),)),
        id="hitl-respond",
    ),
    pytest.param(
        {"decisions": [{"type": "edit", "edited_action": {"name": "search", "args": {"q": "b"}}}]},
        Resume("decisions", calls=(EDIT,)),
        id="hitl-edit",
    ),
    pytest.param([{"type": "accept", "args": None}], Resume("continue"), id="inbox-accept"),
    pytest.param([{"type": "ignore", "args": None}], Resume("stop"), id="inbox-ignore"),
    pytest.param(
        [{"type": "response", "args": "use b"}], Resume("feedback", "use b"), id="inbox-response"
    ),
    pytest.param(
        {"type": "response", "args": "use b"}, Resume("feedback", "use b"), id="inbox-no-list"
    ),
    pytest.param(
        [{"type": "edit", "args": {"action": "search", "args": {"q": "b"}}}],
        Resume("decisions", calls=(EDIT,)),
        id="inbox-edit",
    ),
    pytest.param(
        {"type": "respond", "message": "it is 4"},
        Resume("decisions", calls=(CallAnswer("respond", "it is 4"),)),
        id="type-respond",
    ),
    pytest.param(["stop"], Resume("stop"), id="list-of-one-word"),
]

MALFORMED = [
    pytest.param("", id="empty-text"),
    pytest.param("  ", id="blank"),
    pytest.param(1, id="number"),
    pytest.param(None, id="none"),
    pytest.param([], id="empty-list"),
    pytest.param({}, id="empty-mapping"),
    pytest.param({"type": "explode"}, id="unknown-type"),
    pytest.param({"type": "feedback"}, id="feedback-without-text"),
    pytest.param({"decisions": []}, id="no-decision"),
    pytest.param({"decisions": "approve"}, id="decisions-no-list"),
    pytest.param({"decisions": ["approve"]}, id="decision-no-mapping"),
    pytest.param({"decisions": [{"type": "approve"}] * 2}, id="too-many-decisions"),
    pytest.param({"decisions": [{"type": "respond"}]}, id="respond-without-text"),
    pytest.param({"decisions": [{"type": "edit"}]}, id="edit-without-action"),
    pytest.param(
        {"decisions": [{"type": "edit", "edited_action": {"name": "", "args": {}}}]},
        id="edit-without-name",
    ),
    pytest.param({"decisions": [{"type": "what"}]}, id="unknown-decision"),
    pytest.param([{"type": "edit", "args": "b"}], id="inbox-edit-without-action"),
    pytest.param(b"stop", id="bytes"),
    pytest.param(Broken(), id="no-repr"),
    pytest.param({"type": 3, "message": "x" * 10_000}, id="long"),
]


class TestTheAnswer:
    @pytest.mark.parametrize(("value", "resume"), ANSWERS)
    def test_is_understood_in_every_form(self, value, resume):
        assert parse_resume(value, [CALL]) == resume

    @pytest.mark.parametrize("value", MALFORMED)
    def test_that_is_none_names_the_accepted_forms(self, value):
        with pytest.raises(InvalidResumeError, match='"continue", "stop"') as error:
            parse_resume(value, [CALL])
        assert len(str(error.value)) < 1_000

    def test_may_differ_for_each_call(self):
        decisions = [{"type": "approve"}, {"type": "reject", "message": "no"}]
        assert parse_resume({"decisions": decisions}, [CALL, OTHER]) == Resume(
            "decisions", calls=(CallAnswer("run"), CallAnswer("refuse", "no"))
        )

    def test_of_agent_inbox_is_for_the_whole_batch(self):
        assert parse_resume([{"type": "accept"}], [CALL, CALL]) == Resume("continue")

    def test_of_agent_inbox_may_be_one_for_each_call(self):
        answers = [{"type": "accept"}, {"type": "ignore"}]
        assert parse_resume(answers, [CALL, OTHER]) == Resume(
            "decisions", calls=(CallAnswer("run"), CallAnswer("refuse", NO_REASON))
        )

    def test_that_edits_one_of_several_calls_must_say_which(self):
        with pytest.raises(InvalidResumeError, match="one edit for 2 calls"):
            parse_resume([{"type": "edit", "args": {"action": "a", "args": {}}}], [CALL, CALL])

    def test_stop_for_one_call_ends_the_run(self):
        decisions = [{"type": "approve"}, {"type": "stop", "message": "enough"}]
        assert parse_resume({"decisions": decisions}, 2) == Resume("stop", "enough")

    def test_to_a_batch_may_respond_for_one_call_and_refuse_another(self):
        decisions = [{"type": "respond", "message": "4"}, {"type": "reject", "message": "no"}]
        assert [answer.kind for answer in parse_resume({"decisions": decisions}, 2).calls] == [
            "respond",
            "refuse",
        ]


class TestCallsThatShareAnId:
    CALLS = (
        {"name": "pay", "args": {"q": "Paris"}, "id": "c"},
        {"name": "pay", "args": {"q": "Rome"}, "id": "c"},
        {"name": "pay", "args": {"q": "Oslo"}, "id": "d"},
    )

    @pytest.mark.parametrize(
        "other",
        [
            {"type": "reject", "message": "not there"},
            {"type": "respond", "message": "12"},
            {"type": "edit", "edited_action": {"name": "pay", "args": {"q": "Bonn"}}},
        ],
        ids=["reject", "respond", "edit"],
    )
    def test_are_decided_about_alike(self, other):
        approve = {"type": "approve"}
        for decisions in ([approve, other, approve], [other, approve, other]):
            with pytest.raises(InvalidResumeError, match="share an id"):
                parse_resume({"decisions": decisions}, self.CALLS)
        for decisions in ([approve, approve, other], [other, other, approve]):
            assert parse_resume({"decisions": decisions}, self.CALLS).kind == "decisions"

    def test_may_be_refused_in_different_words(self):
        decisions = [{"type": "reject", "message": text} for text in ("a", "b", "c")]
        assert parse_resume({"decisions": decisions}, self.CALLS).kind == "decisions"
