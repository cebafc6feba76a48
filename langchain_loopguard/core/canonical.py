"""How is any value written so that equal values give equal bytes?

Ordinary JSON values are written by orjson. Everything else is written here, in the same form as
far as JSON reaches and beyond it in a form that is no JSON, so that it cannot be mistaken for a
value that is: `NaN`, a number as a key, `!bytes"00ff"`, `!set[1,2]`, `!module.Class{...}`.

Rules of this file:

- It never raises, whatever a value's own methods do.
- It never asks a value for its `repr`, its hash or its order: the first may hold a memory
  address, the second differs from process to process.
- `1` and `1.0` are two values here, as in JSON, and a tuple is a list. Otherwise what is equal
  in Python gives equal bytes.

It must not know what the bytes are used for.
"""

from __future__ import annotations

import copyreg
import decimal
import enum
import json
import math
from collections.abc import Callable, Generator, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from operator import itemgetter
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, TypeAlias

import orjson

ARGUMENT_LEVELS = 16
"""Values at this depth or deeper are written as `"..."`, the top value being at depth 0: the form
that other implementations have. No measurement is behind the number."""

_CUT = '"..."'
_ORJSON_LEVELS = 254  # orjson refuses anything deeper; the writer below takes over.

_WIDE_LEVEL = 65_536
"""So many containers side by side are looked at more closely: ten lists, each ten times in the
next, unfold into 10^10 values, and orjson would write them all."""

_MAX_REPEATS = 1_000_000
"""So many values are written again because their container occurs again; the rest is cut. A tree,
which is all that JSON can hold, repeats nothing."""

_MAX_DESCRIPTIONS = 16
"""So often in a row an object may be described by another object. An object that describes
itself by a new one of its kind would go on for ever."""

_DECIMALS = decimal.Context(decimal.MAX_PREC, None, decimal.MIN_EMIN, decimal.MAX_EMAX, traps=[])
_quoted = json.JSONEncoder(ensure_ascii=False).encode

_Step: TypeAlias = tuple[Any, int, int]
_Steps: TypeAlias = Generator[_Step, None, None]


def canonical_arguments(arguments: object) -> bytes:
    """Write the arguments of a call: compact JSON, keys sorted, cut at depth 16.

    Integers beyond 64 bits become floats. What JSON cannot say is written in a form of its own.
    """
    return _written(arguments, ARGUMENT_LEVELS)


def canonical_content(content: object) -> bytes:
    """Write the content of a result like arguments, but whole: no cut, no rounding."""
    return _written(content, None)


def _written(value: object, levels: int | None) -> bytes:
    if _is_ordinary(value, _ORJSON_LEVELS if levels is None else levels):
        try:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        except TypeError:  # A big integer, a key that is no text, a lone surrogate.
            pass
    return _Writer(levels).write(value)


def _is_ordinary(value: object, levels: int) -> bool:
    """Tell whether orjson may be trusted with a value: exact JSON types, none too deep.

    orjson would also write an enum as its value, a UUID as text and NaN as null, each of them
    the same as another value. Keys are left to orjson, which refuses all but text. Types are
    compared by identity, for a set of types would ask each type for its hash.
    """
    level: list[Any] = [(value,)]
    for _ in range(levels):
        below: list[Any] = []
        for container in level:
            for item in container.values() if type(container) is dict else container:
                kind = type(item)
                if kind is str or kind is int or kind is bool or item is None:
                    continue
                if kind is dict or kind is list or kind is tuple:
                    below.append(item)
                elif kind is not float or not math.isfinite(item):
                    return False
        if not below:
            return True
        if len(below) > _WIDE_LEVEL and len(set(map(id, below))) < len(below):
            return False
        level = below
    return not any(level)


class _Writer:
    """Writes one value of any kind, nested as deep as it may be: the levels are kept on a list.

    The text is kept in pieces: joined at each level, it would be copied as often as it has levels.
    """

    def __init__(self, levels: int | None) -> None:
        self._levels = levels
        self._pieces: list[str] = []
        self._path: dict[int, int] = {}  # id of each container being written -> its place
        self._seen: dict[int, Any] = {}  # holds on to the containers, so that ids stay theirs
        self._repeats = 0

    def write(self, value: object) -> bytes:
        stack = [self._steps(value, 0, 0)]
        while stack:
            child = next(stack[-1], None)
            if child is None:
                stack.pop()
            else:
                stack.append(self._steps(*child))
        # Only lone surrogates cannot be encoded; they become `\udxxx`, as JSON writes them.
        return "".join(self._pieces).encode("utf-8", "backslashreplace")

    def _steps(self, value: Any, depth: int, described: int) -> _Steps:
        """Write this value, and yield each value within it where that is to be written."""
        written = self._whole(value, depth, described)
        if written is not None:
            self._pieces.append(written)
            return
        place, kind, items = id(value), type(value), _items(value)
        if place in self._seen:
            self._repeats += 1 + len(items or ())
        self._seen[place] = value
        self._path[place] = len(self._path)
        if items is None:
            tag, parts = _describe(value)
            self._pieces.append(tag)
            yield parts, depth, described + 1
        elif issubclass(kind, dict):
            yield from self._object(items, depth + 1, described)
        elif issubclass(kind, (list, tuple)):
            for number, item in enumerate(items):
                self._pieces.append("," if number else "[")
                yield item, depth + 1, described
            self._pieces.append("]" if items else "[]")
        else:
            texts: list[str] = []
            for item in items:
                texts += [(yield from self._text(item, depth + 1, described))]
            self._pieces.append(f"!set[{','.join(sorted(texts))}]")
        del self._path[place]

    def _whole(self, value: Any, depth: int, described: int) -> str | None:
        """Write a value of which no part is to be looked at."""
        if self._levels is not None and depth >= self._levels:
            return _CUT
        if id(value) in self._path:
            return f"!cycle:{len(self._path) - self._path[id(value)]}"
        cut = described > _MAX_DESCRIPTIONS or self._repeats > _MAX_REPEATS
        return _scalar(value, exact=self._levels is None) or (_CUT if cut else None)

    def _object(self, items: list[tuple[Any, Any]], depth: int, described: int) -> _Steps:
        # Two keys that are no text may be written alike, so that their items decide.
        entries: list[tuple[bool, str, str, Any]] = []
        for key, item in items:
            if issubclass(type(key), str):
                entries.append((False, str.__str__(key), "", item))
            else:
                name = yield from self._text(key, depth, described)
                text = yield from self._text(item, depth, described)
                entries.append((True, name, text, None))
        # Text in the order of its code points, which is that of its UTF-8 bytes.
        entries.sort(key=itemgetter(0, 1, 2))
        for number, (written, name, text, item) in enumerate(entries):
            self._pieces.append(f"{'{,'[number > 0]}{name if written else _quoted(name)}:{text}")
            if not written:
                yield item, depth, described
        self._pieces.append("}" if entries else "{}")

    def _text(self, value: Any, depth: int, described: int) -> Generator[_Step, None, str]:
        """Have a value written and take its text back: it has to be put in order first."""
        start = len(self._pieces)
        yield value, depth, described
        text = "".join(self._pieces[start:])
        del self._pieces[start:]
        return text


def _scalar(value: Any, *, exact: bool) -> str | None:
    """Write a value without parts; subclasses as what they are equal to."""
    kind = type(value)
    if value is None or kind is bool:
        return json.dumps(value)
    if issubclass(kind, str):
        return _quoted(str.__str__(value))
    if issubclass(kind, int):
        return _integer(int.__index__(value), exact=exact)
    return _float(float.__pos__(value)) if issubclass(kind, float) else None


def _integer(value: int, *, exact: bool) -> str:
    if -(2**63) <= value < 2**64:
        return int.__repr__(value)
    try:
        return f'!int"{value:x}"' if exact else _float(float(value))
    except OverflowError:
        return f'!int"{value:x}"'  # Hexadecimal: Python refuses to write long decimals.


def _float(value: float) -> str:
    # What is no number to orjson is one to json: `NaN`, `Infinity`, `-Infinity`.
    return orjson.dumps(value).decode() if math.isfinite(value) else json.dumps(value)


def _items(value: Any) -> list[Any] | None:
    """List what a built-in container holds, past any method of a subclass."""
    kind = type(value)
    for container in (list, tuple, set, frozenset):
        if issubclass(kind, container):
            return list(container.__iter__(value))
    return list(dict.items(value)) if issubclass(kind, dict) else None


def _describe(value: Any) -> tuple[str, Any]:
    """Say what a value is and what it holds, never where it lies in memory."""
    kind = type(value)
    for types, described in _DESCRIPTIONS:
        try:
            if issubclass(kind, types):
                return described(kind, value)
        except Exception:  # noqa: BLE001, S112 - its own methods fail: ask in another way
            continue
    return _tag(kind), ()


def _tag(kind: type) -> str:
    try:
        return f"!{kind.__module__}.{kind.__qualname__}"
    except Exception:  # noqa: BLE001 - a metaclass may do anything
        return "!object"


def _dataclass(kind: Any, value: Any) -> tuple[str, Any]:
    names = [name for name, field in kind.__dataclass_fields__.items() if field.compare]
    return _tag(kind), {name: getattr(value, name) for name in names if hasattr(value, name)}


def _model(kind: Any, value: Any) -> tuple[str, Any]:
    # Not which fields were set, nor private attributes: they may be new at each parsing.
    given = {name: vars(value)[name] for name in kind.__pydantic_fields__ if name in vars(value)}
    return _tag(kind), [given, value.__pydantic_extra__]


def _reduced(kind: Any, value: Any) -> tuple[str, Any]:
    # What pickle would store: a constructor, its arguments and the state, without addresses.
    reducer = copyreg.dispatch_table.get(kind)
    reduced = reducer(value) if reducer else kind.__reduce_ex__(value, 4)
    if isinstance(reduced, str):
        return _tag(kind), reduced
    function, arguments, *rest = reduced
    state, items, entries = (*rest, None, None, None)[:3]
    return _tag(kind), [function, arguments, state, list(items or ()), dict(entries or ())]


def _moment(_: type, value: Any) -> tuple[str, Any]:
    if value.tzinfo is None:
        raise TypeError("no moment without a time zone")
    return "!datetime", value.astimezone(UTC).isoformat()  # Equal in whatever time zone.


_NAMED = (type, FunctionType, BuiltinFunctionType)

_DESCRIPTIONS: tuple[tuple[Any, Callable[[type, Any], tuple[str, Any]]], ...] = (
    (bytes, lambda _, value: ("!bytes", bytes.hex(value))),
    (bytearray, lambda _, value: ("!bytes", bytearray.hex(value))),
    (memoryview, lambda _, value: ("!bytes", memoryview.hex(value))),
    (enum.Enum, lambda kind, value: (_tag(kind), value._value_)),
    (datetime, _moment),
    # 1.0 and 1.00 are equal.
    (decimal.Decimal, lambda _, value: ("!decimal", str(_DECIMALS.normalize(value)))),
    (object, _dataclass),
    (object, _model),
    # Equal to a dict or a set, so written as one.
    (Mapping, lambda _, value: ("", dict(value.items()))),
    (AbstractSet, lambda _, value: ("", set(value))),
    (_NAMED, lambda _, value: ("!name", f"{value.__module__}.{value.__qualname__}")),
    (ModuleType, lambda _, value: ("!name", value.__name__)),
    (object, _reduced),
)
"""Type -> what a value of it is called and what it holds; the first that does not fail counts."""
