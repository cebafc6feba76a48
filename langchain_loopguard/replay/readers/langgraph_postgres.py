"""Finds threads in the tables of LangGraph's Postgres checkpointers.

The tables are read as they are, in a read-only session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.checkpoints import Store, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_loopguard.replay.readers.checkpoints import Thread

SCHEMES = ("postgresql://", "postgres://")
"""How the address of a Postgres database begins."""

_PATIENCE = 10
"""Seconds to wait for the database to answer."""


class PostgresStore(Store):
    """The threads of one database.

    Raises:
        ConversationError: If psycopg isn't installed, the database does not answer, or it has no
            checkpoints. The message holds no password.
    """

    writes_table, value_column = "checkpoint_writes", "blob"

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

    def values(self, thread: Thread, checkpoint_id: str) -> dict[str, Any]:
        """Give the channels' values at a checkpoint, unpacked."""
        values: dict[str, Any] = {}
        for (checkpoint,) in self.rows(
            "SELECT checkpoint FROM checkpoints"
            " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
            *thread,
            checkpoint_id,
        ):
            inline = checkpoint.get("channel_values")
            values.update(inline if isinstance(inline, dict) else {})
        rows = self.rows(
            "SELECT b.channel, b.type, b.blob FROM checkpoints c"
            " CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') v"
            " JOIN checkpoint_blobs b ON b.thread_id = c.thread_id"
            " AND b.checkpoint_ns = c.checkpoint_ns AND b.channel = v.key AND b.version = v.value"
            " WHERE c.thread_id = ? AND c.checkpoint_ns = ? AND c.checkpoint_id = ?",
            *thread,
            checkpoint_id,
        )
        values.update({channel: unpack(kind, blob) for channel, kind, blob in rows})
        return values

    def rows(self, query: str, *parameters: Any) -> Iterator[Any]:
        """Run a query; see `Store.rows`."""
        try:
            # A name keeps the rows at the server, so that they come in one portion after another.
            self._cursors += 1
            with self._db.cursor(name=f"loopguard_{self._cursors}") as cursor:
                cursor.execute(query.replace("?", "%s"), parameters)
                yield from cursor
        except self._error as error:
            raise ConversationError(_reason(error)) from error


def _reason(error: Exception) -> str:
    """Give the first line of an error; the ones after it repeat the query."""
    return f"Postgres: {(str(error).splitlines() or [type(error).__name__])[0]}"
