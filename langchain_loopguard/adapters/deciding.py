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

from langchain_loopguard.adapters.conversations import Pending, Said, is_users
from langchain_loopguard.adapters.finding import Conversations
from langchain_loopguard.adapters.gate import Gate
from langchain_loopguard.adapters.runs import Ending, RunTree
from langchain_loopguard.adapters.writing import ending_of, is_decided, take_back, write_warnings
from langchain_loopguard.core.kinds import DECLARED_IN
from langchain_loopguard.langchain.errors import error_of_facts, loop_error
from langchain_loopguard.langchain.marks import SOURCE, Mark, final_message, with_mark
from langchain_loopguard.langchain.messages import key_of, last_step, makes_calls
from langchain_loopguard.langchain.outcome import CallOutcome, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from langchain_loopguard.adapters.conversations import Conversation
    from langchain_loopguard.adapters.runs import Run
    from langchain_loopguard.core.errors import LoopDetectedError
    from langchain_loopguard.langchain.messages import MessageStep
    from langchain_loopguard.langchain.options import Options

_NO_GRAPH = "The calls were not run. There is no graph here that could ask a person and wait."
_NOT_ASKED = (
    "The calls had run already: a person could be asked only when the model was called again."
)
_BY_PERSON = "A person stopped the run."
_NOT_FINISHED = "This was not finished: the run was ended because the same step was repeated."

_BEFORE: Any = {"approve": "approved", "always": "approved"}
_BEFORE |= {"refuse": "refused", "advise": "advised"}


class Deciding:
    """Carries out what the gate decides about the steps of one handler."""

    def __init__(self, options: Options, scope: str, messages_key: str, limit: int) -> None:
        """Take the handler's options; nothing is seen yet."""
        self.gate = Gate(options, "callback")
        self._options = options
        self._key = messages_key
        self.runs = RunTree()
        self._conversations = Conversations(self.gate, self.runs, scope=scope, limit=limit)
        self._lock = threading.RLock()  # Guards the conversations' table.

    def end(self, run_id: UUID) -> Run | None:
        """Forget a run that ended, and what is over with it; gives the run."""
        with self._lock:
            run = self.runs.end(run_id)
            if run is not None and run.holds:
                for one in (run, *self.runs.lost()):
                    self._conversations.let_go(one)
        if run is not None and run.lent:
            take_back(run)
        return run

    # --- Tools ----------------------------------------------------------------------------

    def tool_starts(self, run: Run, call: dict[str, Any], *, again: bool) -> Exception | None:
        """Decide about a call that starts; gives what keeps it from running."""
        state = self._state(run)
        with self._lock:
            place = self._conversations.of_call(run, call, state or (), again=again)
        kept = place.kept
        with kept.lock:
            if not DECLARED_IN.isdisjoint(run.metadata):
                tool = SimpleNamespace(name=call["name"], metadata=run.metadata)
                kept.reader.declare([tool])
            pending = kept.step_of_call(place, run)
            run.call_id, run.kept, run.pending = call["id"], kept, pending
            ending = run.session.ending
            if ending is not None and pending.outcome is None:
                if kept.key in ending.stopped:  # Its model is not seen, so it can't end there.
                    ending.delivered = True
                    return ending.error
                ending.stopped.add(kept.key)
                held = CallOutcome("replace", self._options.wording.stopped)
                calls = (held,) * len(pending.step.decided_calls)
                pending.settle(Outcome(ending.outcome.next, calls))
            signal = self._decide(kept, pending, run)
            return signal or self._hold_back(kept, pending, run)

    def _state(self, run: Run) -> Sequence[BaseMessage] | None:
        """Give the messages of the graph's state, `None` if it has none under this key.

        Notes on the run what LangGraph knows of its task.
        """
        if not run.ns:
            return None
        from langchain_loopguard.adapters import _langgraph  # noqa: PLC0415 - loads LangGraph

        task = _langgraph.running_task(run.ns, self._key)
        if task is None:
            return None
        run.in_task, run.can_ask = True, task.is_saved
        value = task.channel
        # One is looked at: a long history is read at every model call.
        is_list = isinstance(value, list | tuple) and value and isinstance(value[-1], BaseMessage)
        return value if is_list else None

    def _hold_back(self, kept: Conversation, pending: Pending, run: Run) -> Exception | None:
        """Make of what was decided what keeps one call from running, `None` if it runs."""
        outcome = pending.outcome
        if outcome is None or (outcome.next == "run" and not outcome.settle):
            return None  # Nearly every call.
        mine = pending.outcome_of(run.call_id)
        if mine is None or mine.do != "replace":
            if outcome.settle in {"approve", "always"}:
                run.attempt.marks[run.call_id] = Mark(approved=True), False
            return None
        ending = run.session.ending
        error = ending.error if ending is not None else error_about(pending, run)
        if not run.ns or (outcome.next == "raise" and not run.can_ask):
            return error
        if outcome.next in {"end", "raise"} and ending is None:
            run.session.ending = Ending(outcome, error, {kept.key})
        runs = outcome.next == "run" and any(one.do == "run" for one in outcome.calls)
        mark = Mark(runs, outcome.settle == "advise", outcome.ends)
        run.attempt.marks[run.call_id] = mark, True
        from langchain_loopguard.adapters.asking import RefusedCallError  # noqa: PLC0415

        return RefusedCallError(error, mine.text)

    # --- Models ---------------------------------------------------------------------------

    def model_starts(self, run: Run, sent: Sequence[BaseMessage]) -> Exception | None:
        """Read what a model call continues; gives what keeps the model from being called."""
        if run.metadata.get("lc_source"):
            return None  # A framework's own call of a model, to summarise for instance.
        state = self._state(run)
        with self._lock:
            kept = run.kept = self._conversations.of_model(run, sent)
        if run.session.ending is not None:
            return self._end_run(run, run.session.ending)
        with kept.lock:
            if run.ns + "|" in kept.key or run.around:
                state = None
            history = kept.history(run, sent, state)
            if history is not state:
                run.sent = history if history is not None and len(history) == len(sent) else sent
            if history is None:
                return None
            signal = None
            if not kept.begin_turn(run, history):
                signal = self._late(kept, run, history)
                if signal is None:
                    kept.read(history)
            warnings = kept.reader.counts.warnings
            if signal is None and warnings:
                write_warnings(run, sent, warnings, has_state=bool(state))
        return signal

    def model_spoke(self, run: Run, message: Any) -> None:
        """Remember an AI message with calls until its tools start.

        It is not counted yet: it may be a structured answer, or an attempt that is thrown away.
        """
        kept = run.kept
        if kept is None or not isinstance(message, AIMessage):
            return
        with self._lock:
            if kept.before is not None:
                message.response_metadata = with_mark(message, kept.before).response_metadata
                kept.before = None
            if makes_calls(message):
                kept.hear(Said(message, run.attempt, run.sent, run.prompt))
                if run.is_loose:
                    self._conversations.follow(message, kept)

    def _late(
        self, kept: Conversation, run: Run, history: Sequence[BaseMessage]
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
                error = error_of_facts(ending.facts)
                return self._end_run(run, Ending(ending, error, {kept.key}))
            if is_decided(step) or key_of(step.message) in self._conversations.decided:
                return None
            kept.read(history[: step.index])
            pending = kept.add(Pending(step, history, in_state=not run.sent))
        signal = self._decide(kept, pending, run)
        outcome = pending.outcome
        if signal is None and outcome is not None:
            ends = outcome.next in {"end", "raise"}
            if ends and not any(map(is_users, history[step.index :])):
                return self._end_run(run, Ending(outcome, error_about(pending, run), {kept.key}))
            if outcome.settle and pending.step.late:
                kept.before = Mark(before=_BEFORE[outcome.settle])
        return signal

    def _still_waiting(
        self, kept: Conversation, pending: Pending, step: MessageStep, run: Run
    ) -> Pending | None:
        """Give a step that waits, `None` if it was decided elsewhere or its question was lost."""
        if is_decided(step):  # Another process has decided, and said so in the results.
            kept.start_again()
            kept.steps.clear()
            return None
        if pending.question is not None and not pending.question.was_asked_in(run):
            self.gate.telemetry.stats.add("lost")  # It was asked in the tools, and swallowed.
            return None
        return pending

    def _end_run(self, run: Run, ending: Ending) -> Exception:
        """End a run from its model call, where every earlier call has its result.

        Each agent may say the final message once, again and again where its model is retried. One
        whose model is called again all the same gets the error.
        """
        run.session.ending, tool = ending, run.tool
        if tool is not None and run.ns:
            tool.attempt.marks[tool.call_id] = Mark(ends=ending.outcome.ends), True
            from langchain_loopguard.adapters.asking import RefusedCallError  # noqa: PLC0415

            return RefusedCallError(ending.error, _NOT_FINISHED)
        ending.delivered = True
        node = str(run.metadata.get("langgraph_node") or "")
        agent = (run.scope, node)
        attempt, signal = ending.said.get(agent, (run.attempt.id, None))
        if ending.outcome.next == "end" and attempt == run.attempt.id:
            if signal is None and run.in_task:
                from langchain_loopguard.adapters.asking import say_last  # noqa: PLC0415

                message = final_message(ending.outcome.final)
                message.id = f"{SOURCE}-{run.id}"
                signal = say_last(node, self._key, message)
            if signal is not None:
                ending.said[agent] = (attempt, signal)
                return signal
        return ending.error

    # --- The gate -------------------------------------------------------------------------

    def _decide(self, kept: Conversation, pending: Pending, run: Run) -> Exception | None:
        """See to it that a step is decided about, or give the signal that it is not yet."""
        question = pending.question
        if pending.outcome is not None:
            return question.repeat(run) if question is not None else None
        ask = None
        if run.can_ask:
            from langchain_loopguard.adapters import asking  # noqa: PLC0415 - loads LangGraph

            ask = partial(asking.ask, pending, run)
            if not run.session.has_input:  # Else no other process can have asked.
                question = pending.question = asking.find_question(pending)
        blocked = question.blocks(run) if question is not None else None
        if blocked is not None:
            return blocked
        caller = str(run.metadata.get("lc_agent_name") or "")
        step, messages = pending.step, pending.history
        try:
            if question is not None and question.payload is not None:
                kept.read(messages[: step.index])
                kept.reader.recall(step, question.payload, caller)
            decided = self.gate.take(
                kept.reader, step, messages, ask=ask, caller=caller, editable=False
            )
        except Exception as error:  # noqa: BLE001 - a signal, or a fault that is to be raised
            if pending.question is not None:
                pending.question.attempts[run.attempt.id] = error
            return error
        self._conversations.decided.note(key_of(step.message))
        pending.decision = decided.decision if decided is not None else None
        pending.settle(decided.outcome if decided is not None else Outcome("run"))
        if pending.question is not None:
            pending.question.answered_in = run.session.id
        return None


def error_about(pending: Pending, run: Run) -> LoopDetectedError:
    """Make the error that says what was found, and what the reader of it can do."""
    decision, outcome = pending.decision, pending.outcome
    if decision is None or outcome is None or not decision.findings:
        return error_of_facts({"message": _BY_PERSON})
    if outcome.asked and outcome.next == "end":
        return loop_error(decision, _BY_PERSON)
    if outcome.next == "raise":
        return error_of_facts(outcome.facts)
    if outcome.next == "end" and not run.ns:
        return loop_error(decision, _NOT_ASKED if pending.step.late else _NO_GRAPH)
    text = next((call.text for call in outcome.calls if call.text), "")
    return loop_error(decision, text if outcome.next in {"model", "answer"} else "")
