"""By which number does a rule know a call, a tool or an answer again?

Rules must keep no argument and no answer, and their state must stay small in JSON. So they keep
48 bits of a hash: enough to tell some thousand values apart (a wrong match among 1,000 is less
likely than one in 500 million), and exact in every JSON reader, which 64 bits are not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson
import xxhash

if TYPE_CHECKING:
    from collections.abc import Iterable

_CUT = 16
"""Bits of the 64-bit hash that are dropped."""

_EMPTY = (b"null", b"{}", b"[]", b'""')
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")


def fingerprint(*parts: str | bytes | int) -> int:
    """Give one 48-bit number for all the parts in their order."""
    hasher = xxhash.xxh3_64()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "backslashreplace")
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.intdigest() >> _CUT


def raw_key(name: str, given: object, canonical: bytes) -> int:
    """Know a call by its name and its JSON with the keys in the order given.

    What plain JSON does not know is taken in its canonical form, where the order is lost.
    """
    try:
        written = orjson.dumps(given)
    except Exception:  # noqa: BLE001 - arguments of hostile types are arguments still
        written = canonical
    return fingerprint(name, written)


def sanitised_key(name: str, canonical: bytes) -> int:
    """Know a call by its arguments and its name in lower case with `_` for all other signs."""
    return fingerprint(_NOT_IN_A_NAME.sub("_", name.lower()).strip("_"), canonical)


def is_empty(canonical: bytes) -> bool:
    """Tell whether arguments are missing or an empty object, list or text."""
    return canonical in _EMPTY


def set_key(keys: Iterable[int]) -> int:
    """Know a set of calls, whatever the order in which they came."""
    return fingerprint(*sorted(set(keys)))
