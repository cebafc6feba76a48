"""Which stored values are taken for counters, and which are refused?"""

import base64

import pytest

from langchain_loopguard.core import stored
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.rules.harnesses.memory import Memory

LONE_SURROGATE = "\ud800"


class Odd(type):
    @property
    def __name__(cls):
        raise RuntimeError


class OddlyNamed(metaclass=Odd):
    pass


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (stored.count, 0),
        (stored.count, 2**48 - 1),
        (stored.number, -1),
        (stored.flag, False),
        (stored.text, "lire_\u00e9tat"),
        (stored.digest_or_none, None),
    ],
)
def test_a_value_that_a_guard_wrote_is_read_as_it_is(read, value):
    assert read(value) == value


def test_a_hash_is_read_from_its_hexadecimal_digits():
    assert stored.digest("ff") == stored.digest_or_none("ff") == 255
    assert stored.digests(["0", "a"], 2) == [0, 10]


@pytest.mark.parametrize(
    ("read", "value"),
    [
        *((stored.count, value) for value in (-1, 2**48, True, 1.0, "1", None)),
        *((stored.number, value) for value in (-2, 2**48, False, "1")),
        *((stored.flag, value) for value in (0, 1, None, "")),
        *((stored.digest, value) for value in ("-5", "g", "1" * 17, 5, None)),
        *((stored.text, value) for value in (5, "x" * 257, LONE_SURROGATE, OddlyNamed())),
    ],
)
def test_any_other_value_is_refused(read, value):
    with pytest.raises(ValueError):  # noqa: PT011 - the words differ, some are Python's own
        read(value)


@pytest.mark.parametrize(
    "value", [None, "rows", [[1]], [[1, 2, 3]], [(1, 2)], [[1, "x"]], [[1, 2]] * 4]
)
def test_rows_of_another_form_are_refused(value):
    with pytest.raises(ValueError, match="is missing"):
        stored.each(value, 3, stored.count, stored.count)


def test_an_error_never_shows_the_value():
    with pytest.raises(ValueError, match="str") as refused:
        stored.count("secret")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("state", [5, "A" * 1000, base64.b64encode(b"123").decode(), "!"])
def test_a_memory_of_another_form_is_refused(state):
    with pytest.raises(ValueError):  # noqa: PT011 - as above
        Memory(3, 1).load_state(state)


@pytest.mark.parametrize(
    ("preset", "rule", "counters"),
    [
        ("opencode_v1", "opencode_v1", 5),
        ("pr_47845", "pr_47845", [1]),
        ("signals", "signal_a", "A" * 100_000),
        ("signals", "signal_b", [0, 0, "AAA=", ""]),
        ("signals", "signal_b", [0, 0, "A" * 100_000, ""]),
        ("signals", "signal_b", [0, 0, 5, ""]),
    ],
)
def test_counters_of_another_form_are_no_state_of_a_preset(preset, rule, counters):
    policy = LoopGuardPolicy.preset(preset)
    state = LoopGuard(policy).to_state()
    state["rules"][rule][1] = counters
    with pytest.raises(GuardStateError):
        LoopGuard.from_state(policy, state)
