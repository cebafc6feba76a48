"""Does a loop go on that was flagged before the user spoke?

A user turn clears every count, so that asking the same thing in nine turns is no loop. But an
interruption must not hand a running loop a fresh counter: in the incident the model went on for
138 calls after one. So calls that were flagged stay on probation. Each may run once in the new
turn; its first repeat with the same answer is flagged again at once, a changed answer acquits.

What it does not see: the loop in other words, which the rules find anew, and a call that was
flagged before the last turn in which anything was flagged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.core import stored
from langchain_loopguard.core.decision import Action, Finding
from langchain_loopguard.core.latest import keep_latest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_loopguard.core.batch import Batch, Outcome

RULE = "probation"
"""What its findings name as their rule."""

_MAX_CALLS = 16
"""Calls on probation, oldest out first."""


class Probation:
    """The calls flagged so far, and what they answered in this turn.

    Attributes:
        watched: The calls that are watched in this turn, with their answers.
    """

    __slots__ = ("_back", "_flagged", "watched")

    def __init__(self) -> None:
        """Start with nobody on probation."""
        self._flagged: dict[int, None] = {}
        self.watched: dict[int, int | None] = {}
        # The watched calls that were repeated in this turn.
        self._back: dict[int, None] = {}

    def flag(self, keys: Iterable[int]) -> None:
        """Remember the calls of a batch that was flagged in this turn."""
        for key in keys:
            self._flagged.pop(key, None)
            self._flagged[key] = None
        keep_latest(self._flagged, _MAX_CALLS)

    def acquit(self, keys: Iterable[int]) -> None:
        """A person let these calls go on."""
        for key in keys:
            self._flagged.pop(key, None)
            self.watched.pop(key, None)
            self._back.pop(key, None)

    def human_message(self) -> None:
        """A user turn: what was flagged in the last one is watched in this one."""
        self._back = {}
        if self._flagged:
            self.watched = dict.fromkeys(self._flagged)
            self._flagged = {}
        else:
            # Watched for a whole turn without a repeat.
            self.watched = {key: None for key, ran in self.watched.items() if ran is None}

    def record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        """Hold a batch's answers against those of the watched calls."""
        for place, key in enumerate(batch.keys):
            answer = outcome.results[place]
            if key not in self.watched or answer is None:
                continue
            before = self.watched[key]
            if before is None:
                self.watched[key] = answer.digest
            elif before == answer.digest:
                self._back[key] = None
                return _finding(batch.names[place], key, batch.number)
            else:
                del self.watched[key]
                self._back.pop(key, None)
        return None

    def check(self, batch: Batch) -> Finding | None:
        """Ask again about a watched call that was repeated in this turn already."""
        for place, key in enumerate(batch.keys):
            if key in self._back:
                return _finding(batch.names[place], key, batch.number)
        return None

    def to_state(self) -> dict[str, Any]:
        """Give what is remembered in JSON types."""
        return {
            "flagged": [f"{key:x}" for key in self._flagged],
            "back": [f"{key:x}" for key in self._back],
            "watched": {
                f"{key:x}": None if answer is None else f"{answer:x}"
                for key, answer in self.watched.items()
            },
        }

    def load_state(self, state: Any) -> None:
        """Take over what `to_state` gave; raises on a state of another form."""
        flagged = dict.fromkeys(stored.digests(state["flagged"], _MAX_CALLS))
        watched = {
            stored.digest(key): stored.digest_or_none(answer)
            for key, answer in stored.mapping(state["watched"], _MAX_CALLS).items()
        }
        self._back = dict.fromkeys(stored.digests(state["back"], _MAX_CALLS))
        self._flagged, self.watched = flagged, watched


def _finding(tool: str, key: int, number: int) -> Finding:
    return Finding(
        RULE,
        Action.ASK,
        tools=(tool,),
        count=2,
        threshold=2,
        since=number,
        loop=f"{RULE}:{key:x}",
        to_model=(
            "This repeats what was already going round in circles before the user's last "
            "message, with the same answer. Follow the user's message, try a different "
            "approach, or say what is missing and finish."
        ),
        to_person=(
            f"The agent went back to a loop that was flagged before your last message: {tool} "
            "with the same arguments and the same answer."
        ),
    )
