"""How do the bytes of a file come in: unpacked, line by line, and never more than is allowed?"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import re
import sys
import zlib
from typing import IO, TYPE_CHECKING, Any, cast

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE = 256 * 2**20
"""Bytes of one line, which is one run or a part of one; read whole, it takes some six times as
much memory. A longer line is skipped."""

HEAD = 4096
"""Bytes that tell what a file is."""

BOM = b"\xef\xbb\xbf"

_OPENERS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}

_FOREIGN = {
    b"\x28\xb5\x2f\xfd": "compressed with zstd, which is not read: unpack it first",
    b"PK\x03\x04": "a zip archive, which is not read: unpack it first",
    b"PAR1": "a Parquet file, which is not read: export the runs as JSON lines",
    b"\xff\xfe": "UTF-16 or UTF-32 text, which is not read: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text, which is not read: save it as UTF-8",
    b"\x00\x00\xfe\xff": "UTF-32 text, which is not read: save it as UTF-8",
    b"%PDF": "a PDF file",
    b"\x89PNG": "an image",
}

UNPACK_ERRORS = (EOFError, zlib.error, lzma.LZMAError, OSError)
"""What a broken compressed stream raises."""


def need_fsspec() -> Any:
    """Import fsspec, which is needed for addresses alone.

    Raises:
        OSError: If it isn't installed; the message names the extra.
    """
    try:
        import fsspec  # noqa: PLC0415 - as the docstring says
    except ImportError as error:
        raise OSError(
            "an address needs fsspec: pip install 'langchain-loopguard[fleet]'"
        ) from error
    return fsspec


def open_bytes(name: str) -> io.BufferedReader:
    """Open a file, the standard input (`-`), or an address that fsspec knows.

    Raises:
        OSError: If it can't be opened, fsspec isn't installed, or it does not know the address.
    """
    if name == "-":
        return cast("io.BufferedReader", sys.stdin.buffer)
    if "://" not in name:
        return open(name, "rb")  # noqa: PTH123 - closed by whoever asked
    try:
        file: IO[bytes] = need_fsspec().open(name, "rb").open()
    except OSError:
        raise
    except Exception as error:
        # A store's own client is missing, or it reports in its own classes.
        raise OSError(f"{type(error).__name__}: {error}") from error
    return _buffered(file)


def unpacked(file: io.BufferedReader) -> tuple[io.BufferedReader, bool]:
    """Unpack a compressed stream; says whether it was one."""
    head = file.peek(HEAD)[:HEAD]
    for magic, opener in _OPENERS.items():
        if head.startswith(magic):
            return io.BufferedReader(opener(file), 2**18), True
    return file, False


def is_packed(path: str) -> bool:
    """Tell whether a file on the disk is compressed; one that can't be read is not."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(8).startswith(tuple(_OPENERS))
    except OSError:
        return False


def foreign(head: bytes) -> str | None:
    """Say what a file is that is no text; `None` for text."""
    for magic, text in _FOREIGN.items():
        if head.startswith(magic):
            return text
    return "a binary file" if b"\x00" in head else None


def lines_of(file: io.BufferedReader) -> Iterator[tuple[int, bytes | None]]:
    """Give the lines with their numbers, `None` for one that is too long."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) <= MAX_LINE:
            yield number, line.removeprefix(BOM) if number == 1 else line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(2**20)
        yield number, None


_BEYOND = (b"NaN", b"Infinity", b"\\ud", b"\\uD")
"""What Python's JSON writes and the standard forbids: NaN, halves of surrogate pairs."""

_POSITION = re.compile(r": line 1 column (\d+) \(char \d+\)$")


def parse(text: bytes) -> Any:
    """Read JSON, also what Python writes beyond the standard.

    Raises:
        ValueError: If it is not JSON; the message quotes nothing of it.
    """
    try:
        return orjson.loads(text)
    except ValueError as error:
        reason = _POSITION.sub(r" (character \1)", str(error))
    if "UTF-8" in reason:
        raise ValueError("not UTF-8")
    if "depth" in reason or "ecursion" in reason:
        raise ValueError("nested too deeply")
    if "infinity" in reason:
        raise ValueError("a number that is too large to be read")
    if any(sign in text for sign in _BEYOND):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(text)
    raise ValueError(reason)


def reason_of(error: BaseException) -> str:
    """Say why a stream could not be read on."""
    if isinstance(error, EOFError):
        return "the compressed data breaks off"
    return str(error) or type(error).__name__


def _buffered(file: Any) -> io.BufferedReader:
    if hasattr(file, "peek"):
        return cast("io.BufferedReader", file)
    return io.BufferedReader(file)
