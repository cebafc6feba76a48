"""One number for a run: how much of it went nowhere.

1 is a run without a loop, 0 one that was nothing but a loop: the share of steps that were not
wasted. A step is wasted when it comes after the guard's first warning and brought nothing: the
guard found something at it too, or all its results had come before for the same call. The better
run has the higher number, as evaluators of LangSmith and openevals expect.

`score` takes a `Conversation`, a list of messages of any format that `replay` reads, or LangChain
messages as they are; `loop_evaluator` has the form of an evaluator, `assert_no_loop` is for tests.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import Conversation, ConversationError, Problem
from langchain_loopguard.replay.readers import read_values
from langchain_loopguard.replay.run import replay as replay_run
from langchain_loopguard.replay.totals import Problems

if TYPE_CHECKING:
    from langchain_loopguard import LoopGuardPolicy
    from langchain_loopguard.replay.verdicts import FoundAt, ReplayReport

KEY = "no_loop"
"""What the evaluator calls its number."""


@dataclass(frozen=True, slots=True)
class Score:
    """A run's score and what stands behind it.

    Attributes:
        value: 0 to 1, the share of steps that were not wasted; 1 for a run without steps.
        steps: How many steps the run has.
        wasted: How many of them came after the first warning and brought nothing.
        report: What the guard would have said.
    """

    value: float
    steps: int
    wasted: int
    report: ReplayReport

    @property
    def findings(self) -> tuple[FoundAt, ...]:
        """What the rules found, in order."""
        return self.report.findings

    @property
    def comment(self) -> str:
        """The score in words; holds no argument and no result."""
        if not self.findings:
            return f"no loop in {self.steps} steps"
        found = self.findings[-1]
        return (
            f"{self.wasted} of {self.steps} steps brought nothing after the first warning at step"
            f" {self.findings[0].step}; {found.why}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it in JSON types."""
        told = {"source": self.report.source, "id": self.report.id, "score": self.value}
        counts = {"steps": self.steps, "wasted": self.wasted, "comment": self.comment}
        return {**told, **counts, "findings": [found.as_dict() for found in self.findings]}


def score(run: Any, policy: LoopGuardPolicy | None = None) -> Score:
    """Score one run.

    Args:
        run: A `Conversation`; or messages, as LangChain's objects or as JSON values; or anything
            that holds them under `messages`, such as an agent's state.
        policy: The guard's policy, `LoopGuardPolicy()` by default.

    Raises:
        ConversationError: If it holds no messages of a known form.
    """
    report = replay_run(conversation_of(run), policy)
    found = [finding.step for finding in report.findings]
    after = [step for step in report.steps if found and step.number > found[0]]
    wasted = sum(step.brought_nothing for step in after)
    steps = report.step_count
    return Score(1 - wasted / steps if steps else 1.0, steps, wasted, report)


def loop_evaluator(
    *,
    inputs: Any = None,
    outputs: Any = None,
    reference_outputs: Any = None,
    policy: LoopGuardPolicy | None = None,
) -> dict[str, Any]:
    """Score the messages in `outputs`, as an evaluator of LangSmith's `evaluate` or openevals.

    Args:
        inputs: What the run was given; not looked at.
        outputs: What it gave: an agent's state, or its messages.
        reference_outputs: Not looked at.
        policy: The guard's policy, `LoopGuardPolicy()` by default.

    Returns:
        `key` (`no_loop`), `score` from 0 to 1, and a `comment` that says why.

    Raises:
        ConversationError: If the outputs hold no messages of a known form.
    """
    del inputs, reference_outputs
    made = score(outputs, policy)
    return {"key": KEY, "score": made.value, "comment": made.comment}


def assert_no_loop(
    messages: Any, *, least: float = 1.0, policy: LoopGuardPolicy | None = None
) -> None:
    """Fail a test whose agent ran in circles.

    Args:
        messages: As for `score`.
        least: The lowest score that passes; at 1 a person must never have been asked either.
        policy: The guard's policy, `LoopGuardPolicy()` by default.

    Raises:
        AssertionError: If the score is lower; the message names rule, tools and count.
        ConversationError: If there are no messages of a known form.
    """
    made = score(messages, policy)
    if made.value < least or (least >= 1 and made.report.looped):
        raise AssertionError(f"score {made.value:.2f} is below {least:.2f}: {made.comment}")


def conversation_of(run: Any) -> Conversation:
    """Read a run that is in memory.

    Raises:
        ConversationError: If it holds no messages of a known form.
    """
    if isinstance(run, Conversation):
        return run
    if isinstance(run, dict) and isinstance(run.get("messages"), list | tuple):
        run = run["messages"]
    if isinstance(run, list | tuple):
        run = [one.model_dump() if hasattr(one, "model_dump") else one for one in run]
        if not run:
            return Conversation("", "", ())
    found = list(read_values([(1, run)], "the run", unit="value"))
    runs = [one for one in found if isinstance(one, Conversation)]
    if len(runs) != 1:
        wrong = next((one.text for one in found if isinstance(one, Problem)), "not one run")
        raise ConversationError(f"no messages of a known form: {wrong}")
    return runs[0]


def score_alone(run: Conversation, policy: LoopGuardPolicy) -> Score:
    """Score a run and leave out its steps, which are what takes space."""
    made = score(run, policy)
    return replace(made, report=replace(made.report, steps=()))


@dataclass(slots=True)
class Scores:
    """The mean of many scores, the lowest of them, and what was not read."""

    keep: int = 20
    runs: int = 0
    total: float = 0.0
    minimum: float = 1.0
    problems: Problems = field(default_factory=Problems)
    _low: list[tuple[float, int, Score]] = field(default_factory=list)

    def add(self, made: Score) -> None:
        """Count one run."""
        self.runs += 1
        self.total += made.value
        self.minimum = min(self.minimum, made.value)
        if made.findings:
            # The number read keeps the order, and keeps scores from being compared.
            insort(self._low, (made.value, self.runs, made))
            del self._low[self.keep :]

    @property
    def mean(self) -> float:
        """The mean score."""
        return self.total / self.runs if self.runs else 1.0

    @property
    def lowest(self) -> list[Score]:
        """The runs in which something was found with the lowest scores, lowest first."""
        return [made for _, _, made in self._low]

    def as_dict(self) -> dict[str, Any]:
        """Return the sums in JSON types."""
        sums = {"runs": self.runs, "mean": self.mean, "lowest": self.minimum}
        return {"problems": self.problems.as_dicts(), "summary": sums}
