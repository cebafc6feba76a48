"""Did batch after batch bring nothing new?

Finds cycles of any period, whatever is called: what is counted is that nothing came of it. A
first call with a short answer counts neither way, and neither does a thought that the model has a
tool take down. But thoughts in a row without end, each in new words, are a loop as well.

What it does not see, each with what looks the same and is none:

- ever new calls with a one-line answer (good-bye chatter, searches in vain): silent commands
  and receipts;
- a first change in every lap, such as an order with a fresh key or a rewritten to-do list: work;
- a lap of more lines than `progress.GENERATION` twice over: reading on.

What it takes for a loop though it may be none: ever new shell commands that print the same few
lines from the first one on, as ever new spellings of one command do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core import stored
from langchain_loopguard.core.decision import Action, Finding
from langchain_loopguard.core.progress import News
from langchain_loopguard.core.rules.base import Rule, RuleConfig
from langchain_loopguard.core.tools import kept_name, waits

if TYPE_CHECKING:
    from langchain_loopguard.core.batch import Batch, Outcome

_LOOP = "nothing_new"
_SOMETHING, _UNDECIDED = News.SOMETHING, News.UNDECIDED

_MAX_TOOLS = 8
"""Tool names kept for the finding."""


class NothingNew(RuleConfig):
    """Batches in a row that brought nothing new."""

    needs_progress: ClassVar[bool] = True
    counts_in_check: ClassVar[bool] = False

    rising: ClassVar = (("warn", "ask"),)

    rule: Literal["nothing_new"] = "nothing_new"

    warn: int = Field(default=4, ge=1)
    """Tell the model.

    Measured: 3 to 7 warn 4 of 366 solved runs, 2 warns 8, 1 warns 25; 5 warns in the incident at
    call 15 instead of 9."""

    ask: int = Field(default=8, ge=1)
    """The loop is detected.

    Measured: good runs go up to 2 (solved) and 3 (benign), and 5 to 18 ask about the same runs,
    on average 3.95 to 5.15 batches after the first repeat. 9 asks in the incident at call 19
    instead of 18, 7 about seven files that are read twice over."""

    after_work: int = Field(default=2, ge=0)
    """Steps that may bring nothing after a shell command that may have changed something: a run
    and a lint after an edit.

    Measured: on the runs no number makes a difference. Of the invented shapes, 1 asks about edits
    by shell that are run and linted with the same failing output, 3 finds rotations of shell
    commands too late."""

    first_looks: int = Field(default=2, ge=1)
    """So many steps that look somewhere for the first time, and find there what is known, count
    for one: whoever checks one place after the other may do so for a reason.

    Measured: on the runs 1 to 6 make no difference. Of the invented shapes, 1 asks about six
    checks of nine places and more that each find the same three lines; 2 finds new spellings of
    one look at the 17th instead of the 11th, 3 finds two more loops too late."""

    thoughts: int = Field(default=25, ge=2)
    """So many thoughts in a row, with nothing done between them, are a loop.

    Measured: on the runs the longest row is 2, so any number gives the same figures. Of the
    invented shapes, 20 asks about twenty thoughts before a decision."""

    def build(self) -> Rule:
        """Make fresh counters."""
        return _NothingNewRule(self)


class _NothingNewRule:
    def __init__(self, config: NothingNew) -> None:
        self._config = config
        self._count = 0
        self._since = 0
        self._tools: list[str] = []
        self._due = False
        self._free = 0
        self._clocks = 0
        self._looks = 0
        self._thoughts = 0

    def check(self, batch: Batch) -> Finding | None:
        if self._thoughts >= self._config.thoughts and _thinks(batch):
            return self._spins(batch, batch.number - 1)
        if self._count < self._config.ask or not (self._due or batch.ran_before):
            return None
        # A batch that did not run before meets the question once. If it was refused, the next
        # new one is let through: it may be the way out.
        self._due = False
        return self._finding(Action.ASK, self._config.ask)

    def record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        if outcome.news is _SOMETHING:
            self._count = self._clocks = self._looks = self._thoughts = 0
            return None
        if outcome.worked:
            self._free = self._config.after_work
        if outcome.news is _UNDECIDED:
            return self._undecided(batch, outcome)
        self._thoughts = 0
        calls = zip(batch.traits, batch.canonical, strict=True)
        if all(traits.poller or waits(traits, arguments) for traits, arguments in calls):
            return None
        if self._free:
            self._free -= 1
            return None
        if outcome.first_look and self._count < self._config.ask:
            self._looks += 1
            if self._looks < self._config.first_looks:
                return None
            self._looks = 0
        self._add(batch)
        if self._count >= self._config.ask:
            self._due = True
            return self._finding(Action.ASK, self._config.ask)
        if self._count >= self._config.warn:
            return self._finding(Action.WARN, self._config.warn)
        return None

    def _undecided(self, batch: Batch, outcome: Outcome) -> Finding | None:
        self._clocks += outcome.clock_only
        self._thoughts = self._thoughts + 1 if _thinks(batch) else 0
        if self._thoughts < self._config.thoughts:
            return None
        return self._spins(batch, batch.number)

    def _add(self, batch: Batch) -> None:
        if self._count == 0:
            self._since = batch.number
            self._tools = []
        self._count += 1
        if not all(traits.read_only for traits in batch.traits):
            # Answers new by a clock alone are no proof of a loop, until a change that is made
            # again between them shows that nobody is waiting.
            self._count += self._clocks
            self._clocks = 0
        if len(self._tools) < _MAX_TOOLS:
            names = [kept_name(name) for name in batch.names]
            self._tools = list(dict.fromkeys([*self._tools, *names]))[:_MAX_TOOLS]

    def human_message(self) -> None:
        self._count = self._clocks = self._free = self._looks = self._thoughts = 0

    def approve(self, loop: str) -> None:  # noqa: ARG002 - there is one count
        self.human_message()

    def to_state(self) -> dict[str, Any]:
        return {
            "count": self._count,
            "clocks": self._clocks,
            "free": self._free,
            "due": self._due,
            "looks": self._looks,
            "thoughts": self._thoughts,
            "since": self._since,
            "tools": self._tools,
        }

    def load_state(self, state: Any) -> None:
        count, clocks, free = map(stored.count, (state["count"], state["clocks"], state["free"]))
        looks, thoughts = (stored.count(state.get(name, 0)) for name in ("looks", "thoughts"))
        tools = [stored.text(tool) for tool in stored.entries(state["tools"], _MAX_TOOLS)]
        self._since, self._due = stored.count(state["since"]), stored.flag(state["due"])
        self._count, self._clocks, self._free, self._tools = count, clocks, free, tools
        self._looks, self._thoughts = looks, thoughts

    def _finding(self, action: Action, threshold: int) -> Finding:
        tools = ", ".join(self._tools)
        return Finding(
            "nothing_new",
            action,
            tools=self._tools,
            count=self._count,
            threshold=threshold,
            since=self._since,
            loop=_LOOP,
            to_model=(
                "The last steps brought nothing that was not known before. Take stock of what "
                "you have: choose a different approach, or say what is missing and finish."
            ),
            to_person=(
                f"{self._count} steps in a row brought nothing new (limit {threshold}). "
                f"Tools: {tools}."
            ),
        )

    def _spins(self, batch: Batch, last: int) -> Finding:
        limit = self._config.thoughts
        return Finding(
            "nothing_new",
            Action.ASK,
            tools=[kept_name(name) for name in batch.names[:_MAX_TOOLS]],
            count=self._thoughts,
            threshold=limit,
            since=max(1, last - self._thoughts + 1),
            loop=f"{_LOOP}:thoughts",
            to_model=(
                "You have been thinking for many steps without doing anything. Act on what you "
                "have concluded, or say what is missing and finish."
            ),
            to_person=(
                f"The agent took down {self._thoughts} thoughts in a row and did nothing in "
                f"between (limit {limit})."
            ),
        )


def _thinks(batch: Batch) -> bool:
    return all(traits.thinking for traits in batch.traits)
