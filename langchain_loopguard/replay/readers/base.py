"""Describes a format, and puts the events of a conversation together.

A reader turns JSON values into conversations. It neither opens files nor runs anything: nothing
that a value names is imported or called. What it can't read it reports as a `ConversationError`
that says where; it never drops a call in silence.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from langchain_loopguard.replay.conversation import Conversation, ConversationError
from langchain_loopguard.replay.readers.costs import seconds_of, tokens_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_loopguard.replay.conversation import Event, Outcome

Values: TypeAlias = "list[Any]"
"""JSON values that make one conversation: lines of a file, items of a list, rows of a table."""


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
        read: Reads values of this format: one value, or with `group` those of one run. Of a format
            whose values hold one run, `one_run` makes it.
        group: For a format that spreads a run over several values: the key that the values of
            one run share, `None` for a value that belongs to the run before it. A format without
            it has one run, or several, in each value.
        exact: Whether the reader itself reports calls of an unknown form, so that a run in which
            it finds none has none, whatever else its values hold.
        torn: What to report when values of a run come after those of another, where that tears
            the run; empty where runs may come in turns.
    """

    name: str
    matches: Callable[[Any], bool]
    read: Callable[[Values, Place], Iterator[Conversation]]
    group: Callable[[Any], str | None] | None = None
    exact: bool = False
    torn: str = ""

    def __post_init__(self) -> None:
        """Make sure that no value breaks the search for its format."""
        object.__setattr__(self, "matches", _unbroken(self.matches, wrong=False))
        if self.group is not None:
            object.__setattr__(self, "group", _unbroken(self.group, wrong=None))


@dataclass(frozen=True, slots=True)
class Dialect:
    """One provider's form of chat messages, which may stand in a list, a line each, or a request.

    Attributes:
        name: What a person knows it by.
        knows: Whether a message is of a form that only this dialect has.
        events_of: Reads the messages of one conversation.
        outcome_of: Reads the outcome from the object around the messages.
    """

    name: str
    knows: Callable[[Any], bool]
    events_of: Callable[[list[Any]], list[Event]]
    outcome_of: Callable[[dict[str, Any]], Outcome] = lambda _: "unknown"

    def __post_init__(self) -> None:
        """Make sure that no value breaks the search for its dialect."""
        object.__setattr__(self, "knows", _unbroken(self.knows, wrong=False))


def _unbroken(ask: Callable[[Any], Any], *, wrong: Any) -> Callable[[Any], Any]:
    """Let a question about a value have an answer where the value is malformed."""

    def asked(value: Any) -> Any:
        try:
            return ask(value)
        except Exception:  # noqa: BLE001 - a list where a name belongs, in any key
            return wrong

    return asked


class Events:
    """Puts the events of one conversation together.

    Attributes:
        events: The events so far.
        calls: How many calls they hold.
        name: The conversation's id, empty where it names none.
        outcome: How it ended.
    """

    def __init__(self) -> None:
        """Start without events."""
        self.events: list[Event] = []
        self.calls = 0
        self.name = ""
        self.outcome: Outcome = "unknown"
        self._step: Event | None = None
        self._by_id: dict[str, Event] = {}

    def user(self) -> None:
        """Start a turn: the user gave input."""
        self.events.append({"type": "human"})

    def step(self, calls: Sequence[Event], *, usage: Any = None, at: Any = None) -> None:
        """Add the calls of one AI message; none is no step.

        Args:
            calls: The calls.
            usage: The tokens of the message, as `tokens_of` reads them.
            at: When it was written, as `seconds_of` reads it.
        """
        if calls:
            self._step = {"type": "batch", "calls": [], "results": []}
            told = {"tokens": tokens_of(usage), "at": seconds_of(at)}
            self._step.update({key: value for key, value in told.items() if value is not None})
            self.events.append(self._step)
            self.more_calls(calls)

    def more_calls(self, calls: Sequence[Event]) -> None:
        """Add calls to the latest step, for an AI message that is written piece by piece."""
        if self._step is None:
            self.step(calls)
            return
        self._step["calls"].extend(calls)
        self.calls += len(calls)
        # Ids may start again in every step: a result belongs to the latest call of its id.
        self._by_id.update({one["id"]: self._step for one in calls if one["id"]})

    def begin(self, one: Event) -> None:
        """Add a call of a log that tells when each call began, and no steps.

        Calls that began before the first of them had a result are one step.
        """
        if self._step is None or self._step["results"] or self.events[-1] is not self._step:
            self.step([one])
        else:
            self.more_calls([one])

    def result(self, call_id: Any, content: Any, *, failed: Any = None) -> None:
        """Add what came back for a call.

        Args:
            call_id: The call's id; without one the result belongs to the latest step. The result
                of a call that is not there is dropped.
            content: The content as it came.
            failed: Whether the source says that the call failed. With anything but a bool it says
                nothing, so that the result has no status and the core reads its text.
        """
        step = self._by_id.get(call_id) if isinstance(call_id, str) else self._step
        if step is None:
            return
        result = {"id": call_id, "content": content}
        if isinstance(failed, bool):
            result["status"] = "error" if failed else "success"
        step["results"].append(result)


def one_run(
    fill: Callable[[Events, list[Any]], None],
) -> Callable[[Values, Place], Iterator[Conversation]]:
    """Make a format's `read` of a function that fills in the events of one run of its values."""

    def read(values: Values, place: Place) -> Iterator[Conversation]:
        run = Events()
        fill(run, values)
        yield Conversation(place.source, run.name or place.name, tuple(run.events), run.outcome)

    return read


@contextmanager
def located(where: str) -> Iterator[None]:
    """Have the errors of what is read inside say where it stands."""
    try:
        yield
    except ConversationError as error:
        raise ConversationError(f"{where}: {error}") from None


def events_by_message(
    add: Callable[[Events, dict[str, Any]], None],
) -> Callable[[list[Any]], list[Event]]:
    """Make a dialect's `events_of` of a function that adds one message.

    A message of the model or of the user that was read without a call, and yet looks as if it
    held one, is an error.
    """

    def events_of(messages: list[Any]) -> list[Event]:
        events = Events()
        for number, message in enumerate(messages, 1):
            if not isinstance(message, dict):
                raise ConversationError(f"message {number}: not an object")
            before = events.calls
            try:
                add(events, message)
            except ConversationError as error:
                raise ConversationError(f"message {number}: {error}") from None
            role = message.get("role")
            sign = None if events.calls > before or role == "tool" else sign_of_calls(message)
            if sign is not None:
                raise ConversationError(f"message {number}: calls of an unknown form at {sign}")
        return events.events

    return events_of


_CALL_KEY = re.compile(r"(?i)(?:tool|function)_?(?:calls?|uses?|invocations?|requests?)")
_CALL_KIND = re.compile(
    r"(?i)\A.{0,40}?(?:tool|function|mcp).{0,40}?(?:call|use|invocation|request)s?"
)
_KINDS = frozenset({"type", "kind", "part_kind"})
_ASIDE = frozenset({"tools", "functions", "toolConfig", "metadata", "usage", "extra", "args"})
_DEEP = 6


def sign_of_calls(value: Any, path: str = "", depth: int = 0) -> str | None:
    """Find what looks like a tool call within a message, and say where it is."""
    if depth > _DEEP:
        return None
    if isinstance(value, list):
        inner = ((f"{path}[{at}]", item) for at, item in enumerate(value))
    elif isinstance(value, dict):
        for key, item in value.items():
            here = f"{path}.{key}" if path else key
            if _CALL_KEY.fullmatch(key) and isinstance(item, dict | list) and item:
                return here
            if key in _KINDS and isinstance(item, str) and _CALL_KIND.fullmatch(item):
                return here
        inner = ((f"{path}.{key}" if path else key, value[key]) for key in value.keys() - _ASIDE)
    else:
        return None
    return next((s for at, item in inner if (s := sign_of_calls(item, at, depth + 1))), None)


def call(call_id: Any, name: Any, args: Any) -> Event:
    """Make a call of what a source says; an id that is no text is none.

    Raises:
        ConversationError: If the name is no text, so that the call is of an unknown form.
    """
    if not isinstance(name, str):
        raise ConversationError("a call without a name")
    return {"id": call_id if isinstance(call_id, str) and call_id else None,
            "name": name, "args": args}  # fmt: skip


_JSON = tuple('{["-0123456789tfnNI')
"""How a JSON value begins; most texts are none."""


def parsed_arguments(arguments: Any) -> Any:
    """Read arguments that are written as JSON text, as a host does; other text stays as it is."""
    if not isinstance(arguments, str) or not arguments.lstrip().startswith(_JSON):
        return arguments
    try:
        return orjson.loads(arguments)
    except ValueError:  # Also what Python and some hosts read beyond the standard.
        pass
    try:
        return json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return arguments


def first_text(value: Any, *keys: str) -> str:
    """Return the first of these keys that holds a text that is not empty, or a number."""
    for key in keys if isinstance(value, dict) else ():
        found = value.get(key)
        if (isinstance(found, str) and found) or (type(found) is int):
            return str(found)
    return ""


def as_dict(value: Any) -> dict[str, Any]:
    """Return a value that is an object, an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def dicts_of(value: Any, what: str = "calls") -> list[dict[str, Any]]:
    """Return a list of objects; null is an empty one.

    Raises:
        ConversationError: If it is no list, or not all of it are objects.
    """
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ConversationError(f"{what}: not a list of objects")
    return value


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """Return the blocks of a message's content; a text has none."""
    return [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
