"""How does a guard keep up with the messages of one conversation?

`Reader` reads a message list into a core guard and counts each step once, however often the same
list is read, resumed or read again in another process. It knows its place by the AI message that
it counted last. Where that is gone, the history was trimmed or summarised, and what is left is
later; or it is another conversation, see `knows`.

A turn begins with a run's input (`start_run`). Where nobody tells of runs, a human message begins
one, but not behind a tool's result: a node wrote it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_loopguard.core.decision import Action, Decision
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.state import shown as shown_value
from langchain_loopguard.langchain.counts import VERSION, Counts
from langchain_loopguard.langchain.marks import has_summary, is_generated, mark_of
from langchain_loopguard.langchain.messages import (
    caller_of,
    calls_of,
    key_of,
    makes_calls,
    short,
    step_at,
    with_warnings,
    written_by_node,
)
from langchain_loopguard.langchain.question import findings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_loopguard.core.step import Step
    from langchain_loopguard.langchain.messages import MessageStep
    from langchain_loopguard.langchain.options import Options
    from langchain_loopguard.langchain.outcome import Outcome

_REPEATED = frozenset({"observed", "warned", "refused"})
_CALLER = "lc_agent_name"
"""The key under which the caller stands in the arguments that are counted. Agents that share
messages make equal calls for reasons of their own: eight that each read one file are no loop."""


class Reader:
    """Reads the messages of one conversation into a guard.

    Not safe for several threads at once. An adapter calls `start_run`, `read`, `check` and
    `settle` in that order.
    """

    def __init__(self, options: Options) -> None:
        """Start at the beginning of a conversation."""
        self.options = options
        self._begin()

    def _begin(self, tools: dict[str, dict[str, Any]] | None = None) -> None:
        self.guard = LoopGuard(self.options.policy)
        self.counts = Counts(tools=tools or {})
        for name, metadata in self.counts.tools.items():
            self.guard.declare(name, metadata)
        self._decision: Decision | None = None

    def declare(self, tools: Iterable[Any]) -> None:
        """Take in what tools declare in their `metadata`; saved with the counts."""
        for tool in tools:
            name, metadata = getattr(tool, "name", None), getattr(tool, "metadata", None)
            if metadata and type(name) is str and self.counts.declare(name, metadata):
                self.guard.declare(name, self.counts.tools[name])

    def knows(self, messages: Sequence[BaseMessage]) -> bool:
        """Tell whether a history is that of this conversation, perhaps trimmed or forked.

        That is where one of the last AI messages is in it, the very first message, or a summary.
        Otherwise the thread's id is used again: with another store, or after a deletion.
        """
        keys = {key_of(message) for message in messages if isinstance(message, AIMessage)}
        recent = self.counts.recent
        if not recent or not keys.isdisjoint(recent) or has_summary(messages):
            return True
        return bool(self.counts.first) and any(
            short(m.id or "") == self.counts.first for m in messages
        )

    def start_run(self, messages: Sequence[BaseMessage]) -> Decision | None:
        """Begin a turn: a run starts with these messages, its input among them.

        Call it once a run, for the outermost graph only and not on a resume. With a history that
        isn't known all counts start again. An input that no user wrote begins no turn.

        Returns:
            As `read`.
        """
        if not self.knows(messages):
            self._begin(self.counts.tools)
        self.counts.by_run = True
        revealed = self.read(messages)
        spoken = None
        for message in reversed(messages):
            if isinstance(message, AIMessage | ToolMessage):
                break
            if isinstance(message, HumanMessage):
                user = not is_generated(message) and self.options.wrote_by_user(message)
                spoken = spoken or user
        if spoken is not False:  # A run without a human message is a turn too.
            self.start_turn()
        return revealed

    def start_turn(self) -> None:
        """Clear what is not previously flagged: a user spoke."""
        self.guard.start_turn()
        self.counts.warnings, self.counts.emitted, self.counts.pending = {}, [], ""

    def read(self, messages: Sequence[BaseMessage]) -> Decision | None:
        """Catch up with a message list: turns, steps, and their results.

        The calls of a last AI message without results are left alone: `check` counts them.

        Returns:
            What the results that were read last revealed, `None` without any. Its findings are
            warnings, whatever their action: nothing is about to run.
        """
        if not self.counts.first:
            self.counts.first = next((short(m.id) for m in messages if m.id), "")
        at = self.counts.place(messages)
        revealed = None
        if at is None:
            self.counts.is_open = False
            at = self.counts.known_place(messages)
        elif self.counts.is_open:
            revealed = self._close(step_at(messages, at))
        for index in range(at + 1, len(messages)):
            message = messages[index]
            if isinstance(message, AIMessage):
                if not makes_calls(message):
                    self._speak(message)
                    continue
                step = step_at(messages, index)
                if step.last and not step.results:
                    break
                if step.calls:
                    after = messages[index + 1 + len(step.results) + len(step.others) :][:1]
                    self._count(message, step.calls)
                    self._believe(step, after)
                    revealed = self._close(step) if self.counts.is_open else None
            elif isinstance(message, HumanMessage):
                self._read_human(messages, index)
        return revealed

    def check(self, step: MessageStep, caller: str = "") -> Decision:
        """Count the calls of a step that is about to run, and say what was found.

        `read` has read all that stands before it. Asked again, it gives the same decision and
        counts nothing. In another process a message already counted is allowed: its verdict was
        carried out before its counts were saved. `caller` names the agent where the message
        doesn't say it.
        """
        key = key_of(step.message)
        if not key or key != self.counts.last:
            return self._count(step.message, step.calls, caller)
        if self._decision is None:
            record = self.guard.record_for(self._named(step.calls, step.message, caller))
            record.used = not self.counts.is_open
            self._decision = _allowed(record)
        return self._decision

    def recall(self, step: MessageStep, question: Mapping[str, Any], caller: str = "") -> None:
        """Keep a question of another process, which may have seen more or had another policy."""
        decision = self.check(step, caller)
        if decision.action < Action.ASK:
            self._decision = Decision(Action.ASK, findings_of(question), decision.record)

    def forget_step(self) -> None:
        """Be as one that `from_state` makes of `to_state`, for who keeps a reader in memory."""
        if self._decision is not None:
            self._decision = _allowed(self._decision.record)

    def settle(
        self,
        step: MessageStep,
        decision: Decision,
        outcome: Outcome,
        edited: AIMessage | None = None,
    ) -> None:
        """Note what becomes of a step with findings; `edited` holds calls that a person changed."""
        if outcome.asked and outcome.next != "end":  # After a stop no loop went on.
            self.counts.note_question(decision)
        if outcome.settle in {"approve", "always"}:
            self.guard.approve(decision, always=outcome.settle == "always")
            self._decision = _allowed(decision.record)
        elif outcome.settle in {"refuse", "advise"}:
            self.guard.refuse(decision)
            self.counts.is_open = False
            if outcome.settle == "advise":
                self.start_turn()
        elif outcome.emit == "warned" and self.counts.is_new(decision, "model"):
            self.counts.pending = decision.to_model
        if outcome.late_text and step.results:
            self._warn(step, outcome.late_text)
        if edited is not None:
            # What runs is another step than the one that was counted.
            self._count(edited, calls_of(edited))

    def emit(self, decision: Decision, what: str) -> bool:
        """Tell whether a finding is to be emitted; `Telemetry.emit` takes it as `is_new`.

        What a guard does by itself is emitted once for a loop, threshold and turn; a question, a
        person's answer and an end each time.
        """
        if not decision.findings or what not in _REPEATED:
            return bool(decision.findings)
        return self.counts.is_new(decision, what)

    def request(self, messages: Sequence[BaseMessage]) -> list[BaseMessage] | None:
        """Copy the messages of a model call with the warnings of this turn in it.

        The same warnings stand at the same places in every call of the turn, so that a provider's
        cache holds. `None` where there is nothing to add.
        """
        warnings = self.counts.warnings
        return with_warnings(messages, warnings) if warnings else None

    def to_state(self) -> dict[str, Any]:
        """Give the counts in JSON types; what is as at the beginning is left out."""
        return {"v": VERSION, **self.counts.to_state(), "guard": self.guard.to_state()}

    @classmethod
    def from_state(cls, options: Options, state: Any) -> Reader:
        """Take up where `to_state` left off; `None` and an empty mapping are the beginning.

        Raises:
            GuardStateError: If the state is of another version or of another form.
        """
        reader = cls(options)
        if state is None or (type(state) is dict and not state):
            return reader
        version = state.get("v") if type(state) is dict else None
        if type(version) is not int or version != VERSION:
            shown = shown_value(version)
            raise GuardStateError(f"the counts have version {shown}, this release reads {VERSION}")
        try:
            reader.guard = LoopGuard.from_state(options.policy, state["guard"])
            reader.counts = Counts.from_state(state)
            for name, metadata in reader.counts.tools.items():
                reader.guard.declare(name, metadata)
        except GuardStateError:
            raise
        except Exception as error:  # whatever it holds, and whatever that does
            shown = shown_value(error)
            raise GuardStateError(f"the counts are not of `to_state`: {shown}") from error
        return reader

    def _read_human(self, messages: Sequence[BaseMessage], index: int) -> None:
        message = messages[index]
        if not isinstance(message, HumanMessage) or is_generated(message):
            return
        known = bool(message.id) and short(message.id or "") == self.counts.human
        self.counts.human = short(message.id or "")
        if self.counts.by_run or known or not self.options.wrote_by_user(message):
            return
        if callable(self.options.is_user_message) or not written_by_node(messages, index):
            self.start_turn()

    def _speak(self, message: AIMessage) -> None:
        """Take in words without calls: what another agent reports may be news."""
        self.counts.remember(key_of(message))
        self.counts.is_open = False
        caller = caller_of(message)
        if caller and self.counts.caller and caller != self.counts.caller:
            self.guard.observe(str(message.text))

    def _named(
        self, calls: Sequence[Mapping[str, Any]], message: AIMessage, caller: str
    ) -> list[Mapping[str, Any]]:
        """Write the caller into the calls, but for those of the conversation's first one."""
        caller = caller_of(message) or short(caller)
        first = self.counts.first_caller = self.counts.first_caller or caller
        self.counts.caller = caller or self.counts.caller
        if not caller or caller == first:
            return list(calls)
        return [
            {**call, "args": {**args, _CALLER: caller}} if isinstance(args, Mapping) else call
            for call, args in ((call, call.get("args")) for call in calls)
        ]

    def _count(
        self, message: AIMessage, calls: Sequence[Mapping[str, Any]], caller: str = ""
    ) -> Decision:
        self._decision = self.guard.check(self._named(calls, message, caller))
        self.counts.pending = ""
        self.counts.remember(key_of(message))
        self.counts.is_open = bool(calls)
        return self._decision

    def _believe(self, step: MessageStep, after: Sequence[BaseMessage]) -> None:
        """Take over what became of a step with a loop, as it stands in the messages."""
        decision = self._decision
        if decision is None or decision.action < Action.ASK:
            return
        before = {mark_of(message).before for message in after}
        if "approved" in before or any(mark_of(m).approved for m in (step.message, *step.results)):
            self.counts.note_question(decision)
            self.guard.approve(decision)
            self._decision = _allowed(decision.record)
        elif before & {"refused", "advised"}:
            self._refuse(decision, advised="advised" in before)

    def _refuse(self, decision: Decision, *, advised: bool) -> None:
        self.guard.refuse(decision)
        self.counts.is_open = False
        if advised:
            self.counts.note_question(decision)
            self.start_turn()

    def _close(self, step: MessageStep) -> Decision | None:
        """Record the results of a step, unless some are still to come."""
        if not step.complete:
            return None
        decision = self.check(step)
        self.counts.is_open = False
        if not step.calls:
            return None
        if step.held_back and decision.action >= Action.ASK:
            self._refuse(decision, advised=any(mark_of(one).advised for one in step.results))
            return None
        revealed = self.guard.record_results(decision.record, step.for_core())
        found = revealed if revealed.findings else decision
        text, self.counts.pending = self.counts.pending, ""
        if found.findings and self.counts.is_new(found, "model"):
            text = found.to_model
        self._warn(step, text)
        return revealed

    def _warn(self, step: MessageStep, text: str) -> None:
        if text and step.results and self.options.on_detected != "observe":
            last = step.results[-1]
            warning = self.options.wording.say("warning", found=text)
            self.counts.warn(last.id or last.tool_call_id, warning)


def _allowed(record: Step) -> Decision:
    return Decision(Action.ALLOW, (), record)
