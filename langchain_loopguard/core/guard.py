"""May this step run, and what did its results reveal?

The guard runs a policy's rules over one conversation and makes one decision of their findings. It
is a state machine without I/O, clock, logging or globals: whoever calls it says what happened, in
order.

- A rule finds; the guard picks the strongest finding, and knows what a person said before.
- A record is used once. A second use, or a record of a refused step, changes nothing.
- A step without calls is never counted and breaks nothing.
- The state is JSON, versioned, at most 8 KB, and holds hashes and tool names, never an argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.core import state
from langchain_loopguard.core.calls import call_arguments, call_id, call_name, identity_of
from langchain_loopguard.core.canonical import canonical_arguments
from langchain_loopguard.core.decision import Action, Decision, Finding
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.evidence import Evidence
from langchain_loopguard.core.kinds import declared_kind
from langchain_loopguard.core.policy import Policy
from langchain_loopguard.core.results import match_results
from langchain_loopguard.core.rules.base import kept_names
from langchain_loopguard.core.step import Call, Step, sleeps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_loopguard.core.calls import ToolCall
    from langchain_loopguard.core.kinds import ToolKind
    from langchain_loopguard.core.rules import Rule

STATE_VERSION = 2
"""The version `to_state` writes; a state of another version is not read."""

_MOST_KINDS = 1024
"""Tools whose kind is kept in memory; a model may invent names without end."""

_MOST_RULES = 64
_MOST_LOOPS = 16
"""Loops that were refused or approved, and tools with more patience, remembered at once."""


class LoopGuard:
    """Watches the tool calls of one conversation for loops.

    Not safe for use by several threads at once; the adapters hold one guard a conversation.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        """Start with empty counters.

        Args:
            policy: The rules and their numbers; `None` is `Policy()`.
        """
        self.policy = Policy() if policy is None else policy
        self._rules: dict[str, Rule] = {one.rule: one.build() for one in self.policy.rules}
        self._evidence = Evidence() if self.policy.reads_evidence else None
        self._ignored = frozenset(self.policy.ignored_arguments)
        self._declared: dict[str, ToolKind] = {}
        self._kinds: dict[str, ToolKind] = {}
        self._steps = 0
        self._refused: dict[str, int] = {}
        # Tool -> how often a person let a loop of it go on in this turn.
        self._patience: dict[str, int] = {}
        # Loops, and calls by their identity, that a person let go on for good.
        self._always: dict[str, None] = {}

    def check(self, calls: Sequence[ToolCall]) -> Decision:
        """Count a step that is about to run and say what is to happen with it.

        Args:
            calls: The tool calls of one AI message: `{"name", "args", "id"}`. Odd values never
                raise.

        Returns:
            The decision. Its `record` goes to `record_results` once the results are known.
        """
        self._steps += bool(calls)
        step = self._step(calls)
        if not calls:
            return Decision(Action.ALLOW, (), step)
        if self._evidence is not None and self._evidence.waits:
            step.waits = True
        return self._decision(step, [rule.check(step) for rule in self._rules.values()])

    def record_results(self, record: Step, results: Sequence[Any]) -> Decision:
        """Take in what a step got back.

        Args:
            record: The `record` of the step's decision, or of `record_for`.
            results: Tool messages or mappings with `tool_call_id` (or `id`), `content` and
                `status`, in any order. Missing ones are no sign of progress.

        Returns:
            What the results revealed. A record that was used before reveals nothing.
        """
        if not isinstance(record, Step) or record.used:
            return Decision(Action.ALLOW, (), record)
        record.used = True
        record.results = match_results(record.calls, results, self.policy.is_failure)
        evidence = None if self._evidence is None else self._evidence.judge(record)
        found = [rule.record(record, evidence) for rule in self._rules.values()]
        return self._decision(record, found)

    def record_for(self, calls: Sequence[ToolCall]) -> Step:
        """Rebuild the record of the step counted last, without counting it again.

        Args:
            calls: The same calls that were checked, in another process perhaps.

        Returns:
            A record for `record_results`.
        """
        return self._step(calls)

    def observe(self, text: str) -> None:
        """Take in what another agent reported in this conversation.

        A supervisor that hands one piece of work after the other to a worker makes the same call
        each time with the same result, but the worker's reports are new. What they say in new
        words is worth as much as a tool's news: the counts start again.
        """
        if self._evidence is None or not isinstance(text, str):
            return
        if self._evidence.observe(text.encode("utf-8", "surrogatepass")):
            for rule in self._rules.values():
                rule.start_turn()

    def start_turn(self) -> None:
        """Begin a turn: a user's input clears every count, refusal and patience."""
        self._refused.clear()
        self._patience.clear()
        if self._evidence is not None:
            self._evidence.start_turn()
        for rule in self._rules.values():
            rule.start_turn()

    def human_message(self) -> None:
        """Do what `start_turn` does, under its first name."""
        self.start_turn()

    def approve(self, decision: Decision, *, always: bool = False) -> None:
        """Note that a person let the loop go on.

        Its counts start again, and the numbers of the guard's own rules double each time in this
        turn, but not the limits of single tools. Loops of the same tools get the same patience:
        one loop is seen by several rules.

        Args:
            decision: The decision that asked.
            always: Let this loop go on for good in this conversation.
        """
        for finding in decision.findings:
            self._refused.pop(finding.loop, None)
            for tool in kept_names(finding.tools):
                self._patience[tool] = self._patience.pop(tool, 0) + 1
            if always:
                self._always[finding.loop] = None
            for name, rule in self._rules.items():
                if self._evidence is not None or name == finding.rule:
                    rule.approve(finding.loop)
        if always:
            self._always.update({f"{call.identity:x}": None for call in decision.record.calls})
        state.keep_latest(self._patience, _MOST_LOOPS)
        state.keep_latest(self._always, _MOST_LOOPS)

    def refuse(self, decision: Decision) -> None:
        """Note that the step was refused and did not run: count the refusal of its loop.

        After `Policy.max_refusals` of one loop, `check` answers `Action.STOP`. The refusal's text
        is no result: the record is closed and records nothing.
        """
        if decision.record.used:
            return
        decision.record.used = True
        for finding in decision.findings:
            if finding.action >= Action.ASK:
                self._refused[finding.loop] = self._refused.pop(finding.loop, 0) + 1
        state.keep_latest(self._refused, _MOST_LOOPS)

    def declare(self, name: str, metadata: Mapping[str, Any] | None) -> None:
        """Take in what a tool declares of itself; see `core.kinds.declared_kind`.

        Not part of the state: an adapter declares its tools again in a new process.
        """
        declared = declared_kind(name, metadata)
        if declared is not None:
            self._declared[name] = declared
            self._kinds.pop(name, None)

    def to_state(self) -> dict[str, Any]:
        """Return the counters in JSON types: hashes and tool names, at most 8 KB."""
        return {
            "v": STATE_VERSION,
            "steps": self._steps,
            "refused": dict(self._refused),
            "patience": dict(self._patience),
            "always": list(self._always),
            "evidence": self._evidence and self._evidence.to_state(),
            "rules": {name: rule.to_state() for name, rule in self._rules.items()},
        }

    @classmethod
    def from_state(cls, policy: Policy, stored: Any) -> LoopGuard:
        """Take up where `to_state` left off.

        Args:
            policy: The policy to go on with. A rule that the state does not know starts empty;
                counters of a rule that the policy no longer lists are dropped.
            stored: What `to_state` returned.

        Raises:
            GuardStateError: If the state is of another version or of another form.
        """
        guard = cls(policy)
        version = stored.get("v") if type(stored) is dict else None
        if type(version) is not int or version != STATE_VERSION:
            raise GuardStateError(
                f"the guard's state has version {state.shown(version)}, "
                f"this release reads {STATE_VERSION}"
            )
        try:
            guard._load(stored)
        except Exception as error:  # whatever it holds, and whatever that does
            raise GuardStateError(
                f"the guard's state is not one that `to_state` wrote: {state.shown(error)}"
            ) from error
        return guard

    def _load(self, stored: dict[str, Any]) -> None:
        self._steps = state.count(stored["steps"])
        self._refused = _counts(stored["refused"])
        self._patience = _counts(stored["patience"])
        always = state.entries(stored["always"], _MOST_LOOPS)
        self._always = dict.fromkeys([state.text(loop) for loop in always])
        if self._evidence is not None and stored["evidence"] is not None:
            self._evidence.load_state(stored["evidence"])
        rules = state.mapping(stored["rules"], _MOST_RULES)
        for name, rule in self._rules.items():
            if name in rules:
                rule.load_state(rules[name])

    def _step(self, calls: Sequence[ToolCall]) -> Step:
        return Step(self._steps if calls else 0, tuple([self._call(call) for call in calls]))

    def _call(self, call: ToolCall) -> Call:
        name, arguments = call_name(call), call_arguments(call)
        kind = self._kinds.get(name)
        if kind is None:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
            kind = self._kinds[name] = self.policy.kind_of(name, self._declared.get(name))
        canonical = canonical_arguments(arguments)
        identity = identity_of(name, arguments, canonical, kind, self._ignored)
        waits = kind.poller or sleeps(canonical)
        return Call(call_id(call), name, arguments, canonical, identity, kind, waits)

    def _decision(self, step: Step, found: Sequence[Finding | None]) -> Decision:
        findings = [one for one in filter(None, found) if self._counts_on(one, step)]
        if not findings:
            return Decision(Action.ALLOW, (), step)
        for finding in findings:
            if finding.action is Action.ASK and not step.used:
                refused = self._refused.get(finding.loop, 0)
                if refused >= self.policy.max_refusals:
                    finding.action = Action.STOP
        findings.sort(key=lambda finding: -finding.action)
        return Decision(findings[0].action, tuple(findings), step)

    def _counts_on(self, finding: Finding, step: Step) -> bool:
        """Say whether a finding still counts after what a person said; raises its threshold."""
        if self._always and (
            finding.loop in self._always
            or all(f"{call.identity:x}" in self._always for call in step.calls)
        ):
            return False
        if self._evidence is None or not (self._patience and finding.tools):
            return True
        if any(self.policy.kind_of(tool).limit is not None for tool in finding.tools):
            return True  # A limit that a person set for a tool is no guess.
        times = min([self._patience.get(tool, 0) for tool in kept_names(finding.tools)])
        finding.threshold *= 2 ** min(times, 16)
        return finding.count >= finding.threshold


def _counts(stored: Any) -> dict[str, int]:
    counts = state.mapping(stored, _MOST_LOOPS)
    return {state.text(name): state.count(count) for name, count in counts.items()}
