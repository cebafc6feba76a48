"""What becomes of a step in the hands of a callback handler?

The gate decides; here it is made what the host understands. A call is stopped by an exception
that a `ToolNode` makes a result of. A run that ends does so at its next model call, when every
call has its result, so that the thread can go on. A question that somebody's error handler
swallowed is asked again there, and counted as lost.
"""

from __future__ import annotations

import threading
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_loopguard.adapters.conversations import Pending, Said, Session
from langchain_loopguard.adapters.ending import end_run, ending_of, error_about, is_decided
from langchain_loopguard.adapters.finding import StepFinder, can_ask, is_users
from langchain_loopguard.adapters.gate import Gate
from langchain_loopguard.adapters.runs import RunTree
from langchain_loopguard.adapters.writing import lend, take_back, write_marks, write_warnings
from langchain_loopguard.langchain.errors import error_of_facts
from langchain_loopguard.langchain.marks import Mark, with_mark
from langchain_loopguard.langchain.messages import key_of, last_step, makes_calls
from langchain_loopguard.langchain.outcome import CallOutcome, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from langchain_loopguard.adapters.conversations import Conversation
    from langchain_loopguard.adapters.runs import Run
    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.langchain.messages import MessageStep
    from langchain_loopguard.langchain.options import Options

_HINTS = frozenset({"loop_guard", "readOnlyHint", "annotations"})
"""Metadata of a tool's run in which a tool may declare what it is."""

_BEFORE: Any = {"approve": "approved", "always": "approved"}
_BEFORE |= {"refuse": "refused", "advise": "advised"}


class Deciding:
    """Carries out what the gate decides about the steps of one handler."""

    def __init__(
        self,
        options: Options,
        *,
        scope: str,
        messages_key: str,
        limit: int,
        notify: Callable[[Decision], None] | None,
    ) -> None:
        """Take the handler's options; nothing is seen yet."""
        self.gate = Gate(options, "callback")
        self.gate.telemetry.notify = notify
        self._options = options
        self._key = messages_key
        self._runs = RunTree()
        self._finding = StepFinder(
            self.gate, self._runs, scope=scope, messages_key=messages_key, limit=limit
        )
        self._table = self._finding.table
        self._lock = threading.RLock()  # Guards the runs and the table.

    # --- Chains ---------------------------------------------------------------------------

    def chain_starts(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        metadata: Mapping[str, Any] | None,
        inputs: Any,
    ) -> None:
        """Place a run; lend a node copies of results, into which warnings can be written."""
        with self._lock:
            run = self._runs.start(run_id, parent_run_id, metadata)
            if not run.ns or type(inputs) is not dict:
                self._runs.took(run, inputs)
            elif run.attempt is run_id and self._options.on_detected != "observe":
                kept = self._agent_of(run, self._table.known_session(run.session), around="")
                warned = kept.reader.counts.warnings if kept is not None else ()
                lend(run, inputs, self._key, warned)

    def chain_ended(self, run_id: UUID, outputs: Any) -> Exception | None:
        """Write marks into what the host is about to save; end a run that no model has ended."""
        with self._lock:
            session = self._table.known_session(run_id)
            run = self._ended(run_id)
            if run is not None and run.ns:
                around = session or self._table.known_session(run.session)
                kept = self._agent_of(run, around, around=run.around)
                if kept is not None and kept.marks:
                    write_marks(kept, outputs)
        if run is None or session is None or session.ending is None or session.delivered:
            return None
        return session.loop if session.ending.next == "raise" else None

    def _agent_of(self, run: Run, session: Session | None, *, around: str) -> Conversation | None:
        key = session.agents.get((run.scope, around)) if session is not None else None
        return self._table.find(key)

    # --- Tools ----------------------------------------------------------------------------

    def tool_starts(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        metadata: Mapping[str, Any] | None,
        call: dict[str, Any],
        *,
        again: bool,
    ) -> Exception | None:
        """Decide about a call that starts; gives what keeps it from running."""
        with self._lock:
            run = self._runs.start(run_id, parent_run_id, metadata)
            state = self._finding.state(run) if not run.around else None
            place = self._finding.of_call(run, call, state or (), again=again)
            session = self._table.session(run.session)
        kept = place.kept
        with kept.lock:
            if not _HINTS.isdisjoint(run.metadata):
                tool = SimpleNamespace(name=call["name"], metadata=run.metadata)
                kept.reader.declare([tool])
            pending = self._finding.step_of_call(place, run, session)
            run.is_tool, run.call_id, run.kept, run.pending = True, call["id"], kept, pending
            if session.ending is not None and pending.outcome is None:
                if kept.key in session.seen:  # Its model is not seen, so it can't end there.
                    session.delivered = True
                    return session.loop
                session.seen.add(kept.key)
                held = CallOutcome("replace", self._options.wording.stopped)
                pending.settle(
                    Outcome(session.ending.next, (held,) * len(pending.step.decided_calls))
                )
            signal = self._decide(kept, pending, run)
            return signal or self._hold_back(kept, pending, run, session)

    def tool_ended(self, run_id: UUID, output: Any, status: str) -> None:
        """Note what a tool gave, where no message list will tell."""
        run = self._ended(run_id)
        if run is None or run.kept is None or run.pending is None:
            return
        with run.kept.lock:
            if run.kept.marks:
                write_marks(run.kept, output)
            if not run.pending.in_state:
                run.pending.take(str(run.call_id), output, status)

    def _hold_back(
        self, kept: Conversation, pending: Pending, run: Run, session: Session
    ) -> Exception | None:
        """Make of what was decided what keeps one call from running, `None` if it runs."""
        outcome = pending.outcome
        if outcome is None:
            return None
        mine = pending.by_id.get(run.call_id)
        runs = outcome.next == "run" and any(one.do == "run" for one in outcome.calls)
        if mine is None or mine.do != "replace":
            if outcome.core in {"approve", "always"}:
                kept.marks[run.call_id] = Mark(approved=True), False
            return None
        loop = session.loop or error_about(pending, run)
        ends = outcome.next in {"end", "raise"}
        if not run.ns or (outcome.next == "raise" and not can_ask(run)):
            return loop
        if ends and session.ending is None:
            session.ending, session.loop = outcome, loop
            session.seen.add(kept.key)
        advised = outcome.core == "advise"
        kept.marks[run.call_id] = Mark(runs, advised, outcome.ends), True
        from langchain_loopguard.adapters.asking import RefusedCallError  # noqa: PLC0415

        return RefusedCallError(loop, mine.text)

    # --- Models ---------------------------------------------------------------------------

    def model_starts(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        metadata: Mapping[str, Any] | None,
        sent: Sequence[BaseMessage],
    ) -> Exception | None:
        """Read what a model call continues; gives what keeps the model from being called."""
        with self._lock:
            run = self._runs.start(run_id, parent_run_id, metadata)
            if run.metadata.get("lc_source"):
                return None  # A framework's own call of a model, to summarise for instance.
            session = self._table.session(run.session)
            kept = run.kept = self._finding.of_model(run, sent)
        if session.ending is not None:
            return end_run(session, run, messages_key=self._key)
        with kept.lock:
            inner = run.ns + "|" in kept.key or bool(run.around)
            state = None if inner else self._finding.state(run)
            history = self._finding.history(kept, run, sent, state)
            if history is not state:
                run.sent = history if history is not None and len(history) == len(sent) else sent
            if history is None:
                return None
            signal = None
            if not self._finding.begin_turn(kept, run, session, history):
                signal = self._late(kept, run, session, history)
                if signal is None:
                    self._finding.read(kept, history)
            if signal is None:
                warnings = kept.reader.counts.warnings
                node = self._runs.get(run.attempt)
                write_warnings(run, node, sent, warnings, has_state=bool(state))
        if signal is None and session.ending is not None:
            signal = end_run(session, run, messages_key=self._key)
        return signal

    def model_spoke(self, run_id: UUID, message: Any) -> None:
        """Remember an AI message with calls until its tools start.

        It is not counted yet: it may be a structured answer, or an attempt that is thrown away.
        """
        run = self._ended(run_id)
        kept = run.kept if run is not None else None
        if run is None or kept is None or not isinstance(message, AIMessage):
            return
        with self._lock:
            if kept.before is not None:
                message.response_metadata = with_mark(message, kept.before).response_metadata
                kept.before = None
            if not makes_calls(message):
                return
            self._table.hear(kept, Said(message, run.sent, run.attempt))
            if run.is_loose:
                self._table.follow(message, kept.key)
            if run.prompt:
                kept.openings[key_of(message)] = run.prompt

    def _late(
        self, kept: Conversation, run: Run, session: Session, history: Sequence[BaseMessage]
    ) -> Exception | None:
        """Decide about a last step that has its results although nobody has decided about it.

        No tool exists for its calls, or somebody swallowed the question, or only the model is
        seen. It is too late to hold it back, but not to ask, and the model reads a text next.
        """
        last = next((one for one in reversed(history) if isinstance(one, AIMessage)), None)
        pending = kept.steps.get(key_of(last)) if last is not None else None
        if pending is not None and pending.ran_unasked:
            return None  # Nearly every model call continues such a step.
        step = last_step(history)
        if step is None or not step.calls or not step.late:
            return None
        if pending is not None and pending.outcome is None:
            pending = self._still_waiting(kept, pending, step, run)
        if pending is None:
            ending = ending_of(step)
            if ending is not None:  # It was to end in a process that has died.
                session.ending, session.loop = ending, error_of_facts(ending.facts)
                return self._end(session, kept, run)
            if is_decided(step) or key_of(step.message) in self._table.decided:
                return None
            self._finding.read(kept, history[: step.index])
            pending = kept.add(Pending(step, history, in_state=not run.sent))
        signal = self._decide(kept, pending, run)
        outcome = pending.outcome
        if signal is None and outcome is not None:
            ends = outcome.next in {"end", "raise"}
            if ends and not any(map(is_users, history[step.index :])):
                session.ending, session.loop = outcome, error_about(pending, run)
                return self._end(session, kept, run)
            if outcome.core and pending.step.late:
                kept.before = Mark(before=_BEFORE[outcome.core])
        return signal

    def _still_waiting(
        self, kept: Conversation, pending: Pending, step: MessageStep, run: Run
    ) -> Pending | None:
        """Give a step that waits, `None` if it was decided elsewhere or its question was lost."""
        if is_decided(step):  # Another process has decided, and said so in the results.
            kept.reader = self._table.new_reader()
            kept.steps.clear()
            return None
        if pending.question is not None and run.ns not in pending.question.tasks:
            self.gate.telemetry.stats.add("lost")  # It was asked in the tools, and swallowed.
            return None
        return pending

    def _end(self, session: Session, kept: Conversation, run: Run) -> Exception:
        session.seen.add(kept.key)
        return end_run(session, run, messages_key=self._key)

    # --- The gate -------------------------------------------------------------------------

    def _decide(self, kept: Conversation, pending: Pending, run: Run) -> Exception | None:
        """See to it that a step is decided about, or give the signal that it is not yet."""
        question = pending.question
        if pending.outcome is not None:
            return question.repeat(run) if question is not None else None
        ask = None
        if can_ask(run):
            from langchain_loopguard.adapters import asking  # noqa: PLC0415 - loads LangGraph

            ask = partial(asking.ask, pending, run)
            leader = self._runs.get(run.session)
            if leader is None or not leader.has_input:  # Else no other process can have asked.
                question = pending.question = asking.find_question(pending, run)
        blocked = question.blocks(run) if question is not None else None
        if blocked is not None:
            return blocked
        caller = str(run.metadata.get("lc_agent_name") or "")
        step, messages = pending.step, pending.history
        try:
            if question is not None and question.payload is not None:
                self._finding.read(kept, messages[: step.index])
                kept.reader.recall(step, question.payload, caller)
            passed = self.gate.take(
                kept.reader, step, messages, ask=ask, caller=caller, editable=False
            )
        except Exception as error:  # noqa: BLE001 - a signal, or a fault that is to be raised
            if pending.question is not None:
                pending.question.attempts[run.attempt] = error
            return error
        with self._lock:
            self._table.decided.note(key_of(step.message))
        pending.decision = passed.decision if passed is not None else None
        pending.settle(passed.outcome if passed is not None else Outcome("run"))
        if pending.question is not None:
            pending.question.answered_in = run.session
        return None

    # --- Ends -----------------------------------------------------------------------------

    def forget(self, run_id: UUID) -> None:
        """Forget a run that ended without a result."""
        self._ended(run_id)

    def _ended(self, run_id: UUID) -> Run | None:
        with self._lock:
            run = self._runs.end(run_id)
            if run is None:
                return None
            if run.lent:
                take_back(run)
            self._table.end(run)
            if self._runs.are_many:
                for lost in self._runs.forget_lost():
                    self._table.end(lost)
            return run
