"""Where are the threads in a file of LangGraph's SQLite checkpointers?

The tables are read as they are, so that the checkpointer's package is not needed. The file is
opened read-only and nothing is set up in it.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.checkpoints import Step, Thread, Write, step, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"SQLite format 3\x00"
"""How a SQLite file begins."""


class SqliteStore:
    """The threads of one file.

    Raises:
        ConversationError: If the file has no checkpoints or is broken.
    """

    def __init__(self, path: str) -> None:
        """Open the file."""
        uri = Path(path).absolute().as_uri()
        try:
            self._db = _open(uri)
            columns = {row[1] for row in self._db.execute("PRAGMA table_info(writes)")}
            found = self._db.execute("PRAGMA table_info(checkpoints)").fetchone()
        except sqlite3.Error as error:
            raise ConversationError(f"SQLite cannot read it: {error}") from error
        if found is None or not columns:
            self._db.close()
            raise ConversationError("a SQLite file without LangGraph checkpoints")
        self._order = "checkpoint_id, task_path, task_id, idx"
        if "task_path" not in columns:  # Written before that column came.
            self._order = "checkpoint_id, task_id, idx"

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def threads(self) -> Iterator[Thread]:
        """List the threads, in the order of their names."""
        rows = self._rows(
            "SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints"
            " ORDER BY thread_id, checkpoint_ns"
        )
        return (Thread(str(row[0]), str(row[1])) for row in rows)

    def steps(self, thread: Thread) -> dict[str, Step]:
        """Give each checkpoint by its id, the oldest first."""
        rows = self._rows(
            "SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints"
            " WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id",
            *thread,
        )
        return {row[0]: step(row[1], row[2]) for row in rows}

    def writes(self, thread: Thread) -> Iterator[Write]:
        """Give the writes, in order of checkpoint and task."""
        rows = self._rows(
            "SELECT checkpoint_id, task_id, channel, type, value FROM writes"  # noqa: S608
            f" WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY {self._order}",
            *thread,
        )
        return (Write(*row) for row in rows)

    def values(self, thread: Thread, checkpoint_id: str) -> dict[str, Any]:
        """Give the channels' values at a checkpoint, unpacked."""
        for kind, value in self._rows(
            "SELECT type, checkpoint FROM checkpoints"
            " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
            *thread,
            checkpoint_id,
        ):
            checkpoint = unpack(kind, value)
            values = checkpoint.get("channel_values") if isinstance(checkpoint, dict) else None
            return values if isinstance(values, dict) else {}
        return {}

    def _rows(self, query: str, *parameters: Any) -> Iterator[Any]:
        try:
            yield from self._db.execute(query, parameters)
        except sqlite3.Error as error:
            raise ConversationError(f"SQLite cannot read it: {error}") from error


def _open(uri: str) -> sqlite3.Connection:
    """Open a file read-only, also where its folder may not be written to."""
    db = sqlite3.connect(f"{uri}?mode=ro", uri=True)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        db.close()
        # Without leave to write, the log beside the file can't be opened: read what is in it.
        db = sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True)
    return db
