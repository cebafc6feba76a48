"""Do marks, options, errors and repairs do what they say?"""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

import langchain_loopguard.langchain
from langchain_loopguard.langchain.errors import (
    InvalidResumeError,
    LoopDetectedError,
    bubbling,
    loop_error,
)
from langchain_loopguard.langchain.marks import Mark, final_message, mark_of, replacement, with_mark
from langchain_loopguard.langchain.messages import last_step, with_warnings
from langchain_loopguard.langchain.options import Options
from langchain_loopguard.langchain.repair import (
    complete,
    edited_message,
    only_calls,
    rewritten,
    surplus_results,
    without_calls,
)
from tests.langchain.made import LOOK, decision, result, said

CALL = {"name": "look", "args": {}, "id": "call_1_0"}


@pytest.mark.parametrize("message", [AIMessage("x"), ToolMessage("x", tool_call_id="1")])
def test_a_mark_is_read_back(message):
    mark = Mark(approved=True, ends={"as": "final", "text": "Done."}, before="refused")
    marked = with_mark(message, mark)
    assert mark_of(marked) == mark
    assert mark_of(message) == Mark()
    assert with_mark(marked, Mark()) == message


@pytest.mark.parametrize("noted", ["x", {"approved": 1}, {"ends": []}, {"ends": {"as": "x"}}, None])
def test_an_odd_mark_is_none(noted):
    message = ToolMessage("x", tool_call_id="1", additional_kwargs={"loop_guard": noted})
    assert mark_of(message) == Mark()


def test_a_warning_leaves_a_text_a_text_and_blocks_blocks():
    messages = [said(1, LOOK, LOOK), result(1), result(1, [{"type": "text", "text": "x"}], 1)]
    found = with_warnings(messages, {"r_1_0": "Careful.", "call_1_1": "Stop."})
    assert found[1].content == "nothing\n\nCareful."
    assert found[2].content[-1] == {"type": "text", "text": "Stop."}
    assert messages[1].content == "nothing"
    assert with_warnings(messages, {"gone": "x"}) is None


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("policy", {}),
        ("on_detected", "ask"),
        ("show_content", "some"),
        ("agent_inbox", "no"),
        ("is_user_message", "continue"),
        ("wording", {"nope": "x"}),
        ("fail_open", 1),
    ],
)
def test_a_wrong_option_is_named(option, value):
    with pytest.raises(ValueError, match=option):
        Options(**{option: value})


def test_the_errors_pass_langgraph_and_survive_a_pickle():
    error = loop_error(decision())
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    for one in (error, again, copy.copy(error)):
        assert isinstance(one, LoopDetectedError)
        assert isinstance(one, GraphBubbleUp)
        assert "the same 5 times" in str(one)
    assert "secret" not in repr(bubbling(InvalidResumeError)("secret"))


def test_a_history_is_completed():
    late = result(1, "late")
    messages = [said(1, LOOK, LOOK), HumanMessage("And?"), late, said(2, LOOK)]
    whole = complete(messages, "Not run.")
    kinds = [(type(message).__name__, str(message.text)) for message in whole]
    assert kinds == [
        ("AIMessage", ""),
        ("ToolMessage", "late"),
        ("ToolMessage", "Not run."),
        ("HumanMessage", "And?"),
        ("AIMessage", ""),
        ("ToolMessage", "Not run."),
    ]
    assert complete(whole, "Not run.") is None


def test_a_history_is_rewritten_around_its_last_step():
    remark, said_ = HumanMessage("And?", id="h"), said(1, LOOK)
    messages = [HumanMessage("Go.", id="g"), said_, remark]
    added = [replacement(CALL, "No."), final_message("Stopped.")]
    first = rewritten(messages, last_step(messages), added, others_first=True)
    behind = rewritten(messages, last_step(messages), added, others_first=False)
    assert first == [messages[0], remark, said_, *added]
    assert behind == [messages[0], said_, added[0], remark, added[1]]


def test_a_second_answer_in_a_tools_place_is_surplus():
    own, other = replacement(CALL, "No."), replacement(CALL, "No!")
    assert surplus_results(last_step([said(1, LOOK), own, other])) == [other]
    assert surplus_results(last_step([said(1, LOOK), result(1), own])) == [own]


def test_calls_are_edited_left_and_taken_out():
    content = [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "call_1_0", "input": {}}]
    message = said(1, LOOK, LOOK, bad=["{"]).model_copy(update={"content": content})
    edited = edited_message(message, {"call_1_0": ("see", {"at": 1}), "bad_1_0": ("fix", {})})
    assert [call["name"] for call in edited.tool_calls] == ["see", "look", "fix"]
    assert edited.content[1]["input"] == {"at": 1}
    assert not edited.invalid_tool_calls
    assert [call["id"] for call in only_calls(message, {"call_1_1"}).tool_calls] == ["call_1_1"]
    assert without_calls(message).content == content[:1]


def test_nothing_of_langgraph_is_imported():
    names = [path.stem for path in Path(langchain_loopguard.langchain.__file__).parent.glob("*.py")]
    code = "import sys, importlib\n" + "\n".join(
        f"importlib.import_module('langchain_loopguard.langchain.{name}')"
        for name in names
        if name != "__init__"
    )
    code += "\nhosts = {'langgraph', 'langchain'}"
    code += "\nsys.exit(any(name.partition('.')[0] in hosts for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
