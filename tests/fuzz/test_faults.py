"""Are the faults that fuzzing found gone?"""

import json

import orjson
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_loopguard.core.rules.harnesses.memory import Memory
from langchain_loopguard.core.tools import declared_traits
from langchain_loopguard.failures import looks_failed
from langchain_loopguard.graph.declared import saved_declarations
from langchain_loopguard.graph.endings import check_ended
from langchain_loopguard.history import last_batch, without_foreign_answers
from langchain_loopguard.interrupts import InvalidResumeError, interrupt_payload, parse_resume
from langchain_loopguard.messages import SOURCE, MessageReader, tool_calls_of

from langchain_loopguard import LoopDetectedError, LoopGuard, LoopGuardPolicy
from langchain_loopguard.core.decision import Action, Decision
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.replay.readers import format_of
from tests.core.odd import HOSTILE, HostileDict, HostileObject, HostileText
from tests.fuzz.targets import _pieces

POLICY = LoopGuardPolicy()
STATE = LoopGuard().to_state()
FULL = 2**48 - 1


def with_part(path, value):
    state = json.loads(json.dumps(STATE))
    place = state
    *way, last = path.split(".")
    for key in way:
        place = place[key]
    place[last] = value
    return state


# --- States that were loaded though they were none ------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("v", True),
        ("v", 1.0),
        ("batches", -1),
        ("batches", 2**64),
        ("batches", "3"),
        ("batches", 1.5),
        ("batches", float("nan")),
        ("batches", True),
        ("asked", 1),
        ("asked", "no"),
        ("asked", None),
        ("refused", {"x": -1}),
        ("refused", {"x": "1"}),
        ("refused", {"\ud800": 1}),
        ("refused", {"x" * 1000: 1}),
        ("refused", {str(number): 1 for number in range(17)}),
        ("refused", []),
        ("rules", ["same_answer"]),
        ("rules", "same_answer"),
        ("rules.same_answer", {"last": "ab", "counts": []}),
        ("rules.same_answer", {"last": [], "counts": [["a", 1, 1, None, None, -1]]}),
        ("rules.same_answer", {"last": [], "counts": [["a", "1", 1, None, None, 1]]}),
        ("rules.same_answer", {"last": [], "counts": [["-a", 1, 1, None, None, 1]]}),
        ("rules.same_answer", {"last": [], "counts": [["a" * 17, 1, 1, None, None, 1]]}),
        ("rules.same_answer", {"last": ["a"] * 25, "counts": []}),
        ("rules.nothing_new.due", 1),
        ("rules.nothing_new.tools", "abc"),
        ("rules.nothing_new.tools", ["\udfff"]),
        ("rules.nothing_new.count", 10**400),
        ("rules.same_error", [[1, "a", 1, 1]]),
        ("rules.same_error", [[-1, "a", 1, 1, 0]]),
        ("rules.same_numbers", {"a": 1, "b": 1, "c": 1, "d": 1}),
        ("rules.unbroken_call", [["a", 1, 1]] * 9),
        ("progress.new", "0" * 100_000),
        ("progress.frames", [[1, 1, "", 1]]),
        ("probation.watched", {"a": 1}),
        ("probation.flagged", "ab"),
        ("ledger.counts", [1, 1, 1, -1]),
        ("ledger.run", ["0", 1.5, None]),
        ("stagnation", "abc"),
        ("stagnation", [1]),
    ],
)
def test_a_state_with_a_wrong_part_is_refused(path, value):
    with pytest.raises(GuardStateError):
        LoopGuard.from_state(POLICY, with_part(path, value))


@pytest.mark.parametrize(
    "part",
    [
        {"human": 5},
        {"last": ["a"]},
        {"calls": None},
        {"open": 1},
        {"emitted": 5},
        {"emitted": "x" * 5000},
        {"emitted": "\ud800"},
        {"guard": []},
        {"v": True},
    ],
)
def test_a_readers_state_with_a_wrong_part_is_refused(part):
    with pytest.raises(GuardStateError):
        MessageReader.from_state(POLICY, {"v": 1, "guard": STATE, **part})


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_object_is_no_state(make):
    for load in (LoopGuard.from_state, MessageReader.from_state):
        with pytest.raises(GuardStateError):
            load(POLICY, make())
        with pytest.raises(GuardStateError):
            load(POLICY, {"v": 1, "guard": make(), "rules": make()})


COUNTING = [name for name in LoopGuardPolicy.preset_names() if LoopGuardPolicy.preset(name).rules]


@pytest.mark.parametrize("preset", COUNTING)
def test_a_presets_state_with_wrong_counters_is_refused(preset):
    policy = LoopGuardPolicy.preset(preset)
    guard = LoopGuard(policy)
    decision = guard.check([{"name": "bash", "args": {}, "id": "1"}])
    guard.record_results(decision.record, [{"id": "1", "content": "text"}])
    good = guard.to_state()
    name = policy.rules[0].rule
    for wrong in (["x"], [1, [1]], "x", 5, [None, ["x"] * 3], [[7] * 8, None]):
        state = {**good, "rules": {**good["rules"], name: wrong}}
        with pytest.raises(GuardStateError):
            LoopGuard.from_state(policy, state)


def test_a_count_that_is_stored_as_large_as_can_be_goes_no_further():
    memory = Memory(2, 1)
    memory.put(1, [FULL + 5])
    other = Memory(2, 1)
    other.load_state(memory.to_state())
    assert other.get(1) == [FULL]


def test_declarations_of_another_form_are_left_out():
    saved = {"a": "read_only", "b": "sudo", "c": 5, "d" * 999: "shell"}
    assert [*saved_declarations({"tools": saved})] == ["a"]
    assert saved_declarations({"tools": dict.fromkeys(map(str, range(9999)), "shell")}) == {}


# --- Values that raised ---------------------------------------------------------------------------


@pytest.mark.parametrize("make", [*HOSTILE.values(), HostileDict])
def test_what_a_tool_declares_may_be_hostile(make):
    assert declared_traits("a", make()) is None


def ask_about(call):
    return interrupt_payload(Decision(Action.ASK, (), LoopGuard().record_for([call])), [call])


def test_a_question_names_every_call():
    for name in ("a\ud800", HostileText("a"), HostileObject(), None, 5):
        assert orjson.dumps(ask_about({"name": name, "args": {}, "id": "1"}))


def test_a_question_shows_any_arguments():
    for value in (HostileObject(), {HostileText("a"): 1}, 10**9000, {"a": "\ud800"}):
        assert orjson.dumps(ask_about({"name": "a", "args": {"v": value}, "id": "1"}))


def test_a_question_about_a_value_that_unfolds_is_cut():
    value = [1]
    for _ in range(40):
        value = [value, value, value]
    assert len(orjson.dumps(ask_about({"name": "a", "args": {"v": value}, "id": "1"}))) < 2**22


def test_the_error_for_a_wrong_answer_does_not_unfold_it():
    value = [1]
    for _ in range(40):
        value = [value, value, value]
    with pytest.raises(InvalidResumeError) as error:
        parse_resume({"type": value}, 1)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_object_is_no_answer(make):
    for value in (make(), [make()], {"decisions": make()}, {"type": make()}):
        with pytest.raises(InvalidResumeError):
            parse_resume(value, 1)


def test_a_call_that_is_no_mapping_is_read():
    for call in (5, "a", ["a"], None, HostileObject()):
        message = AIMessage.model_construct(content="", tool_calls=[call], invalid_tool_calls=[])
        assert set(tool_calls_of(message)[0]) == {"name", "args", "id"}
        assert last_batch([message]).waiting
        MessageReader(LoopGuard()).check(message)


def test_an_id_that_is_no_text_is_none():
    call = {"name": "a", "args": {}, "id": ["x"]}
    message = AIMessage.model_construct(content="", tool_calls=[call], invalid_tool_calls=[])
    answer = ToolMessage("a", tool_call_id="x", additional_kwargs={"lc_source": "hitl"})
    assert tool_calls_of(message)[0]["id"] is None
    assert without_foreign_answers([message, answer])


def test_an_answer_of_any_content_is_read():
    asked = AIMessage("", tool_calls=[{"name": "a", "args": {}, "id": "call_12345"}], id="a")
    for content in (5, True, HostileObject(), [HostileObject()], {"a": 1}):
        answer = ToolMessage.model_construct(
            content=content, tool_call_id="call_12345", status="success",
            additional_kwargs={SOURCE: {"notices": 1}},
        )  # fmt: skip
        MessageReader(LoopGuard()).read([asked, answer])


@pytest.mark.parametrize("facts", [{"tools": 5}, {"tools": [5], "count": "x"}, {"threshold": []}])
def test_an_ending_of_another_form_is_still_one(facts):
    answer = ToolMessage("a", tool_call_id="1", additional_kwargs={SOURCE: {"error": facts}})
    with pytest.raises(LoopDetectedError):
        check_ended([answer])


# --- Transcripts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["role", "type", "run_type"])
def test_a_list_where_a_name_belongs_is_of_no_format(key):
    for value in ({key: [], "content": "a"}, {key: {}, "id": "1"}):
        format_of(value)


def test_a_broken_list_that_is_not_utf_8_is_a_problem():
    text = b'[{"a": "\xed\xa0\x80'
    assert [str(found) for piece in _pieces(text, found=False) for found in piece.read()]


def test_leading_space_is_no_work_and_hides_no_failure():
    assert looks_failed("\n\n   Error: no such file")
    assert not looks_failed(" " * 400)


# --- Places that grew -----------------------------------------------------------------------------


def test_the_ids_of_a_large_batch_do_not_fill_the_state():
    calls = [{"name": "a", "args": {"n": n}, "id": f"call_{n:030}"} for n in range(5000)]
    for message_id in (None, "a" * 10**6, "\ud800"):
        reader = MessageReader(LoopGuard())
        message = AIMessage("", tool_calls=calls, id=message_id)
        reader.read([HumanMessage("go", id="h" * 10**6)])
        reader.check(message)
        assert len(orjson.dumps(reader.to_state())) < 9216
        assert MessageReader.from_state(POLICY, reader.to_state()).place([message]) == 0


# --- Found later ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["repeated_batch", "gglib"])
def test_a_policy_that_no_guard_could_run_by_is_refused(rule):
    with pytest.raises(ValueError, match="blank"):
        LoopGuardPolicy.model_validate({"rules": [{"rule": rule, "observation_tools": [" "]}]})


@pytest.mark.parametrize("policy", [LoopGuardPolicy(), LoopGuardPolicy.preset("openclaw")])
def test_the_record_of_a_batch_without_calls_records_nothing(policy):
    guard = LoopGuard(policy)
    before = guard.to_state()
    guard.record_results(guard.record_for([]), [{"id": "1", "content": "a"}])
    assert guard.to_state() == before


def test_an_id_that_comes_again_without_calls_is_read():
    reader = MessageReader(LoopGuard())
    call = {"name": "a", "args": {}, "id": "1"}
    reader.check(AIMessage("", id="a", tool_calls=[call]))
    reader = MessageReader.from_state(POLICY, reader.to_state())
    reader.read([AIMessage("x", id="a"), ToolMessage("a", tool_call_id="1"), HumanMessage("go")])
