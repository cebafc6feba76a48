"""Which values do a fuzzer's bytes stand for?

A `Feed` turns bytes into values, the same bytes into the same values, and runs out into the
simplest ones, so that a fuzzer can shorten an input and every input ends.
"""

import math
import struct
from functools import partial

import orjson

from tests.core.odd import (
    Colour,
    ForeverNew,
    HostileDict,
    HostileInt,
    HostileList,
    HostileMapping,
    HostileObject,
    HostileText,
    LiesAboutItsClass,
    Model,
    Plain,
    Point,
)

WORDS = (
    "a b id name args content text type role tool user assistant error success status read_file "
    "edit bash search wait sleep x1 0x1f 2024-01-02 12:30 5s v loop_guard lc_source notices "
    "continue stop approve edit reject respond decisions message action"
).split()
TEXTS = (
    "",
    " ",
    "\n",
    "\ud800",
    "a\udfff",
    "é",
    "\U0001f600",
    "\x00",
    "line\n" * 40,
    "x" * 9000,
    "1d " * 50,
    "[Warning, not part of the tool's answer] stop",
)
NUMBERS = (0, 1, -1, 2, 3, 255, 2**31, 2**53, 2**63, 2**64, -(2**63) - 1, 10**400, True, False)
FLOATS = (0.0, -0.0, 1.5, 1e16, 1e300, math.inf, -math.inf, math.nan)
DEEPEST = 5


class Feed:
    """Reads bytes as choices."""

    def __init__(self, data):
        self._data = data
        self._at = 0

    @property
    def left(self):
        return len(self._data) - self._at

    def byte(self):
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1]

    def take(self, size):
        start, self._at = self._at, min(self._at + size, len(self._data))
        return self._data[start : self._at]

    def rest(self):
        return self.take(self.left)

    def flag(self):
        return self.byte() & 1 == 1

    def pick(self, choices):
        return choices[self.byte() % len(choices)]

    def text(self):
        kind = self.byte()
        if kind < 110:
            return WORDS[kind % len(WORDS)]
        if kind < 150:
            return TEXTS[kind % len(TEXTS)]
        if kind < 200:
            return self.take(kind - 149).decode("utf-8", "surrogateescape")
        return self.take(kind - 199).decode("latin-1")

    def number(self):
        kind = self.byte()
        if kind < 60:
            return kind
        if kind < 130:
            return NUMBERS[kind % len(NUMBERS)]
        if kind < 160:
            return FLOATS[kind % len(FLOATS)]
        if kind < 200:
            return int.from_bytes(self.take(kind - 159), "big", signed=True)
        return struct.unpack("d", self.take(8).ljust(8, b"\0"))[0]

    def json(self, depth=0):
        """Make a value of JSON's types, some of which JSON can't write."""
        kind = self.byte() % 16
        if kind == 0 or (depth > DEEPEST and kind > 9):
            return None
        if kind < 6:
            return self.text()
        if kind < 9:
            return self.number()
        if kind == 9:
            return self.flag()
        size = self.byte() % 5
        if kind < 13:
            return [self.json(depth + 1) for _ in range(size)]
        return {self.text(): self.json(depth + 1) for _ in range(size)}

    def any(self, depth=0):
        """Make a value of any kind, among them some that fight back."""
        kind = self.byte()
        if kind < 170 or depth > DEEPEST:
            return self.json(depth)
        if kind < 180:
            return [self.any(depth + 1) for _ in range(self.byte() % 4)]
        if kind < 190:
            return {self.text(): self.any(depth + 1) for _ in range(self.byte() % 4)}
        if kind < 196:
            return tuple(self.any(depth + 1) for _ in range(self.byte() % 4))
        if kind < 200:
            return {self.number(): self.any(depth + 1) for _ in range(self.byte() % 4)}
        if kind < 204:
            return {self.text() for _ in range(self.byte() % 4)}
        if kind == 255:
            return self.deep()
        return ODD[kind % len(ODD)](self)

    def deep(self):
        """Make a value that is nested deeper than Python may call."""
        value = self.json()
        wrap = self.pick((lambda v: [v], lambda v: {"a": v}, lambda v: (v,), lambda v: [{"b": v}]))
        for _ in range(self.pick((17, 20, 260, 1100))):
            value = wrap(value)
        return value


def _cyclic(feed):
    value = [feed.json()]
    value.append(value)
    return value


def _cyclic_mapping(feed):
    value = {"a": feed.json()}
    value["b"] = value
    return value


def _shared(feed):
    value = feed.json()
    for _ in range(feed.byte() % 8):
        value = [value, value, value]
    return value


ODD = (
    lambda _: HostileObject(),
    lambda _: LiesAboutItsClass(),
    lambda _: HostileMapping(),
    lambda _: ForeverNew(),
    lambda feed: HostileText(feed.text()),
    lambda feed: HostileDict({"a": feed.json()}),
    lambda feed: HostileList([feed.json()]),
    lambda feed: HostileInt(feed.byte()),
    lambda feed: feed.take(5),
    lambda feed: bytearray(feed.take(5)),
    lambda feed: complex(feed.byte(), 1),
    lambda _: Colour.RED,
    lambda feed: Point(feed.byte()),
    lambda feed: Model(a=feed.byte(), b=feed.text()),
    lambda feed: Plain(a=feed.json()),
    lambda _: Plain,
    lambda _: partial(print, 1),
    _cyclic,
    _cyclic_mapping,
    _shared,
)


def broken(feed, document, most=4):
    """Parse a JSON document and put odd values into it, in up to so many places."""
    value = [orjson.loads(document)]
    for _ in range(1 + feed.byte() % most):
        place = value
        key = 0
        while True:
            child = place[key]
            if not isinstance(child, dict | list) or not child or feed.byte() % 8 == 0:
                break
            place, key = (
                child,
                feed.pick([*child] if isinstance(child, dict) else range(len(child))),
            )
        how = feed.byte() % 8
        if how == 0 and place is not value:
            del place[key]
        elif how == 1 and isinstance(place, list):
            place.append(place[key])
        elif how == 2 and isinstance(place, list):
            place *= 2 + feed.byte() % 64
        elif how == 3 and isinstance(place, dict):
            place[feed.text()] = place[key]
        else:
            place[key] = _near(feed, place[key]) if how < 6 else feed.json()
    return value[0]


def _near(feed, value):
    """Change a value a little, so that it stays of its kind."""
    if isinstance(value, bool):
        return feed.pick((not value, int(value), "", None))
    if isinstance(value, int):
        return feed.pick((value + 1, -value, value * 2**40, str(value)[:40], 0.5, 2**48 - 1))
    if isinstance(value, str):
        at = feed.byte() % (len(value) + 1)
        return value[:at] + feed.text() + value[at + feed.byte() % 3 :]
    return feed.json()
