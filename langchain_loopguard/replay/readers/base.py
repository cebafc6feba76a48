"""What does every reader need: how is a format described, and how do events come together?

A reader turns JSON values into conversations. It neither opens files nor runs anything: nothing
that a value names is imported or called.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_loopguard.failures import looks_failed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_loopguard.replay.conversation import Conversation, Event

Values: TypeAlias = "list[Any]"
"""JSON values that make one conversation: lines of a file, or items of a list."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where values come from.

    Attributes:
        source: What to name as the source of a conversation that names none.
        name: What to name as its id when it has none.
    """

    source: str
    name: str


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write a run down.

    Attributes:
        name: What a person knows it by.
        matches: Whether a value is of this format, by its keys alone.
        read: Reads values of this format.
        group: For a format that spreads a run over several values: the key that the values of
            one run share, `None` for a value that belongs to the run before it. A format without
            it has one run, or several, in each value.
    """

    name: str
    matches: Callable[[Any], bool]
    read: Callable[[Values, Place], Iterator[Conversation]]
    group: Callable[[Any], str | None] | None = None

    def __post_init__(self) -> None:
        """Make sure that no value breaks the search for its format."""
        object.__setattr__(self, "matches", _unbroken(self.matches, wrong=False))
        if self.group is not None:
            object.__setattr__(self, "group", _unbroken(self.group, wrong=None))


def _unbroken(ask: Callable[[Any], Any], *, wrong: Any) -> Callable[[Any], Any]:
    """Let a question about a value have an answer where the value is malformed."""

    def asked(value: Any) -> Any:
        try:
            return ask(value)
        except Exception:  # noqa: BLE001 - a list where a name belongs, in any key
            return wrong

    return asked


class Events:
    """Puts the events of one conversation together."""

    def __init__(self) -> None:
        """Start without events."""
        self.events: list[Event] = []
        self._batch: Event | None = None
        self._by_id: dict[str, Event] = {}

    def human(self) -> None:
        """A person spoke."""
        self.events.append({"type": "human"})

    def batch(self, calls: Sequence[Event]) -> None:
        """Add the calls of one model turn; none is no batch."""
        if not calls:
            return
        self._batch = {"type": "batch", "calls": list(calls), "results": []}
        self.events.append(self._batch)
        # Ids may start anew in every turn: the latest call of an id is the one that is answered.
        self._by_id.update({call["id"]: self._batch for call in calls if call["id"]})

    def more_calls(self, calls: Sequence[Event]) -> None:
        """Add calls to the latest batch, for a model turn that is written down piece by piece."""
        if self._batch is None:
            self.batch(calls)
            return
        self._batch["calls"].extend(calls)
        self._by_id.update({call["id"]: self._batch for call in calls if call["id"]})

    def answer(self, call_id: Any, content: Any, *, failed: bool | None = None) -> None:
        """Add what came back for a call.

        Args:
            call_id: The call's id; without one it belongs to the latest batch. The answer of a
                call that is not there is dropped.
            content: The content as it came.
            failed: Whether the source says that the call failed; `None` when it says nothing, so
                that the text has to tell.
        """
        batch = self._by_id.get(call_id) if isinstance(call_id, str) else self._batch
        if batch is None:
            return
        if failed is None:
            failed = looks_failed(content)
        status = "error" if failed else "success"
        batch["results"].append({"id": call_id, "content": content, "status": status})


def call(call_id: Any, name: Any, args: Any) -> Event:
    """Make a call of what a source says; an id that is no text is none."""
    return {
        "id": call_id if isinstance(call_id, str) and call_id else None,
        "name": name if isinstance(name, str) else "",
        "args": args,
    }


def parsed_arguments(arguments: Any) -> Any:
    """Read arguments that are written as JSON text, as a host does; other text stays as it is."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return arguments


def first_text(value: dict[str, Any], *keys: str) -> str:
    """Give the first of these keys that holds a text that is not empty, or a number."""
    for key in keys:
        found = value.get(key)
        if (isinstance(found, str) and found) or (type(found) is int):
            return str(found)
    return ""
