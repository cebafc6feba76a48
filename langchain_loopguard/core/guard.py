"""May this batch run, and what did its answers reveal?

The guard runs a policy's rules over one conversation and turns their findings into one
decision. It is a state machine without I/O, clock, logging or globals: whoever calls it says
what happened, in order.

Rules of this file:

- A rule finds; the guard only picks the strongest finding and counts refusals.
- A record is used once. A second use, or a record of a refused batch, changes nothing.
- An empty batch is never counted and breaks nothing.
- The state is JSON, versioned and of bounded size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from xxhash import xxh3_64_intdigest

from langchain_loopguard.core import stored
from langchain_loopguard.core.answers import match_results, match_single
from langchain_loopguard.core.batch import Batch, Outcome, single_batch, single_outcome
from langchain_loopguard.core.calls import call_arguments, read_call
from langchain_loopguard.core.canonical import canonical_arguments
from langchain_loopguard.core.decision import Action, Decision, Finding, allowed
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.ledger import Ledger, LedgerReading
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.probation import Probation
from langchain_loopguard.core.progress import News, Progress
from langchain_loopguard.core.stagnation import StagnationDetector, stagnation_finding
from langchain_loopguard.core.step_lines import StepLines
from langchain_loopguard.core.tools import ToolTraits, declared_traits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.calls import ToolCall
    from langchain_loopguard.core.detector import BatchRecord
    from langchain_loopguard.core.rules import Rule

_Tool: TypeAlias = "tuple[tuple[str, ...], tuple[ToolTraits, ...], int]"
"""A tool's name and its traits, each as a batch of one call has it, and the seed by which its
calls are hashed."""

STATE_VERSION = 1
"""The version `to_state` writes; a state of another version is not read."""

_LET_GO: tuple[bytes, ...] = ()
"""Takes the place of the arguments of a batch that was answered."""

_MAX_TOOLS = 1024
"""Tool names whose traits are kept at hand; a model may invent names without end."""

_MAX_RULES = 64
"""Rules in a stored state, those that the policy no longer lists included."""

_MAX_REFUSED_LOOPS = 16
"""Refused loops remembered in one user turn. A run ends after a few refusals of one loop, so
more than a handful at once has not been seen; the bound keeps the state small."""


class LoopGuard:
    """Watches the tool calls of one conversation for loops.

    Not safe for use by several threads at once; the adapters hold one guard a conversation.
    """

    def __init__(self, policy: LoopGuardPolicy | None = None) -> None:
        """Start with empty counters.

        Args:
            policy: The rules and their numbers; `None` is `LoopGuardPolicy()`.
        """
        self.policy = LoopGuardPolicy() if policy is None else policy
        self._rules: list[tuple[str, Rule]] = [
            (config.rule, config.build()) for config in self.policy.rules
        ]
        self._progress: Progress | None = None
        self._probation: Probation | None = None
        self._step_lines: StepLines | None = None
        if any(config.needs_progress for config in self.policy.rules):
            self._progress = Progress()
            self._step_lines = StepLines()
            self._probation = Probation() if self.policy.probation else None
        self._checks = [rule.check for _, rule in self._rules]
        self._counting_checks = [
            rule.check
            for config, (_, rule) in zip(self.policy.rules, self._rules, strict=True)
            if config.counts_in_check
        ]
        self._records = [rule.record for _, rule in self._rules]
        self._hearing = [
            rule.record
            for config, (_, rule) in zip(self.policy.rules, self._rules, strict=True)
            if config.needs_progress
        ]
        self._asked = False
        self._ledger = Ledger()
        self._stagnation: StagnationDetector | None = None
        if self.policy.stagnation is not None:
            self._stagnation = StagnationDetector(self.policy.stagnation)
        self._declared: dict[str, ToolTraits] = {}
        self._tools: dict[str, _Tool] = {}
        self._batches = 0
        self._refused: dict[str, int] = {}

    def check(self, calls: Sequence[ToolCall]) -> Decision:
        """Count a batch that is about to run and say what is to happen with it.

        Args:
            calls: The tool calls of one AI message: `{"name", "args", "id"}`. Odd values never
                raise.

        Returns:
            The decision. Its `record` goes to `record_results` once the answers are known.
        """
        if not calls:
            empty = self._batch((), 0)
            empty.used = True
            return allowed(empty)
        self._batches += 1
        batch = self._batch(calls, self._batches)
        checks: Sequence[Callable[[Batch], Finding | None]] = self._counting_checks
        if self._asked:
            checks = self._checks
            if self._progress is not None:
                batch.ran_before = self._progress.ran_before(batch)
        findings: list[Finding] | None = None
        for check in checks:
            finding = check(batch)
            if finding is not None:
                findings = [finding] if findings is None else [*findings, finding]
        if self._probation is not None and self._probation.watched:
            finding = self._probation.check(batch)
            if finding is not None:
                findings = [finding] if findings is None else [*findings, finding]
        if findings is None:
            return allowed(batch)
        for finding in findings:
            self._stop_if_refused(finding)
        return self._decision(findings, batch)

    def record_results(  # noqa: C901 - one pass, in the order of what happens
        self, record: BatchRecord, results: Sequence[Any]
    ) -> Decision:
        """Take in what a batch got back.

        Args:
            record: The `record` of the batch's decision, or of `record_for`.
            results: The answers: tool messages or mappings with `tool_call_id` (or `id`),
                `content` and `status`, in any order. Missing ones are unknown answers, which are
                no sign of progress.

        Returns:
            What the answers revealed. A record that was used before reveals nothing.
        """
        if not isinstance(record, Batch) or record.used:
            return allowed(record)
        record.used = True
        step_lines = self._step_lines
        if step_lines is not None and step_lines.watching:
            answers = match_results(record.ids, results)
            outcome = Outcome(record, step_lines.without(record, answers))
        elif len(results) == 1 and len(record.ids) == 1:
            outcome = single_outcome(record, match_single(record.ids[0], results[0]))
        else:
            outcome = Outcome(record, match_results(record.ids, results))
        if outcome.failed:
            _mask_arguments(record, outcome.results)
        self._ledger.note(record, outcome)
        findings: list[Finding] | None = None
        if self._progress is not None:
            self._progress.judge(record, outcome)
        for note in self._records:
            finding = note(record, outcome)
            if finding is not None:
                findings = [finding] if findings is None else [*findings, finding]
        record.canonical = _LET_GO
        if self._probation is not None and self._probation.watched:
            finding = self._probation.record(record, outcome)
            if finding is not None:
                findings = [finding] if findings is None else [*findings, finding]
        if findings is None:
            return allowed(record)
        decision = self._decision(findings, record)
        self._asked = self._asked or decision.action >= Action.ASK
        return decision

    def record_for(self, calls: Sequence[ToolCall]) -> BatchRecord:
        """Rebuild the record of the batch counted last, without counting it again.

        Args:
            calls: The same calls that were checked, in another process perhaps.

        Returns:
            A record for `record_results`.
        """
        batch = self._batch(calls, self._batches)
        batch.used = not calls
        return batch

    def prose(self, text: str) -> Decision:
        """Take in what the model said in a turn without tool calls.

        Returns:
            `Action.ASK` when it said the same too often, see `StagnationDetector`. There is no
            batch to hold back: the next model call is what a caller can spare.
        """
        record = self._batch((), 0)
        record.used = True
        if self._stagnation is None or not isinstance(text, str):
            return allowed(record)
        count = self._stagnation.check(text)
        if not count:
            return allowed(record)
        threshold = self._stagnation.config.max_repeats
        return Decision(Action.ASK, (stagnation_finding(count, threshold, self._batches),), record)

    def heard(self, text: str) -> None:
        """Take in what another agent said in this conversation.

        A supervisor that hands one piece of work after the other to a worker makes the same call
        each time and is told the same, but the worker's reports are new. What is new in them is
        worth as much as the new answer of a tool.
        """
        if self._progress is None or not isinstance(text, str) or not self._progress.hear(text):
            return
        nothing = self._batch((), 0)
        outcome = Outcome(nothing, ())
        outcome.news = News.SOMETHING
        outcome.worked = True
        for note in self._hearing:
            note(nothing, outcome)

    def ledger(self) -> LedgerReading:
        """Read what was seen that is no verdict; see `core.ledger`."""
        return self._ledger.read()

    def human_message(self) -> None:
        """A person spoke: clear every count that was not flagged, and the refusals."""
        self._refused.clear()
        self._asked = False
        if self._progress is not None:
            self._progress.human_message()
        if self._step_lines is not None:
            self._step_lines.human_message()
        for _, rule in self._rules:
            rule.human_message()
        if self._probation is not None:
            self._probation.human_message()
        if self._stagnation is not None:
            self._stagnation.human_message()

    def approve(self, decision: Decision) -> None:
        """A person let the loop go on: clear its counts, so that it is found anew later."""
        for finding in decision.findings:
            self._refused.pop(finding.loop, None)
            for name, rule in self._rules:
                # The default rules look at one loop from several sides: all of them let go.
                if name == finding.rule or self._progress is not None:
                    rule.approve(finding.loop)
        if self._stagnation is not None:
            self._stagnation.human_message()
        if self._probation is not None and isinstance(decision.record, Batch):
            self._probation.acquit(decision.record.keys)

    def refuse(self, decision: Decision) -> None:
        """The batch was refused and did not run: count the refusal of its loop.

        After `LoopGuardPolicy.max_refusals` of one loop, `check` answers `Action.STOP`. The
        refusal's text is not an answer: the record is closed and records nothing.
        """
        if decision.record.used:
            return
        decision.record.used = True
        for finding in decision.findings:
            if finding.action >= Action.ASK:
                self._refused[finding.loop] = self._refused.pop(finding.loop, 0) + 1
        while len(self._refused) > _MAX_REFUSED_LOOPS:
            del self._refused[next(iter(self._refused))]

    def to_state(self) -> dict[str, Any]:
        """Give the counters in JSON types; holds hashes and tool names, never an argument."""
        return {
            "v": STATE_VERSION,
            "batches": self._batches,
            "refused": dict(self._refused),
            "asked": self._asked,
            "rules": {name: rule.to_state() for name, rule in self._rules},
            "progress": self._progress and self._progress.to_state(),
            "probation": self._probation and self._probation.to_state(),
            "step_lines": self._step_lines and self._step_lines.to_state(),
            "stagnation": self._stagnation and self._stagnation.to_state(),
            "ledger": self._ledger.to_state(),
        }

    @classmethod
    def from_state(cls, policy: LoopGuardPolicy, state: Any) -> LoopGuard:
        """Take up where `to_state` left off.

        Args:
            policy: The policy to go on with. A rule that the state does not know starts empty;
                counters of a rule that the policy no longer lists are dropped.
            state: What `to_state` gave.

        Raises:
            GuardStateError: If the state is of another version or of another form.
        """
        guard = cls(policy)
        version = state.get("v") if type(state) is dict else None
        if type(version) is not int or version != STATE_VERSION:
            msg = (
                f"the guard's state has version {stored.shown(version)}, "
                f"this release reads {STATE_VERSION}"
            )
            raise GuardStateError(msg)
        try:
            guard._batches = stored.count(state["batches"])
            guard._asked = stored.flag(state["asked"])
            guard._refused = {
                stored.text(loop): stored.count(times)
                for loop, times in stored.mapping(state["refused"], _MAX_REFUSED_LOOPS).items()
            }
            rules = stored.mapping(state["rules"], _MAX_RULES)
            for name, rule in guard._rules:
                if name in rules:
                    rule.load_state(rules[name])
            if guard._progress is not None and state["progress"] is not None:
                guard._progress.load_state(state["progress"])
            if guard._step_lines is not None and "step_lines" in state:  # Older states have none.
                guard._step_lines.load_state(state["step_lines"])
            if guard._probation is not None and state["probation"] is not None:
                guard._probation.load_state(state["probation"])
            if guard._stagnation is not None and state["stagnation"] is not None:
                guard._stagnation.load_state(state["stagnation"])
            guard._ledger.load_state(state["ledger"])
        except Exception as error:  # whatever it holds, and whatever that does
            msg = f"the guard's state is not one that `to_state` gave: {stored.shown(error)}"
            raise GuardStateError(msg) from error
        return guard

    def declare(self, name: str, metadata: Mapping[str, Any] | None) -> None:
        """Take in what a tool declares of itself; see `core.tools.declared_traits`.

        Not part of the state: an adapter declares its tools again in a new process.
        """
        declared = declared_traits(name, metadata)
        if declared is not None:
            self._declared[name] = declared
            self._tools.pop(name, None)

    def _batch(self, calls: Sequence[ToolCall], number: int) -> Batch:
        if len(calls) == 1:  # By far the most frequent case, told apart for speed alone.
            name, given, call_id = read_call(calls[0])
            arguments = canonical_arguments(given)
            tool, tool_traits, seed = self._tools.get(name) or self._tool(name)
            key = xxh3_64_intdigest(arguments, seed)
            return single_batch(number, calls, call_id, tool, arguments, key, tool_traits)
        ids: list[str | None] = []
        names: list[str] = []
        canonical: list[bytes] = []
        keys: list[int] = []
        traits: list[ToolTraits] = []
        for call in calls:
            name, given, call_id = read_call(call)
            arguments = canonical_arguments(given)
            ids.append(call_id)
            names.append(name)
            canonical.append(arguments)
            _, tool_traits, seed = self._tools.get(name) or self._tool(name)
            traits += tool_traits
            keys.append(xxh3_64_intdigest(arguments, seed))
        return Batch(
            number, calls, tuple(ids), tuple(names), tuple(canonical), tuple(keys), tuple(traits)
        )

    def _tool(self, name: str) -> _Tool:
        """Look up what a batch of one call of a tool needs to know of the tool."""
        if len(self._tools) >= _MAX_TOOLS:
            self._tools.clear()
        traits = self.policy.traits_of(name, self._declared.get(name))
        tool = self._tools[name] = ((name,), (traits,), xxh3_64_intdigest(name.encode()))
        return tool

    def _stop_if_refused(self, finding: Finding) -> None:
        """End the run over a loop that was refused too often."""
        refused = self._refused.get(finding.loop, 0)
        if finding.action is Action.ASK and refused >= self.policy.max_refusals:
            finding.action = Action.STOP

    def _decision(self, findings: list[Finding], batch: Batch) -> Decision:
        """Make one decision of at least one finding."""
        if len(findings) > 1:
            findings.sort(key=lambda finding: -finding.action)
        action = findings[0].action
        if action >= Action.ASK and self._probation is not None:
            self._probation.flag(batch.keys)
        return Decision(action, tuple(findings), batch)


def _mask_arguments(batch: Batch, answers: Sequence[Answer | None]) -> None:
    for place, answer in enumerate(answers):
        if answer is not None and answer.error:
            answer.mask_arguments(batch.names[place], call_arguments(batch.calls[place]))
