"""Is the hash of a batch's answers equal when, and only when, the answers are?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_loopguard.seed.results import hash_answer, hash_results
from tests.core.odd import HOSTILE, HostileText
from tests.core.test_canonical import any_values, json_values, nested


def call(name, args=None, call_id="c0"):
    return {"name": name, "args": args or {}, "id": call_id}


A, B = call("a", {"x": 1}), call("b", {"x": 1})


def test_the_same_answer_gives_the_same_hash():
    assert hash_results([A], ["ok"]) == hash_results([A], ["ok"])


def test_another_answer_gives_another_hash():
    assert hash_results([A], ["ok"]) != hash_results([A], ["ok "])


@pytest.mark.parametrize("other", [B, call("a", {"x": 2})], ids=["name", "arguments"])
def test_the_hash_depends_on_the_call(other):
    assert hash_results([A], ["ok"]) != hash_results([other], ["ok"])


def test_ids_do_not_enter():
    one, two = call("a", call_id="1"), call("a", call_id="2")
    assert hash_results([one], ["ok"]) == hash_results([two], ["ok"])


def test_swapped_answers_differ():
    assert hash_results([A, B], ["1", "2"]) != hash_results([A, B], ["2", "1"])


def test_reordered_pairs_are_equal():
    assert hash_results([A, B], ["1", "2"]) == hash_results([B, A], ["2", "1"])


def test_swapped_answers_of_equal_calls_are_equal():
    assert hash_results([A, A], ["1", "2"]) == hash_results([A, A], ["2", "1"])


def test_the_number_of_equal_pairs_counts():
    assert len({hash_results([A] * n, ["ok"] * n) for n in range(4)}) == 4


@pytest.mark.parametrize(
    ("calls", "answers"),
    [
        pytest.param([A], None, id="no answers"),
        pytest.param([A], [], id="too few"),
        pytest.param([A], ["1", "2"], id="too many"),
        pytest.param([A], [None], id="the only one missing"),
        pytest.param([A, B], ["1", None], id="one of two missing"),
    ],
)
def test_answers_that_are_not_all_known_have_no_hash(calls, answers):
    assert hash_results(calls, answers) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("null", [None], id="text null and a list of null"),
        pytest.param(["null"], [None], id="null inside a list"),
        pytest.param("[1]", [1], id="text of a list"),
        pytest.param("1", 1, id="text of a number"),
        pytest.param(1, 1.0, id="integer and float"),
        pytest.param("", [], id="empty text and empty list"),
        pytest.param("é", "e\u0301", id="text that looks the same"),
        pytest.param("\x01\x01\x00\x00", "\u0101", id="bytes that are the same in UTF-32"),
        pytest.param("\ud800", "\udc00", id="lone surrogates"),
        pytest.param("a" * 10**6 + "b", "a" * 10**6 + "c", id="end of a long text"),
        pytest.param("10 %", "20 %", id="digits"),
        pytest.param(nested(40, "a"), nested(40, "b"), id="deep"),
        pytest.param(nested(2_000, "a"), nested(2_000, "b"), id="very deep"),
        pytest.param(2**64, 2**64 + 1, id="big integers"),
        pytest.param([{"type": "text", "text": "a"}], [{"type": "text", "text": "b"}], id="blocks"),
    ],
)
def test_different_answers_differ(one, other):
    assert hash_results([A], [one]) != hash_results([A], [other])


@pytest.mark.parametrize("text", ["a", "é", "\u2603", "\ud800"])
def test_text_of_another_class_is_the_same_answer(text):
    assert hash_answer(HostileText(text)) == hash_answer(text)


def test_the_order_of_keys_is_irrelevant():
    assert hash_answer({"a": 1, "b": 2}) == hash_answer({"b": 2, "a": 1})


def test_known_hashes_stay_what_they_are_since_they_are_stored():
    known = [hash_answer("ok"), hash_answer("é"), hash_answer([1]), hash_results([A], ["ok"])]
    assert known == [
        4084568044382880290,
        12371197116205796746,
        243674233718535412,
        10826720587438698957,
    ]


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_answer_has_a_hash(make):
    assert hash_results([A], [make()]) == hash_results([A], [make()])


@given(st.lists(any_values.filter(lambda value: value is not None), max_size=4))
def test_any_answers_have_a_hash_of_64_bits(answers):
    found = hash_results([A] * len(answers), answers)
    assert found is not None
    assert 0 <= found < 2**64


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("12")), min_size=1, max_size=4),
    st.data(),
)
def test_the_order_of_a_batch_is_irrelevant(pairs, data):
    shuffled = data.draw(st.permutations(pairs))
    one, two = (
        hash_results([call(name) for name, _ in some], [answer for _, answer in some])
        for some in (pairs, shuffled)
    )
    assert one == two


@given(json_values, json_values)
def test_a_call_with_two_answers_is_equal_when_the_answers_are(one, other):
    if one is not None and other is not None:
        equal = hash_answer(one) == hash_answer(other)
        assert equal == (hash_results([A], [one]) == hash_results([A], [other]))
