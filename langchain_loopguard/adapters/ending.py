"""How does a run end that a callback handler ends?

With a final message of its node where LangGraph takes one, else with an error that says what was
found. It ends at a model call, when every earlier call has its result. What is decided is not
decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_loopguard.adapters.finding import in_task
from langchain_loopguard.langchain.errors import error_of_facts, loop_error
from langchain_loopguard.langchain.marks import SOURCE, Mark, final_message, mark_of
from langchain_loopguard.langchain.outcome import Outcome

if TYPE_CHECKING:
    from langchain_loopguard.adapters.conversations import Pending, Session
    from langchain_loopguard.adapters.runs import Run
    from langchain_loopguard.core.errors import LoopDetectedError
    from langchain_loopguard.langchain.messages import MessageStep

_NO_GRAPH = "The calls were not run. There is no graph here that could ask a person and wait."
_NOT_ASKED = (
    "The calls had run already: a person could be asked only when the model was called again."
)
_BY_PERSON = "A person stopped the run."
_NOT_FINISHED = "This was not finished: the run was ended because the same step was repeated."


def end_run(session: Session, run: Run, *, messages_key: str) -> Exception:
    """End a run from its model call, where every earlier call has its result.

    Each agent may say the final message once, again and again where its model is retried. One
    whose model is called again all the same gets the error.
    """
    ending, tool = session.ending, run.tool
    if ending is None or session.loop is None:
        raise LookupError("the run does not end")
    if tool is not None and run.ns:
        if tool.kept is not None:
            tool.kept.marks[tool.call_id] = Mark(ends=ending.ends), True
        from langchain_loopguard.adapters.asking import RefusedCallError  # noqa: PLC0415

        return RefusedCallError(session.loop, _NOT_FINISHED)
    agent = (run.scope, run.node)
    attempt, signal = session.said.get(agent, (run.attempt, None))
    if ending.next == "end" and run.ns and attempt == run.attempt:
        if signal is None and in_task(run):
            from langchain_loopguard.adapters.asking import say_last  # noqa: PLC0415

            message = final_message(ending.final)
            message.id = f"{SOURCE}-{run.id}"
            signal = say_last(run.node, messages_key, message)
        if signal is not None:
            session.said[agent] = (run.attempt, signal)
            session.delivered = True
            return signal
    session.delivered = True
    return session.loop


def ending_of(step: MessageStep) -> Outcome | None:
    """Read from the results of a step that the run was to end with it."""
    ends = next((mark.ends for mark in map(mark_of, step.results) if mark.ends), None)
    if not ends:
        return None
    how: Any = "raise" if ends["as"] == "raise" else "end"
    return Outcome(how, final=str(ends.get("text", "")), facts=ends)


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


def is_decided(step: MessageStep) -> bool:
    """Tell whether a step says that somebody has decided about it."""
    marks = map(mark_of, (step.message, *step.results))
    return step.held_back or any(mark.approved for mark in marks)
