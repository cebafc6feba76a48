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
from typing import TYPE_CHECKING, Any

from langchain_loopguard.core.batch import Batch
from langchain_loopguard.core.tools import waits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard.core.detector import BatchRecord

_READ = 400
"""Characters that are read; a failure opens with its name."""

_BLOCKS = 16
"""Content blocks among which the first text is looked for."""

_WORD = re.compile(r"\W{0,14}([\w.]{1,60})")
_WORDS = frozenset(
    "access an can cannot could couldn error exception failed fatal function http invalid iserror "
    "no ok permission status success tool traceback unable unknown".split()
)
_NAMES = ("error", "exception", "denied", "timeout", "notfound", "refused")
"""First words of `_OPENS`, and how they end where they are the name of an exception. Nearly all
answers open with none of them, which is told in a quarter of the time."""

_OPENS = re.compile(
    # A label and a measure, `Failed to parse: 0`, is none.
    r"""(?! [^\n:]{1,60}:\s?
            (?: [-+]?\d[\d.,]*\s?%? [ \t]{0,4} (?:[,;\n]|\Z)
              | (?i:none|null|nil|false) [ \t]{0,4} (?:[;\n]|\Z) ) )
    [^\w\s.,:;\#@$%&+=~^|/\\>?!-]{0,6}\s{0,8}
    (?: (?i: # A word for it, and then in words what went wrong: `error: 0.13` is a measure.
            (?:(?:fatal|http)\s)? (?:error|exception|fatal)
            (?: ["'`\])*]{0,3} \s? [:!\]] | \s [a-z]{0,8}\d[\w.]{0,10} \s? [:-] )
            [ \t"'*]{0,4} (?= [^\W\d_] | [45]\d\d\s[a-z] )
            (?! (?:none|null|nil|n/a|false|true|undefined|ok|success|empty)\b
              | no (?: \s (?:error|warning|issue|problem)s?\b | \s{0,2}(?:[,;.}\]"'\n]|\Z) ) )
          | <? (?:tool_ (?:use_)?)? error> [^<\n]
          | error["'] \s? : \s? \{ \s? ["'](?:message|code|type)["'] \s? : \s? (?:["'][^"']|[1-9])
          | ["']?(?:status|type)["'] \s? : \s? ["'](?:error|failed|failure)["']
          | iserror["'] \s? : \s? true\b
          | (?:success|ok)["'] \s? : \s? false \s? , \s? ["'](?:error|message|reason|detail)
          | (?:an? \s)? (?:[a-z]{2,20}\s)? error \s occurred \b
          | error \s (?!(?:handl|report|logg|track|check|monitor|trac|messag)ing\b)
                     (?: [a-z]{2,18}ing\b (?!\s?:\s?(?:0|none)\b) | (?:from|at) \s )
          | traceback \s \(most \s recent
          | (?:(?:failed|unable) \s to | could \s not | couldn't | cannot | can't) \s
            (?! (?:find|detect|identify|see|locate) \s
                (?:any|no|issue|problem|error|duplicate|conflict|difference)
              | (?:be|wait|have|make|agree|attend)\b )
          | (?:permission|access) \s denied (?: \s?[:.!(\n-] | \Z | \s(?:to|when|while)\b )
          | no \s such \s file (?: \s or \s directory | \s?: | \s?\Z | \s["'`/] )
          | (?:tool|function) \s ["'`]?[\w.-]{1,64}["'`]? \s
            (?:does \s not \s exist | (?:was \s)? not \s found) \b
          | unknown \s (?:tool|command|action|function) \s? (?:[:"'`.]|\Z)
          | invalid \s (?:argument|input|parameter|syntax) s? \s? (?:[:"'`.(,]|\Z|(?:for|to|in)\s)
          | http (?:/[\d.]{1,4})? \s [45](?!04)\d\d
            (?: \s?(?:[:\n-]|\Z)
              | \s(?:forbidden|unauthorized|bad|internal|service|too \s many|gateway|conflict)\b )
          | [\w./-]{1,40}: \s (?:[^\n]{0,200}?:\s)??
            (?: command \s not \s found | permission \s denied
              | no \s such \s file \s or \s directory )
            (?: \s?: | [^\S\n]{0,3}(?:\n|\Z) )
        )
      # The name of an exception.
      | (?:[a-z_]\w{0,40}\.){0,6}
        [A-Z][A-Za-z0-9]{1,60} (?:Error|Exception|Denied|Timeout|NotFound|Refused)
        (?: :\s?[^:\s] | \((?=["')\d(]) )
    )
    """,
    re.VERBOSE,
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


def failed_by_text(record: BatchRecord, results: Sequence[Any]) -> Sequence[Any]:
    """Give the answers of a batch the status `error` that open like one.

    Not those of a poller, or of a shell command that waits by itself: what is waited for may be
    missing until it is there.

    Args:
        record: The batch.
        results: Its answers, as `LoopGuard.record_results` takes them; only mappings are read.
    """
    failed = [type(one) is dict and says_it_failed(one.get("content")) for one in results]
    if not any(failed):
        return results
    waiting: set[str | None] = set()
    if isinstance(record, Batch) and not record.used:
        calls = zip(record.ids, record.traits, record.canonical, strict=True)
        waiting = {one for one, traits, said in calls if traits.poller or waits(traits, said)}
    return [
        {**one, "status": "error"} if has_failed and _id_of(one) not in waiting else one
        for one, has_failed in zip(results, failed, strict=True)
    ]


def _id_of(result: dict[str, Any]) -> str:
    given = result.get("tool_call_id") or result.get("id")
    return given if type(given) is str else ""


def says_it_failed(content: Any) -> bool:
    """Tell whether an answer opens as hardly anything but an error does."""
    text = _beginning(content)
    found = _WORD.match(text)
    if found is None:
        return False
    word = found[1].lower()
    return (
        word in _WORDS
        or word.endswith(_NAMES)
        or text.startswith(": ", found.end())  # Of a shell: `ls: no such file or directory`.
    ) and _OPENS.match(text) is not None


def looks_failed(content: Any) -> bool:
    """Guess from an answer's text whether the call failed; content without text did not."""
    text = _beginning(content)
    return _FAILED.match(text) is not None or _INSIDE.search(text) is not None


def _beginning(content: Any) -> str:
    """Give the beginning of a content: of a text itself, or of the first text block of a list."""
    # The types are asked: content that nobody checked may lie about its class.
    if type(content) is str:
        return content[:_READ].lstrip()
    if type(content) is list:
        for block in content[:_BLOCKS]:
            text = block.get("text") if type(block) is dict else block
            if type(text) is str and not text.isspace() and text:
                return text[:_READ].lstrip()
    return ""
