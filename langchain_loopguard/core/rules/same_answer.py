"""Did the same call get the same answer again?

The strongest sign of a loop, at any distance, as long as nothing happened in between that makes
it worth asking again: another call that said something new, or a change that succeeded. A
changed answer starts the count again.

Calls are counted, not batches: the order of parallel calls is free, and equal calls inside one
batch are as many. What it does not see: a call that gets two answers in turn (`nothing_new`
does), one whose answer grows (`unbroken_call` does), one whose every repeat shares its batch
with news, and ever other spellings of one call (`nothing_new` does, when the answer is longer
than a line).
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from langchain_loopguard.core import stored
from langchain_loopguard.core.decision import Action, Finding
from langchain_loopguard.core.latest import keep_latest
from langchain_loopguard.core.rules.base import Rule, RuleConfig
from langchain_loopguard.core.tools import waits

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.batch import Batch, Outcome

_MAX_CALLS = 24
"""Calls counted at once, oldest out first; longer cycles are `nothing_new`'s."""


class SameAnswer(RuleConfig):
    """The same call with the same answer. Counts include the first occurrence."""

    needs_progress: ClassVar[bool] = True
    counts_in_check: ClassVar[bool] = False

    rising: ClassVar = (("warn", "ask", "ask_poller"),)

    rule: Literal["same_answer"] = "same_answer"

    warn: int = Field(default=3, ge=2)
    """Tell the model. Three equal calls in a row prove nothing: asking there stops good work.

    Measured: 2 warns 14 of 366 solved runs instead of 4, 4 and 5 warn 3."""

    ask: int = Field(default=5, ge=2)
    """The loop is detected.

    Measured: good runs go up to 3 (solved) and 4 (benign). 4 asks about 1 of 19 labelled benign
    runs and 2 benign cases, 3 about 5 and 4 and about 2 more solved runs; 6 misses 3 of 20
    labelled loops, 8 misses 5."""

    ask_poller: int = Field(default=20, ge=2)
    """The same for tools declared as pollers. A reported poll of 1,535 calls cost 150 dollars,
    so they have a limit too. No measured run declares a poller: 15 to 30 give the same
    figures."""

    ask_clock: int = Field(default=15, ge=2)
    """The same for a call that only reads and whose answers differ by a clock alone, and for a
    shell command that waits by itself before it looks (`sleep 60 && ...`). Below `ask` it is
    `ask`, since equal answers differ by a clock alone too.

    The seed's allowance for reading. Measured: good runs go up to 4; 10 to 25 give the same
    figures. Of the invented shapes, 10 asks about a deployment that is looked at eleven times."""

    def build(self) -> Rule:
        """Make fresh counters."""
        return _SameAnswerRule(self)


class _Count:
    # What most counts never change is the class's: there is one for every call that is new.
    equal = 1
    clock = 1
    masked: int | None = None
    answer: int | None
    since: int

    def add(self, answer: Answer) -> None:
        digest = _identity(answer)
        if self.equal == 0 or digest == self.answer:
            self.equal += 1
            self.clock += 1
        elif self.answer is None:
            self.equal = self.clock = self.equal + 1
        else:
            # What the first answer was without its clock is not known, to spare every first
            # answer the work: the second is taken for equal, the third tells.
            masked = answer.masked_digest
            first = self.masked is None and self.equal == 1
            self.clock = self.clock + 1 if first or self.masked == masked else 1
            self.masked = masked
            self.equal = 1
        self.answer = digest

    def add_unknown(self, *, in_a_row: bool) -> None:
        # An unknown answer is no rescue, but only back to back is it a repetition.
        self.equal = self.clock = self.equal + 1 if in_a_row else 1
        self.answer = None

    def start_again(self) -> None:
        if self.equal > 1:
            self.equal = self.clock = 1


class _SameAnswerRule:
    def __init__(self, config: SameAnswer) -> None:
        self._config = config
        self._ask_clock = max(config.ask, config.ask_clock)
        self._counts: dict[int, _Count] = {}
        self._last: tuple[int, ...] = ()
        # Whether a poller was called, and since then nothing but helpers and pollers.
        self._waiting = False

    def check(self, batch: Batch) -> Finding | None:
        counts = self._counts
        for place, key in enumerate(batch.keys):
            count = counts.get(key)
            finding = None if count is None else self._judge(batch, place, count)
            if finding is not None and finding.action is Action.ASK:
                return finding
        return None

    def record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        counts = self._counts
        if len(batch.keys) != 1 or batch.digest in counts:
            return self._record(batch, outcome)
        # By far the most frequent case, told apart for speed alone.
        (answer,) = outcome.results
        count = _Count()
        count.since = batch.number
        if answer is None:
            count.answer = None
        else:
            count.answer = answer.error_digest if answer.error else answer.digest
        if outcome.worked:
            counts.clear()
        elif len(counts) >= _MAX_CALLS:
            del counts[next(iter(counts))]
        counts[batch.digest] = count
        self._last = batch.keys
        self._waiting = batch.traits[0].poller or (self._waiting and _helps(batch, 0, answer))
        return None

    def _record(self, batch: Batch, outcome: Outcome) -> Finding | None:
        helps = [_helps(batch, place, answer) for place, answer in enumerate(outcome.results)]
        fresh = set(batch.keys) if outcome.worked else set()
        if outcome.worked:
            self._counts = {key: self._counts[key] for key in fresh & self._counts.keys()}
        counts = self._counts
        found: Finding | None = None
        for place, key in enumerate(batch.keys):
            answer = outcome.results[place]
            count = counts.pop(key, None)
            if count is None or (self._waiting and key not in self._last and helps[place]):
                count = _counted(batch.number)
            counts[key] = count
            if answer is None:
                count.add_unknown(in_a_row=key in self._last)
            else:
                count.add(answer)
                if key in fresh:
                    count.start_again()
            fresh.discard(key)
            if count.equal == 1 and count.clock == 1:
                count.since = batch.number
            finding = self._judge(batch, place, count)
            if finding is not None and (found is None or finding.action > found.action):
                found = finding
        keep_latest(counts, _MAX_CALLS)
        self._last = batch.keys[:_MAX_CALLS]
        polls = [traits.poller for traits in batch.traits]
        waits_on = all(map(operator.or_, polls, helps))
        self._waiting = waits_on and (self._waiting or any(polls))
        return found

    def human_message(self) -> None:
        self._counts.clear()
        self._last = ()
        self._waiting = False

    def approve(self, loop: str) -> None:  # noqa: ARG002 - whatever it is, it may go on
        self.human_message()

    def to_state(self) -> dict[str, Any]:
        return {
            "last": [f"{key:x}" for key in self._last],
            "waiting": self._waiting,
            "counts": [
                [
                    f"{key:x}",
                    count.equal,
                    count.clock,
                    _text(count.answer),
                    _text(count.masked),
                    count.since,
                ]
                for key, count in self._counts.items()
            ],
        }

    def load_state(self, state: Any) -> None:
        last = tuple(stored.digests(state["last"], _MAX_CALLS))
        counts = {}
        for key, equal, clock, answer, masked, since in stored.entries(state["counts"], _MAX_CALLS):
            count = counts[stored.digest(key)] = _counted(stored.count(since))
            count.equal, count.clock = stored.count(equal), stored.count(clock)
            count.answer = stored.digest_or_none(answer)
            count.masked = stored.digest_or_none(masked)
        self._waiting = stored.flag(state.get("waiting", False))  # Older states have none.
        self._last, self._counts = last, counts

    def _judge(self, batch: Batch, place: int, count: _Count) -> Finding | None:
        traits, config = batch.traits[place], self._config
        limit = config.ask_poller if traits.poller else config.ask
        patient = count.clock >= limit and waits(traits, batch.canonical[place])
        if count.equal >= limit and not patient:
            return self._finding(Action.ASK, batch, place, count.equal, limit)
        limit = config.ask_poller if traits.poller else self._ask_clock
        if count.clock >= limit and (traits.read_only or traits.poller or patient):
            return self._finding(Action.ASK, batch, place, count.clock, limit)
        if count.equal >= config.warn and not traits.poller:
            return self._finding(Action.WARN, batch, place, count.equal, config.warn)
        return None

    def _finding(
        self, action: Action, batch: Batch, place: int, count: int, threshold: int
    ) -> Finding:
        tool = batch.names[place]
        key = batch.keys[place]
        return Finding(
            "same_answer",
            action,
            tools=(tool,),
            count=count,
            threshold=threshold,
            since=self._counts[key].since,
            loop=f"same_answer:{key:x}",
            to_model=(
                "This answer is one you already have, and asking again will not change it. Use "
                "what you know, try a different approach, or say what is missing and finish."
            ),
            to_person=(
                f"The agent called {tool} {count} times with the same arguments and got the same "
                f"answer, with no progress in between (limit {threshold})."
            ),
        )


def _counted(since: int) -> _Count:
    count = _Count()
    count.equal = count.clock = 0
    count.answer = None
    count.since = since
    return count


def _helps(batch: Batch, place: int, answer: Answer | None) -> bool:
    """Tell whether a call only takes down a thought or lets time pass.

    One that waits and then looks has an answer, and is none.
    """
    if batch.traits[place].thinking:
        return True
    silent = answer is not None and not answer.error and not answer.text.strip()
    return silent and waits(batch.traits[place], batch.canonical[place])


def _identity(answer: Answer) -> int:
    return answer.error_digest if answer.error else answer.digest


def _text(digest: int | None) -> str | None:
    return None if digest is None else f"{digest:x}"
