"""What do an agent's tools declare of themselves, and how is it saved beside the counts?

Another process that takes a run up must reach the same verdict before it has seen the tools, so
where they are seen only with each model call, what they declare is saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_loopguard.core.tools import ToolTraits, declared_traits, traits_of_name

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["declarations", "kept_beside", "saved_declarations", "with_declarations"]

_KEY = "tools"

_MAX_SAVED = 256
"""Tools whose declarations are saved. An agent has some dozens; tools that are made up on the way
must not fill the state."""

_LONGEST_NAME = 256
"""Characters of a saved name."""


def declarations(tools: Iterable[Any]) -> dict[str, ToolTraits]:
    """Read what tools declare in their `metadata`, where it says more than their names do."""
    found = {}
    for tool in tools:
        name = getattr(tool, "name", None)
        if isinstance(name, str):
            traits = declared_traits(name, getattr(tool, "metadata", None))
            if traits is not None and traits != traits_of_name(name):
                found[name] = traits
    return found


def with_declarations(
    counts: Mapping[str, Any], found: Mapping[str, ToolTraits]
) -> dict[str, Any] | None:
    """Add declarations to saved counts.

    Returns:
        `None` when they are there already, or would be more than the state has room for.
    """
    saved = _saved(counts)
    packed = {
        name: " ".join(trait for trait in ToolTraits._fields if getattr(traits, trait))
        for name, traits in found.items()
    }
    merged = {**saved, **packed}
    if merged == saved or len(merged) > _MAX_SAVED:
        return None
    return {**counts, _KEY: merged}


def saved_declarations(counts: Any) -> dict[str, ToolTraits]:
    """Read declarations out of saved counts."""
    return {name: _unpacked(words.split()) for name, words in _saved(counts).items()}


def kept_beside(counts: Any) -> dict[str, Any]:
    """Give what saved counts hold besides the counts, to be saved again with new ones."""
    saved = _saved(counts)
    return {_KEY: saved} if saved else {}


def _saved(counts: Any) -> dict[str, str]:
    saved = counts.get(_KEY) if isinstance(counts, Mapping) else None
    if type(saved) is not dict or len(saved) > _MAX_SAVED:
        return {}
    return {name: words for name, words in saved.items() if _is_saved(name, words)}


def _is_saved(name: Any, words: Any) -> bool:
    """Tell whether these are a name and traits as `with_declarations` writes them."""
    if type(name) is not str or len(name) > _LONGEST_NAME or type(words) is not str:
        return False
    return set(words.split()) <= set(ToolTraits._fields)


def _unpacked(words: list[str]) -> ToolTraits:
    return ToolTraits(**{trait: trait in words for trait in ToolTraits._fields})
