"""Reads the parts of a tool call, and says which calls are the same call.

Calls come from models and from other people's code, so each part may be missing, of a wrong type,
or sit on an object instead of in a mapping. Reading never raises: a guard that fails on an odd
call is a guard that the call has switched off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from xxhash import xxh3_64_intdigest

from langchain_loopguard.core.canonical import canonical_arguments

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from langchain_loopguard.core.kinds import ToolKind

ToolCall: TypeAlias = Mapping[str, Any]
"""LangChain's `ToolCall`: a mapping with `name`, `args` and `id`."""

# The type is asked, not the value: a value may lie about its class, or raise when asked.
_VALUES = (str, bytes, int, float, list, tuple, set, frozenset, type(None))

_ESCAPES = re.compile(rb"\\[nrtbf]")
_SPACES_AND_QUOTES = b" \"'\\`"
_INVISIBLE = re.compile("[\u00a0\u200b-\u200f\u2018-\u201f\u2028\u2029\u2060\ufeff]")
"""Zero-width characters, spaces that do not break, and typographic quotes."""


def call_name(call: ToolCall) -> str:
    """Read the name of the tool, `""` when there is none or it is not text.

    A lone surrogate, which no UTF-8 text can hold, is written as its escape, so that a name can
    always be stored and sent.
    """
    name = _part(call, "name")
    if not issubclass(type(name), str):
        return ""
    if str.isascii(name):
        return str.__str__(name)
    return str.encode(name, "utf-8", "backslashreplace").decode("utf-8")


def call_arguments(call: ToolCall) -> Any:
    """Read the arguments as they came, `None` when they are missing.

    A call that is a bare value is its own argument: with `None` all such calls would be one.
    """
    return call if issubclass(type(call), _VALUES) else _part(call, "args")


def call_id(call: ToolCall) -> str | None:
    """Read the id, `None` when there is none, it is empty or it is not text."""
    found = _part(call, "id")
    return str.__str__(found) or None if issubclass(type(found), str) else None


def _part(call: Any, key: str) -> Any:
    """Read a key of any mapping or an attribute of any object, `None` if absent."""
    if type(call) is dict:
        return call.get(key)
    try:
        return call.get(key) if isinstance(call, Mapping) else getattr(call, key, None)
    except Exception:  # noqa: BLE001 - a call with broken methods is still a call
        return None


def identity_of(
    name: str, arguments: Any, canonical: bytes, kind: ToolKind, ignored: AbstractSet[str]
) -> int:
    """Compute the 64 bits by which the rules know a call again.

    White space, zero-width characters, quote style and the order of keys make no difference. The
    arguments that a model writes for people are left out while another one remains; of a call
    that hands over to another agent they are always left out.

    Args:
        name: The tool's name.
        arguments: The arguments as they came.
        canonical: The same in canonical form.
        kind: What kind of tool it is; it may declare which arguments identify a call.
        ignored: Names of the arguments that are left out.

    Returns:
        Equal numbers for equal calls, in every process. Two calls that differ only in white
        space or quotes *inside* an argument are one call too: an edit that changes nothing but
        indentation looks like its repeat, as long as its result is the same as well.
    """
    if type(arguments) is dict:
        rest: dict[Any, Any] = arguments
        if kind.identity is not None:
            rest = {key: arguments[key] for key in kind.identity if key in arguments} or arguments
        elif not ignored.isdisjoint(arguments):
            rest = {key: value for key, value in arguments.items() if key not in ignored}
            if not rest and not kind.handoff:
                rest = arguments
        if rest is not arguments:
            canonical = canonical_arguments(rest)
    if not canonical.isascii():
        canonical = _INVISIBLE.sub("", canonical.decode("utf-8", "replace")).encode()
    canonical = _ESCAPES.sub(b"", canonical).translate(None, _SPACES_AND_QUOTES)
    return xxh3_64_intdigest(canonical, xxh3_64_intdigest(name.encode()))
