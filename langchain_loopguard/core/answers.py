"""What did a call get back, and which answer belongs to which call?

An answer is read from whatever carries it: a LangChain `ToolMessage` or a mapping. Nothing here
raises on odd shapes; an answer that cannot be matched is unknown, which is no sign of progress.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xxhash import xxh3_64_intdigest

from langchain_loopguard.core.canonical import canonical_content
from langchain_loopguard.core.clock import mask_clock
from langchain_loopguard.core.results import hash_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

DIGITS = b"0123456789"
"""What is taken out of the text of an error before it is compared."""

_MASKED_WORDS = 16
_SHORTEST_WORD = 3
_LONGEST_WORD = 4096
"""Which of a call's texts are looked for in its error: shorter ones stand in any text."""


class Answer:
    """What one call got back.

    Attributes:
        error: Whether the call failed, by its status.
        text: The content's text as UTF-8: text blocks joined by line ends, other values as JSON.
        digest: A hash of the whole content, for equality: nothing truncated, nothing normalised.
    """

    __slots__ = ("_masked", "digest", "error", "text")

    def __init__(self, content: Any, error: bool) -> None:
        """Work out text and hash at once, since every rule asks for them.

        Args:
            content: Text, content blocks or any JSON value.
            error: Whether the call failed, by its status.
        """
        self.error = error
        self._masked: bytes | None = None
        if type(content) is str or isinstance(content, str):
            self.text = encode_text(content)
            self.digest: int = xxh3_64_intdigest(self.text)
        else:
            self.text = _text(content)
            self.digest = hash_answer(content)

    @property
    def masked(self) -> bytes:
        """The text with everything masked that a clock may have written."""
        if self._masked is None:
            self._masked = mask_clock(self.text)
        return self._masked

    def mask_arguments(self, name: str, arguments: Any) -> None:
        """Mask what the call itself said, so that `No such file: a.py` equals `… b.py`.

        For errors only: in a success the argument may be what the answer is about.
        """
        try:
            self._masked = mask_clock(_without(self.text, name, arguments))
        except Exception:  # noqa: BLE001 - hostile arguments: only the clocks are masked
            self._masked = None

    @property
    def masked_digest(self) -> int:
        """A hash of the text without clocks."""
        return xxh3_64_intdigest(self.masked)

    @property
    def error_digest(self) -> int:
        """A hash of the text without clocks and numbers, so that a moving line number is equal."""
        return xxh3_64_intdigest(self.masked.translate(None, DIGITS))


def match_results(ids: Sequence[str | None], results: Sequence[Any] | None) -> list[Answer | None]:
    """Find the answer of every call.

    A call is matched by its id. Two answers for one id: the last counts. Calls that share an id
    or have none are matched with the results left over by position, when the counts agree;
    otherwise their answers are unknown.

    Args:
        ids: The calls' ids in order.
        results: Tool messages or mappings with `tool_call_id` (or `id`), `content`, `status`.

    Returns:
        An answer for each call, `None` where it is unknown.
    """
    if not results:
        return [None] * len(ids)
    if len(ids) == 1 and len(results) == 1:
        return [match_single(ids[0], results[0])]
    times = Counter(ids)
    by_id: dict[str | None, Any] = {}
    rest: list[Any] = []
    for result in results:
        given = _result_id(result)
        if given is not None and times[given] == 1:
            by_id[given] = result
        elif given is None or given in times:
            rest.append(result)
    open_places = [place for place, call_id in enumerate(ids) if call_id not in by_id]
    by_place = dict(zip(open_places, rest, strict=True)) if len(rest) == len(open_places) else {}
    matched: list[Answer | None] = []
    for place, call_id in enumerate(ids):
        found = by_id.get(call_id) if call_id in by_id else by_place.get(place)
        matched.append(None if found is None else _answer(found))
    return matched


def match_single(call_id: str | None, result: Any) -> Answer | None:
    """Take the only result for the answer of the only call, unless it answers another one."""
    if type(result) is dict:
        # By far the most frequent case, told apart for speed alone. The types are asked first:
        # what is none of these may do anything when it is compared.
        try:
            given, content = result["tool_call_id"], result["content"]
            status = result["status"]
        except KeyError:
            given = content = status = None
        if (
            type(content) is str
            and type(given) is str
            and given == call_id
            and content.isascii()
            and (status is None or type(status) is str)
        ):
            answer: Answer = _TextAnswer()
            answer.error = status == "error"
            answer.text = text = content.encode()
            answer.digest = xxh3_64_intdigest(text)
            answer._masked = None  # noqa: SLF001 - it is made here
            return answer
    given = _result_id(result)
    return _answer(result) if given is None or given == call_id else None


class _TextAnswer(Answer):
    # A class's own `__init__` takes Python four times as long to call as a function.
    __slots__ = ()
    __init__ = object.__init__


def _answer(result: Any) -> Answer | None:
    try:
        if type(result) is dict or isinstance(result, Mapping):
            return Answer(result["content"], result.get("status") == "error")
        return Answer(result.content, getattr(result, "status", None) == "error")
    except Exception:  # noqa: BLE001 - no content, or a hostile object: an unknown answer
        return None


def _result_id(result: Any) -> str | None:
    """Read the id of the call that a result answers; `None` when it has none."""
    try:
        if type(result) is dict or isinstance(result, Mapping):
            given = result.get("tool_call_id") or result.get("id")
        else:
            given = result.tool_call_id
        return given if isinstance(given, str) and given else None
    except Exception:  # noqa: BLE001 - a hostile object has no id
        return None


def _without(text: bytes, name: str, arguments: Any) -> bytes:
    given = arguments.values() if isinstance(arguments, dict) else (arguments,)
    words = {name, *(value for value in given if isinstance(value, str))}
    for word in sorted(words, key=len, reverse=True)[:_MASKED_WORDS]:
        if _SHORTEST_WORD <= len(word) <= _LONGEST_WORD:
            text = text.replace(encode_text(word), b"~")
    return text


def encode_text(text: str) -> bytes:
    """Write text as UTF-8; a lone surrogate, which UTF-8 does not have, is kept apart."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _text(content: Any) -> bytes:
    if isinstance(content, list):
        return b"\n".join(_block_text(block) for block in content)
    return canonical_content(content)


def _block_text(block: Any) -> bytes:
    text = block.get("text") if isinstance(block, dict) else block
    return encode_text(text) if isinstance(text, str) else canonical_content(block)
