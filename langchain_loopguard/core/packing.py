"""How are many hashes kept in little JSON?

As base-85 text of 32-bit numbers: five characters a hash, the same on every machine.
"""

from __future__ import annotations

import base64
import sys
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def pack(hashes: Iterable[int]) -> str:
    """Write 32-bit hashes as text."""
    packed = array("I", hashes)
    if sys.byteorder == "big":
        packed.byteswap()
    return base64.b85encode(packed.tobytes()).decode()


def unpack(text: str) -> array[int]:
    """Read what `pack` wrote.

    Raises:
        ValueError, TypeError, AttributeError: If it is something else.
    """
    hashes = array("I")
    hashes.frombytes(base64.b85decode(text))
    if sys.byteorder == "big":
        hashes.byteswap()
    return hashes
