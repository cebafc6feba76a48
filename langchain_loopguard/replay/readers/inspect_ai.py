"""Reads the logs of inspect_ai: `.eval` files and the same as JSON.

A log has `samples`, each with its `messages`, `scores` and perhaps an `error`. An `.eval` file is a
zip archive with a file a sample, which newer versions compress with zstd. A call is
`{"id", "function": name, "arguments"}`; a result of the role `tool` has an `error` if it failed.

A sample is solved if its only score is `C` or 1, not if it is `I`, 0, or the sample broke off. With
several scorers or partial scores the outcome is unknown.

Facts: `inspect_ai.log` of inspect_ai 0.3.285, read 2026-11.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
from typing import IO, TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation, ConversationError, Outcome
from langchain_loopguard.replay.readers.agentdojo import dialect
from langchain_loopguard.replay.readers.base import (
    Format,
    Place,
    Values,
    as_dict,
    dicts_of,
    first_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_ZSTD = 93
"""Zip's number for zstd."""
_LENGTHS = 26
"""Where an entry's own head has the lengths of its name and of what is beside it."""
_WINDOW = 2**27
"""Bytes that unpacking may keep in memory, the most that zstd writes unless set otherwise."""


INSPECT_MESSAGES = dialect("inspect_ai messages", "arguments")


def _is_sample(value: Any) -> bool:
    return all(key in value for key in ("id", "epoch", "input", "messages"))


def _matches(value: Any) -> bool:
    if isinstance(value.get("samples"), list) and "eval" in value:
        return True
    return _is_sample(value)


def _read(values: Values, place: Place) -> Iterator[Conversation]:
    for value in values:
        for sample in [value] if _is_sample(value) else dicts_of(value.get("samples"), "samples"):
            name = f"sample {first_text(sample, 'id')}, epoch {first_text(sample, 'epoch')}"
            given = dicts_of(sample.get("messages"), f"{name}, messages")
            try:
                events = INSPECT_MESSAGES.events_of(given)
            except ConversationError as error:
                raise ConversationError(f"{name}, {error}") from None
            yield Conversation(place.source, name, tuple(events), _outcome(sample))


def _outcome(sample: dict[str, Any]) -> Outcome:
    if sample.get("error"):
        return "fail"
    scores = list(as_dict(sample.get("scores")).values())
    value = as_dict(scores[0]).get("value") if len(scores) == 1 else None
    if value == "C" or (type(value) in {int, float, bool} and value == 1):
        return "success"
    if value in ("I", "N") or (type(value) in {int, float, bool} and value == 0):
        return "fail"
    return "unknown"


def samples_in(file: IO[bytes], most: int) -> Iterator[bytes]:
    """Read the samples of an `.eval` file, each as the text of one JSON object.

    Args:
        file: The file, which can be read at any place.
        most: The bytes that a sample may have, unpacked.

    Raises:
        ConversationError: If it is no `.eval` file, a sample is too large, or zstandard is missing.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if entry.filename.startswith("samples/") and entry.filename.endswith(".json"):
                    if entry.compress_type == _ZSTD:
                        text = _unpacked(file, entry, most)
                    else:
                        with archive.open(entry) as sample:
                            text = sample.read(most + 1)
                    if len(text) > most:
                        raise ConversationError(f"a sample of more than {most // 2**20} MB")
                    yield text
    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, struct.error) as error:
        raise ConversationError(f"not a whole zip archive: {error}") from error


def _unpacked(file: IO[bytes], entry: zipfile.ZipInfo, most: int) -> bytes:
    """Unpack what is compressed with zstd, which `zipfile` knows from Python 3.14 on alone."""
    try:
        import zstandard  # noqa: PLC0415 - it comes with langsmith, but nothing else needs it
    except ImportError as error:
        raise ConversationError("compressed with zstd: pip install zstandard") from error
    file.seek(entry.header_offset + _LENGTHS)
    lengths = struct.unpack("<HH", file.read(4))
    file.seek(sum(lengths), os.SEEK_CUR)
    packed = io.BytesIO(file.read(min(entry.compress_size, most)))
    try:
        unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        with unpacker.stream_reader(packed, read_across_frames=True) as stream:
            return stream.read(most + 1)
    except zstandard.ZstdError as error:
        raise ConversationError(f"not unpacked: {error}") from error


INSPECT_AI = Format("inspect_ai log", _matches, _read, exact=True)
