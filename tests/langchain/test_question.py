"""Does a question show what a person needs to know, in JSON types?"""

import json

import pytest
from langchain_core.messages import HumanMessage

from langchain_loopguard.langchain.messages import last_step
from langchain_loopguard.langchain.options import Options
from langchain_loopguard.langchain.question import Asked, json_value, make_question, reply_schema
from tests.langchain.made import LOOK, decision, result, said

KEY = "sk-ant-api03-" + "a1B2" * 20
SECRET = ("look", {"at": "stock", "api_key": KEY})


def history(steps=6):
    messages = [HumanMessage("Go.")]
    for number in range(steps):
        message = said(number, SECRET)
        message.id = f"lc_run--0190a5b2-{number:04x}-7000-8000-000000000000"
        message.usage_metadata = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
        messages += [message, result(number, f"nothing, key {KEY}")]
    return [*messages, said(99, SECRET, SECRET)]


def question(asked=None, **options):
    messages = history()
    return make_question(
        decision(),
        last_step(messages),
        messages,
        asked=asked or Asked(0, 4, 4),
        options=Options(**options),
    )


def test_it_shows_the_repeated_calls_and_their_results():
    asked = question()
    assert [one["calls"][0]["args"]["at"] for one in asked["repeated"]] == ["stock"] * 3
    assert asked["repeated"][0]["results"] == [f"nothing, key {KEY}"]
    assert "The last result: nothing" in asked["message"]
    assert len(asked["action_requests"]) == 2
    assert asked["tool_call_ids"] == ["call_99_0", "call_99_1"]
    json.dumps(asked)


@pytest.mark.parametrize(("shows", "seen"), [("full", True), ("masked", False), ("none", False)])
def test_content_is_shown_as_far_as_is_wanted(shows, seen):
    whole = json.dumps(question(show_content=shows, agent_inbox=True))
    assert (KEY in whole) is seen
    assert ("stock" in whole) is (shows != "none")


def test_it_tells_what_the_loop_has_cost():
    asked = question(Asked(1, 2, 5))
    assert (asked["cost"]["calls"], asked["cost"]["total_tokens"]) == (2, 20)
    assert asked["cost_in_all"]["calls"] == 5
    assert "Since the loop began: 2 tool calls, 3 model calls, 20 tokens." in asked["message"]


def test_the_seventh_question_reads_unlike_the_first():
    first, seventh = question()["message"], question(Asked(6, 4, 40))["message"]
    assert "asked 6 times before" in seventh.splitlines()[0]
    assert first.splitlines()[0] != seventh.splitlines()[0]


def test_no_choice_is_a_placeholder():
    assert [choice["value"] for choice in question()["choices"]] == ["continue", "always", "stop"]


def test_wording_replaces_a_label():
    asked = question(wording={"choice_stop": "Schluss"})
    assert asked["choices"][-1]["label"] == "Schluss"


def test_agent_inbox_gets_its_form_where_it_is_wanted():
    assert "action_request" not in question()
    assert question(agent_inbox=True)["config"]["allow_edit"] is False


def test_an_odd_value_becomes_one_that_any_store_takes():
    loop = []
    loop.append(loop)
    odd = {"a": 2**70, 3: float("nan"), "b": {1}, "c": "\ud800", "d": loop, "e": object}
    json.dumps(json_value(odd), allow_nan=False)
    assert json_value({"a": [1, "x", None]}) == {"a": [1, "x", None]}


def test_the_schema_names_as_many_decisions_as_calls():
    decisions = reply_schema([LOOK, LOOK])["anyOf"][-1]["properties"]["decisions"]
    assert (decisions["minItems"], decisions["maxItems"]) == (2, 2)
