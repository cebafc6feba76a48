"""What is done about a batch that is a loop?

A person is asked, the calls are refused, or the run ends. Nothing is raised here: each function
gives what is to be raised, and a batch's `answer` says what happens to its calls. Loaded when
the first loop is found, since the errors come with LangGraph where that is installed.

A run that ends leaves a history that can be continued, where the host permits: the calls are
answered first, and the next model call ends the run. A tool that runs an agent of its own is
answered too, so that each agent around it ends in the same way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_loopguard.callbacks import marks
from langchain_loopguard.callbacks.conversations import RUN, Answer, Ending
from langchain_loopguard.callbacks.questions import Question
from langchain_loopguard.callbacks.runs import MISSING
from langchain_loopguard.core.decision import Action
from langchain_loopguard.cost import loop_cost
from langchain_loopguard.errors import (
    NO_CHECKPOINTER,
    RAISED,
    GraphLoopDetectedError,
    InvalidResumeError,
    error_of,
    loop_detected_error,
)
from langchain_loopguard.interrupts import QUESTION, interrupt_payload, parse_resume
from langchain_loopguard.messages import STOPPED, final_message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_loopguard.callbacks.conversations import Batch, Conversation, Session
    from langchain_loopguard.callbacks.host import Asked, Task
    from langchain_loopguard.callbacks.reading import History
    from langchain_loopguard.callbacks.runs import Run
    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.core.errors import LoopDetectedError
    from langchain_loopguard.interrupts import Resume
    from langchain_loopguard.options import OnDetectedInCallbacks
    from langchain_loopguard.telemetry import Count

_NO_GRAPH = "The calls were not run. There is no graph here that could ask a person and wait."
_NO_TOOL_NODE = "The calls were not run. A call can be refused only where a `ToolNode` runs it."
_BY_PERSON = "A person stopped the run."
_NOT_FINISHED = "This was not finished: the run was ended because the same step was repeated."
_NO_EDIT = (
    "A callback handler can't change a call, it can only let it run or refuse it. Refuse it and "
    "say in the text what to call instead, or use `LoopGuardNode`. The question is still open."
)


class Verdicts:
    """Carries out what a handler is to do about loops."""

    def __init__(
        self,
        on_detected: OnDetectedInCallbacks,
        messages_key: str,
        count: Callable[[Count], None],
        *,
        agent_inbox: bool,
    ) -> None:
        """Take the handler's options; `count` is told what is done."""
        self._on_detected = on_detected
        self._messages_key = messages_key
        self._agent_inbox = agent_inbox
        self._count = count

    # --- A tool call, a model call --------------------------------------------------------

    def on_call(
        self, kept: Conversation, batch: Batch, session: Session, run: Run, task: Task | None
    ) -> Exception | None:
        """Decide about a call that starts.

        Returns:
            What keeps it from running, `None` if it runs.
        """
        if session.ending is not None and batch.answer is None:
            if session.ending.is_ignored_by(kept):
                session.ending.delivered = True
                return session.ending.error
            batch.answer = Answer(session.ending.to_model)
        error = self._settle(kept, batch, session, run, task)
        if error is not None or batch.answer is None:
            return error
        text = batch.answer.to(run.call_id)
        ending = session.ending
        if text is None:
            loop = batch.question is not None or batch.decision.action >= Action.ASK
            if loop and self._on_detected == "interrupt":
                _mark(kept, run.call_id, marks.LET_RUN, session)
            return None
        reason = ending.error if ending else _error(batch.decision, _NO_TOOL_NODE)
        if not run.in_graph:
            return reason
        if ending is not None:
            mark = marks.ends(ending.error, ending.last_word)
        else:
            mark = marks.REFUSED_ALONE if batch.answer.runs_any(batch) else marks.REFUSED
        by_person = ending is None and batch.question is not None
        if by_person:
            mark = replace(mark, withheld=text)
        _mark(kept, run.call_id, mark, session)
        return _refused(reason, text, batch.decision.findings, by_person=by_person)

    def on_model(
        self, history: History, session: Session, run: Run, task: Task | None, sent: Any
    ) -> Exception | None:
        """Decide about a batch whose calls were answered without a tool: no such tool exists.

        It is too late to refuse the calls, but not to ask, and the model reads their answers
        next, so a text is added to those.

        Returns:
            What keeps the model from being called, `None` if it is.
        """
        batch = history.batch
        if batch is None:
            return None
        error = self._settle(history.conversation, batch, session, run, task, at_model=True)
        if error is None and session.ending is None and batch.ended:
            # The run was started again where its thread was to end, so it ends there again.
            reason = _error(batch.decision, RAISED)
            session.ending = Ending(reason, STOPPED, seen_by=[history.conversation])
        if error is None and session.ending is not None:
            error = self.end(session.ending, session, run, task)
        if error is None and batch.answer is not None:
            answers = {call_id: batch.answer.to(call_id) for call_id in batch.call_ids}
            texts = {call_id: text for call_id, text in answers.items() if text is not None}
            marks.add_texts((*history.messages, *sent), texts)
            if self._on_detected != "warn":
                goes_on = batch.answer.runs_any(batch)
                history.conversation.before = marks.decided(goes_on=goes_on, texts=texts)
                session.marked = True
        return error

    def end_late(
        self, facts: Mapping[str, Any], session: Session, run: Run, task: Task | None
    ) -> Exception:
        """End a run that another process was to end: it has died, and left the facts."""
        error = error_of(facts)
        last_word = facts.get("last_word")
        session.ending = Ending(error, STOPPED, last_word if isinstance(last_word, str) else None)
        return self.end(session.ending, session, run, task)

    def end(self, ending: Ending, session: Session, run: Run, task: Task | None) -> Exception:
        """End a run from its model call, where every earlier call has its answer.

        Each agent may say the last word once. One whose model is called again all the same, since
        its graph takes no such word for an end, gets the error.
        """
        tool = run.tool
        if tool is not None and run.in_graph:
            if tool.conversation is not None:
                mark = marks.ends(ending.error, ending.last_word)
                _mark(tool.conversation, tool.call_id, mark, session)
            return _refused(ending.error, _NOT_FINISHED, ())
        agent = (run.graph_ns, run.node)
        if ending.last_word is not None and task is not None and agent not in ending.said_in:
            ending.said_in.add(agent)
            last_word = task.last_word(self._messages_key, final_message(ending.last_word))
            if last_word is not None:
                return last_word
        ending.delivered = True
        return ending.error

    def take_up(self, batch: Batch, asked: Sequence[Asked], task: Task) -> None:
        """Learn from what is saved of this step what other processes have done with the batch."""
        for one in asked:
            ours = isinstance(one.payload, dict) and one.payload.get("type") == QUESTION
            if ours and not batch.call_ids.isdisjoint(one.payload.get("tool_call_ids", ())):
                question = batch.question = batch.question or Question()
                question.ids.add(one.id)
                question.payload = one.payload
                if one.answers:
                    question.saved = one.answers[0]
            elif not ours and one.id == task.interrupt_id:
                # The tool itself has asked, so it was let run; the answer is the tool's.
                batch.answer = RUN

    # --- The batch ------------------------------------------------------------------------

    def _settle(
        self,
        kept: Conversation,
        batch: Batch,
        session: Session,
        run: Run,
        task: Task | None,
        *,
        at_model: bool = False,
    ) -> Exception | None:
        """See to it that the batch has an answer, or give what is to be raised instead."""
        if batch.question is not None:
            return self._ask(kept, batch, session, run, task)
        if batch.answer is not None:
            return None
        action, mode = batch.decision.action, self._on_detected
        if action < Action.ASK or mode == "warn":
            batch.answer = RUN
            return None
        cure = RAISED
        if action is Action.ASK and mode == "refuse":
            if run.in_graph:
                self._count("refused")
                kept.reader.refuse(batch.decision)
                text = batch.decision.to_model if at_model else batch.decision.refusal
                batch.answer = Answer(text)
                return None
            cure = _NO_TOOL_NODE
        elif action is Action.ASK and mode == "interrupt":
            if task is not None and task.resumable:
                batch.question = Question()
                self._count("asked")
                return self._ask(kept, batch, session, run, task)
            cure = _NO_GRAPH if task is None else NO_CHECKPOINTER
        if not batch.ended:
            batch.ended = True
            self._count("stopped")
        error = _error(batch.decision, cure)
        answered = at_model or (
            task is not None and task.resumable and task.messages(self._messages_key) is not None
        )
        if not answered:
            return error
        # The thread outlives this run. Raised now, the error would leave calls without answers,
        # and the next user turn would be an invalid history.
        session.ending = Ending(error, STOPPED, seen_by=[kept])
        kept.reader.refuse(batch.decision)
        batch.answer = Answer(STOPPED)
        return None

    def _ask(
        self, kept: Conversation, batch: Batch, session: Session, run: Run, task: Task | None
    ) -> Exception | None:
        question = batch.question
        if question is None or task is None:
            return None if batch.answer is not None else _error(batch.decision, _NO_GRAPH)
        if question.is_replayed_by(run):
            batch.answer = None
            batch.question = question = Question()
        if question.is_settled_for(run) and batch.answer is not None:
            return None
        question.sharers.setdefault(run.ns, run.attempt)
        if not question.is_asked_by(run, task.interrupt_id):
            if batch.answer is not None:
                return None
            value = question.answer_to(run, task.resumed_with)
            if value is MISSING:
                return task.undone(question.interrupts if run.is_call else ())
            return self._answered(kept, batch, session, run, value)
        if run.attempt in question.attempts:
            earlier = question.attempts[run.attempt]
            interrupts = task.unanswered(earlier)
            return earlier if interrupts is None else task.undone(interrupts)
        outcome = task.ask(self._question(batch, question, task))
        interrupts = task.unanswered(outcome)
        question.tasks.add(task.ns)
        question.ids.add(task.interrupt_id)
        error: Exception | None
        if interrupts is None:
            error = self._answered(kept, batch, session, run, outcome)
        else:
            question.ids.update(item.id for item in interrupts)
            question.interrupts = interrupts
            question.asked_in = run.session
            batch.answer = None
            error = outcome
        question.attempts[run.attempt] = error
        return error

    def _question(self, batch: Batch, question: Question, task: Task) -> dict[str, Any]:
        """Give what a person is asked."""
        if question.payload is not None and not batch.decision.findings:
            # What was found is known only to the process that asked: it had seen more, or had
            # another policy.
            return question.payload
        cost = loop_cost(batch.decision, task.messages(self._messages_key) or ())
        payload = interrupt_payload(
            batch.decision, batch.calls, cost=cost, agent_inbox=self._agent_inbox
        )
        return _without_edit(payload, batch)

    def _answered(
        self, kept: Conversation, batch: Batch, session: Session, run: Run, value: Any
    ) -> Exception | None:
        """Carry out a person's answer; gives an error if it is none."""
        try:
            resume = parse_resume(value, batch.calls)
        except InvalidResumeError as error:
            return error
        if any(answer.edited for answer in resume.calls):
            return InvalidResumeError(_NO_EDIT)
        if resume.kind == "stop":
            reason = f" Reason: {resume.text}" if resume.text else ""
            session.ending = Ending(
                # Where this is raised LangChain logs it, so the person's reason is not in it.
                _error(batch.decision, _BY_PERSON),
                STOPPED,
                f"Stopped. {batch.decision.to_person or _BY_PERSON}{reason}",
                seen_by=[kept],
            )
        batch.answer = _answer(resume, batch.calls)
        if batch.question is not None:
            batch.question.answered_in = run.session
        goes_on = resume.kind == "continue" or any(answer.kind == "run" for answer in resume.calls)
        self._count("stopped" if resume.kind == "stop" else "approved" if goes_on else "refused")
        if goes_on:
            kept.reader.approve(batch.decision)
        else:
            kept.reader.refuse(batch.decision)
        return None


def _mark(kept: Conversation, call_id: str | None, mark: marks.Mark, session: Session) -> None:
    """Have the answer of a call marked when the host has it."""
    if call_id:
        kept.marks[call_id] = mark
        session.marked = True


def _refused(
    error: LoopDetectedError, text: str, findings: Sequence[Any], *, by_person: bool = False
) -> Exception:
    try:
        from langchain_loopguard.callbacks.refusal import RefusedCallError
    except ImportError:  # LangGraph without its `ToolNode`: nothing turns it into an answer.
        return error
    tools = findings[0].tools if findings else error.tools
    return RefusedCallError(error, text, ", ".join(tools), by_person=by_person)


def _error(decision: Decision, cure: str) -> LoopDetectedError:
    return loop_detected_error(decision, cure) if decision.findings else _plain_error(cure)


def _plain_error(text: str) -> LoopDetectedError:
    return GraphLoopDetectedError("", (), 0, 0, text)


def _answer(resume: Resume, calls: Sequence[Mapping[str, Any]]) -> Answer:
    if resume.kind == "continue":
        return RUN
    if resume.kind == "stop":
        return Answer(STOPPED)
    if resume.kind == "feedback":
        return Answer(resume.text)
    pairs = zip(calls, resume.calls, strict=True)
    return Answer(
        single={str(call.get("id")): answer.text for call, answer in pairs if answer.kind != "run"}
    )


def _without_edit(payload: dict[str, Any], batch: Batch) -> dict[str, Any]:
    """Say which calls are asked about, and that they can't be changed here."""
    for config in payload.get("review_configs", ()):
        config["allowed_decisions"] = [d for d in config["allowed_decisions"] if d != "edit"]
    payload.get("config", {})["allow_edit"] = False
    payload["tool_call_ids"] = sorted(batch.call_ids)
    return payload
