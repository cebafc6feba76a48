"""Reads what a model call took, in the words of any provider: tokens, and when it was.

What is of no known form is `None`, never a fault: a run without costs is a run.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any


def tokens_of(usage: Any) -> int | None:
    """Read how many tokens a model call took, in the words of any provider."""
    if not isinstance(usage, dict):
        return None
    for key in ("total_tokens", "totalTokens", "totalTokenCount", "total"):
        if type(usage.get(key)) is int:
            return int(usage[key])
    parts = [
        count
        for key, count in usage.items()
        if type(count) is int and key.lower().replace("_", "").endswith(_TOKEN_PARTS)
    ]
    return sum(parts) or None


_TOKEN_PARTS = ("inputtokens", "outputtokens", "prompttokens", "completiontokens")
"""How the keys of what goes in and out end, `cache_read_input_tokens` too."""


def seconds_of(time: Any) -> float | None:
    """Read a time as seconds: ISO 8601, or seconds or milliseconds since 1970."""
    if isinstance(time, str):
        with suppress(ValueError):
            read = datetime.fromisoformat(time)
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
        return None
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 < time < _LATEST:
        return None
    return time / 1000 if time > _MILLISECONDS else float(time)


_MILLISECONDS = 1e11
"""Larger times are milliseconds: as seconds this is the year 5138."""
_LATEST = 1e15
