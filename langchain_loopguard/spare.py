"""Which part of the counts is worth saving?

Counts are saved with every step of a graph, so what says nothing is left out: what is as in a
reader that has read nothing yet. This file must not know what the counts mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["filled", "spared"]

_VERSION = "v"
"""Kept always, for whoever reads the counts later."""


def spared(counts: Mapping[str, Any], empty: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is as in `empty`."""
    kept: dict[str, Any] = {}
    for key, value in counts.items():
        usual = empty.get(key, _MISSING)
        if type(value) is dict and type(usual) is dict:
            part = spared(value, usual)
            if part:
                kept[key] = part
        elif value != usual or key == _VERSION:
            kept[key] = value
    return kept


def filled(counts: Mapping[str, Any], empty: Mapping[str, Any]) -> dict[str, Any]:
    """Undo `spared`; what was never spared is left as it is."""
    whole = dict(empty)
    for key, value in counts.items():
        usual = empty.get(key)
        if isinstance(value, Mapping) and isinstance(usual, dict):
            whole[key] = filled(value, usual)
        else:
            whole[key] = value
    return whole


_MISSING = object()
