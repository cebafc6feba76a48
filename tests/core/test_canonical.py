"""Do equal values give equal bytes, different ones different bytes, and does nothing raise?"""

import array
import copy
import datetime as dt
import decimal
import fractions
import json
import math
import pathlib
import re
import threading
import types
import uuid
from collections import Counter, OrderedDict, UserDict, deque, namedtuple
from datetime import UTC, timedelta, timezone

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_loopguard.core import canonical
from langchain_loopguard.core.canonical import canonical_arguments, canonical_content
from tests.core.odd import (
    HOSTILE,
    Colour,
    ForeverNew,
    HostileBytes,
    HostileDict,
    HostileFloat,
    HostileInt,
    HostileList,
    HostileSet,
    HostileText,
    Level,
    Model,
    Plain,
    Point,
    Slotted,
    Word,
)

NAN = float("nan")

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), children, max_size=4)
    ),
    max_leaves=20,
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.datetimes(timezones=st.none() | st.timezones())
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.sampled_from([Colour.RED, Level.LOW, Word.A, len, int, ...])
)
hashable = st.recursive(
    scalars,
    lambda children: (
        st.frozensets(children, max_size=3) | st.tuples(children) | st.tuples(children, children)
    ),
    max_leaves=6,
)
any_values = st.recursive(
    hashable,
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(hashable, children, max_size=4)
        | st.sets(hashable, max_size=4)
        | st.builds(Point, children)
        | st.builds(Plain, a=children)
        | st.builds(deque, st.lists(children, max_size=3))
    ),
    max_leaves=12,
)


def both(value):
    return canonical_arguments(value), canonical_content(value)


def nested(depth, leaf="leaf"):
    value = leaf
    for _ in range(depth):
        value = {"x": value}
    return value


# --- JSON values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({}, "{}", id="empty object"),
        pytest.param({"b": 2, "a": 1}, '{"a":1,"b":2}', id="sorted keys"),
        pytest.param({"o": {"y": 2, "x": 1}}, '{"o":{"x":1,"y":2}}', id="sorted at every level"),
        pytest.param(
            {"B": 1, "Z": 4, "a": 2, "é": 3}, '{"B":1,"Z":4,"a":2,"é":3}', id="by UTF-8 bytes"
        ),
        pytest.param(
            {"\U0001f600": 1, "\uffff": 2},
            '{"\uffff":2,"\U0001f600":1}',
            id="by UTF-8, not by UTF-16",
        ),
        pytest.param([3, 1, 2], "[3,1,2]", id="array order"),
        pytest.param((1, (2,)), "[1,[2]]", id="a tuple is an array"),
        pytest.param("\b\t\n\f\r", r'"\b\t\n\f\r"', id="short escapes"),
        pytest.param("\x00\x1f", r'"\u0000\u001f"', id="control characters"),
        pytest.param('/\x7f\u2028"\\', '"/\x7f\u2028\\"\\\\"', id="raw characters"),
        pytest.param(None, "null", id="null"),
        pytest.param([True, False], "[true,false]", id="booleans"),
        pytest.param(2**64 - 1, "18446744073709551615", id="largest integer"),
        pytest.param(-(2**63), "-9223372036854775808", id="smallest integer"),
        pytest.param(1.0, "1.0", id="a float"),
        pytest.param(-0.0, "-0.0", id="minus zero"),
        pytest.param(0.00001, "0.00001", id="smallest in fixed notation"),
        pytest.param(0.0000099, "9.9e-6", id="below fixed notation"),
        pytest.param(1e-7, "1e-7", id="small"),
        pytest.param(9999999999999998.0, "9999999999999998.0", id="largest in fixed notation"),
        pytest.param(1e16, "1e+16", id="above fixed notation"),
        pytest.param(5e-324, "5e-324", id="smallest float"),
        pytest.param(1.7976931348623157e308, "1.7976931348623157e+308", id="largest float"),
    ],
)
def test_json_values_are_written_in_the_canonical_form(value, text):
    assert both(value) == (text.encode(), text.encode())


@given(json_values)
def test_ordinary_values_are_written_as_json(value):
    assert json.loads(canonical_content(value)) == value


@given(json_values)
def test_the_writer_for_odd_values_agrees_with_orjson_on_ordinary_ones(value):
    assert canonical._Writer(None).write(value) == orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


@given(st.dictionaries(st.text() | st.integers() | st.none(), any_values, max_size=5))
def test_the_order_of_keys_is_irrelevant(value):
    assert both(dict(reversed(value.items()))) == both(value)


# --- Depth ------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [17, 40, 300, 10_000])
def test_values_at_depth_16_and_deeper_are_cut(depth):
    assert canonical_arguments(nested(depth)) == b'{"x":' * 16 + b'"..."' + b"}" * 16
    assert b"leaf" in canonical_arguments(nested(15))
    assert canonical_arguments({"code": "[{" * 50}) == b'{"code":"' + b"[{" * 50 + b'"}'


@pytest.mark.parametrize("kind", ["list", "tuple"])
def test_depth_counts_arrays_too(kind):
    value = "leaf"
    for _ in range(20):
        value = [value] if kind == "list" else (value,)
    assert canonical_arguments(value) == b"[" * 16 + b'"..."' + b"]" * 16


@pytest.mark.parametrize("depth", [17, 253, 254, 255, 256, 2_000, 10_000])
def test_content_is_never_cut(depth):
    assert canonical_content(nested(depth)) == b'{"x":' * depth + b'"leaf"' + b"}" * depth


# --- What JSON cannot say ---------------------------------------------------------------------

GROUPS = [
    # Within a group all are equal; between groups all differ.
    pytest.param([None], id="null"),
    pytest.param(["null"], id="text null"),
    pytest.param([NAN, -NAN, HostileFloat("nan")], id="nan"),
    pytest.param(["NaN"], id="text nan"),
    pytest.param([math.inf], id="infinity"),
    pytest.param([-math.inf], id="minus infinity"),
    pytest.param([1, HostileInt(1), Level.LOW], id="one"),
    pytest.param([1.0, HostileFloat(1)], id="one as a float"),
    pytest.param(["1"], id="one as text"),
    pytest.param([True], id="true"),
    pytest.param([1 + 0j], id="complex"),
    pytest.param([10**400], id="beyond floats"),
    pytest.param([10**400 + 1], id="beyond floats and one"),
    pytest.param([-(10**5000)], id="longer than Python writes"),
    pytest.param(["a", HostileText("a"), Word.A], id="text"),
    pytest.param(["\ud800"], id="lone surrogate"),
    pytest.param(["\\ud800"], id="text of an escape"),
    pytest.param(["\udfff"], id="another lone surrogate"),
    pytest.param([{"\ud800": 1}], id="lone surrogate as a key"),
    pytest.param(
        [b"a", bytearray(b"a"), memoryview(b"a"), HostileBytes(b"a")], id="bytes of a text"
    ),
    pytest.param(["61"], id="hexadecimal text"),
    pytest.param([b"\xff"], id="bytes"),
    pytest.param([{1: "x"}], id="a number as a key"),
    pytest.param([{"1": "x"}, HostileDict({"1": "x"})], id="text as a key"),
    pytest.param([{None: "x"}], id="null as a key"),
    pytest.param([{(1, 2): "x"}], id="a tuple as a key"),
    pytest.param([{1: "x", "1": "y"}], id="both keys"),
    pytest.param([{1: "y", "1": "x"}], id="both keys swapped"),
    pytest.param(
        [
            {"a": 1},
            HostileDict(a=1),
            OrderedDict(a=1),
            UserDict(a=1),
            types.MappingProxyType({"a": 1}),
            Counter("a"),
        ],
        id="mappings",
    ),
    pytest.param(
        [[1, 2], (1, 2), HostileList([1, 2]), namedtuple("P", "x y")(1, 2)],  # noqa: PYI024
        id="lists",
    ),
    pytest.param([{1, 2}, frozenset((2, 1)), HostileSet((1, 2)), {1: 0, 2: 0}.keys()], id="sets"),
    pytest.param([deque([1, 2])], id="deque"),
    pytest.param([range(1, 3)], id="range"),
    pytest.param([array.array("i", [1, 2])], id="array"),
    pytest.param([dt.date(2020, 1, 1)], id="date"),
    pytest.param(["2020-01-01"], id="date as text"),
    pytest.param([dt.datetime(2020, 1, 1)], id="moment without a zone"),  # noqa: DTZ001
    pytest.param(
        [
            dt.datetime(2020, 1, 1, tzinfo=UTC),
            dt.datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
        ],
        id="moment",
    ),
    pytest.param([dt.time(1)], id="time"),
    pytest.param([timedelta(1)], id="time span"),
    pytest.param([decimal.Decimal("1.0"), decimal.Decimal("1.00")], id="decimal"),
    pytest.param([fractions.Fraction(1, 3), fractions.Fraction(2, 6)], id="fraction"),
    pytest.param([uuid.UUID(int=5)], id="uuid"),
    pytest.param([str(uuid.UUID(int=5))], id="uuid as text"),
    pytest.param([pathlib.PurePosixPath("/a")], id="path"),
    pytest.param([re.compile("a")], id="pattern"),
    pytest.param([re.compile("b")], id="another pattern"),
    pytest.param([Colour.RED], id="enum"),
    pytest.param([Colour.BLUE], id="another enum"),
    pytest.param([Point(1), Point(1, seen=5)], id="dataclass"),
    pytest.param([Point(2)], id="another dataclass"),
    pytest.param([{"x": 1, "seen": 0}], id="dataclass as a dict"),
    pytest.param([Slotted(1)], id="dataclass with slots"),
    pytest.param([Model(), Model(a=1)], id="pydantic model"),
    pytest.param([Model(a=2)], id="another pydantic model"),
    pytest.param([Model(b=1)], id="pydantic model with an extra"),
    pytest.param([Plain(a=1, b=2), Plain(b=2, a=1)], id="object"),
    pytest.param([Plain(a=2)], id="another object"),
    pytest.param([Plain(a=1).__init__], id="method"),
    pytest.param([object(), object()], id="object without state"),
    pytest.param([(0 for _ in ()), (1 for _ in ())], id="generators"),
    pytest.param([threading.Lock(), threading.Lock()], id="locks"),
    pytest.param([len], id="built-in function"),
    pytest.param([int], id="class"),
    pytest.param([math], id="module"),
    pytest.param([...], id="ellipsis"),
    pytest.param([ValueError("x")], id="error"),
    pytest.param([ValueError("y")], id="another error"),
    pytest.param([orjson.Fragment(b"1")], id="a class that orjson writes as it is"),
]


@pytest.mark.parametrize("values", GROUPS)
def test_equal_values_give_equal_bytes(values):
    assert len({both(value) for value in values}) == 1
    assert len({both([{"k": value}]) for value in values}) == 1


def test_different_values_give_different_bytes():
    values = [group.values[0][0] for group in GROUPS]
    assert len({canonical_arguments(value) for value in values}) == len(values)
    assert len({canonical_content(value) for value in values}) == len(values)


@pytest.mark.parametrize(
    "make",
    [
        *HOSTILE.values(),
        ForeverNew,
        lambda: {HostileText("k"): HostileDict(a=HostileList([HostileSet({1})]))},
    ],
)
def test_a_hostile_value_gives_the_same_bytes_each_time(make):
    assert both(make()) == both(make())


@pytest.mark.parametrize("number", [2**64, 2**64 + 1, -(2**63) - 1, 10**300])
def test_integers_beyond_64_bits_become_floats_in_arguments(number):
    assert canonical_arguments({"n": number}) == canonical_arguments({"n": float(number)})


def test_integers_beyond_64_bits_are_kept_in_content():
    assert canonical_content(2**64) != canonical_content(2**64 + 1)


def test_no_address_is_written():
    value = Plain(inner=object(), call=Plain().__init__, thread=threading.Lock())
    assert hex(id(value)).encode() not in canonical_arguments(value)
    assert both(value) == both(
        Plain(inner=object(), call=Plain().__init__, thread=threading.Lock())
    )


@given(any_values)
def test_any_value_is_written_and_an_equal_copy_gives_equal_bytes(value):
    assert both(copy.deepcopy(value)) == both(value)


@given(st.sets(hashable, max_size=6))
def test_the_order_of_a_set_is_irrelevant(value):
    backwards = set()
    for item in reversed(list(value)):
        backwards.add(item)
    assert both(backwards) == both(value)


# --- Containers that hold themselves or each other --------------------------------------------


def ring(kind):
    if kind == "list":
        value = []
        value.append(value)
    elif kind == "dict":
        value = {}
        value["self"] = value
    elif kind == "object":
        value = Plain()
        value.self = value
    else:
        value = [{"a": 1}]
        value[0]["up"] = value
    return value


@pytest.mark.parametrize("kind", ["list", "dict", "object", "mixed"])
def test_a_container_that_holds_itself_is_written(kind):
    assert both(ring(kind)) == both(ring(kind))


def test_the_same_container_twice_is_no_cycle():
    shared = {"n": NAN}
    assert canonical_arguments([shared, shared]) == b'[{"n":NaN},{"n":NaN}]'


def test_a_graph_that_unfolds_without_end_is_cut(monkeypatch):
    monkeypatch.setattr(canonical, "_MAX_REPEATS", 1_000)
    value = []
    for _ in range(100):
        value = [value] * 10
    assert all(b'"..."' in text for text in both(value))


def test_a_wide_value_without_repeats_is_left_to_orjson():
    value = [[n] for n in range(70_000)]
    assert both(value) == (orjson.dumps(value),) * 2
