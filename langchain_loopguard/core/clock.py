"""Masks in a text what changes by itself: clocks, durations, and ids that were made for it.

Two results that differ in nothing else are the same result. The patterns are meant for text that
a machine wrote. They have no nested or unbounded repeats that could be given back, so masking is
linear in the text; it costs 20 to 50 ns a byte, which is why `core.results` masks short texts only.

Not masked are tokens and signed addresses: no run and fewer than two public reports showed a loop
by them. Nor what a result may be about: `5 m` or `3 h` alone, which may be a
distance or a count; a hexadecimal number that stands by itself, which may be what was computed;
an address such as `0x4f50` unless it says where an object is (`at 0x4f50`), since a debugger
that steps prints another address each time.
"""

from __future__ import annotations

import re

_UNIT = rb"(?:ns|us|\xc2\xb5s|ms|s|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?)"

DIGITS = b"0123456789"

_HEX = rb"[0-9a-fA-F]"
_UUID = re.compile(rb"\b" + _HEX + rb"{8}-(?:" + _HEX + rb"{4}-){3}" + _HEX + rb"{12}\b")
_MAYBE_UUID = re.compile(rb"-" + _HEX + rb"{4}-")
_CLOCK = re.compile(
    # The first digit comes first, what may stand before it is looked back at: `re` then skips
    # everything that is no digit in one go. Behind most numbers is no sign of a clock.
    rb"\d(?<=\b\d)(?=\d*+(?:[-/:x]| ?+[dhmnsu\xc2]|[.,]\d)|\d{9})(?:"
    rb"\d{3}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?"
    rb"(?:Z|[+-]\d\d:?\d\d)?"
    rb"|\d{0,2}:\d\d(?::\d\d)?(?:[.,]\d{1,9})?\b"
    rb"|\d{0,5} ?[dhm] ?(?:\d{1,6} ?[dhm] ?){0,2}\d{1,6}(?:\.\d{1,9})?s\b"
    rb"|(?<!\.\d)\d{0,14}(?:[.,]\d{1,9})? ?" + _UNIT + rb"\b"
    rb"|(?<=1)[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d{1,9})?\b"
    rb"|x(?<=at 0x)" + _HEX + rb"{4,16})"
)
_ID = re.compile(
    rb"([:=_/#\"'-] ?)(?<![_/#\"'-] )(?=X{16})(?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])X{16,128}"
    rb"(?![a-zA-Z0-9])".replace(b"X", _HEX)
)
"""Hexadecimal text as long as 64 bits behind a key or a prefix (`id: 8f…`, `msg_a507…`). Only with
letters and digits: a long number may count."""

_KEY_END = (
    rb"(?:[a-z_CDIM][sS]|[iI][nN]|[eE][dD]|[oO][nNkK]|[mM][eEpP]|[gGtTlL][eE]|[cC][yY]|[tT][lL]"
    rb"|[aA][tT])"
)
"""The last letters of a clock's key. Most keys end otherwise, and the whole key takes ten times as
long."""
_VALUE = re.compile(
    # A key's end stands before up to two marks and a space.
    rb"([:=](?=\s?+\\?+[\"']?+-?+\d)(?:"
    + b"|".join([rb"(?<=" + _KEY_END + between + rb".)" for between in (b"", b".", b"..", b"...")])
    + rb")\s?\\?[\"']?)-?\d{1,15}(?:[.,]\d{1,9})?",
    re.DOTALL,
)
_COLON, _EQUALS = b":="  # As numbers: to look for a byte in bytes is slow otherwise.
_WORDS = (
    b"seconds secs millis elapsed duration uptime runtime datetime timestamp time age date took "
    b"latency idle ttl expires_in expiresin".split()
)
_CLOCK_KEY = re.compile(
    # `time`, `start_time`, `startTime`, `TIME`, but not `lifetime`; the backslash is that of JSON
    # inside JSON.
    rb"(?:(?:(?<![a-zA-Z])|(?<=[a-z])(?=[A-Z]))(?i:" + b"|".join(_WORDS) + rb")"
    rb"|(?:_|(?<=[a-z])(?=[A-Z]))(?i:ms|s|at))\\?[\"']?\s?\Z"
)
_BEFORE_VALUE = 14
"""Bytes before a value that can say what it is: the longest key takes 13, and what is before it."""


def mask_clock(text: bytes) -> bytes:
    """Replace by `#` what a clock may have written, and what was made up for this result."""
    if text == text.translate(None, DIGITS):  # Whatever is masked holds a digit.
        return text
    if _MAYBE_UUID.search(text) and not _UUID.fullmatch(text.strip()):
        text = _UUID.sub(b"#", text)  # A text that is an id is about it.
    text = _ID.sub(lambda found: found[1] + b"#", text)
    text = _CLOCK.sub(b"#", text)
    return _VALUE.sub(_without_clock, text) if _COLON in text or _EQUALS in text else text


def _without_clock(value: re.Match[bytes]) -> bytes:
    at = value.start()
    is_clock = _CLOCK_KEY.search(value.string, max(0, at - _BEFORE_VALUE), at)
    return value[1] + b"#" if is_clock else value[0]
