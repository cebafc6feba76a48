"""Does this tool only look, judged by its name, and does looking cost something?

Names are a guess, for tools that do not say themselves what they are. An unknown name counts as
a tool that changes something, which is the careful side.

This file must not know how often a call may repeat.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_loopguard.core.calls import call_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_loopguard.core.calls import ToolCall

DEFAULT_OBSERVATION_TOOLS: tuple[str, ...] = (
    "snapshot",
    "screenshot",
    "read_page",
    "navigate",
    "click",
    "read_file",
    "read_text_file",
    "read_media_file",
    "read_multiple_files",
    "list_dir",
    "list_files",
    "list_allowed_directories",
    "directory_tree",
    "file_search",
    "grep_search",
    "search_files",
    "semantic_search",
    "codebase_search",
    "test_search",
    "get_file_info",
    "get_errors",
    "get_changed_files",
    "get_terminal_output",
    "list_code_usages",
    "list_code_definition_names",
    "fetch_webpage",
)
"""Parts of names of tools that only look.

Substrings, since hosts put prefixes and suffixes around a name (`2:read_file`,
`playwright_mcp_browser_snapshot`). They are long on purpose: a bare `read` is in `thread_create`,
a bare `list` in `listen_port`, a bare `view` in `preview_changes`. No measurement is behind the
choice.
"""

COSTLY_TOOLS: tuple[str, ...] = ("navigate", "click", "fetch_webpage")
"""Tools that look, but load a page or press a button each time they do.

Whole words of a name, not substrings: `click` is in `get_clickable_elements` and in
`clickhouse_query`. No measurement is behind the choice.
"""

_SEPARATORS = re.compile(r"[_\-.]+")

# An agent has some dozens of tools; names that a model makes up must not fill memory.
_REMEMBERED_NAMES = 1024


def is_observation_batch(calls: Iterable[ToolCall], patterns: Sequence[str]) -> bool:
    """Tell whether every call of the batch only looks, judged by the tools' names.

    Args:
        calls: The tool calls of one AI message.
        patterns: Substrings of names, in any case. An empty list means that no tool only looks.

    Returns:
        Whether it is so; true for a batch without calls, unless `patterns` is empty.
    """
    if not patterns:
        return False
    return all(is_observation_name(call_name(call), patterns) for call in calls)


def is_costly_batch(calls: Iterable[ToolCall]) -> bool:
    """Tell whether any call of the batch costs something each time it runs."""
    return any(is_costly_name(call_name(call)) for call in calls)


class ToolKinds:
    """Tells by their names what kind of tools a batch uses, and remembers each name.

    Attributes:
        patterns: Parts of the names of tools that only look.
    """

    __slots__ = ("_known", "patterns")

    def __init__(self, patterns: Iterable[str]) -> None:
        """Start with no name known."""
        self.patterns = tuple(patterns)
        self._known: dict[str, tuple[bool, bool]] = {}

    def of(self, names: Iterable[str]) -> tuple[bool, bool]:
        """Tell whether all of the tools only look, and whether any of them is costly."""
        read_only, costly = bool(self.patterns), False
        for name in names:
            kind = self._known.get(name) or self._learn(name)
            read_only = read_only and kind[0]
            costly = costly or kind[1]
        return read_only, costly

    def _learn(self, name: str) -> tuple[bool, bool]:
        if len(self._known) >= _REMEMBERED_NAMES:
            self._known.clear()
        kind = self._known[name] = (is_observation_name(name, self.patterns), is_costly_name(name))
        return kind


def is_observation_name(name: str, patterns: Iterable[str]) -> bool:
    """Tell whether the name contains one of the patterns, in any case."""
    lowered = name.lower()
    return any(pattern.lower() in lowered for pattern in patterns)


def is_costly_name(name: str) -> bool:
    """Tell whether the words of the name hold those of a costly tool in one piece."""
    words = _words(name)
    return any(_holds(words, _words(costly)) for costly in COSTLY_TOOLS)


def _words(name: str) -> list[str]:
    return [word for word in _SEPARATORS.split(name.lower()) if word]


def _holds(words: list[str], run: list[str]) -> bool:
    starts = range(len(words) - len(run) + 1)
    return any(words[start : start + len(run)] == run for start in starts)
