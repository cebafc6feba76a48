"""What does the handler do with each callback event?

It places the event, has it read, and carries out what was decided. What is to be raised is worked
out under the lock and raised at the end, so that a fault of the guard and a decision of the guard
can't be mixed up.
"""

from __future__ import annotations

import logging
import sys
import threading
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler

from langchain_loopguard.callbacks import marks
from langchain_loopguard.callbacks.conversations import RUN
from langchain_loopguard.callbacks.reading import Reading
from langchain_loopguard.callbacks.runs import RunTree
from langchain_loopguard.core.decision import Action
from langchain_loopguard.options import (
    OnDetectedInCallbacks,
    Scope,
    check_choice,
    check_flag,
    check_name,
    policy_of,
)
from langchain_loopguard.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult

    from langchain_loopguard.callbacks.conversations import Batch, Ending
    from langchain_loopguard.callbacks.host import Task
    from langchain_loopguard.callbacks.runs import Run
    from langchain_loopguard.callbacks.verdicts import Verdicts
    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.telemetry import Count

logger = logging.getLogger("langchain_loopguard.callbacks")


_SEEN = frozenset({"_lock", "_logged", "_told", "_telemetry", "_current_task", "_runs"}) | {
    "_reading",
    "_verdicts",
}
"""What is made of the options, and of the events that came."""


class LoopGuardCallbackHandler(BaseCallbackHandler):
    """Stops an agent that repeats its tool calls, from `config["callbacks"]`.

    Pass one instance to the call of the agent or graph (`config={"callbacks": [handler]}`) or
    bind it with `with_config`; it may serve any number of threads, in sync and async runs alike.
    Attached to a model or a tool alone it sees too little to stop every loop.

    On the call of a whole team's graph it also finds agents that hand over to each other for
    ever, in a swarm or under a supervisor; agents that work side by side are counted apart.
    What is found is told on the custom stream, in custom events, on the current LangSmith run
    and on the current OpenTelemetry span, see `langchain_loopguard.telemetry`.

    It keeps its counts in the thread's messages, so that any number of processes may take turns
    on one thread; `langchain_loopguard.callbacks` says what each of them knows. It can't add
    messages to a history: when a user writes something new while a person is asked, the calls
    that wait are left without answers, which model APIs refuse. Answer them first, with
    `langchain_loopguard.history.answer_open_calls` on what is sent to the model for instance;
    `add_loop_guard` and `LoopGuardMiddleware` do it by themselves.

    LangChain logs each exception that leaves a handler, also those that are meant to: expect a
    warning "Error in LoopGuardCallbackHandler.on_tool_start callback" from the logger
    `langchain_core.callbacks.manager` whenever a run is interrupted, refused or ended. It shows
    no arguments of calls. A tracer that stands before this handler in the list sees such a tool
    call start and never end.

    Args:
        policy: What counts as a loop; `LoopGuardPolicy()` without one.
        on_detected: What happens to a batch that is a loop. `"interrupt"` asks a person with
            `langgraph.types.interrupt`, once for the batch, before any of it runs; see
            `langchain_loopguard.interrupts` for the question and the accepted answers (all but
            an edited call). Outside a graph, and in a graph without a checkpointer, it raises
            `LoopDetectedError`. `"raise"` ends the run in `LoopDetectedError`; in a graph with a
            checkpointer the calls are answered first, so that the thread can go on later.
            `"refuse"` has the calls answered with an error and lets the model go on, until
            `LoopGuardPolicy.max_refusals` ends the run in `LoopDetectedError`; it needs a
            `ToolNode` (`create_agent` has one) that handles errors, and is `"raise"` elsewhere.
            `"warn"` only tells.
        scope: `"thread"` counts for each `thread_id`, and for each run of the outermost chain
            without one; agents inside an agent are counted on their own. `"handler"` counts over
            all runs that this instance sees, for a loop written by hand around a chain: use one
            instance for each conversation.
        messages_key: The key of a graph's state that holds the messages.
        agent_inbox: Whether a question carries the older form too that Agent Inbox reads.
        notify: Called with each decision that found something, once a batch. Without it, a
            warning is logged for what no person hears of otherwise.
        max_conversations: How many conversations are remembered when none of their agents is at
            work; those at work are remembered besides. One that was dropped is read again from
            its messages.
        fail_open: Whether a fault of the guard itself is logged once and the agent goes on
            unguarded; `False` raises it.

    Raises:
        ValueError: If an option has a value it can't have; the message names both.
    """

    raise_error = True
    # In async code, a handler that isn't run inline is run after the event, in a thread.
    run_inline = True

    def __init__(
        self,
        policy: LoopGuardPolicy | None = None,
        *,
        on_detected: OnDetectedInCallbacks = "interrupt",
        scope: Scope = "thread",
        messages_key: str = "messages",
        agent_inbox: bool = False,
        notify: Callable[[Decision], None] | None = None,
        max_conversations: int = 1000,
        fail_open: bool = True,
    ) -> None:
        super().__init__()
        self.policy = policy_of(policy)
        check_choice("on_detected", on_detected, OnDetectedInCallbacks)
        check_choice("scope", scope, Scope)
        check_name("messages_key", messages_key)
        check_flag("agent_inbox", agent_inbox)
        check_flag("fail_open", fail_open)
        if notify is not None and not callable(notify):
            raise ValueError(f"notify: must be callable or None, not {notify!r}")
        if type(max_conversations) is not int or max_conversations < 1:
            raise ValueError(f"max_conversations: must be 1 or more, not {max_conversations!r}")
        self.on_detected: OnDetectedInCallbacks = on_detected
        self.scope: Scope = scope
        self.messages_key = messages_key
        self.agent_inbox = agent_inbox
        self.notify = notify
        self.fail_open = fail_open
        self.max_conversations = max_conversations
        self._begin()

    def _begin(self) -> None:
        """Start with nothing seen."""
        self._lock = threading.RLock()
        self._logged = False
        self._told: list[Decision] = []
        self._telemetry = Telemetry("callback", logger)
        self._current_task: Callable[[Run], Task | None] | None = None
        self._runs = RunTree()
        self._reading = Reading(
            self.policy,
            self._runs,
            on_detected=self.on_detected,
            scope=self.scope,
            messages_key=self.messages_key,
            max_conversations=self.max_conversations,
            tell=self._revealed,
        )
        self._verdicts: Verdicts | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Give the options: a copy has seen nothing, and runs that are open aren't its own."""
        return {name: value for name, value in vars(self).items() if name not in _SEEN}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start with nothing seen."""
        vars(self).update(state)
        self._begin()

    @property
    def ignore_retriever(self) -> bool:
        """Retrievers call no tools."""
        return True

    @property
    def ignore_custom_event(self) -> bool:
        """Custom events are what the handler sends, not what it hears."""
        return True

    def stats(self) -> Mapping[Count, int]:
        """Count what it did since it was made, over all threads; see `Telemetry.stats`."""
        return self._telemetry.stats()

    # --- Events ---------------------------------------------------------------------------

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,  # noqa: ARG002
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        """Place the run; a resume brings its answer here."""
        # Most events are the starts and the ends of chains, so these take a shorter way.
        with self._lock:
            try:
                self._runs.start(run_id, parent_run_id, metadata, inputs)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the guard's own fault
                self._fault(error)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Mark messages that the host is about to save; end a run that no model call has ended.

        Raises:
            LoopDetectedError: If the run was to end, and went on to its own end without a model.
        """
        with self._lock:
            try:
                run = self._ended(run_id)
                if run is not None and not run.leads and not self._reading.is_marked(run):
                    return
            except Exception as error:  # noqa: BLE001 - as above
                self._fault(error)
                return
        self._carry_out(self._chain_ended, run_id, run, outputs)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Forget the run."""
        self._carry_out(self._end, run_id)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        """Read the history; ask about a loop of calls that no tool was started for.

        Raises:
            GraphInterrupt: LangGraph's signal that a person is asked.
            ParentCommand: LangGraph's signal that the node ends with a final message.
            LoopDetectedError: If the run is to end.
        """
        sent = messages[0] if messages else []
        self._carry_out(self._model_started, run_id, parent_run_id, metadata, sent)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Remember the AI message until its tools start."""
        self._carry_out(self._model_spoke, run_id, response)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Forget the run."""
        self._carry_out(self._end, run_id)

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Let the call run, or keep it from running by raising.

        Raises:
            GraphInterrupt: LangGraph's signal that a person is asked about the batch.
            LoopDetectedError: If the call is refused, or the run is to end.
            InvalidResumeError: If the graph was resumed with a value that is no answer.
        """
        call = {
            "name": (serialized or {}).get("name") or kwargs.get("name") or "",
            "args": input_str if inputs is None else inputs,
            "id": kwargs.get("tool_call_id"),
        }
        self._carry_out(self._tool_started, run_id, parent_run_id, metadata, call, tags)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Note what the tool gave."""
        self._carry_out(self._tool_ended, run_id, output, "success")

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Note the error as what the tool gave, unless the graph only waits or ends."""
        errors = sys.modules.get("langgraph.errors")
        if errors is not None and isinstance(error, errors.GraphBubbleUp):
            self._carry_out(self._end, run_id)
            return
        self._carry_out(self._tool_ended, run_id, repr(error), "error")

    # --- What is done with them, under the lock -------------------------------------------

    def _chain_ended(self, run_id: UUID, run: Run | None, outputs: Any) -> Exception | None:
        if run is not None:
            for kept in self._reading.marked_around(run):
                if marks.write(outputs, kept.marks, kept.before):
                    kept.before = None
        ending = self._end_session(run, run_id)
        if ending is None or ending.delivered or ending.last_word is not None:
            return None
        return ending.error

    def _model_started(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        metadata: Mapping[str, Any] | None,
        sent: list[BaseMessage],
    ) -> Exception | None:
        run = self._runs.start(run_id, parent_run_id, metadata)
        if run.internal:
            return None
        error = self._before_model(run, sent)
        if error is not None:
            self._end(run_id)
        return error

    def _before_model(self, run: Run, sent: list[BaseMessage]) -> Exception | None:
        task = self._task(run)
        session = self._reading.conversations.session(run.session)
        if session.ending is not None:
            return self._verdict().end(session.ending, session, run, task)
        history = self._reading.model_starts(run, task, sent, asks=self._asks(task))
        if history is None:
            return None
        error = None
        batch = history.batch
        if batch is not None:
            self._tell_once(batch)
            self._take_up(batch, task)
            if batch.question is not None or batch.decision.action >= Action.ASK:
                error = self._verdict().on_model(history, session, run, task, sent)
        elif history.ending is not None:
            error = self._verdict().end_late(history.ending, session, run, task)
        if batch is None or batch.question is None or batch.answer is not None:
            hint = error is None and (batch is None or batch.ran_unasked)
            self._reading.close(history, sent, hint=hint)
        return error

    def _model_spoke(self, run_id: UUID, response: LLMResult) -> None:
        run = self._runs.end(run_id)
        if run is not None and not run.internal:
            self._reading.model_spoke(run, response)
        self._end_session(run, run_id)

    def _tool_started(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        metadata: Mapping[str, Any] | None,
        call: dict[str, Any],
        tags: list[str] | None,
    ) -> Exception | None:
        run = self._runs.start(run_id, parent_run_id, metadata)
        run.is_tool = True
        run.call_id = call["id"]
        task = self._task(run)
        asks = self._asks(task)
        session = self._reading.conversations.session(run.session)
        kept, batch = self._reading.tool_starts(run, task, call, session, tags, asks=asks)
        self._take_up(batch, task)
        self._tell_once(batch)
        harmless = batch.decision.action < Action.ASK and (
            batch.answer is None or batch.answer is RUN
        )
        if harmless and batch.question is None and session.ending is None:
            return None
        error = self._verdict().on_call(kept, batch, session, run, task)
        if error is not None:
            self._end(run_id)
        return error

    def _tool_ended(self, run_id: UUID, output: Any, status: str) -> None:
        run = self._ended(run_id)
        if run is not None:
            self._reading.tool_ended(run, output, status)
        self._end_session(run, run_id)

    # --- Helpers --------------------------------------------------------------------------

    def _end(self, run_id: UUID) -> None:
        self._end_session(self._ended(run_id), run_id)

    def _ended(self, run_id: UUID) -> Run | None:
        """Forget a run that ended, and let go of the conversations that are over with it."""
        run = self._runs.end(run_id)
        if run is not None and run.holds:
            self._reading.conversations.let_go(run.holds, run.session)
        return run

    def _end_session(self, run: Run | None, run_id: UUID) -> Ending | None:
        """Forget the session of a run that ended, if one is named after it."""
        if run is not None and not run.leads:
            return None
        session = self._reading.conversations.end_session(run_id)
        self._runs.forget_lost()
        return session.ending if session is not None else None

    def _task(self, run: Run) -> Task | None:
        if not run.ns:
            return None
        if self._current_task is None:
            from langchain_loopguard.callbacks import host

            self._current_task = host.current_task
        return self._current_task(run)

    def _asks(self, task: Task | None) -> bool:
        return self.on_detected == "interrupt" and task is not None and task.resumable

    def _verdict(self) -> Verdicts:
        if self._verdicts is None:
            from langchain_loopguard.callbacks.verdicts import Verdicts

            self._verdicts = Verdicts(
                self.on_detected,
                self.messages_key,
                self._telemetry.count,
                agent_inbox=self.agent_inbox,
            )
        return self._verdicts

    def _take_up(self, batch: Batch, task: Task | None) -> None:
        """See whether another process has asked about a batch, or has its answer."""
        if batch.answer is None and task is not None and self.on_detected == "interrupt":
            asked = task.asked()
            if asked:
                self._verdict().take_up(batch, asked, task)

    def _tell_once(self, batch: Batch) -> None:
        if batch.told:
            return
        batch.told = True
        self._telemetry.count("checked")
        if batch.decision.findings:
            self._told.append(batch.decision)
            if batch.decision.action < Action.ASK or self.on_detected == "warn":
                self._telemetry.count("warned")

    def _revealed(self, decision: Decision) -> None:
        self._telemetry.count("warned")
        self._told.append(decision)

    def _carry_out(self, act: Callable[..., Exception | None], *args: Any) -> None:
        outcome = told = None
        with self._lock:
            try:
                outcome = act(*args)
            except Exception as error:  # noqa: BLE001 - as above
                self._fault(error)
            if self._told:
                told, self._told = self._told, []
        if told is not None:
            for decision in told:
                try:
                    self._notify(decision)
                except Exception as error:  # noqa: BLE001 - as above
                    self._fault(error)
        if outcome is not None:
            raise outcome

    def _notify(self, decision: Decision) -> None:
        unheard = decision.action is Action.WARN or self.on_detected in {"warn", "refuse"}
        self._telemetry.tell(decision, log=unheard and self.notify is None)
        if self.notify is not None:
            self.notify(decision)

    def _fault(self, error: Exception) -> None:
        """Log a fault of the guard once, or raise it."""
        self._telemetry.count("faults")
        if not self.fail_open:
            raise error
        if not self._logged:
            self._logged = True
            logger.error("The loop guard failed; the agent goes on unguarded.", exc_info=error)
