"""Did a call fail, where its source does not say?

Most formats of model providers carry an answer as bare text. The opening of the text decides: a
page that merely contains the word is no failure. A wrong "failed" may have replay ask where the
guard on the live agent does not: failures are counted by tool, and bring nothing new.
"""

from __future__ import annotations

import re
from typing import Any

_READ = 400
"""Characters that are read; a failure opens with its name."""

_FAILED = re.compile(
    r"""[\[<({"'`*]{0,4}\s{0,8}
    (?: error | errors? \s occurred | failed | failure | fatal | exception | traceback
      | unhandled | invalid | unknown \s (?:tool|command|action) | cannot | could \s not
      | permission \s denied | access \s denied
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_INSIDE = re.compile(
    r"Traceback \(most recent call last\)|: command not found|No such file or directory"
    r"|<returncode>(?!0<)|\b[A-Z][A-Za-z]{2,40}(?:Error|Exception): "
)


def looks_failed(content: Any) -> bool:
    """Guess from an answer's text whether the call failed; content without text did not."""
    text = text_of(content)[:_READ].lstrip()
    return _FAILED.match(text) is not None or _INSIDE.search(text) is not None


def text_of(content: Any) -> str:
    """Give the text of a content: a text itself, or the first text block of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        for block in content:
            text = block.get("text") if isinstance(block, dict) else block
            if isinstance(text, str):
                return text
    return ""
