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


def is_observation_batch(calls: Iterable[ToolCall], patterns: Sequence[str]) -> bool:
    """Tell whether every call of the batch only looks, judged by the tools' names.

    Args:
        calls: The tool calls of one AI message.
        patterns: Substrings of names, in any case. An empty list means that no tool only looks.

    Returns:
        Whether it is so; true for a batch without calls, unless `patterns` is empty.
    """
    return bool(patterns) and all(is_observation_name(call_name(call), patterns) for call in calls)


def is_costly_batch(calls: Iterable[ToolCall]) -> bool:
    """Tell whether any call of the batch costs something each time it runs."""
    return any(is_costly_name(call_name(call)) for call in calls)


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
