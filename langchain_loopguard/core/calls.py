"""What are the name, the arguments and the id of a tool call?

Calls come from models and from other people's code, so each of the three may be missing, of a
wrong type, or sit on an object instead of in a mapping. Reading them never raises: a guard that
fails on an odd call is a guard that the call has switched off.

This file must not know what the parts are used for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

ToolCall: TypeAlias = Mapping[str, Any]
"""LangChain's `ToolCall`: a mapping with `name`, `args` and `id`."""

# The type is asked, not the value: a value may lie about its class, or raise when asked.
_VALUES = (str, bytes, int, float, list, tuple, set, frozenset, type(None))


def call_name(call: ToolCall) -> str:
    """Read the name of the tool, `""` when there is none or it is not text.

    A lone surrogate, which no UTF-8 text can hold, is written as its escape, so that a name can
    always be stored and sent.
    """
    name: Any = call.get("name") if type(call) is dict else _read(call, "name")
    if type(name) is str and name.isascii():
        return name
    if not issubclass(type(name), str):
        return ""
    return str.encode(name, "utf-8", "backslashreplace").decode("utf-8")


def call_arguments(call: ToolCall) -> Any:
    """Read the arguments as they came, `None` when they are missing.

    A call that is a bare value is its own argument: with `None` all such calls would be one.
    """
    if type(call) is dict:
        return call.get("args")
    if issubclass(type(call), _VALUES):
        return call
    return _read(call, "args")


def call_id(call: ToolCall) -> str | None:
    """Read the id, `None` when there is none, it is empty or it is not text."""
    found: Any = call.get("id") if type(call) is dict else _read(call, "id")
    if not issubclass(type(found), str):
        return None
    return str.__str__(found) or None


def read_call(call: ToolCall) -> tuple[str, object, str | None]:
    """Read name, arguments and id of a call at once."""
    if type(call) is dict:
        try:  # By far the most frequent case, told apart for speed alone.
            name, arguments, found = call["name"], call["args"], call["id"]
        except KeyError:
            pass
        else:
            if type(name) is str and name.isascii() and type(found) is str and found:
                return name, arguments, found
    return call_name(call), call_arguments(call), call_id(call)


def _read(call: Any, key: str) -> Any:
    """Read a key of any mapping or an attribute of any object, `None` if absent."""
    try:
        return call.get(key) if isinstance(call, Mapping) else getattr(call, key, None)
    except Exception:  # noqa: BLE001 - a call with broken methods is still a call
        return None
