"""Bytes of a file: unpacked, line by line, read as JSON, and never more than memory allows.

What a value takes in memory has little to do with its text: `[],` is 72 bytes as a list, and
6 MB of gzip grew to 5.8 GB. So a text is weighed by its brackets, commas and quotes before it
is read, and refused where it would take more than `MAX_MEMORY`.
"""

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

MAX_LINE = 128 * 2**20
"""Bytes of one line, which is one run or a part of one. A longer line is skipped. The text, its
value, and the copies on the way to another process are in memory at once: some six times this."""

MAX_MEMORY = 384 * 2**20
"""Bytes that one JSON value may take, its text aside."""

MAX_SKIPPED = 2**30
"""Bytes of one line that are skipped, and of blank lines: 10 MB of gzip can hold 10 GB of one
character, which takes half a minute to unpack."""

HEAD = 4096
"""Bytes that tell what a file is."""

BOM = b"\xef\xbb\xbf"

_OPENERS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}

ZIP, PARQUET = b"PK\x03\x04", b"PAR1"
"""How a zip archive begins, which inspect_ai's logs are, and a Parquet file."""

_FOREIGN = {
    b"\x28\xb5\x2f\xfd": "compressed with zstd, which is not read: unpack it first",
    b"\xff\xfe": "UTF-16 or UTF-32 text, which is not read: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text, which is not read: save it as UTF-8",
    b"\x00\x00\xfe\xff": "UTF-32 text, which is not read: save it as UTF-8",
    b"%PDF": "a PDF file",
    b"\x89PNG": "an image",
}

UNPACK_ERRORS = (EOFError, zlib.error, lzma.LZMAError, OSError)
"""What a broken compressed stream raises."""

_WEIGHTS = {b"[": 64, b"{": 64, b":": 112, b",": 40, b'"': 25}
"""Bytes of memory that each of these characters stands for outside of texts, as measured with
orjson: an empty list or object, an entry with its key, an item, half of a text's head."""

_LIGHT = MAX_MEMORY // max(_WEIGHTS.values())
"""Bytes of a text that need not be weighed."""

_STRING = re.compile(rb'(?s)"(?:[^"\\]|\\.)*+(?:"|\\?\Z)')
_BEYOND = (b"NaN", b"Infinity", b"\\ud", b"\\uD")
"""What Python's JSON writes and the standard forbids: NaN, halves of surrogate pairs."""

_POSITION = re.compile(r": line 1 column (\d+) \(char \d+\)$")


def need_fsspec() -> Any:
    """Import fsspec, which is needed for addresses alone.

    Raises:
        OSError: If it isn't installed; the message names the extra.
    """
    try:
        import fsspec  # noqa: PLC0415 - as the docstring says
    except ImportError as error:
        text = "an address needs fsspec: pip install 'langchain-loopguard[fleet]'"
        raise OSError(text) from error
    return fsspec


def open_bytes(name: str) -> io.BufferedReader:
    """Open a file, the standard input (`-`), or an address that fsspec knows.

    Raises:
        OSError: If it can't be opened, fsspec isn't installed, or it does not know the address.
    """
    if name == "-":
        return cast("io.BufferedReader", sys.stdin.buffer)
    if "://" not in name:
        return open(name, "rb")  # noqa: PTH123 - closed by the caller
    try:
        file: IO[bytes] = need_fsspec().open(name, "rb").open()
    except OSError:
        raise
    except Exception as error:
        # A store's own client is missing, or it reports in its own classes.
        raise OSError(f"{type(error).__name__}: {error}") from error
    if hasattr(file, "peek"):
        return cast("io.BufferedReader", file)
    return io.BufferedReader(cast("Any", file))


def unpacked(file: io.BufferedReader) -> tuple[io.BufferedReader, bool]:
    """Unpack a compressed stream; the second value says whether it was one."""
    head = file.peek(HEAD)[:HEAD]
    for magic, opener in _OPENERS.items():
        if head.startswith(magic):
            return io.BufferedReader(opener(file), 2**18), True
    return file, False


def foreign(head: bytes) -> str | None:
    """Name what a file is that is no text; `None` for text."""
    for magic, text in _FOREIGN.items():
        if head.startswith(magic):
            return text
    return "a binary file" if b"\x00" in head else None


def lines_of(file: io.BufferedReader, start: bytes = b"") -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines that are not blank with their numbers, `None` for one that is too long.

    Args:
        file: The text, unpacked.
        start: The beginning of its first line, if that was read already.

    Raises:
        OSError: If a line, or a stretch of blank ones, is so long that it isn't read on.
    """
    number = blank = 0
    while line := start if start.endswith(b"\n") else start + file.readline(MAX_LINE + 1):
        start = b""
        number += 1
        if len(line) <= MAX_LINE:
            line = line.removeprefix(BOM) if number == 1 else line
            if not line.isspace():
                blank = 0
                yield number, line
            elif (blank := blank + 1) > MAX_SKIPPED // HEAD:
                raise OSError(f"{blank:,} blank lines in a row, not read on")
            continue
        skipped = len(line)
        while line and not line.endswith(b"\n"):
            line = file.readline(2**20)
            skipped += len(line)
            if skipped > MAX_SKIPPED:
                raise OSError(f"line {number} has more than {skipped >> 20:,} MB, not read on")
        yield number, None


def weigh(text: bytes) -> int:
    """Estimate the bytes of memory that a JSON value takes beside its texts, from above."""
    weight = sum(weight * text.count(sign) for sign, weight in _WEIGHTS.items())
    if weight <= MAX_MEMORY:
        return weight
    bare = _STRING.sub(b'""', text)
    return sum(weight * bare.count(sign) for sign, weight in _WEIGHTS.items())


def parse(text: bytes) -> Any:
    """Read JSON, also what Python writes beyond the standard.

    Raises:
        ValueError: If it is not JSON, or would take too much memory; the message quotes nothing
            of it.
    """
    if len(text) > _LIGHT and weigh(text) > MAX_MEMORY:
        raise ValueError(f"it would take more than {MAX_MEMORY >> 20} MB of memory")
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


def try_parse(line: bytes | None) -> Any:
    """Read JSON; `None` for what is none."""
    try:
        return None if line is None else parse(line)
    except ValueError:
        return None


def reason_of(error: BaseException) -> str:
    """Name the reason why a stream could not be read on."""
    if isinstance(error, EOFError):
        return "the compressed data breaks off"
    return str(error) or type(error).__name__
