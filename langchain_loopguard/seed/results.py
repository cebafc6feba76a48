"""Are these the same results as before?

One number for the results of a whole batch; the seed's documents call them answers. Equal results
give equal numbers, in every process, for the number is stored with the conversation. It is a fast
equality hash (xxh3) and no protection against somebody who looks for collisions.

The whole content counts: nothing is cut and nothing is evened out. Whether a result that differs
brings anything new is another question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from xxhash import xxh3_64_intdigest

from langchain_loopguard.core.calls import call_arguments, call_name
from langchain_loopguard.core.canonical import canonical_arguments, canonical_content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard.core.calls import ToolCall

# Each form of bytes has its own seed: the text `null` is not the value null.
_TEXT_SEED = 0
_WIDE_TEXT_SEED = 1
_VALUE_SEED = 2


def hash_results(calls: Sequence[ToolCall], answers: Sequence[object] | None) -> int | None:
    """Hash the results of a batch together with the calls they belong to.

    Swapped results of two calls differ; the order of the calls and their ids do not matter.

    Args:
        calls: The tool calls of one AI message.
        answers: The content of each call's result, in the order of the calls: text or any JSON
            value, as it came. `None` is a result that is missing.

    Returns:
        An unsigned 64-bit number, or `None` when not all results are known.
    """
    if answers is None or len(answers) != len(calls):
        return None
    parts: list[tuple[str, int, int]] = []
    for call, answer in zip(calls, answers, strict=True):
        if answer is None:
            return None
        arguments = xxh3_64_intdigest(canonical_arguments(call_arguments(call)))
        parts.append((call_name(call), arguments, hash_answer(answer)))
    # A JSON list says how long it is and where each part ends, whatever is in a name.
    return xxh3_64_intdigest(orjson.dumps(sorted(parts)))


def hash_answer(answer: Any) -> int:
    """Hash the whole content of one result: text or any other value."""
    if not issubclass(type(answer), str):
        return xxh3_64_intdigest(canonical_content(answer), _VALUE_SEED)
    answer = str.__str__(answer)
    if answer.isascii():
        return xxh3_64_intdigest(answer.encode(), _TEXT_SEED)
    # A million characters take up to 1.2 ms to encode in UTF-8, at most 0.4 ms in UTF-32.
    return xxh3_64_intdigest(answer.encode("utf-32-le", "surrogatepass"), _WIDE_TEXT_SEED)
