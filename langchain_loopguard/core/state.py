"""How are counters kept in little JSON, and is a stored part one that `to_state` wrote?

A state comes back from a database, where another release, another program or a tool may have
written to it. What is no count, no hash or no name is refused when it is loaded, so that it is
logged once and counted again, instead of breaking a rule or a checkpoint some steps later.
Whether a well-formed number is the right one, nobody can tell.

Many hashes are kept as one base-64 text: a list of numbers takes half as much again.
"""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, MutableMapping, Sequence

LONGEST_TEXT = 256
"""Characters of a stored name."""

_MOST = 2**48
"""No run counts that far, and a few billion more still fit the 64 bits of a checkpoint."""

_DIGITS = 16
"""Hexadecimal digits of a 64-bit hash."""


def pack(numbers: Collection[int], width: int = 4) -> str:
    """Write unsigned numbers of so many bytes, up to 8, as one text."""
    code, size = ("I", 4) if width <= 4 else ("Q", 8)  # noqa: PLR2004 - the sizes that `struct` has
    data = bytearray(struct.pack(f">{len(numbers)}{code}", *numbers))
    for longer in range(size, width, -1):
        del data[::longer]  # The first byte of each number.
    return base64.b64encode(data).decode("ascii")


def unpack(packed: Any, most: int, width: int = 4) -> list[int]:
    """Read up to `most` numbers that `pack` wrote.

    Raises:
        ValueError: If it is another value; so do all functions below.
    """
    if type(packed) is not str or len(packed) > (width * most + 2) // 3 * 4:
        raise ValueError(f"packed numbers, up to {most}, are missing: {_kind(packed)}")
    data = base64.b64decode(packed, validate=True)
    count, rest = divmod(len(data), width)
    if rest:
        raise ValueError(f"packed numbers have {8 * width} bits")
    wide = bytearray(8 * count)
    for place in range(width):
        wide[8 - width + place :: 8] = data[place::width]
    return list(struct.unpack(f">{count}Q", wide))


def hashes(value: Any, most: int) -> dict[int, None]:
    """Read packed 32-bit hashes, each once and in their order: the keys of what is returned."""
    return dict.fromkeys(unpack(value, most))


def count(value: Any) -> int:
    """Read a count: a whole number from 0 up."""
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


def text(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Read a name."""
    if type(value) is not str or len(value) > longest:
        raise ValueError(f"a name is missing: {_kind(value)}")
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


def row(value: Any, *readers: Callable[[Any], Any]) -> list[Any]:
    """Read a list of as many values as there are readers, each value by its reader."""
    if type(value) is not list or len(value) != len(readers):
        raise ValueError(f"a row of {len(readers)} is missing: {_kind(value)}")
    return [read(part) for read, part in zip(readers, value, strict=True)]


def each(value: Any, most: int, *readers: Callable[[Any], Any]) -> list[list[Any]]:
    """Read a list of at most so many rows."""
    return [row(part, *readers) for part in entries(value, most)]


def keep_latest(mapping: MutableMapping[Any, Any], most: int) -> None:
    """Take out what came first until so many are left.

    The mapping is filled again: one from whose front entries are deleted is looked through from
    its very beginning each time.
    """
    if len(mapping) > most:
        kept = list(mapping.items())[-most:] if most else []
        mapping.clear()
        mapping.update(kept)


def shown(value: Any) -> str:
    """Show a value in an error: a number or an error in short, of anything else its type."""
    if type(value) is int or isinstance(value, (ValueError, KeyError)):
        return f"{value!r:.120}"
    return _kind(value)


def _kind(value: Any) -> str:
    """Name the type of what stands there; never the value, which may be anything."""
    try:
        return str(type(value).__name__)
    except Exception:  # noqa: BLE001 - a metaclass may do anything
        return "object"
