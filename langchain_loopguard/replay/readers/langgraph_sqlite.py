"""Where are the threads in a file of LangGraph's SQLite checkpointers?

The tables are read as they are, so that the checkpointer's package is not needed. The file is
opened read-only and nothing is set up in it. A file may come from anywhere: a view in a table's
place can be a query without end, so views are refused, and each query ends that takes too many
steps before its next row.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.checkpoints import Store, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_loopguard.replay.readers.checkpoints import Thread

MAGIC = b"SQLite format 3\x00"
"""How a SQLite file begins."""

MAX_STEPS = 400
"""Millions of steps of SQLite's machine before a query's next row: some five seconds. Sorting a
million checkpoints takes about 100."""

MAX_VALUE = 64 * 2**20
"""Bytes of one value; a larger one is refused."""


class SqliteStore(Store):
    """The threads of one file.

    Raises:
        ConversationError: If the file has no checkpoints or is broken.
    """

    def __init__(self, path: str) -> None:
        """Open the file."""
        uri = Path(path).absolute().as_uri()
        self._steps = 0
        try:
            self._db = _open(uri)
            self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            self._db.set_progress_handler(self._step, 10**6)
            kinds = dict(
                self.rows(
                    "SELECT name, CASE WHEN sql LIKE 'CREATE TABLE%' THEN 'table' ELSE type END"
                    " FROM sqlite_master WHERE name IN ('checkpoints', 'writes')"
                )
            )
            columns = {row[1] for row in self.rows("PRAGMA table_info(writes)")}
            tables = ("checkpoints", "writes")
            worked_out = [
                row for name in tables for row in self.rows(f"PRAGMA table_xinfo({name})") if row[6]
            ]
        except sqlite3.Error as error:
            raise ConversationError(f"SQLite cannot read it: {error}") from error
        if kinds != {"checkpoints": "table", "writes": "table"} or not columns:
            self._db.close()
            if "view" in kinds.values():
                raise ConversationError("a SQLite file with a view in place of a table, not read")
            raise ConversationError("a SQLite file without LangGraph checkpoints")
        if worked_out:
            self._db.close()
            raise ConversationError("a SQLite file with columns that are worked out, not read")
        if "task_path" not in columns:  # Written before that column came.
            self.order = "checkpoint_id, task_id, idx"

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def values(self, thread: Thread, checkpoint_id: str) -> dict[str, Any]:
        """Give the channels' values at a checkpoint, unpacked."""
        for kind, value in self.rows(
            "SELECT type, checkpoint FROM checkpoints"
            " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
            *thread,
            checkpoint_id,
        ):
            checkpoint = unpack(kind, value)
            values = checkpoint.get("channel_values") if isinstance(checkpoint, dict) else None
            return values if isinstance(values, dict) else {}
        return {}

    def rows(self, query: str, *parameters: Any) -> Iterator[Any]:
        """Run a query; see `Store.rows`."""
        self._steps = 0
        try:
            for row in self._db.execute(query, parameters):
                yield row
                self._steps = 0
        except sqlite3.Error as error:
            text = "a query takes too long" if self._steps > MAX_STEPS else str(error)
            raise ConversationError(f"SQLite cannot read it: {text}") from error

    def _step(self) -> bool:
        self._steps += 1
        return self._steps > MAX_STEPS


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
