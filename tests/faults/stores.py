"""Where is a thread kept when its process dies, and how is the store opened?

Each store is the host's own saver with one addition: it tells a hook before and after each
write, which is where a process may be killed. PostgreSQL is a real server, from `pgserver`.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import threading
import warnings
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

Hook = Callable[[str, Sequence[str]], None]
"""Called with `"before"` or `"after"` and the names of the channels that are written."""


def _silent(when: str, channels: Sequence[str]) -> None:
    pass


class _Sync:
    hook: Hook = staticmethod(_silent)

    def put(self, config, checkpoint, metadata, new_versions):
        self.hook("before", ())
        result = super().put(config, checkpoint, metadata, new_versions)
        self.hook("after", ())
        return result

    def put_writes(self, config, writes, task_id, task_path=""):
        channels = [str(write[0]) for write in writes]
        self.hook("before", channels)
        super().put_writes(config, writes, task_id, task_path)
        self.hook("after", channels)


class _Async:
    hook: Hook = staticmethod(_silent)

    async def aput(self, config, checkpoint, metadata, new_versions):
        self.hook("before", ())
        result = await super().aput(config, checkpoint, metadata, new_versions)
        self.hook("after", ())
        return result

    async def aput_writes(self, config, writes, task_id, task_path=""):
        channels = [str(write[0]) for write in writes]
        self.hook("before", channels)
        await super().aput_writes(config, writes, task_id, task_path)
        self.hook("after", channels)


class _FileMemory(InMemorySaver):
    """An `InMemorySaver` whose contents are in a file before a write returns.

    So that it outlives a process that is killed; what it keeps and gives is the host's doing.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._lock = threading.Lock()
        if os.path.exists(path):  # noqa: PTH110
            with open(path, "rb") as file:  # noqa: PTH123
                storage, writes, blobs = pickle.load(file)  # noqa: S301 - written below
            for thread, spaces in storage.items():
                for space, checkpoints in spaces.items():
                    self.storage[thread][space].update(checkpoints)
            self.writes.update(writes)
            self.blobs.update(blobs)

    def put(self, config, checkpoint, metadata, new_versions):
        with self._lock:
            result = super().put(config, checkpoint, metadata, new_versions)
            self._save()
        return result

    def put_writes(self, config, writes, task_id, task_path=""):
        with self._lock:
            super().put_writes(config, writes, task_id, task_path)
            self._save()

    def _save(self) -> None:
        new = f"{self._path}.new"
        with open(new, "wb") as file:  # noqa: PTH123
            pickle.dump((_plain(self.storage), dict(self.writes), dict(self.blobs)), file)
        os.replace(new, self._path)  # noqa: PTH105


def _plain(value: Any) -> Any:
    if isinstance(value, defaultdict):
        return {key: _plain(item) for key, item in value.items()}
    return value


class HookedMemorySaver(_Sync, _FileMemory):
    """`InMemorySaver` with a hook and a file."""


class HookedSqliteSaver(_Sync, SqliteSaver):
    """`SqliteSaver` with a hook."""


class HookedAsyncSqliteSaver(_Async, AsyncSqliteSaver):
    """`AsyncSqliteSaver` with a hook."""


class HookedPostgresSaver(_Sync, PostgresSaver):
    """`PostgresSaver` with a hook."""


class HookedAsyncPostgresSaver(_Async, AsyncPostgresSaver):
    """`AsyncPostgresSaver` with a hook."""


STORES = ("memory", "sqlite", "async-sqlite", "postgres", "async-postgres")
"""The stores by name; those that begin with `async` serve async runs only."""


def available() -> tuple[str, ...]:
    """Name the stores that there are here: `pgserver` has no wheel for every Python."""
    if importlib.util.find_spec("pgserver"):
        return STORES
    return tuple(store for store in STORES if "postgres" not in store)


def is_async(store: str) -> bool:
    """Tell whether a store serves async runs."""
    return store.startswith("async")


@contextmanager
def opened(store: str, where: str, hook: Hook = _silent) -> Iterator[Any]:
    """Open a sync store.

    Args:
        store: One of `STORES`.
        where: A file, or the URI of a PostgreSQL database.
        hook: Called around each write.
    """
    if store == "memory":
        saver: Any = HookedMemorySaver(where)
        saver.hook = hook
        yield saver
        return
    kind: Any = HookedSqliteSaver if store == "sqlite" else HookedPostgresSaver
    with kind.from_conn_string(where) as saver:
        saver.hook = hook
        yield saver


@asynccontextmanager
async def aopened(store: str, where: str, hook: Hook = _silent) -> AsyncIterator[Any]:
    """Open an async store, or a sync one in async code; see `opened`."""
    if not is_async(store):
        with opened(store, where, hook) as saver:
            yield saver
        return
    kind: Any = HookedAsyncSqliteSaver if store == "async-sqlite" else HookedAsyncPostgresSaver
    async with kind.from_conn_string(where) as saver:
        saver.hook = hook
        yield saver


@contextmanager
def postgres(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Start a PostgreSQL server for as long as the block runs, its tables made; gives its URI."""
    with warnings.catch_warnings():
        # It looks for a runtime folder that root has none of, and finds another.
        warnings.simplefilter("ignore")
        import pgserver

    server = pgserver.get_server(Path(folder), cleanup_mode="delete")
    try:
        uri = server.get_uri()
        with PostgresSaver.from_conn_string(uri) as saver:
            saver.setup()
        yield uri
    finally:
        server.cleanup()
