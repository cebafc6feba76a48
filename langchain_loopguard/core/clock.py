"""Masks in a text what changes by itself: clocks, durations, and ids that were made for it.

Two results that differ in nothing else are the same result. The patterns are meant for text that
a machine wrote. They have no nested or unbounded repeats that could be given back, so masking is
linear in the text; it costs some 60 ns a byte, which is why `core.results` masks short texts only.

Not masked are tokens and signed addresses: no run and fewer than two public reports showed a loop
by them. Nor what a result may be about: `5 m` or `3 h` alone, which may be a
distance or a count; a hexadecimal number that stands by itself, which may be what was computed;
an address such as `0x4f50` unless it says where an object is (`at 0x4f50`), since a debugger
that steps prints another address each time.
"""

from __future__ import annotations

import re

_UNIT = rb"(?:ns|us|\xc2\xb5s|ms|s|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?)"

_HEX = rb"[0-9a-fA-F]"
_UUID = re.compile(rb"\b" + _HEX + rb"{8}-(?:" + _HEX + rb"{4}-){3}" + _HEX + rb"{12}\b")
_CLOCK = re.compile(
    # The first digit comes first, what may stand before it is looked back at: `re` then skips
    # everything that is no digit in one go.
    rb"\d(?:(?<=at 0)x" + _HEX + rb"{4,16}"
    rb"|(?<=\b\d)(?:"
    rb"\d{3}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?"
    rb"(?:Z|[+-]\d\d:?\d\d)?"
    rb"|\d{0,2}:\d\d(?::\d\d)?(?:[.,]\d{1,9})?\b"
    rb"|\d{0,5} ?[dhm] ?(?:\d{1,6} ?[dhm] ?){0,2}\d{1,6}(?:\.\d{1,9})?s\b"
    rb"|(?<!\.\d)\d{0,14}(?:[.,]\d{1,9})? ?" + _UNIT + rb"\b"
    rb"|(?<=1)[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d{1,9})?\b"
    rb"))"
)
_DIGIT = re.compile(rb"\d")
_LONG_HEX = re.compile(_HEX + rb"{16}")
_ID = re.compile(
    rb"(?:(?<=[:=_/#\"'-])|(?<=[:=] ))(?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])"
    + _HEX
    + rb"{16,128}(?![a-zA-Z0-9])"
)
"""Hexadecimal text as long as 64 bits behind a key or a prefix (`id: 8f…`, `msg_a507…`). Only with
letters and digits: a long number may count."""

_VALUE = re.compile(rb"([:=]\s?\\?[\"']?)-?\d{1,15}(?:[.,]\d{1,9})?")
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
_ENDS = (*_WORDS, b"ms", b"s", b"at")
_BEFORE_VALUE = 24
"""Bytes before a value that can say what it is; the longest key takes 13 and what is before it."""


def mask_clock(text: bytes) -> bytes:
    """Replace by `#` what a clock may have written, and what was made up for this result."""
    if _DIGIT.search(text) is None:  # Whatever is masked holds a digit.
        return text
    if b"-" in text and not _UUID.fullmatch(text.strip()):  # A text that is an id is about it.
        text = _UUID.sub(b"#", text)
    if _LONG_HEX.search(text):
        text = _ID.sub(b"#", text)
    text = _CLOCK.sub(b"#", text)
    return _VALUE.sub(_without_clock, text) if b":" in text or b"=" in text else text


def _without_clock(value: re.Match[bytes]) -> bytes:
    at = value.start()
    key = value.string[max(0, at - _BEFORE_VALUE) : at]
    # Few keys are a clock's, and most are known by their end in a tenth of the time.
    if key.rstrip(b"\\\"' \t\r\n").lower().endswith(_ENDS) and _CLOCK_KEY.search(key):
        return value[1] + b"#"
    return value[0]
