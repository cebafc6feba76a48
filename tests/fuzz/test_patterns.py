"""Does every regular expression of the package take time in line with its text?

Each pattern is found by importing every module, so that a new one is tested as well. The texts
are near misses: what a pattern almost matches, over and over.
"""

import importlib
import pkgutil
import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import langchain_loopguard

PIECES = (
    "a 1 A _ - . 0x 0x1 1d 1d1h 1.1 1, 1: 12:30: 2024- 2024-01-01T ab- 00000000- a. a@ :// a:// "
    'http://a:b SG. sk- Bearer token= password= password: key\\" time= time:" error Traceback '
    "( < [ {' \\ \" ' # aA Aa AAAA a1_ && | ; = /"
).split()
SPACED = ("1d ", "1 d ", "time = ", " ", "\n", "\t", "Bearer  ", "error occurred ", "a b ", "1 s ")
SIZE = 8000
BOUNDED = {"core.results._FIELD": "600 bytes of a result"}
"""Patterns that are slower than their text is long -> the most that they are given."""
SLOWEST = 3.0
"""Of a text twice as long. A pattern that tries all pairs of places takes four times as long."""

MEASURABLE = 0.004
"""Seconds; what is quicker than that is not told from chance."""


HOPELESS = 2.0
"""Seconds; nothing that is linear takes as long."""


OF_EXTRAS = {"distributed", "fsspec", "matplotlib"}
"""What `pytest` alone does without, and so without the modules that need it."""


def modules():
    for found in pkgutil.walk_packages(langchain_loopguard.__path__, "langchain_loopguard."):
        if found.name.endswith("__main__"):
            continue
        try:
            yield importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if error.name.partition(".")[0] not in OF_EXTRAS:
                raise


def patterns():
    found = {}
    for module in modules():
        for name, value in vars(module).items():
            for place, one in enumerate(value if isinstance(value, list | tuple) else [value]):
                where = f"{module.__name__.partition('.')[2]}.{name}"
                for pattern in () if where in BOUNDED else _inside(one):
                    found[pattern.pattern, pattern.flags] = pytest.param(
                        pattern, id=f"{where}[{place}]"
                    )
    return list(found.values())


def _inside(value):
    if isinstance(value, re.Pattern):
        return [value]
    if isinstance(value, tuple):
        return [part for part in value if isinstance(part, re.Pattern)]
    return []


def spent(pattern, text):
    best = 9.0
    for _ in range(2):
        started = time.process_time()
        pattern.sub("" if isinstance(text, str) else b"", text)
        pattern.search(text)
        best = min(best, time.process_time() - started)
    return best


def is_linear(pattern, piece):
    """Double the text; a slow one is measured again and again, since other work may disturb."""
    repeated = piece.encode() if isinstance(pattern.pattern, bytes) else piece
    short = repeated * (SIZE // len(repeated) + 1)
    once = spent(pattern, short)
    if once < MEASURABLE or once > HOPELESS:
        return once < MEASURABLE
    return any(spent(pattern, short * 2) < SLOWEST * spent(pattern, short) for _ in range(5))


PATTERNS = patterns()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_twice_the_text_takes_less_than_three_times_as_long(pattern):
    slow = [piece for piece in (*PIECES, *SPACED) if not is_linear(pattern, piece)]
    assert not slow


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_it_matches_over_and_over_is_no_slower(pattern):
    @settings(
        max_examples=4, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.from_regex(_of_text(pattern)), st.integers(0, 3))
    def over_and_over(found, cut):
        near = found[: len(found) - cut]
        if near and near.isascii():
            assert is_linear(pattern, near)

    over_and_over()


def _of_text(pattern):
    """Make a pattern of bytes one of text; hypothesis can't draw from some of the former."""
    if isinstance(pattern.pattern, str):
        return pattern
    return re.compile(pattern.pattern.decode("latin-1"), pattern.flags | re.ASCII)


def test_the_patterns_are_found():
    assert len(PATTERNS) > 15
