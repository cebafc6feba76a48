"""Reads what a call got back, and in which form it is compared with other results.

A result is read from whatever carries it: a LangChain `ToolMessage` or a mapping. Nothing here
raises on odd shapes; a result that cannot be matched with a call is missing, which is no sign of
progress.

Results are compared without what changes by itself. A short text is masked (`core.clock`) and
compared line by line. A long one is compared as a whole without its digits: that costs 1 ms for
a megabyte of any text, and clocks and counters are digits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xxhash import xxh3_64_intdigest

from langchain_loopguard.core.canonical import canonical_content
from langchain_loopguard.core.clock import DIGITS, mask_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_loopguard.core.step import Call

LONG = 1000
"""Bytes from which on a text is compared as a whole. Measured: 500 to 4,000 give the same
verdicts on all labelled runs but two."""

MOST_LINES = 32
"""Lines from which on a text is compared as a whole."""

_OWN_WORDS = 16
_SHORTEST_WORD, _LONGEST_WORD = 3, 4096
"""Which of a call's texts are looked for in its error: shorter ones stand in any text."""

_HEAD, _TAIL = 400, 200
"""Bytes at the beginning and at the end of a text that are searched for the signs of a failure."""

_FIELD = re.compile(
    rb"""\b(?:return_?code|exit(?:ed\ with)?[_\ ]?code|exit\ status)\b
        \\*"?\s? [:=>\ ] \s?\\*"? (?P<code>-?\d+)
      | \\*"(?:is_?error|error)\\*"\s?:\s? (?: true | \\*"[^"\\] )
      | \\*"(?:success|ok)\\*"\s?:\s? false""",
    re.IGNORECASE | re.VERBOSE,
)
"""A field that tells of a failure: `"isError": true`, `"ok": false`, `"error": "…"`, an exit code
that is not 0, in JSON (also inside JSON) or as `exit code: 1`."""

_SIGNS = re.compile(rb"rror|RROR|ode|ODE|ccess|xit|ok|xception|raceback")
"""A text without any of these tells of no failure: the patterns below take ten times as long."""

_OPENS = re.compile(
    rb"""\A (?: [\s\[{(<]
          | \\*"(?:type|text|content|result|output|message|stdout|stderr)\\*"\s?:\s?
          | \\*"(?:text\\*",\s?)? )*
      (?: Traceback\ \(most | Error(?:\ [a-z]+){0,3}\s?:
        | [A-Za-z_.]{1,80}(?:Error|Exception)\s?[:(] )""",
    re.VERBOSE,
)
"""A text that begins with a traceback, `Error:`, `Error in a tool:` or `SomethingError:`, also as
the first text of a JSON value."""


_LOOKED_AT = 400
"""Bytes at the beginning and at the end of a long text that are searched for signs of waiting."""

_BUSY = (
    rb"(?:pending|running|in[ _-]?progress|queued|processing|provisioning|starting|building"
    rb"|compiling|deploying|waiting|scheduled|initiali[sz]ing|creating)"
)
_RETRY = (
    rb"\b(?:retry[- ]after|try again (?:later|in)|rate limit|too many requests"
    rb"|not (?:yet )?(?:ready|complete|finished|done|available))\b"
)
_SAYS_WAIT = re.compile(
    rb"\A\W*" + _BUSY + rb"\W*\Z"
    rb"|\b(?:status|state|phase|stage)\W{1,6}(?:is\W)?" + _BUSY + rb"\b"
    rb"|\b(?:is|are|still|currently)\s(?:still\s)?" + _BUSY + rb"\b"
    rb"|\bcontainercreating\b|" + _RETRY
)
_ERROR_SAYS_WAIT = re.compile(_RETRY)
"""What a result says of something that needs time: a state that is not final, or that asking
again later is right. Of an error only the latter."""

_WAIT_WORDS = frozenset(
    b"progress in_progress inprogress pending running queued processing provisioning starting "
    b"building compiling deploying waiting scheduled initialising initializing creating "
    b"containercreating retry again limit requests not".split()
)
"""A result without any of these words says nothing of waiting; the patterns take five times as long
to find that."""

_WORDS = re.sub(rb"\W", b" ", bytes(range(256))).lower()
"""What stands for each byte where only the words are looked at."""


class Result:
    """What one call got back.

    Attributes:
        text: The content's text as UTF-8: text blocks joined by line ends, other values as JSON.
        failed: Whether the call failed: by its status, else by what the text says in fields.
        digest: 64 bits of the whole content, for equality: nothing cut, nothing normalised.
        form: The text in which it is compared, see the top of this file.
        is_long: Whether `form` is one piece, not lines.
    """

    __slots__ = ("digest", "failed", "form", "is_long", "text")

    def __init__(self, call: Call, content: Any, failed: bool | None) -> None:
        """Read a content.

        Args:
            call: The call that it is the result of.
            content: Text, content blocks or any JSON value.
            failed: Whether the source says that the call failed; `None` when the text is to tell.
        """
        self.text = text = _text_of(content)
        self.digest: int = xxh3_64_intdigest(text)
        self.failed = tells_of_failure(text) if failed is None else failed
        if self.failed:
            text = _without_own_words(text, call)
        if text[:1] in (b"{", b"["):  # A text inside JSON has lines too.
            text = text.replace(b"\\n", b"\n")
        self.is_long = len(text) > LONG or text.count(b"\n") > MOST_LINES
        if not self.is_long:
            text = mask_clock(text)
        # Numbers in errors are lines, ports and times; only what else they say makes them differ.
        self.form = text.translate(None, DIGITS) if self.is_long or self.failed else text


def tells_of_failure(text: bytes) -> bool:
    """Tell whether a result's text says in a field, or by how it begins, that the call failed.

    What only prose tells (`Blocked by policy`, `command not found`) is not read: it would stop
    good work that talks about failures. `Policy.is_failure` is for that.
    """
    head, tail = text[:_HEAD], text[max(_HEAD, len(text) - _TAIL) :]
    if _SIGNS.search(head + tail) is None:
        return False
    if _OPENS.match(head):
        return True
    found = _FIELD.search(head) or _FIELD.search(tail)
    return found is not None and (found["code"] is None or int(found["code"]) != 0)


def says_wait(result: Result) -> bool:
    """Tell whether a result says that something needs time, or an error to try again later."""
    form = result.form
    text = form[:_LOOKED_AT] + form[-_LOOKED_AT:] if result.is_long else form
    if _WAIT_WORDS.isdisjoint(text.translate(_WORDS).split()):
        return False
    return (_ERROR_SAYS_WAIT if result.failed else _SAYS_WAIT).search(text.lower()) is not None


def match_results(
    calls: Sequence[Call],
    results: Sequence[Any] | None,
    is_failure: Callable[[str, Any], bool | None] | None = None,
) -> tuple[Result | None, ...]:
    """Find the result of every call.

    A call is matched by its id. Two results for one id: the last counts. Calls that share an id
    or have none are matched with the results left over by position, when the counts agree;
    otherwise their results are missing.

    Args:
        calls: The calls in order.
        results: Tool messages or mappings with `tool_call_id` (or `id`), `content`, `status`.
        is_failure: See `Policy.is_failure`.

    Returns:
        A result for each call, `None` where it is missing.
    """
    places: dict[str | None, int] = {}
    shared: set[str | None] = {None}
    for place, call in enumerate(calls):
        if call.id in places:
            shared.add(call.id)
        places[call.id] = place
    matched: list[Any] = [None] * len(calls)
    rest: list[Any] = []
    for result in results or ():
        given = _id_of(result)
        if given in shared:
            rest.append(result)
        elif given in places:
            matched[places[given]] = result
    if rest:
        unmatched = [place for place, result in enumerate(matched) if result is None]
        if len(rest) == len(unmatched):
            for place, result in zip(unmatched, rest, strict=True):
                matched[place] = result
    pairs = zip(calls, matched, strict=True)
    return tuple([_read(call, result, is_failure) for call, result in pairs])


def _read(
    call: Call, result: Any, is_failure: Callable[[str, Any], bool | None] | None
) -> Result | None:
    if result is None:
        return None
    try:
        if type(result) is dict or isinstance(result, Mapping):
            content, status = result["content"], result.get("status")
        else:
            content, status = result.content, getattr(result, "status", None)
        failed = True if status == "error" else _asked(is_failure, call.name, content)
        return Result(call, content, failed)
    except Exception:  # noqa: BLE001 - no content, or a hostile object: a missing result
        return None


def _asked(
    is_failure: Callable[[str, Any], bool | None] | None, name: str, content: Any
) -> bool | None:
    if is_failure is None:
        return None
    try:
        found = is_failure(name, content)
    except Exception:  # noqa: BLE001 - a user's function may not expect every content
        return None
    return found if isinstance(found, bool) else None


def _id_of(result: Any) -> str | None:
    """Read the id of the call that a result answers; `None` when it has none."""
    try:
        if type(result) is dict or isinstance(result, Mapping):
            given = result.get("tool_call_id") or result.get("id")
        else:
            given = result.tool_call_id
        return given if isinstance(given, str) and given else None
    except Exception:  # noqa: BLE001 - a hostile object has no id
        return None


def _without_own_words(text: bytes, call: Call) -> bytes:
    """Mask in an error what the call itself said: `No such file: a.py` equals `… b.py`."""
    given = call.arguments.values() if type(call.arguments) is dict else (call.arguments,)
    words = {call.name, *(value.strip() for value in given if type(value) is str)}
    for word in sorted(words, key=len, reverse=True)[:_OWN_WORDS]:
        if _SHORTEST_WORD <= len(word) <= _LONGEST_WORD:
            text = text.replace(_encoded(word), b"~")
    return text


def _text_of(content: Any) -> bytes:
    if type(content) is str:
        return _encoded(content)
    if isinstance(content, str):
        return _encoded(str.__str__(content))
    if isinstance(content, list):
        return b"\n".join([_text_of_block(block) for block in content])
    return canonical_content(content)


def _text_of_block(block: Any) -> bytes:
    text = block.get("text") if isinstance(block, dict) else block
    return _encoded(str.__str__(text)) if isinstance(text, str) else canonical_content(block)


def _encoded(text: str) -> bytes:
    """Write text as UTF-8; a lone surrogate, which UTF-8 does not have, is kept apart."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
