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
from collections.abc import Generator, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, TypeAlias

import orjson

ARGUMENT_LEVELS = 16
"""Values at this depth or deeper are written as `"..."`, the top value being at depth 0. The
form is shared with other implementations; no measurement is behind the number."""

_CUT = '"..."'

_ORJSON_LEVELS = 254
"""orjson refuses anything deeper; the writer below takes over."""

_WIDE_LEVEL = 65_536
"""So many containers side by side are looked at more closely: ten lists, each ten times in the
next, unfold into 10^10 values, and orjson would write them all."""

_MAX_REPEATS = 1_000_000
"""So many values are written again because their container occurs again; what is left is cut.
A tree, which is all that JSON can hold, repeats nothing."""

_MAX_DESCRIPTIONS = 16
"""So often in a row an object may be described by another object. An object that describes
itself by a new one of its kind would go on for ever."""

_MIN_INTEGER = -(2**63)
_MAX_INTEGER = 2**64 - 1

_DECIMALS = decimal.Context(
    prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[]
)
_quoted = json.JSONEncoder(ensure_ascii=False).encode

_SORTED = orjson.OPT_SORT_KEYS

_Text: TypeAlias = "str | list[Any]"
"""A text, or the texts that it consists of: joined at each level, a value of ten thousand levels
would be copied ten thousand times."""

_Steps: TypeAlias = Generator[tuple[Any, int, int], _Text, _Text]


def canonical_arguments(arguments: object) -> bytes:
    """Write the arguments of a call: compact JSON, keys sorted, cut at depth 16.

    Integers beyond 64 bits become floats. What JSON cannot say is written in a form of its own.
    """
    ordinary = False
    if type(arguments) is dict:
        # What `_is_ordinary` tells of nearly all arguments, at a third of the cost.
        for item in arguments.values():
            kind = type(item)
            if kind is not str and kind is not int and kind is not bool and item is not None:
                break
        else:
            ordinary = True
    if ordinary or _is_ordinary(arguments, ARGUMENT_LEVELS):
        try:
            return orjson.dumps(arguments, None, _SORTED)
        except TypeError:  # A big integer, a key that is no text, a lone surrogate.
            pass
    return _Writer(ARGUMENT_LEVELS).write(arguments)


def canonical_content(content: object) -> bytes:
    """Write the content of an answer like arguments, but whole: no cut, no rounding."""
    if _is_ordinary(content, _ORJSON_LEVELS):
        try:
            return orjson.dumps(content, option=_SORTED)
        except TypeError:  # As above.
            pass
    return _Writer(None).write(content)


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
    """Writes one value of any kind.

    Nesting is kept on a list instead of the call stack, for a value may be nested deeper than
    Python may call.
    """

    def __init__(self, levels: int | None) -> None:
        self._levels = levels
        self._path: dict[int, int] = {}  # id of each container being written -> its place
        self._seen: dict[int, Any] = {}  # holds on to the containers, so that ids stay theirs
        self._repeats = 0

    def write(self, value: object) -> bytes:
        stack = [self._steps(value, 0, 0)]
        text: _Text = ""
        while stack:
            try:
                # A generator that starts takes nothing but None.
                child = stack[-1].send(text) if text else next(stack[-1])
            except StopIteration as done:
                stack.pop()
                text = done.value
            else:
                stack.append(self._steps(*child))
                text = ""
        # Only lone surrogates cannot be encoded; they become `\udxxx`, as JSON writes them.
        return _joined(text).encode("utf-8", "backslashreplace")

    def _steps(self, value: Any, depth: int, described: int) -> _Steps:
        """Yield each value within this one, be sent its text, and return the whole text."""
        if self._levels is not None and depth >= self._levels:
            return _CUT
        scalar = _scalar(value, exact=self._levels is None)
        if scalar is not None:
            return scalar
        place = id(value)
        if place in self._path:
            return f"!cycle:{len(self._path) - self._path[place]}"
        if described > _MAX_DESCRIPTIONS or self._repeats > _MAX_REPEATS:
            return _CUT
        items = _items(value)
        if place in self._seen:
            self._repeats += 1 + len(items or ())
        self._seen[place] = value
        self._path[place] = len(self._path)
        if items is None:
            tag, parts = _describe(value)
            text: _Text = [tag, (yield parts, depth, described + 1)]
        elif issubclass(type(value), dict):
            text = yield from self._object(items, depth + 1, described)
        else:
            texts: list[_Text] = []
            for item in items:
                texts.append((yield item, depth + 1, described))  # noqa: PERF401
            if issubclass(type(value), (list, tuple)):
                text = ["[", *_with_commas(texts), "]"]
            else:
                text = f"!set[{','.join(sorted(map(_joined, texts)))}]"
        del self._path[place]
        return text

    def _object(self, items: Iterable[tuple[Any, Any]], depth: int, described: int) -> _Steps:
        entries: list[tuple[tuple[bool, str], _Text]] = []
        other_keys = False
        for key, item in items:
            if issubclass(type(key), str):
                order = (False, str.__str__(key))
                name = _quoted(order[1])
            else:
                name = _joined((yield key, depth, described))
                order = (True, name)
                other_keys = True
            entries.append((order, [name, ":", (yield item, depth, described)]))
        # Text in the order of its code points, which is that of its UTF-8 bytes.
        if other_keys:  # Two of them may be written alike, so that their items decide.
            entries = sorted((order, _joined(entry)) for order, entry in entries)
        else:
            entries.sort(key=_order)
        return ["{", *_with_commas([entry for _, entry in entries]), "}"]


def _order(entry: tuple[tuple[bool, str], _Text]) -> tuple[bool, str]:
    return entry[0]


def _with_commas(texts: list[_Text]) -> list[_Text]:
    if len(texts) < 2:  # noqa: PLR2004 - nothing to part
        return texts
    parted: list[_Text] = [","] * (2 * len(texts) - 1)
    parted[::2] = texts
    return parted


def _joined(text: _Text) -> str:
    if type(text) is str:
        return text
    parts: list[str] = []
    waiting = [iter(text)]
    while waiting:
        for part in waiting[-1]:
            if type(part) is str:
                parts.append(part)
            else:
                waiting.append(iter(part))
                break
        else:
            waiting.pop()
    return "".join(parts)


def _scalar(value: Any, *, exact: bool) -> str | None:
    """Write a value without parts; subclasses as what they are equal to."""
    kind = type(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if issubclass(kind, str):
        return _quoted(str.__str__(value))
    if issubclass(kind, int):
        return _integer(int.__index__(value), exact=exact)
    if issubclass(kind, float):
        return _float(float.__pos__(value))
    return None


def _integer(value: int, *, exact: bool) -> str:
    if _MIN_INTEGER <= value <= _MAX_INTEGER:
        return int.__repr__(value)
    if not exact:
        try:
            return _float(float(value))
        except OverflowError:
            pass
    return f'!int"{value:x}"'  # Hexadecimal: Python refuses to write long decimals.


def _float(value: float) -> str:
    if math.isfinite(value):
        return orjson.dumps(value).decode()
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _items(value: Any) -> list[Any] | None:
    """List what a built-in container holds, past any method of a subclass."""
    kind = type(value)
    if issubclass(kind, dict):
        return list(dict.items(value))
    for container in (list, tuple, set, frozenset):
        if issubclass(kind, container):
            return list(container.__iter__(value))
    return None


def _describe(value: Any) -> tuple[str, Any]:
    """Say what a value is and what it holds, never where it lies in memory."""
    kind = type(value)
    for describe in _DESCRIPTIONS:
        try:
            found = describe(kind, value)
        except Exception:  # noqa: BLE001, S112 - its own methods fail: ask in another way
            continue
        if found is not None:
            return found
    return _tag(kind), ()


def _tag(kind: type) -> str:
    try:
        return f"!{kind.__module__}.{kind.__qualname__}"
    except Exception:  # noqa: BLE001 - a metaclass may do anything
        return "!object"


def _bytes(kind: type, value: Any) -> tuple[str, Any] | None:
    for container in (bytes, bytearray, memoryview):
        if issubclass(kind, container):
            return "!bytes", container.hex(value)
    return None


def _enum(kind: type, value: Any) -> tuple[str, Any] | None:
    return (_tag(kind), value._value_) if issubclass(kind, enum.Enum) else None


def _moment(kind: type, value: Any) -> tuple[str, Any] | None:
    # The same moment in two time zones is equal.
    if issubclass(kind, datetime) and value.tzinfo is not None:
        return "!datetime", value.astimezone(UTC).isoformat()
    return None


def _decimal(kind: type, value: Any) -> tuple[str, Any] | None:
    # 1.0 and 1.00 are equal.
    if issubclass(kind, decimal.Decimal):
        return "!decimal", decimal.Decimal.__str__(_DECIMALS.normalize(value))
    return None


def _dataclass(kind: type, value: Any) -> tuple[str, Any] | None:
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is None:
        return None
    names = [name for name, field in fields.items() if field.compare]
    return _tag(kind), {name: getattr(value, name) for name in names if hasattr(value, name)}


def _model(kind: type, value: Any) -> tuple[str, Any] | None:
    # Which fields were set, and private attributes, are left out: they may be new each time
    # the same arguments are parsed.
    fields = getattr(kind, "__pydantic_fields__", None)
    if fields is None:
        return None
    given = {name: vars(value)[name] for name in fields if name in vars(value)}
    return _tag(kind), [given, value.__pydantic_extra__]


def _collection(kind: type, value: Any) -> tuple[str, Any] | None:
    # Equal to a dict or a set, so written as one.
    if issubclass(kind, Mapping):
        return "", dict(value.items())
    return ("", set(value)) if issubclass(kind, AbstractSet) else None


def _named(kind: type, value: Any) -> tuple[str, Any] | None:
    if issubclass(kind, (type, FunctionType, BuiltinFunctionType)):
        return "!name", f"{value.__module__}.{value.__qualname__}"
    return ("!name", value.__name__) if issubclass(kind, ModuleType) else None


def _reduced(kind: Any, value: Any) -> tuple[str, Any] | None:
    # What pickle would store: a constructor, its arguments and the state, without addresses.
    reducer = copyreg.dispatch_table.get(kind)
    reduced = reducer(value) if reducer else kind.__reduce_ex__(value, 4)
    if isinstance(reduced, str):
        return _tag(kind), reduced
    function, arguments, *rest = reduced
    state, items, entries = (*rest, None, None, None)[:3]
    return _tag(kind), [function, arguments, state, list(items or ()), dict(entries or ())]


_DESCRIPTIONS = (
    _bytes,
    _enum,
    _moment,
    _decimal,
    _dataclass,
    _model,
    _collection,
    _named,
    _reduced,
)
