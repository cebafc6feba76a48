"""Is each form of an answer understood, and nothing else?"""

import json

import pytest

from langchain_loopguard.langchain.errors import InvalidResumeError
from langchain_loopguard.langchain.replies import CallReply, Reply, read_reply

ONE = [{"name": "look", "args": {}, "id": "c1"}]
TWO = [*ONE, {"name": "look", "args": {}, "id": "c2"}]
EDIT = {"type": "edit", "edited_action": {"name": "see", "args": {"at": 1}}}
EDITED = CallReply("run", name="see", args={"at": 1})

FORMS = [
    *[(word, ONE, Reply("continue")) for word in ("continue", "Yes.", "OK", "approve", True)],
    *[(word, ONE, Reply("always")) for word in ("always", "Always!", {"type": "always"})],
    *[(word, ONE, Reply("stop")) for word in ("stop", "no", False, {"type": "ignore"})],
    ("Use git log instead.", ONE, Reply("text", "Use git log instead.")),
    ("no, use the other file", ONE, Reply("text", "no, use the other file")),
    ({"type": "stop", "message": "dear"}, ONE, Reply("stop", "dear")),
    ({"type": "feedback", "message": "try b"}, TWO, Reply("text", "try b")),
    # HITL, batched and one for each call.
    ({"decisions": [{"type": "approve"}] * 2}, TWO, Reply("continue")),
    ({"decisions": [{"type": "reject", "message": "x"}] * 2}, TWO, Reply("text", "x")),
    ({"decisions": [{"type": "reject"}]}, ONE, Reply("text")),
    (
        {"decisions": [EDIT, {"type": "respond", "message": "42"}]},
        TWO,
        Reply("decisions", calls=(EDITED, CallReply("respond", "42"))),
    ),
    ({"type": "approve"}, ONE, Reply("continue")),
    (EDIT, ONE, Reply("decisions", calls=(EDITED,))),
    (
        {"type": "respond", "message": "42"},
        ONE,
        Reply("decisions", calls=(CallReply("respond", "42"),)),
    ),
    # Agent Inbox.
    ([{"type": "accept", "args": None}], ONE, Reply("continue")),
    ([{"type": "ignore", "args": None}], ONE, Reply("stop")),
    ([{"type": "response", "args": "try b"}], ONE, Reply("text", "try b")),
    (
        [{"type": "edit", "args": {"action": "see", "args": {"at": 1}}}],
        ONE,
        Reply("decisions", calls=(EDITED,)),
    ),
    # AG-UI and its like.
    ({"__agui_cancelled__": True, "interrupt_id": "i"}, TWO, Reply("stop")),
    ({"type": "cancelled"}, TWO, Reply("stop")),
    ({"interruptId": "i", "status": "cancelled"}, TWO, Reply("stop")),
    (
        {"interruptId": "i", "status": "resolved", "payload": {"approved": True}},
        TWO,
        Reply("continue"),
    ),
    ({"approved": True}, TWO, Reply("continue")),
    ({"approved": False}, TWO, Reply("text")),
    ({"approved": False, "reason": "use b"}, TWO, Reply("text", "use b")),
    (json.dumps({"approved": True}), ONE, Reply("continue")),
    ('{"no json', ONE, Reply("text", '{"no json')),
]


@pytest.mark.parametrize(("value", "calls", "wanted"), FORMS)
def test_a_form_is_understood(value, calls, wanted):
    assert read_reply(value, calls) == wanted


@pytest.mark.parametrize(
    "value",
    [
        "",
        "  ",
        "TEXT",
        None,
        3,
        {},
        {"type": "maybe"},
        {"decisions": []},
        {"type": "respond"},
        [],
        ["a", "b"],
    ],
)
def test_what_is_no_answer_is_refused_with_the_accepted_forms(value):
    with pytest.raises(InvalidResumeError, match="Accepted are"):
        read_reply(value, ONE)


def test_decisions_for_calls_that_share_an_id_must_agree():
    with pytest.raises(InvalidResumeError, match="share an id"):
        read_reply({"decisions": [{"type": "approve"}, {"type": "reject"}]}, [*ONE, *ONE])


def test_an_edit_is_refused_where_none_can_be_carried_out():
    with pytest.raises(InvalidResumeError, match="an edit"):
        read_reply(EDIT, ONE, editable=False)
