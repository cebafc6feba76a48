"""Are the faults that fuzzing found gone?"""

import copy

import orjson
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_loopguard import LoopDetectedError, LoopGuard, LoopGuardPolicy
from langchain_loopguard.core.decision import Action, Decision
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.kinds import declared_kind
from langchain_loopguard.langchain.errors import InvalidResumeError, error_of_facts
from langchain_loopguard.langchain.history import Reader
from langchain_loopguard.langchain.marks import ends_of
from langchain_loopguard.langchain.messages import last_step
from langchain_loopguard.langchain.options import Options
from langchain_loopguard.langchain.question import Asked, make_question
from langchain_loopguard.langchain.replies import read_reply
from langchain_loopguard.replay.readers import format_of
from tests.core.odd import HOSTILE, HostileDict, HostileObject, HostileText
from tests.fuzz.targets import read_text

OPTIONS = Options()
every_hostile = pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)


def a_reader():
    """Give a reader that has counted a loop and an error."""
    reader, messages = Reader(OPTIONS), [HumanMessage("go", id="h")]
    for number in range(4):
        call = {"name": "a", "args": {}, "id": f"c{number}"}
        messages += [
            AIMessage("", id=f"a{number}", tool_calls=[call]),
            ToolMessage("Error: no", tool_call_id=f"c{number}", id=f"t{number}", status="error"),
        ]
    reader.read(messages)
    return reader


STATE = a_reader().to_state()


def called(*calls):
    message = AIMessage.model_construct(
        content="", tool_calls=list(calls), invalid_tool_calls=[], id="a"
    )
    return last_step([message])


# --- States that were loaded though they were none ------------------------------------------------

WRONG = [
    ("v", True),
    ("v", 1.0),
    ("human", 5),
    ("last", ["a"]),
    ("first", "\ud800"),
    ("is_open", 1),
    ("emitted", [5]),
    ("warnings", {"t": "x" * 5000}),
    ("asked", {"a": [1]}),
    ("asked", {"a": [1, -1]}),
    ("guard", []),
    ("guard.v", True),
    ("guard.steps", -1),
    ("guard.steps", 2**64),
    ("guard.steps", "3"),
    ("guard.steps", float("nan")),
    ("guard.refused", {"x": "1"}),
    ("guard.refused", {"\ud800": 1}),
    ("guard.refused", {"x" * 1000: 1}),
    ("guard.refused", {str(number): 1 for number in range(17)}),
    ("guard.patience", []),
    ("guard.always", {"a": 1}),
    ("guard.always", [5]),
    ("guard.evidence.seen", "0" * 100_000),
    ("guard.rules", ["repeat"]),
    *((f"guard.rules.{rule}", wrong) for rule in STATE["guard"]["rules"]
      for wrong in ("x", 5, [["a", "1", 1]] * 99, {"a": 1}, [[-1]])),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_a_state_with_a_wrong_part_is_refused(path, value):
    state = copy.deepcopy(STATE)
    place = state
    *way, last = path.split(".")
    for key in way:
        place = place[key]
    place[last] = value
    with pytest.raises(GuardStateError):
        Reader.from_state(OPTIONS, state)


@every_hostile
def test_a_hostile_object_is_no_state(make):
    for state in (make(), {"v": 2, "guard": make()}, {**STATE["guard"], "rules": make()}):
        with pytest.raises(GuardStateError):
            Reader.from_state(OPTIONS, state)
        with pytest.raises(GuardStateError):
            LoopGuard.from_state(OPTIONS.policy, state)


COUNTING = [name for name in LoopGuardPolicy.preset_names() if LoopGuardPolicy.preset(name).rules]


@pytest.mark.parametrize("preset", COUNTING)
def test_a_presets_state_with_wrong_counters_is_refused(preset):
    policy = LoopGuardPolicy.preset(preset)
    guard = LoopGuard(policy)
    decision = guard.check([{"name": "bash", "args": {}, "id": "1"}])
    guard.record_results(decision.record, [{"id": "1", "content": "text"}])
    good, name = guard.to_state(), policy.rules[0].rule
    for wrong in (["x"], [1, [1]], "x", 5, [None, ["x"] * 3], [[7] * 8, None]):
        with pytest.raises(GuardStateError):
            LoopGuard.from_state(policy, {**good, "rules": {name: wrong}})


# --- Values that raised ---------------------------------------------------------------------------


@every_hostile
def test_what_a_tool_declares_may_be_hostile(make):
    assert declared_kind("a", make()) is None
    assert declared_kind("a", HostileDict()) in {None, declared_kind("a", None)}


def unfolding():
    value = [1]
    for _ in range(40):
        value = [value, value, value]
    return value


ODD_CALLS = {
    "name with a surrogate": lambda: {"name": "a\ud800"},
    "hostile name": lambda: {"name": HostileText("a")},
    "object as name": lambda: {"name": HostileObject()},
    "number as name": lambda: {"name": 5},
    "id with a surrogate": lambda: {"id": "\ud800"},
    "object as argument": lambda: {"args": {"v": HostileObject()}},
    "hostile key": lambda: {"args": {HostileText("a"): 1}},
    "large number": lambda: {"args": {"v": 10**9000}},
    "unfolding": lambda: {"args": {"v": unfolding()}},
}


@pytest.mark.parametrize("odd", ODD_CALLS.values(), ids=ODD_CALLS)
def test_a_question_about_any_call_is_json_and_not_large(odd):
    call = {"name": "a", "args": {}, "id": "1", **odd()}
    step, decision = called(call), Decision(Action.ASK, (), LoopGuard().record_for([call]))
    question = make_question(
        decision, step, [step.message], asked=Asked(), options=Options(agent_inbox=True)
    )
    assert len(orjson.dumps(question)) < 2**23


def test_the_error_for_a_wrong_answer_does_not_unfold_it():
    with pytest.raises(InvalidResumeError) as error:
        read_reply({"type": unfolding()}, [{}])
    assert len(str(error.value)) < 1500


@every_hostile
def test_a_hostile_object_is_no_answer(make):
    for value in (make(), [make()], {"decisions": make()}, {"type": make()}):
        with pytest.raises(InvalidResumeError):
            read_reply(value, [{}])


def test_a_call_that_is_no_mapping_is_read():
    for call in (5, "a", ["a"], None, HostileObject(), {"name": "a", "args": {}, "id": ["x"]}):
        step = called(call)
        assert {"name", "args", "id"} == set(step.calls[0])
        assert step.waiting
        Reader(OPTIONS).check(step)


def test_a_result_of_any_content_is_read():
    asked = AIMessage("", tool_calls=[{"name": "a", "args": {}, "id": "call_12345"}], id="a")
    for content in (5, True, HostileObject(), [HostileObject()], {"a": 1}):
        result = ToolMessage.model_construct(
            content=content, tool_call_id="call_12345", status="success", additional_kwargs={}
        )
        Reader(OPTIONS).read([asked, result])


@pytest.mark.parametrize("facts", [{"tools": 5}, {"tools": [5], "count": "x"}, {"threshold": []}])
def test_an_ending_of_another_form_is_still_one(facts):
    marked = {"loop_guard": {"ends": {"as": "raise", **facts}}}
    ends = ends_of([ToolMessage("a", tool_call_id="1", additional_kwargs=marked)])
    assert isinstance(error_of_facts(ends), LoopDetectedError)


# --- Transcripts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["role", "type", "run_type"])
def test_a_list_where_a_name_belongs_is_of_no_format(key):
    for value in ({key: [], "content": "a"}, {key: {}, "id": "1"}):
        format_of(value)


def test_a_broken_list_that_is_not_utf_8_is_a_problem():
    assert [str(found) for found in read_text(b'[{"a": "\xed\xa0\x80')]


# --- Places that grew -----------------------------------------------------------------------------


@pytest.mark.parametrize("message_id", [None, "a" * 10**6, "\ud800"])
def test_the_ids_of_a_large_step_do_not_fill_the_state(message_id):
    calls = [{"name": "a", "args": {"n": n}, "id": f"call_{n:030}"} for n in range(2000)]
    reader = Reader(OPTIONS)
    reader.read([HumanMessage("go", id="h" * 10**6)])
    step = last_step([AIMessage("", tool_calls=calls, id=message_id)])
    found = reader.check(step)
    assert len(orjson.dumps(reader.to_state())) < 9216
    again = Reader.from_state(OPTIONS, reader.to_state())
    assert again.check(step).record.number == found.record.number == 1


# --- Found later ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["repeated_batch", "gglib"])
def test_a_policy_that_no_guard_could_run_by_is_refused(rule):
    with pytest.raises(ValueError, match="blank"):
        LoopGuardPolicy.model_validate({"rules": [{"rule": rule, "observation_tools": [" "]}]})


@pytest.mark.parametrize("policy", [LoopGuardPolicy(), LoopGuardPolicy.preset("openclaw")])
def test_the_record_of_a_step_without_calls_records_nothing(policy):
    guard = LoopGuard(policy)
    before = guard.to_state()
    guard.record_results(guard.record_for([]), [{"id": "1", "content": "a"}])
    assert guard.to_state() == before


def test_an_id_that_comes_again_without_calls_is_read():
    reader = Reader(OPTIONS)
    reader.check(called({"name": "a", "args": {}, "id": "1"}))
    reader = Reader.from_state(OPTIONS, reader.to_state())
    reader.read([AIMessage("x", id="a"), ToolMessage("a", tool_call_id="1"), HumanMessage("go")])
