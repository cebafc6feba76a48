"""Are hashes stored in little text and read back on any machine?"""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_loopguard.core.packing import Packing, pack, unpack

HASHES = st.lists(st.integers(0, 2**32 - 1))


@given(HASHES)
def test_hashes_are_read_as_they_were_written(hashes):
    assert list(unpack(pack(hashes))) == hashes


@given(HASHES)
def test_a_hash_takes_hardly_more_than_five_letters_of_json(hashes):
    assert len(json.dumps(pack(hashes))) <= 2 + 5.34 * len(hashes) + 4


def test_the_text_is_the_same_on_every_machine(monkeypatch):
    hashes = [0, 1, 0x01020304, 2**32 - 1]
    text = pack(hashes)
    other = {"little": "big", "big": "little"}[sys.byteorder]
    monkeypatch.setattr(sys, "byteorder", other)
    # This machine's order is not the other's, so each hash is turned round on the way.
    turned = pack(int.from_bytes(value.to_bytes(4, "little"), "big") for value in hashes)
    assert turned == text
    assert list(unpack(pack(hashes))) == hashes


@given(st.lists(st.tuples(HASHES, st.booleans())))
def test_a_dictionary_that_grows_is_packed_as_a_whole_each_time(steps):
    packing, hashes = Packing(), {}
    for more, another in steps:
        hashes = dict(hashes) if another else hashes
        hashes.update(dict.fromkeys(more))
        assert packing.of(hashes) == packing.of(hashes) == pack(hashes)


def test_another_dictionary_of_the_same_size_is_packed_anew():
    packing = Packing()
    packing.of({1: None})
    assert packing.of({2: None}) == pack([2])


@pytest.mark.parametrize("text", ["abc", "\x00", "é", None, 5, ["a"]])
def test_other_text_is_refused(text):
    with pytest.raises((ValueError, TypeError, AttributeError)):
        unpack(text)


def test_numbers_of_more_than_32_bits_are_refused():
    with pytest.raises(OverflowError):
        pack([2**32])
