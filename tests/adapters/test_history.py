"""Does every call of a history get exactly one answer, in its place?"""

import json

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_loopguard.history import (
    answer_open_calls,
    approved_message,
    edited_message,
    is_approved,
    last_batch,
    surplus_answers,
    without_foreign_answers,
)
from langchain_loopguard.messages import tool_calls_of
from tests.adapters.guarded import assert_complete
from tests.hosts import ai_calls

EDIT = {"call_1_0": ("find", {"q": "z"})}
TWO = [("search", {"q": "a"}), ("open", {"q": "b"})]


def answer(call_id, source=None):
    kwargs = {"lc_source": source} if source else {}
    return ToolMessage("x", tool_call_id=call_id, additional_kwargs=kwargs)


class TestOpenCalls:
    def test_are_answered_behind_the_answers_that_are_there(self):
        given = [HumanMessage("go"), ai_calls(TWO, 1), answer("call_1_1"), HumanMessage("next")]
        whole = answer_open_calls(given)
        assert_complete(whole)
        assert [m.type for m in whole] == ["human", "ai", "tool", "tool", "human"]
        assert whole[3].tool_call_id == "call_1_0"
        assert len(given) == 4

    def test_at_the_end_are_answered_too(self):
        assert_complete(answer_open_calls([ai_calls(TWO, 1)]))

    def test_with_ids_that_start_anew_are_told_apart(self):
        given = [ai_calls(TWO, 1), answer("call_1_0"), answer("call_1_1"), ai_calls(TWO, 1)]
        assert_complete(answer_open_calls([*given, HumanMessage("next")]))

    def test_that_could_not_be_parsed_are_answered(self):
        broken = {"name": "t", "args": "{", "id": "b", "error": None, "type": "invalid_tool_call"}
        given = [AIMessage("", invalid_tool_calls=[broken]), HumanMessage("next")]
        assert_complete(answer_open_calls(given))

    def test_that_were_answered_behind_a_remark_get_their_answers_back(self):
        given = [ai_calls(TWO, 1), answer("call_1_1"), HumanMessage("hm"), answer("call_1_0")]
        whole = answer_open_calls([*given, ai_calls(TWO, 1), HumanMessage("next")])
        assert_complete(whole)
        assert whole[:4] == [given[0], given[1], given[3], given[2]]

    def test_are_all_there_is_to_repair(self):
        given = [SystemMessage("be brief"), HumanMessage("go"), AIMessage("hi"), HumanMessage("?")]
        assert answer_open_calls(given) == given
        stray = [answer("nobody"), HumanMessage("go")]
        assert answer_open_calls(stray) == stray


class TestTheLastBatch:
    def test_is_none_without_an_ai_message(self):
        assert last_batch([]) is None
        assert last_batch([HumanMessage("go")]) is None
        assert last_batch([answer("c")]) is None

    def test_is_found_as_the_hosts_find_it_whatever_else_ends_the_list(self):
        remark, note = HumanMessage("hm"), SystemMessage("step noted")
        spoken = last_batch([ai_calls(TWO, 1), answer("call_1_0"), remark])
        assert [call["name"] for call in spoken.waiting] == ["open"]
        assert (spoken.others, spoken.spoken, spoken.apart) == ((remark,), True, False)
        given = [ai_calls(TWO, 1), answer("call_1_0"), note, answer("call_1_1")]
        noted = last_batch(given)
        assert (noted.others, noted.spoken, noted.apart) == ((note,), False, True)
        assert noted.waiting == []
        assert list(noted.ends(given)) == [*given[:2], given[3]]

    def test_knows_a_tools_answer_from_a_persons(self):
        rejected = last_batch([ai_calls(TWO, 1), answer("call_1_0", "hitl")])
        ran = last_batch([ai_calls(TWO, 1), answer("call_1_0")])
        assert (rejected.answered, rejected.tools_ran) == (True, False)
        assert (ran.answered, ran.tools_ran) == (True, True)
        assert [call["name"] for call in ran.waiting] == ["open"]


class TestEdits:
    def test_change_the_named_call_only(self):
        message = ai_calls(TWO, 1)
        edited = edited_message(message, EDIT)
        assert [(c["name"], c["args"]) for c in edited.tool_calls] == [("find", {"q": "z"}), TWO[1]]
        assert message.tool_calls[0]["name"] == "search"

    def test_reach_the_copies_of_a_call_that_providers_keep(self):
        content = [
            "text",
            {"type": "text", "text": "hm"},
            {"type": "tool_use", "id": "call_1_0", "name": "search", "input": {"q": "a"}},
            {"type": "tool_call", "id": "call_1_0", "name": "search", "args": {"q": "a"}},
            {"type": "function_call", "id": "f", "call_id": "call_1_0", "arguments": "{}"},
            {"type": "tool_use", "id": "call_1_1", "name": "open", "input": {"q": "b"}},
        ]
        message = AIMessage(
            content=content,
            tool_calls=ai_calls(TWO, 1).tool_calls,
            additional_kwargs={"tool_calls": [1], "other": 2},
        )
        edited = edited_message(message, EDIT)
        assert edited.content[:2] == content[:2]
        assert edited.content[2]["input"] == {"q": "z"}
        assert edited.content[3]["args"] == {"q": "z"}
        assert json.loads(edited.content[4]["arguments"]) == {"q": "z"}
        assert edited.content[5] == content[5]
        assert edited.additional_kwargs == {"other": 2}
        assert message.content == content
        assert message.additional_kwargs["tool_calls"] == [1]

    def test_make_a_proper_call_of_one_that_could_not_be_parsed(self):
        broken = {"name": "t", "args": "{", "id": "b", "error": None, "type": "invalid_tool_call"}
        edited = edited_message(
            AIMessage("", invalid_tool_calls=[broken]), {"b": ("t", {"q": "z"})}
        )
        assert edited.invalid_tool_calls == []
        assert edited.tool_calls[0]["args"] == {"q": "z"}


def test_the_mark_of_an_approved_message_is_no_part_of_what_is_sent():
    message = ai_calls(TWO, 1)
    approved = approved_message(message)
    assert is_approved(approved)
    assert not is_approved(message)
    assert approved.additional_kwargs == message.additional_kwargs
    assert approved.tool_calls == message.tool_calls


class TestSurplusAnswers:
    def test_are_the_second_ones_that_stand_in_for_a_tool(self):
        given = [ai_calls(TWO, 1), answer("call_1_0", "hitl"), answer("call_1_1")]
        assert surplus_answers(given) == []
        again = answer("call_1_0", "loop_guard")
        assert surplus_answers([*given, again]) == [again]

    def test_of_a_tool_are_none_though_calls_share_an_id(self):
        asked = ai_calls(TWO, 1)
        for call in asked.tool_calls:
            call["id"] = "c"
        assert surplus_answers([asked, answer("c"), answer("c")]) == []
        assert surplus_answers([asked, answer("c", "loop_guard"), answer("c", "loop_guard")]) == []
        again = answer("c", "loop_guard")
        assert surplus_answers([asked, answer("c"), answer("c"), again]) == [again]


class TestForeignAnswers:
    def test_are_left_out_with_their_calls(self):
        given = [ai_calls(TWO, 1), answer("call_1_0", "hitl"), answer("call_1_1")]
        kept = without_foreign_answers(given)
        assert [call["name"] for call in tool_calls_of(kept[0])] == ["open"]
        assert kept[1:] == [given[2]]

    def test_do_not_reach_calls_of_another_turn_with_the_same_id(self):
        given = [
            ai_calls(TWO, 1),
            answer("call_1_0"),
            answer("call_1_1"),
            ai_calls(TWO, 1),
            answer("call_1_0", "hitl"),
            answer("call_1_1"),
        ]
        kept = without_foreign_answers(given)
        assert kept[:3] == given[:3]
        assert len(tool_calls_of(kept[3])) == 1

    def test_of_the_guard_itself_stay(self):
        given = [ai_calls(TWO, 1), answer("call_1_0", "loop_guard"), answer("call_1_1")]
        assert without_foreign_answers(given) == given

    def test_without_a_call_are_left_out(self):
        assert without_foreign_answers([answer("c", "hitl")]) == []
