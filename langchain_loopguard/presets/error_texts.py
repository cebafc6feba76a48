"""Does an error say that there is no such tool, or that its arguments are wrong?

Frameworks say both in words of their own. LangGraph returns for a missing tool
`Error: x is not a valid tool, try one of [...]`; arguments that do not fit give pydantic's
`validation error for x` or a JSON complaint. Only failed calls are read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_loopguard.core.results import Result

_NO_SUCH_TOOL = re.compile(
    rb"(unknown|unavailable|invalid|no such|unrecognized) (tool|function)\b"
    rb"|not a valid (tool|function)"
    rb"|(tool|function)\b[^\n]{0,80}? (not found|is not available|does not exist)",
    re.IGNORECASE,
)
_BAD_ARGUMENTS = re.compile(
    rb"invalid (tool )?(arguments?|parameters?|input)\b"
    rb"|validation errors?\b"
    rb"|schema ?error"
    rb"|missing required (argument|parameter|field)",
    re.IGNORECASE,
)
_READ = 2_000
"""Bytes of an error that are read: such a complaint opens it."""


def says_no_such_tool(result: Result) -> bool:
    """Tell whether the call failed because its tool does not exist."""
    return result.failed and _NO_SUCH_TOOL.search(result.text[:_READ]) is not None


def says_bad_arguments(result: Result) -> bool:
    """Tell whether the call failed because its arguments do not fit the tool."""
    return result.failed and _BAD_ARGUMENTS.search(result.text[:_READ]) is not None
