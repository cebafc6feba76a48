"""Finds the format of a value, and reads the conversations in a list of values.

The keys of a value decide, never a file's name. One file holds one reader for one format; a new
format is a file and a line in `_SPECIAL`, or in `chat.DIALECTS` for a form of chat messages. What a
reader gives is looked at again: a run whose values hold calls that were not found is a problem, not
a run without calls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation, ConversationError, Problem
from langchain_loopguard.replay.readers import chat
from langchain_loopguard.replay.readers.ag2 import AG2_EVENTS
from langchain_loopguard.replay.readers.atif import ATIF
from langchain_loopguard.replay.readers.autogen import AUTOGEN_TEAM
from langchain_loopguard.replay.readers.base import Format, Place, sign_of_calls
from langchain_loopguard.replay.readers.bfcl import BFCL
from langchain_loopguard.replay.readers.claude_code import CLAUDE_CODE
from langchain_loopguard.replay.readers.codex import CODEX
from langchain_loopguard.replay.readers.codex_exec import CODEX_EXEC
from langchain_loopguard.replay.readers.gemini_cli import GEMINI_CLI
from langchain_loopguard.replay.readers.inspect_ai import INSPECT_AI
from langchain_loopguard.replay.readers.langfuse import LANGFUSE_ROWS, LANGFUSE_TRACE
from langchain_loopguard.replay.readers.langsmith import LANGSMITH
from langchain_loopguard.replay.readers.opencode import OPENCODE
from langchain_loopguard.replay.readers.openhands import OPENHANDS, OPENHANDS_OUTPUT
from langchain_loopguard.replay.readers.otlp import OTLP, SPANS
from langchain_loopguard.replay.readers.own import OWN
from langchain_loopguard.replay.readers.smolagents import SMOLAGENTS
from langchain_loopguard.replay.readers.stream_json import STREAM_JSON
from langchain_loopguard.replay.readers.swe_agent import SWE_AGENT
from langchain_loopguard.replay.readers.tau_bench import TAU_BENCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FORMATS", "Format", "format_of", "is_list_of_runs", "read_values"]

_SPECIAL: tuple[Format, ...] = (
    OWN,
    LANGSMITH,
    OTLP,
    SPANS,
    LANGFUSE_TRACE,
    LANGFUSE_ROWS,
    CLAUDE_CODE,
    STREAM_JSON,
    CODEX,
    CODEX_EXEC,
    GEMINI_CLI,
    OPENHANDS,
    OPENHANDS_OUTPUT,
    INSPECT_AI,
    ATIF,
    SMOLAGENTS,
    BFCL,
    AG2_EVENTS,
    AUTOGEN_TEAM,
    OPENCODE,
    SWE_AGENT,
    TAU_BENCH,
)
"""Formats with keys of their own, the more special ones first."""

FORMATS: tuple[Format, ...] = (*_SPECIAL, *chat.CHATS, chat.MESSAGES)
"""Every format, the more special ones first."""

_WRAPPERS = ("runs", "data", "results", "simulations", "conversations", "sessions", "traces")
"""Keys under which a list of runs is wrapped in an object."""

_UNKNOWN = "of no known format"
_LOST = "its messages hold calls of a shape that is not known"
_DEEPEST = 3
_LOOKED_AT = 20


def format_of(value: Any) -> Format | None:
    """Find a value's format, `None` for one that is none of a run."""
    found = next((one for one in _SPECIAL if one.matches(value)), None)
    return found or chat.format_of(value)


def read_values(
    values: Iterable[tuple[int, Any]], source: str, *, unit: str = "line", depth: int = 0
) -> Iterator[Conversation | Problem]:
    """Read conversations out of values, which are lines of a file or items of a list.

    Args:
        values: Each value with its number, from 1.
        source: What to name as their source.
        unit: What the numbers count.
        depth: How many lists this one is inside of.
    """
    run: list[Any] = []
    first, before = 0, None
    key: str | None = None
    ended: set[str | None] = set()
    for number, value in values:
        found = format_of(value)
        if found is None or found.group is None:
            if run and before is not None:
                yield from _read(before, run, _Spot(source, unit, first, whole=True))
            run, before = [], None
            yield from _single(found, value, _Spot(source, unit, number), depth)
            continue
        own = found.group(value)
        if run and before is found and (own is None or key is None or own == key):
            run.append(value)
            key = own if key is None else key
            continue
        if run and before is not None:
            yield from _read(before, run, _Spot(source, unit, first, whole=True))
            ended.add(key)
        if found.torn and own in ended:
            yield _Spot(source, unit, number).problem(f"{found.name}: {found.torn}")
        run, before, first, key = [value], found, number, own
    if run and before is not None:
        yield from _read(before, run, _Spot(source, unit, first, whole=True))


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a value stands in its source.

    Attributes:
        source: What the source is called.
        unit: What `number` counts; `value` for a source that is one value.
        number: The value's number.
        whole: Whether a run begins here that may be all that the source holds.
    """

    source: str
    unit: str
    number: int
    whole: bool = False

    def problem(self, text: str) -> Problem:
        at = None if self.unit == "value" else self.number
        return Problem(self.source, text, at, self.unit)

    @property
    def where(self) -> str:
        return "" if self.unit == "value" else f"{self.unit} {self.number}"

    @property
    def place(self) -> Place:
        if self.unit == "value" or (self.whole and self.number == 1):
            name = PurePath(self.source).name
            return Place(self.source, name.partition(".")[0] or name)
        return Place(self.source, f"{self.unit} {self.number}")


def is_list_of_runs(value: Any) -> bool:
    """Tell whether a value is a list, or an object around one, that holds a run."""
    items = value if isinstance(value, list) else _wrapped(value)
    return items is not None and any(
        format_of(item) is not None or (isinstance(item, list) and is_list_of_runs(item))
        for item in items[:_LOOKED_AT]
    )


def _single(
    found: Format | None, value: Any, spot: _Spot, depth: int
) -> Iterator[Conversation | Problem]:
    if found is not None:
        yield from _read(found, [value], spot)
        return
    items = value if isinstance(value, list) else _wrapped(value)
    if items is None or depth >= _DEEPEST:
        yield spot.problem(_UNKNOWN)
    elif not items:
        yield spot.problem("an empty list")
    elif (whole := _one_run(items)) is not None:
        # A line that is a list of messages is one conversation, named after the line.
        yield from _read(whole, items, spot)
    else:
        unit = "item" if spot.unit == "value" else f"{spot.unit} {spot.number}, item"
        yield from read_values(enumerate(items, 1), spot.source, unit=unit, depth=depth + 1)


def _one_run(items: list[Any]) -> Format | None:
    """Give the format of items that are one run together."""
    found = format_of(items[0])
    if found is None or found.group is None or not all(found.matches(item) for item in items):
        return None
    return found if len({found.group(item) for item in items} - {None}) <= 1 else None


def _wrapped(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        for key in _WRAPPERS:
            items = value.get(key)
            if isinstance(items, list) and items:
                return items
    return None


def _read(found: Format, values: list[Any], spot: _Spot) -> Iterator[Conversation | Problem]:
    try:
        for at, run in enumerate(found.read(values, spot.place)):
            wrong = _unread(run, [] if found.exact else values)
            place = f"{spot.where}, run {at + 1}" if at else spot.where
            yield spot.problem(f"{found.name}: {wrong}") if wrong else replace(run, place=place)
    except ConversationError as error:
        yield spot.problem(f"{found.name}: {error}")
    except Exception as error:  # noqa: BLE001 - a malformed value may break a reader anywhere
        yield spot.problem(f"{found.name}, but malformed ({type(error).__name__})")


def _unread(run: Conversation, values: list[Any]) -> str:
    """Name what was not understood of a run; empty when nothing speaks for it."""
    nameless = sum(not call.get("name") for step in run.steps for call in step["calls"])
    if nameless:
        return f"{_LOST}: {nameless} without a tool's name"
    return "" if run.calls or sign_of_calls(values) is None else _LOST
