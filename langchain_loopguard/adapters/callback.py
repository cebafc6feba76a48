"""What does the handler do with each callback event?

It places the event, has the gate decide, and raises what the host makes the decision of. What is
to be raised is worked out first and raised last, so that a fault of the guard and a decision of
the guard can't be mixed up. It saves nothing itself: every count is read from the graph's own
messages, and what became of a step is written into its results before the host saves them.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.callbacks import BaseCallbackHandler

from langchain_loopguard.adapters.deciding import Deciding
from langchain_loopguard.adapters.writing import lend, write_marks
from langchain_loopguard.langchain.errors import is_signal
from langchain_loopguard.langchain.options import (
    Options,
    Scope,
    ShowContent,
    check_choice,
    check_count,
    check_name,
)
from langchain_loopguard.langchain.telemetry import SignalFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult

    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.langchain.options import IsUserMessage, OnDetected
    from langchain_loopguard.langchain.telemetry import Count
    from langchain_loopguard.langchain.wording import Wording
    from langchain_loopguard.policy import LoopGuardPolicy

__all__ = ["LoopGuardCallbackHandler"]

_Act = TypeVar("_Act", bound="Callable[..., Exception | None]")

_MODES = ("interrupt", "refuse", "raise", "warn", "observe")
"""Without `wrap_up`: a handler can't call a model without its tools."""

_DOES = {
    "PersonAskedError": "asks a person",
    "RefusedCallError": "holds a call back",
    "GraphInvalidResumeError": "got a value that is no answer",
}
"""What a signal is logged as, by its name; any other one ends the run."""


def _event(act: _Act) -> _Act:
    """Make a handler's method of one that gives what is to be raised, so that it is raised last.

    A fault of the guard is logged, and the agent goes on, unless `fail_open` is off.
    """

    @functools.wraps(act)
    def event(handler: LoopGuardCallbackHandler, *args: Any, **kwargs: Any) -> None:
        try:
            signal = act(handler, *args, **kwargs)
        except Exception as error:
            if not handler.options.fail_open:
                raise
            handler._deciding.gate.telemetry.fault(error)  # noqa: SLF001 - its own method
            return
        if signal is not None:
            handler._deciding.end(kwargs["run_id"])  # noqa: SLF001 - it gets no end of its own
            SignalFilter.announce(signal, _DOES.get(type(signal).__name__, "ends the run"))
            raise signal

    return event  # type: ignore[return-value] # it takes the same arguments


class LoopGuardCallbackHandler(BaseCallbackHandler):
    """Stops an agent that repeats its tool calls, from `config["callbacks"]`.

    Pass one instance to the call of the agent or graph (`config={"callbacks": [handler]}`) or
    bind it with `with_config`; it may serve any number of threads, in sync and async runs alike.
    Attached to a model or a tool alone it sees too little to stop every loop.

    On the call of a whole team's graph it also finds agents that hand over to each other for
    ever, in a swarm or under a supervisor; agents that work side by side are counted apart.

    It keeps its counts in the thread's messages, so that any number of processes may take turns
    on one thread. It can't add messages to a history: when a user writes something new while a
    person is asked, the calls that wait are left without results, which model APIs refuse.
    Complete it first, with `langchain_loopguard.langchain.repair.complete` for instance;
    `add_loop_guard` and `LoopGuardMiddleware` do it by themselves.

    A tracer that stands before this handler in the list sees the start of a call that is
    stopped, and no end.

    Args:
        policy: What counts as a loop; `LoopGuardPolicy()` without one.
        on_detected: What happens to a step that is a loop. `"interrupt"` asks a person with
            `langgraph.types.interrupt`, once for the step, before any of it runs; in a graph
            without a checkpointer the run ends with a final message, and outside a graph in
            `LoopDetectedError`. `"raise"` ends the run in `LoopDetectedError`; in a graph with a
            checkpointer the calls are answered first, so that the thread can go on later.
            `"refuse"` has the calls answered with an error and lets the model go on, until
            `LoopGuardPolicy.max_refusals` ends the run; where no `ToolNode` runs the call, the
            error that is raised holds that text. `"warn"` only tells, and `"observe"` only
            records. A callable gets a `Detected` and gives one of these, or an answer.
        scope: `"thread"` counts for each `configurable.thread_id`, and for each run of the
            outermost chain without one; agents inside an agent are counted on their own.
            `"handler"` counts over all runs that this instance sees, for a loop written by hand
            that feeds nothing back: use one instance for each conversation.
        messages_key: The key of a graph's state that holds the messages.
        show_content: How much of arguments and results a question shows.
        agent_inbox: Whether a question carries the older form too that Agent Inbox reads.
        is_user_message: Which human messages a user wrote; see `Options`.
        wording: The sentences to use instead of `Wording`'s.
        notify: Called with each decision that something is done about, in place of the log.
        max_conversations: How many conversations are remembered when none of their agents is at
            work; those at work are remembered besides.
        fail_open: Whether a fault of the guard itself is logged and the agent goes on unguarded;
            `False` raises it.

    Raises:
        ValueError: If an option has a value it can't have; the message names both.
    """

    raise_error = True
    # In async code, a handler that isn't run inline is run after the event, in a thread.
    run_inline = True
    # Retrievers call no tools, and custom events are what the handler sends.
    ignore_retriever = ignore_custom_event = True

    def __init__(
        self,
        policy: LoopGuardPolicy | None = None,
        *,
        on_detected: OnDetected = "interrupt",
        scope: Scope = "thread",
        messages_key: str = "messages",
        show_content: ShowContent = "full",
        agent_inbox: bool = False,
        is_user_message: IsUserMessage = None,
        wording: Wording | Mapping[str, str] | None = None,
        notify: Callable[[Decision], None] | None = None,
        max_conversations: int = 1000,
        fail_open: bool = True,
    ) -> None:
        super().__init__()
        self.options = Options(
            policy=policy,  # type: ignore[arg-type] # `None` is the default policy
            on_detected=on_detected,
            show_content=show_content,
            agent_inbox=agent_inbox,
            is_user_message=is_user_message,
            wording=wording,  # type: ignore[arg-type] # a mapping is read there
            fail_open=fail_open,
            allowed=_MODES,
        )
        check_choice("scope", scope, ("thread", "handler"))
        check_name("messages_key", messages_key)
        check_count("max_conversations", max_conversations)
        if notify is not None and not callable(notify):
            raise ValueError(f"notify: must be callable or None, not {notify!r}")
        self.scope: Scope = scope
        self.messages_key = messages_key
        self.notify = notify
        self.max_conversations = max_conversations
        self._begin()

    def _begin(self) -> None:
        self._deciding = Deciding(
            self.options, self.scope, self.messages_key, self.max_conversations
        )
        self._deciding.gate.telemetry.notify = self.notify

    def __getstate__(self) -> dict[str, Any]:
        """Give the options: a copy has seen nothing, and runs that are open aren't its own."""
        return {name: value for name, value in vars(self).items() if name != "_deciding"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start with nothing seen."""
        vars(self).update(state)
        self._begin()

    @property
    def policy(self) -> LoopGuardPolicy:
        """What counts as a loop."""
        return self.options.policy

    def stats(self) -> Mapping[Count, int]:
        """Count what it did since it was made, over all threads; see `Stats`."""
        return self._deciding.gate.stats()

    # --- Events ---------------------------------------------------------------------------

    @_event
    def on_chain_start(self, serialized: Any, inputs: Any, **event: Any) -> None:  # noqa: ARG002
        """Place the run; a resume brings its answer here."""
        run = self._deciding.runs.start(**event)
        if not run.ns or type(inputs) is not dict:
            run.took(inputs)
        elif run.first is None and self.options.on_detected != "observe":
            lend(run, inputs, self.messages_key)

    @_event
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> Exception | None:
        """Mark results that the host is about to save; end a run that no model call has ended.

        Raises:
            LoopDetectedError: If the run was to end, and went on to its own end without a model.
        """
        run = self._deciding.end(run_id)
        if run is None:
            return None
        write_marks(run, outputs)
        ending = run.leads.ending if run.leads is not None else None
        if ending is None or ending.delivered or ending.outcome.next != "raise":
            return None
        return ending.error

    @_event
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: ARG002
        """Forget the run."""
        self._deciding.end(run_id)

    @_event
    def on_chat_model_start(
        self,
        serialized: Any,  # noqa: ARG002
        messages: list[list[BaseMessage]],
        **event: Any,
    ) -> Exception | None:
        """Read the history; ask a person where a loop's calls have results and nobody decided.

        Raises:
            GraphInterrupt: LangGraph's signal that a person is asked.
            ParentCommand: LangGraph's signal that the node ends with a final message.
            LoopDetectedError: If the run is to end.
        """
        run = self._deciding.runs.start(**event)
        return self._deciding.model_starts(run, messages[0] if messages else [])

    @_event
    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Remember the AI message until its tools start."""
        run = self._deciding.end(run_id)
        generations = response.generations[0] if response.generations else []
        if run is not None and generations:
            self._deciding.model_spoke(run, getattr(generations[0], "message", None))

    on_llm_error = on_chain_error

    @_event
    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        tags: list[str] | None = None,
        inputs: dict[str, Any] | None = None,
        **event: Any,
    ) -> Exception | None:
        """Let the call run, or keep it from running by raising.

        Raises:
            GraphInterrupt: LangGraph's signal that a person is asked.
            LoopDetectedError: If the call is refused, or the run is to end.
            InvalidResumeError: If the graph was resumed with a value that is no answer.
        """
        call = {
            "name": (serialized or {}).get("name") or event.get("name") or "",
            "args": input_str if inputs is None else inputs,
            "id": event.get("tool_call_id"),
        }
        # `Runnable.with_retry` tags each attempt after the first.
        again = any(str(tag).startswith("retry:attempt:") for tag in tags or ())
        return self._deciding.tool_starts(self._deciding.runs.start(**event), call, again=again)

    @_event
    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """Note what the tool gave."""
        self._tool_gave(run_id, output, "success")

    @_event
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Note the error as what the tool gave, unless the graph only waits or ends."""
        if is_signal(error):
            self._deciding.end(run_id)
        else:
            self._tool_gave(run_id, repr(error), "error")

    def _tool_gave(self, run_id: UUID, output: Any, status: str) -> None:
        run = self._deciding.end(run_id)
        if run is not None and run.kept is not None and run.pending is not None:
            write_marks(run, output)
            if not run.pending.in_state:  # Else a message list will tell.
                with run.kept.lock:
                    run.pending.take(str(run.call_id), output, status)
