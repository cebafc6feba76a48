"""Is this part of a stored state one that `to_state` wrote?

A state comes back from a database, where another release, another program or a tool may have
written to it. What is no count, no hash or no name is refused when it is loaded, so that it is
told once and counted anew, instead of breaking a rule or a checkpoint some steps later.

A state is loaded in every step of a graph, so each function looks at one value and at nothing
twice. Whether a well-formed number is the right one, nobody can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.core.packing import unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOST = 2**48
"""No run counts that far, and a few billion more still fit the 64 bits of a checkpoint."""

_DIGITS = 16
"""Hexadecimal digits of a 64-bit hash."""

LONGEST_TEXT = 256
"""Characters of a stored name. The longest that is written is the key of a batch."""


def count(value: Any) -> int:
    """Read a count: a whole number from 0 up.

    Raises:
        ValueError: If it is another value; so do all functions of this file.
    """
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError(f"a count is missing: {_kind(value)}")
    return value


def number(value: Any) -> int:
    """Read a number of up to 48 bits; -1 stands for none."""
    if type(value) is not int or not -1 <= value < _MOST:
        raise ValueError(f"a number is missing: {_kind(value)}")
    return value


def flag(value: Any) -> bool:
    """Read a truth value."""
    if value is True or value is False:
        return bool(value)
    raise ValueError(f"a truth value is missing: {_kind(value)}")


def digest(value: Any) -> int:
    """Read a 64-bit hash that is written in hexadecimal."""
    if type(value) is str and len(value) <= _DIGITS:
        found = int(value, 16)
        if found >= 0:
            return found
    raise ValueError(f"a hash is missing: {_kind(value)}")


def digest_or_none(value: Any) -> int | None:
    """Read a 64-bit hash, or that there is none."""
    return None if value is None else digest(value)


def text(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Read a name."""
    if type(value) is not str or len(value) > longest:
        raise ValueError(f"a name is missing: {_kind(value)}")
    if not value.isascii():
        value.encode()  # A lone surrogate can't be stored; the error is a ValueError.
    return value


def entries(value: Any, most: int) -> Sequence[Any]:
    """Read a list of at most so many entries, whatever they are."""
    if type(value) is not list or len(value) > most:
        raise ValueError(f"a list of up to {most} is missing: {_kind(value)}")
    return value


def mapping(value: Any, most: int) -> dict[Any, Any]:
    """Read a mapping of at most so many entries, whatever they are."""
    if type(value) is not dict or len(value) > most:
        raise ValueError(f"a mapping of up to {most} is missing: {_kind(value)}")
    return value


def digests(value: Any, most: int) -> list[int]:
    """Read a list of 64-bit hashes."""
    return list(map(digest, entries(value, most)))


def hashes(value: Any, most: int) -> dict[int, None]:
    """Read packed 32-bit hashes, each once and in their order: the keys of what is given."""
    if type(value) is not str or len(value) > 6 * most + 4:
        raise ValueError(f"packed hashes, up to {most}, are missing: {_kind(value)}")
    return dict.fromkeys(unpack(value))


def each(value: Any, most: int, *readers: Callable[[Any], Any]) -> list[list[Any]]:
    """Read a list of rows, each value of a row by its reader."""
    rows = []
    for row in entries(value, most):
        if type(row) is not list or len(row) != len(readers):
            raise ValueError(f"a row of {len(readers)} is missing: {_kind(row)}")
        rows.append([read(part) for read, part in zip(readers, row, strict=True)])
    return rows


def shown(value: Any) -> str:
    """Show a value in an error: a number or an error in short, of anything else its type."""
    if type(value) is int or isinstance(value, (ValueError, KeyError)):
        return f"{value!r:.120}"
    return _kind(value)


def _kind(value: Any) -> str:
    """Say what stands there; never the value, which may be anything."""
    try:
        return str(type(value).__name__)
    except Exception:  # noqa: BLE001 - a metaclass may do anything
        return "object"
