"""Which stored values are taken for counters, and which are refused?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_loopguard.core import state


class Odd(type):
    @property
    def __name__(cls):
        raise RuntimeError


class OddlyNamed(metaclass=Odd):
    pass


@pytest.mark.parametrize("width", [4, 6])
@given(st.data())
def test_numbers_are_read_as_they_were_packed(width, data):
    numbers = data.draw(st.lists(st.integers(0, 256**width - 1)))
    packed = json.loads(json.dumps(state.pack(numbers, width)))
    assert state.unpack(packed, len(numbers), width) == numbers
    assert len(packed) <= 4 * (width * len(numbers) / 3 + 1)


def test_packed_hashes_come_back_each_once_and_in_their_order():
    assert list(state.hashes(state.pack([3, 1, 3]), 3)) == [3, 1]


@pytest.mark.parametrize("packed", [None, 5, "!", "é", "AAA=", "AAAAAAAAAAAA", ["AAAA"]])
def test_what_pack_did_not_write_is_refused(packed):
    with pytest.raises(ValueError):  # noqa: PT011 - the words differ, some are Python's own
        state.unpack(packed, 2)


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (state.count, 0),
        (state.count, 2**48 - 1),
        (state.number, -1),
        (state.flag, False),
        (state.text, "lire_\u00e9tat"),
    ],
)
def test_a_value_that_a_guard_wrote_is_read_as_it_is(read, value):
    assert read(value) == value
    assert state.digest("ff") == 255


@pytest.mark.parametrize(
    ("read", "value"),
    [
        *((state.count, value) for value in (-1, 2**48, True, 1.0, "1", None)),
        *((state.number, value) for value in (-2, 2**48, False, "1")),
        *((state.flag, value) for value in (0, 1, None, "")),
        *((state.digest, value) for value in ("-5", "g", "1" * 17, 5, None)),
        *((state.text, value) for value in (5, "x" * 257, "\ud800", OddlyNamed())),
        *((lambda value: state.entries(value, 1), value) for value in ((), "x", [1, 2])),
        *((lambda value: state.mapping(value, 1), value) for value in ([], {1: 1, 2: 2})),
    ],
)
def test_any_other_value_is_refused(read, value):
    with pytest.raises(ValueError):  # noqa: PT011 - as above
        read(value)


@pytest.mark.parametrize(
    "value", [None, "rows", [[1]], [[1, 2, 3]], [(1, 2)], [[1, "x"]], [[1, 2]] * 4]
)
def test_rows_of_another_form_are_refused(value):
    with pytest.raises(ValueError, match="is missing"):
        state.each(value, 3, state.count, state.count)


def test_an_error_never_shows_the_value():
    with pytest.raises(ValueError, match="str") as refused:
        state.count("secret")
    assert "secret" not in str(refused.value)
    assert state.shown(OddlyNamed()) == "object"


@pytest.mark.parametrize("most", [0, 1, 3, 5])
def test_the_latest_are_kept(most):
    numbers = dict.fromkeys(range(4))
    state.keep_latest(numbers, most)
    assert list(numbers) == list(range(4))[4 - min(most, 4) :]
