"""Did a call fail, where nothing but the text of its answer says so?

The opening of the text decides: a page that merely contains the word is no failure. There are two
readings, since a wrong one costs more in one place than in the other:

- `says_it_failed` for an answer that has a status which means little: LangChain gives `success` to
  every tool that returns, and many tools return their errors as text. Only what hardly anything
  but an error opens with counts.
- `looks_failed` for a transcript in which answers have no status at all, as in most formats of
  model providers. A wrong "failed" may have replay ask where the guard on the live agent does
  not.

Failures are counted by tool, bring nothing new, and are compared without their numbers.
"""

from __future__ import annotations

import re
from typing import Any

_READ = 400
"""Characters that are read; a failure opens with its name."""

_WORD = re.compile(r"\W{0,14}([\w.]{1,60})")
_WORDS = frozenset(
    "access an can cannot could couldn failed failure fatal function http invalid no ok "
    "permission success tool traceback unable unknown".split()
)
"""First words of `_OPENS`, besides those that end as the names of exceptions do. Nearly all answers
open with none of them, which is told in a quarter of the time."""

_OPENS = re.compile(
    r"""[^\w\s]{0,6}\s{0,8}
    (?: (?:[a-z_][\w.]{0,60})? (?:error|exception|denied) ["'`\])*]{0,3}
          (?: \s?[:!>\]] | \((?!s\)) )
      | http (?:/[\d.]{1,4})? \s [45]\d\d \b
      | (?:http \s)? error \s [a-z]{0,8}\d[\w.]{0,10} \s? [:-]
      | (?:fatal|failure) \s? :
      | (?:an \s)? error \s (?:occurred|executing|invoking|calling|running|reading|writing
                              |opening|parsing|loading|fetching|while|during|from|at|code) \b
      | traceback \s \(most \s recent
      | (?:(?:failed|unable) \s to | could \s not | couldn't | cannot | can't) \b
      | (?:permission|access) \s denied \b | no \s such \s file \b
      | unknown \s (?:tool|command|action|function) \b
      | (?:tool|function) \s ["'`]?[\w.-]{1,64}["'`]? \s
          (?:does \s not \s exist | (?:was \s)? not \s found) \b
      | invalid \s (?:argument|input|parameter|syntax) s? \b
      | (?:success|ok)["'] \s? : \s? false \b
      | [\w./-]{1,40}: \s [^\n]{0,200}? (?:command \s not \s found | no \s such \s file | denied) \b
    )
    (?! ["'\s:]{0,4} (?: (?:0|none|null|false) \s{0,4} (?:[,;.}\])]|\Z) | \[\] | \{\} | ["'] , ) )
    """,
    re.IGNORECASE | re.VERBOSE,
)
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


def says_it_failed(content: Any) -> bool:
    """Tell whether an answer opens as hardly anything but an error does."""
    text = _beginning(content)
    found = _WORD.match(text)
    if found is None:
        return False
    word = found[1].lower()
    return (
        word in _WORDS
        or word.endswith(("error", "exception", "denied"))
        or text.startswith(": ", found.end())  # Of a shell: `ls: no such file`.
    ) and _OPENS.match(text) is not None


def looks_failed(content: Any) -> bool:
    """Guess from an answer's text whether the call failed; content without text did not."""
    text = _beginning(content)
    return _FAILED.match(text) is not None or _INSIDE.search(text) is not None


def _beginning(content: Any) -> str:
    """Give the beginning of a content: of a text itself, or of the first text block of a list."""
    if isinstance(content, str):
        return content[:_READ].lstrip()
    if isinstance(content, list):
        for block in content:
            text = block.get("text") if isinstance(block, dict) else block
            if isinstance(text, str):
                return text[:_READ].lstrip()
    return ""
