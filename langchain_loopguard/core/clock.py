"""Is only a clock new in this text?

Durations, times of day, dates, epoch seconds, memory addresses and uuids change by themselves.
They are masked before two answers are compared for the second time; a line that is new by them
alone is no progress.

The patterns have no nested or unbounded repeats, so masking is linear in the text. They are
meant for text that a machine wrote; `5 m` or `3 h` alone are not masked, since a distance or a
count may stand there and move.
"""

from __future__ import annotations

import re

_UNIT = rb"(?:ns|us|\xc2\xb5s|ms|s|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?)"
_NUMBER = rb"\d{1,15}(?:[.,]\d{1,9})?"
_KEY = (
    rb"(?:(?<![a-zA-Z])(?:seconds|secs|millis|elapsed|duration|uptime|runtime|datetime|timestamp"
    rb"|time|age|date|took|latency|idle|ttl|expires_in)|_ms|_s|_at)"
)

_CLOCK = re.compile(
    rb"0x[0-9a-fA-F]{4,16}"
    rb"|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
    rb"|\b\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?"
    rb"(?:Z|[+-]\d\d:?\d\d)?"
    rb"|\b\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d{1,9})?\b"
    rb"|\b(?:\d{1,6} ?[dhm] ?){1,3}\d{1,6}(?:\.\d{1,9})?s\b"
    rb"|(?<![\w.])" + _NUMBER + rb" ?" + _UNIT + rb"\b"
    rb"|\b1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d{1,9})?\b"
)
_KEYED = re.compile(
    # The backslashes are those of JSON inside JSON.
    rb"(" + _KEY + rb"\\?[\"']?\s?[:=]\s?\\?[\"']?)-?" + _NUMBER,
    re.IGNORECASE,
)


def mask_clock(text: bytes) -> bytes:
    """Replace everything in the text that a clock may have written by a mark."""
    return _KEYED.sub(rb"\1#", _CLOCK.sub(b"#", text))
