"""Is this the same tool call as that one?

Two calls are the same when they have the same name and equal arguments; ids do not matter. A
signature is a name for a call that is short, the same in every process, and holds no argument
in the clear: the tool's name, `:` and 16 hexadecimal digits of FNV-1a-64 over the canonical
arguments. FNV-1a is no protection against somebody who looks for collisions, which takes less
than a second; it is the hash that other implementations of this detector use, so signatures can
be compared. The rules of the default guard compare no signatures, see `core.step`; the seed's
detector does, and takes calls made to collide for one run. Since the hash of their results tells
them apart, they count as a batch whose results change, which is refused at the ceiling only.

This file must not know how arguments are written or what a repeated call means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fnv_c import fnv1a_64

from langchain_loopguard.core.calls import call_arguments, call_name
from langchain_loopguard.core.canonical import canonical_arguments

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_loopguard.core.calls import ToolCall


def call_signature(call: ToolCall) -> str:
    """Name a call so that calls of one tool with equal arguments share the name.

    Args:
        call: `{"name", "args", "id"}`; odd and missing parts never raise.

    Returns:
        For instance `bash:5fb3ea759e512146`.
    """
    return sign_canonical(call_name(call), canonical_arguments(call_arguments(call)))


def sign_canonical(name: str, canonical: bytes) -> str:
    """Name a call of which the arguments are in canonical form already."""
    digest: int = fnv1a_64(canonical)
    return f"{name}:{digest:016x}"


def batch_signature(calls: Sequence[ToolCall]) -> str:
    """Name a batch by its calls, in any order, each as often as it occurs."""
    return join_signatures(map(call_signature, calls))


def join_signatures(signatures: Iterable[str]) -> str:
    """Join the signatures of a batch's calls to that of the batch."""
    return "|".join(sorted(signatures))
