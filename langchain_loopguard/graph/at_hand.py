"""Is the reader that these counts came from still at hand?

To read counts anew takes longer than all else that a guard does in a step. Within a run
LangGraph hands a node the very object that it returned before, so a reader is found by that
object and by nothing else: counts that come out of a store, from a fork or from a person are
other objects, and are read. A reader is given out once, since whoever has it changes it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_loopguard.messages import tool_calls_of

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

    from langchain_loopguard.messages import MessageReader

__all__ = ["AtHand"]

_MOST = 64
"""Readers that are kept, at most some 60 KB each. Those of runs that ended are among them, and
where more runs take turns than that, their counts are read."""


_MOST_ARGUMENTS = 65_536
"""Bytes of a batch's arguments up to which its reader is kept before it has run: a run that dies
in a tool leaves it here for long. To read counts takes no time beside that of larger arguments."""


class _Kept(NamedTuple):
    counts: Any
    reader: MessageReader
    checked: AIMessage | None
    """The message whose calls were checked since the counts were saved."""
    calls: list[dict[str, Any]]
    """Its calls at that time; some frameworks change a message in place."""


class AtHand:
    """Keeps the readers of the last few counts. Safe in any thread."""

    def __init__(self) -> None:
        """Start with none."""
        self._kept: dict[int, _Kept] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[AtHand], tuple[()]]:
        """Make of a copy one with none at hand: a reader is given out once."""
        return AtHand, ()

    def keep(self, counts: Any, reader: MessageReader, checked: AIMessage | None = None) -> None:
        """Keep a reader.

        Args:
            counts: What was saved of it; it must not change any more.
            reader: The reader, which the caller must not use any more.
            checked: A message that it has checked besides, of which nothing was saved.
        """
        calls: list[dict[str, Any]] = []
        if checked is None:
            reader.forget_step()
        elif reader.pending_bytes > _MOST_ARGUMENTS:
            return
        else:
            calls = tool_calls_of(checked)
        with self._lock:
            self._kept[id(counts)] = _Kept(counts, reader, checked, calls)
            if len(self._kept) > _MOST:
                del self._kept[next(iter(self._kept))]

    def take(self, counts: Any, message: AIMessage) -> MessageReader | None:
        """Take the reader of these counts, `None` if it isn't at hand.

        Args:
            counts: The saved counts.
            message: The message that it is to be asked about.
        """
        with self._lock:
            kept = self._kept.pop(id(counts), None)
        if kept is None:
            return None
        checked = kept.checked
        if checked is not None and (message is not checked or tool_calls_of(message) != kept.calls):
            return None
        return kept.reader
