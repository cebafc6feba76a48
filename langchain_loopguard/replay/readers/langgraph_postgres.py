"""Finds threads in the tables of LangGraph's Postgres checkpointers.

The tables are read as they are, in a read-only session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.checkpoints import Step, Thread, Write, step, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMES = ("postgresql://", "postgres://")
"""How the address of a Postgres database begins."""

_PATIENCE = 10
"""Seconds to wait for the database to answer."""


class PostgresStore:
    """The threads of one database.

    Raises:
        ConversationError: If psycopg isn't installed, the database does not answer, or it has no
            checkpoints. The message holds no password.
    """

    def __init__(self, url: str) -> None:
        """Connect."""
        try:
            import psycopg  # noqa: PLC0415 - needed for these addresses alone
        except ImportError as error:
            raise ConversationError(
                "a Postgres address needs psycopg: pip install 'psycopg[binary]'"
            ) from error
        self._error = psycopg.Error
        self._cursors = 0
        try:
            self._db = psycopg.connect(
                url, options="-c default_transaction_read_only=on", connect_timeout=_PATIENCE
            )
            found = self._db.execute("SELECT to_regclass('checkpoint_writes')").fetchone()
        except psycopg.ProgrammingError as error:
            # Its message quotes the address, where a password may be.
            raise ConversationError("not the address of a Postgres database") from error
        except psycopg.Error as error:
            raise ConversationError(_reason(error)) from error
        if found is None or found[0] is None:
            self._db.close()
            raise ConversationError("a database without LangGraph checkpoints")

    def close(self) -> None:
        """Disconnect."""
        self._db.close()

    def threads(self) -> Iterator[Thread]:
        """List the threads, in the order of their names."""
        rows = self._rows(
            "SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints"
            " ORDER BY thread_id, checkpoint_ns"
        )
        return (Thread(row[0], row[1]) for row in rows)

    def steps(self, thread: Thread) -> dict[str, Step]:
        """Give each checkpoint by its id, the oldest first."""
        rows = self._rows(
            "SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints"
            " WHERE thread_id = %s AND checkpoint_ns = %s ORDER BY checkpoint_id",
            *thread,
        )
        return {row[0]: step(row[1], row[2]) for row in rows}

    def writes(self, thread: Thread) -> Iterator[Write]:
        """Give the writes, in order of checkpoint and task."""
        rows = self._rows(
            "SELECT checkpoint_id, task_id, channel, type, blob FROM checkpoint_writes"
            " WHERE thread_id = %s AND checkpoint_ns = %s"
            " ORDER BY checkpoint_id, task_path, task_id, idx",
            *thread,
        )
        return (Write(*row) for row in rows)

    def values(self, thread: Thread, checkpoint_id: str) -> dict[str, Any]:
        """Give the channels' values at a checkpoint, unpacked."""
        values: dict[str, Any] = {}
        for (checkpoint,) in self._rows(
            "SELECT checkpoint FROM checkpoints"
            " WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s",
            *thread,
            checkpoint_id,
        ):
            inline = checkpoint.get("channel_values")
            values.update(inline if isinstance(inline, dict) else {})
        rows = self._rows(
            "SELECT b.channel, b.type, b.blob FROM checkpoints c"
            " CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') v"
            " JOIN checkpoint_blobs b ON b.thread_id = c.thread_id"
            " AND b.checkpoint_ns = c.checkpoint_ns AND b.channel = v.key AND b.version = v.value"
            " WHERE c.thread_id = %s AND c.checkpoint_ns = %s AND c.checkpoint_id = %s",
            *thread,
            checkpoint_id,
        )
        values.update({channel: unpack(kind, blob) for channel, kind, blob in rows})
        return values

    def _rows(self, query: str, *parameters: Any) -> Iterator[Any]:
        try:
            # A name keeps the rows at the server, so that they come in one portion after another.
            self._cursors += 1
            with self._db.cursor(name=f"loopguard_{self._cursors}") as cursor:
                cursor.execute(query, parameters)
                yield from cursor
        except self._error as error:
            raise ConversationError(_reason(error)) from error


def _reason(error: Exception) -> str:
    """Give the first line of an error; the ones after it repeat the query."""
    return f"Postgres: {(str(error).splitlines() or [type(error).__name__])[0]}"
