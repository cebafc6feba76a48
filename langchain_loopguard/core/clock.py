"""Is only a clock or an id new in this text?

Durations, times of day, dates, epoch seconds, memory addresses and uuids change by themselves, and
so do hashes, the ids that a service gives to each request, and the handles that a browser's tools
give to each element of a page. They are masked before two answers are compared for the second
time; a line that is new by them alone is no progress.

The patterns have no nested or unbounded repeats that could be given back, so masking is linear in
the text. They are meant for text that a machine wrote; `5 m` or `3 h` alone are not masked, since
a distance or a count may stand there and move.
"""

from __future__ import annotations

import re

_UNIT = rb"(?:ns|us|\xc2\xb5s|ms|s|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?)"

_UUID = re.compile(rb"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_CLOCK = re.compile(
    # The first digit comes first, what may stand before it is looked back at: `re` then skips
    # everything that is no digit in one go.
    rb"\d(?:"
    rb"(?<=0)x[0-9a-fA-F]{4,16}"
    rb"|(?<=\b\d)\d{3}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?"
    rb"(?:Z|[+-]\d\d:?\d\d)?"
    rb"|(?<=\b\d)\d{0,2}:\d\d(?::\d\d)?(?:[.,]\d{1,9})?\b"
    rb"|(?<=\b\d)\d{0,5} ?[dhm] ?(?:\d{1,6} ?[dhm] ?){0,2}\d{1,6}(?:\.\d{1,9})?s\b"
    rb"|(?<=(?<![\w.])\d)\d{0,14}(?:[.,]\d{1,9})? ?" + _UNIT + rb"\b"
    rb"|(?<=\b1)[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d{1,9})?\b"
    rb")"
)
_HASH = re.compile(rb"(?<![a-zA-Z0-9])[0-9a-fA-F]{16,128}(?![a-zA-Z0-9])")
"""Hexadecimal text as long as 64 bits, by itself or behind a prefix (`msg_a507...`). Only with
letters and digits: a long number may count."""

_QUERY = re.compile(rb"\?[^\s\"'<>?]{1,4096}")
_SIGNATURE = re.compile(rb"(?i)[?&;](?:[\w-]{0,16}[-_])?sig(?:n(?:ature)?)?=")
"""The query of an address that was signed for this answer: an expiry, a key and a date come with
the signature."""

_HANDLE = re.compile(rb"\b(ref|uid)=([\"']?)[a-z]{0,2}\d\w{0,16}")
"""`[ref=e12]` and `uid=3_12`, as Playwright's and Chrome's tools number what is on a page, anew
for each look."""

_TOKEN = re.compile(rb"([:=]\s?(?:\\?[\"']){0,2}(?:W/(?:\\?[\"']){0,2})?)[\w.+/-]{4,128}={0,2}")
_TOKEN_KEYS = (b"requestid", b"traceid", b"spanid", b"correlationid", b"etag", b"nonce", b"csrf")
"""Keys whose value is made for each answer, without what joins their words."""

_TOKEN_SIGNS = (b"quest", b"trace", b"correl", b"etag", b"nonce", b"csrf")
"""Texts with one of these are looked at for such keys."""

_JOINTS = b"_- \\\"'"
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
    """Replace by a mark what a clock may have written, and what was made up for this answer."""
    if b"-" in text:
        text = _UUID.sub(b"#", text)
    text = _HASH.sub(_without_hash, text)
    if b"ref=" in text or b"uid=" in text:
        text = _HANDLE.sub(rb"\1=\2#", text)
    lowered = text.lower()
    if b"sig" in lowered and b"?" in text:
        text = _QUERY.sub(_without_signature, text)
    for sign in _TOKEN_SIGNS:
        if sign in lowered:
            text = _TOKEN.sub(_without_token, text)
            break
    text = _CLOCK.sub(b"#", text)
    return _VALUE.sub(_without_clock, text) if b":" in text or b"=" in text else text


def _without_hash(found: re.Match[bytes]) -> bytes:
    text = found[0]
    return text if text.isdigit() or text.isalpha() else b"#"


def _without_signature(query: re.Match[bytes]) -> bytes:
    return b"?#" if _SIGNATURE.search(query[0]) else query[0]


def _without_token(value: re.Match[bytes]) -> bytes:
    at = value.start()
    key = value.string[max(0, at - _BEFORE_VALUE) : at].translate(None, _JOINTS).lower()
    return value[1] + b"#" if key.endswith(_TOKEN_KEYS) else value[0]


def _without_clock(value: re.Match[bytes]) -> bytes:
    at = value.start()
    key = value.string[max(0, at - _BEFORE_VALUE) : at]
    # Few keys are a clock's, and most are told by their end in a tenth of the time.
    if key.rstrip(b"\\\"' \t\r\n").lower().endswith(_ENDS) and _CLOCK_KEY.search(key):
        return value[1] + b"#"
    return value[0]
