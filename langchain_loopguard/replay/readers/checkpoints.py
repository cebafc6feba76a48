"""Describes what a LangGraph checkpointer stores, and unpacks its values.

Values are unpacked without LangGraph's own loader, which may import what a file names: objects of
any class become their plain data. Encrypted and pickled values are not read.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_loopguard.replay.conversation import ConversationError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SNAPSHOT = 7
"""LangGraph's msgpack extension for a channel's whole value; 0 to 5 are objects of some class."""
_LAST_OBJECT = 5


class Thread(NamedTuple):
    """One conversation of a checkpointer.

    Attributes:
        thread_id: The thread.
        namespace: The subgraph within it, empty for the graph itself.
    """

    thread_id: str
    namespace: str = ""

    @property
    def name(self) -> str:
        """What the conversation is called."""
        return f"{self.thread_id}/{self.namespace}" if self.namespace else self.thread_id


class Step(NamedTuple):
    """How a checkpoint came about.

    Attributes:
        parent: The checkpoint before it.
        is_fork: Whether it goes on from there another way than what was written there.
    """

    parent: str | None
    is_fork: bool


class Write(NamedTuple):
    """What one task of one step wrote to one channel, packed."""

    checkpoint_id: str
    task_id: str
    channel: str
    kind: str | None
    value: bytes | None


class Store(ABC):
    """Where a checkpointer keeps its threads; only read.

    Both of LangGraph's checkpointers have one table of checkpoints, and one of writes.
    """

    writes_table = "writes"
    """The table of the writes, and the column that holds what was written."""
    value_column = "value"
    order = "checkpoint_id, task_path, task_id, idx"
    """The columns by which writes are sorted."""

    def threads(self) -> Iterator[Thread]:
        """List the threads, in the order of their names."""
        rows = self.rows(
            "SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints"
            " ORDER BY thread_id, checkpoint_ns"
        )
        return (Thread(str(row[0]), str(row[1])) for row in rows)

    def steps(self, thread: Thread) -> dict[str, Step]:
        """Give each checkpoint by its id, the oldest first."""
        rows = self.rows(
            "SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints"
            " WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id",
            *thread,
        )
        return {row[0]: step(row[1], row[2]) for row in rows}

    def writes(self, thread: Thread) -> Iterator[Write]:
        """Give the writes, in order of checkpoint and task."""
        rows = self.rows(
            f"SELECT checkpoint_id, task_id, channel, type, {self.value_column}"  # noqa: S608
            f" FROM {self.writes_table} WHERE thread_id = ? AND checkpoint_ns = ?"
            f" ORDER BY {self.order}",
            *thread,
        )
        return (Write(*row) for row in rows)

    @abstractmethod
    def values(self, thread: Thread, checkpoint_id: str) -> dict[str, Any]:
        """Give the channels' values at a checkpoint, unpacked."""

    @abstractmethod
    def rows(self, query: str, *parameters: Any) -> Iterator[Any]:
        """Run a query, with `?` where its parameters stand.

        Raises:
            ConversationError: If the rows can't be read.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the file, or disconnect."""


def unpack(kind: str | None, value: bytes | None) -> Any:
    """Unpack a stored value; objects of any class become their plain data, nothing is made of them.

    Raises:
        ConversationError: If it is encrypted, pickled or broken.
    """
    if kind in {None, "null", "empty", "bytes", "bytearray"} or value is None:
        return None
    try:
        if kind == "msgpack":
            return _unpackb(value)
        if kind == "json":
            return json.loads(value)
    except ConversationError:
        raise
    except (ValueError, RecursionError) as error:
        raise ConversationError("a checkpoint's value is broken") from error
    raise ConversationError(
        "encrypted checkpoints are not read"
        if "+" in str(kind)
        else f"checkpoints of the kind {kind!r} are not read"
    )


def step(parent: str | None, metadata: Any) -> Step:
    """Read a checkpoint's metadata: JSON, or what was read of it."""
    if isinstance(metadata, str | bytes):
        try:
            metadata = json.loads(metadata)
        except ValueError:
            metadata = None
    return Step(parent, isinstance(metadata, dict) and metadata.get("source") == "fork")


def _object(code: int, data: bytes) -> Any:
    """Read an extension of LangGraph's msgpack: the data of the object, without its class."""
    if code != _SNAPSHOT and code > _LAST_OBJECT:
        return None
    inner = _unpackb(data)
    if code == _SNAPSHOT:
        return inner
    # Module, name, data, and for some a method's name.
    return inner[2] if isinstance(inner, list) and len(inner) > 2 else inner  # noqa: PLR2004


MAX_PACKED = 512 * 2**20
"""Bytes of memory that one packed value may take. An empty list is a byte and becomes 64."""
_EMPTY = bytes(range(0x80, 0xA0))
"""The bytes that begin a short map or list; in texts they are parts of letters."""


def _unpackb(data: bytes) -> Any:
    if 64 * (len(data) - len(data.translate(None, _EMPTY))) > MAX_PACKED:
        raise ConversationError("a checkpoint's value would take too much memory")
    try:
        # LangGraph brings it; the rest of `replay` does without.
        import ormsgpack  # noqa: PLC0415
    except ImportError as error:
        raise ConversationError(
            "checkpoints need ormsgpack: pip install 'langchain-loopguard[cli]'"
        ) from error
    return ormsgpack.unpackb(data, ext_hook=_object, option=ormsgpack.OPT_NON_STR_KEYS)
