"""Do signatures have the fixed form, and do only equal calls share one?"""

import os
import subprocess
import sys
import textwrap

import pytest
from fnv_c import fnv1a_64
from hypothesis import given
from hypothesis import strategies as st

from langchain_loopguard.seed.signature import (
    batch_signature,
    call_signature,
    canonical_arguments,
)
from tests.core.odd import HOSTILE
from tests.core.test_canonical import any_values, nested


def call(name, args, call_id="c0"):
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


calls = st.builds(call, st.text(), any_values, st.none() | st.text())


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        ("", 0xCBF29CE484222325),
        ("a", 0xAF63DC4C8601EC8C),
        ("foobar", 0x85944171F73967E8),
    ],
)
def test_the_hash_is_fnv_1a_64(text, digest):
    assert fnv1a_64(text.encode()) == digest


@pytest.mark.parametrize(
    ("name", "args", "signature"),
    [
        ("t", {}, "t:08f44b07b5901a25"),
        ("fs_read", {"path": "/etc/hosts"}, "fs_read:db2a3b6c5c2b8657"),
        ("search", {"q": "rust"}, "search:f6b34c7d7172ccf8"),
        ("tool", {"b": 2, "a": 1}, "tool:a0ebc03bdc71de7b"),
        ("tool", {"a": 1, "b": 2}, "tool:a0ebc03bdc71de7b"),
        ("t", {"outer": {"y": 2, "x": 1}}, "t:da6312ee7883efe6"),
        ("bash", {"command": "git status --short"}, "bash:5fb3ea759e512146"),
        ("edit", "{not valid json", "edit:8b0ae5da9bf33349"),
        ("noargs", None, "noargs:5b9bc4ba528108e4"),
        ("t", [1, 2, {"a": 1.5, "b": [True, None]}], "t:e8a1207e812c226c"),
        ("t", {"n": 1}, "t:0c85d1734a1666a0"),
        ("t", {"n": 1.0}, "t:e7d0a654aadf9232"),
        ("t", {"n": -0.0}, "t:7d69a64b185d0ef0"),
        ("t", {"n": 0.1}, "t:40fab44b2f06f06e"),
        ("t", {"n": 18446744073709551615}, "t:70b0cfd007277b5e"),
        ("t", {"n": 0.00001}, "t:5a997eb151be786e"),
        ("t", {"n": 1e-7}, "t:41ec121d39dcde1f"),
        ("t", {"n": 1000.0}, "t:922501e58ce3dbec"),
        ("t", {"n": 1e16}, "t:fdceb399fbf9dff5"),
        ("t", {"B": 1, "Z": 4, "a": 2, "é": 3}, "t:99c18b4845a4c5f6"),
        ("t", nested(15), "t:33b8f768212ab333"),
        ("t", nested(16), "t:5742f947304c2a81"),
        ("t", nested(17), "t:5742f947304c2a81"),
        ("t", nested(40), "t:5742f947304c2a81"),
    ],
)
def test_the_signatures_of_known_calls(name, args, signature):
    assert call_signature(call(name, args)) == signature


def test_a_call_without_arguments_has_those_of_null():
    assert call_signature({"name": "noargs"}) == "noargs:5b9bc4ba528108e4"


def test_the_signature_holds_the_hash_of_the_canonical_arguments():
    args = {"path": "é", "line": 3}
    digest = fnv1a_64(canonical_arguments(args))
    assert call_signature(call("read", args)) == f"read:{digest:016x}"


def test_the_id_is_ignored():
    assert call_signature(call("t", {}, "a")) == call_signature(call("t", {}, "b"))


def test_the_name_is_neither_hashed_nor_normalised():
    assert call_signature(call("A|b: É", {})) == "A|b: É:08f44b07b5901a25"


@pytest.mark.parametrize(
    "make",
    [
        dict,
        lambda: {"name": 5, "args": object()},
        lambda: "text",
        lambda: None,
        lambda: 7,
        *HOSTILE.values(),
    ],
)
def test_an_odd_call_has_a_signature(make):
    odd = make()
    assert call_signature(odd) == call_signature(odd)
    assert len(call_signature(odd)) == 17


def test_a_batch_is_its_sorted_calls():
    a, b = call("a_tool", {}), call("b_tool", {})
    expected = "a_tool:08f44b07b5901a25|b_tool:08f44b07b5901a25"
    assert [batch_signature([a, b]), batch_signature([b, a])] == [expected, expected]


def test_a_call_twice_in_a_batch_is_there_twice():
    batch = [call("t", {}), call("t", {})]
    assert batch_signature(batch) == "t:08f44b07b5901a25|t:08f44b07b5901a25"


def test_a_batch_of_one_call_has_the_signature_of_the_call():
    assert batch_signature([call("t", {})]) == "t:08f44b07b5901a25"


def test_a_batch_without_calls_has_the_empty_signature():
    assert batch_signature([]) == ""


@given(calls)
def test_any_call_has_a_signature_that_can_be_stored(odd):
    signature = call_signature(odd)
    assert signature.encode().decode() == signature
    assert int(signature[-16:], 16) < 2**64


@given(st.lists(calls, max_size=4).flatmap(lambda c: st.tuples(st.just(c), st.permutations(c))))
def test_the_order_of_a_batch_is_irrelevant(batches):
    assert batch_signature(batches[0]) == batch_signature(batches[1])


SCRIPT = """
    import datetime, sys
    from langchain_loopguard.seed.results import hash_results
    from langchain_loopguard.seed.signature import batch_signature
    from tests.core.odd import *
    ring = []
    ring.append(ring)
    junk = [bytearray(n) for n in range(int(sys.argv[1]))]  # moves addresses
    values = [
        {"tags": {"b", "a", "c", b"d", 1.5, None, (1, "x")}}, {"x": frozenset("abcdef")},
        {3: 1, "3": 2, (1, 2): 3}, float("nan"), "\\ud800", 2**70, 10**400, ring, object(),
        Plain(a={"z", "y"}, b=object(), c=len, d=Plain), Colour.RED, Point(1), Model(b={"q", "r"}),
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), HostileObject(), ForeverNew(),
        (n for n in ()), lambda: 0, Plain().__init__, sys.stdout,
    ]
    calls = [{"name": "t", "args": value} for value in values]
    print(batch_signature(calls), hash_results(calls, values), hash_results(calls[:1], ["é"]))
"""


def test_signatures_and_hashes_are_the_same_in_every_process():
    def run(seed):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(SCRIPT), seed],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    assert run("1") == run("2") != ""
