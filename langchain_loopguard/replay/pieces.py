"""How does the input come in pieces that can be read apart, in another process too?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from langchain_loopguard.replay.conversation import Conversation, ConversationError
from langchain_loopguard.replay.problems import Problem
from langchain_loopguard.replay.readers import read_values
from langchain_loopguard.replay.readers.langgraph_postgres import SCHEMES, PostgresStore
from langchain_loopguard.replay.readers.langgraph_sqlite import SqliteStore
from langchain_loopguard.replay.streams import MAX_LINE, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_loopguard.replay.readers.checkpoints import Thread


class Piece(Protocol):
    """A part of the input."""

    @property
    def size(self) -> int:
        """How many bytes of the input it stands for, 0 when that is not known."""

    def read(self) -> Iterator[Conversation | Problem]:
        """Read what it holds; never raises for bad input."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a file, each with its number; `None` for one that was too long."""

    source: str
    lines: list[tuple[int, bytes | None]]
    size: int

    def read(self) -> Iterator[Conversation | Problem]:
        """Read each line as a JSON value."""
        problems: list[Problem] = []
        for found in read_values(self._values(problems), self.source):
            yield from problems
            problems.clear()
            yield found
        yield from problems

    def _values(self, problems: list[Problem]) -> Iterator[tuple[int, Any]]:
        for number, line in self.lines:
            if line is None:
                text = f"longer than {MAX_LINE // 2**20} MB, skipped"
                problems.append(Problem(self.source, text, number))
            elif not line.isspace():
                try:
                    value = parse(line)
                except ValueError as error:
                    problems.append(Problem(self.source, f"not JSON: {error}", number))
                else:
                    yield number, value


@dataclass(frozen=True, slots=True)
class Items:
    """Values that are read already: a document as one of them, or items of a list."""

    source: str
    values: list[tuple[int, Any]]
    size: int
    unit: str = "item"

    def read(self) -> Iterator[Conversation | Problem]:
        """Read the values."""
        return read_values(self.values, self.source, unit=self.unit)


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of a checkpointer."""

    address: str
    source: str
    threads: list[Thread]
    size: int = 0

    def read(self) -> Iterator[Conversation | Problem]:
        """Read the threads."""
        try:
            store = open_store(self.address)
        except ConversationError as error:
            yield Problem(self.source, str(error))
            return
        # Loads langchain_core, which takes longer than reading most inputs.
        from langchain_loopguard.replay.readers.langgraph import read_thread  # noqa: PLC0415

        try:
            for thread in self.threads:
                try:
                    yield read_thread(store, thread, self.source)
                except ConversationError as error:
                    yield Problem(f"{self.source}, thread {thread.name}", str(error))
        finally:
            store.close()


def open_store(address: str) -> SqliteStore | PostgresStore:
    """Open a checkpointer's file or database.

    Raises:
        ConversationError: If it can't be read.
    """
    return PostgresStore(address) if is_postgres(address) else SqliteStore(address)


def is_postgres(name: str) -> bool:
    """Tell whether a path is the address of a Postgres database."""
    return name.startswith(SCHEMES)
