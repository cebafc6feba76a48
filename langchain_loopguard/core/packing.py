"""How are many hashes kept in little JSON?

As base-64 text of 32-bit numbers behind a full stop: sixteen characters for three hashes, the
same on every machine. Base-85 is 6 % shorter, but Python writes it a hundred times slower, in
every step of a graph; text without the stop is read as that.
"""

from __future__ import annotations

import base64
import binascii
import sys
from array import array
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_MARK = "."
"""Not a character of base-85."""


def pack(hashes: Iterable[int]) -> str:
    """Write 32-bit hashes as text."""
    return _text(array("I", hashes))


class Packing:
    """Packs the keys of a dictionary that only grows, each key once however often it is asked.

    Sets would have to be sorted first, which takes longer than all the rest.
    """

    __slots__ = ("_hashes", "_packed", "_text")

    def __init__(self) -> None:
        """Start with nothing packed."""
        self._hashes: Mapping[int, None] = {}
        self._packed = array("I")
        self._text = ""

    def of(self, hashes: Mapping[int, None]) -> str:
        """Write a dictionary's keys as `pack` does. Another dictionary is packed anew."""
        if hashes is not self._hashes:
            self._hashes, self._packed, self._text = hashes, array("I"), ""
        if len(hashes) > len(self._packed):
            self._packed.extend(islice(hashes, len(self._packed), None))
            self._text = _text(self._packed)
        return self._text


def _text(packed: array[int]) -> str:
    if not packed:
        return ""
    if sys.byteorder == "big":
        packed = array("I", packed)
        packed.byteswap()
    return _MARK + binascii.b2a_base64(packed.tobytes(), newline=False).decode()


def unpack(text: str) -> array[int]:
    """Read what `pack` wrote.

    Raises:
        ValueError, TypeError, AttributeError: If it is something else.
    """
    hashes = array("I")
    if text[:1] == _MARK:
        hashes.frombytes(binascii.a2b_base64(text[1:], strict_mode=True))
    else:
        hashes.frombytes(base64.b85decode(text))
    if sys.byteorder == "big":
        hashes.byteswap()
    return hashes
