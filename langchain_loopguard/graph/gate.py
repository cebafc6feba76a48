"""May the batch at the end of a graph's messages run, and what happens if it may not?

What the guards inside a graph share; `LoopGuardNode` and `LoopGuardMiddleware` differ only in
how they send a run on. A `Gate` is a pure function of the messages and the saved counts, so a
resume, a replay, a fork and another process reach the same verdict and count a batch once. It
counts nothing itself and sees no tool run. Nodes, edges and hooks are not its business.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from langchain_loopguard.core.decision import Action, Decision
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.cost import loop_cost
from langchain_loopguard.errors import NO_CHECKPOINTER, RAISED, loop_detected_error
from langchain_loopguard.graph.at_hand import AtHand
from langchain_loopguard.graph.declared import (
    declarations,
    kept_beside,
    saved_declarations,
    with_declarations,
)
from langchain_loopguard.graph.endings import ends_in_error, marked, wraps_up
from langchain_loopguard.graph.turn import known_counts, tools_ran, unread, verdict
from langchain_loopguard.history import (
    approved_message,
    edited_message,
    invalid_call_messages,
    is_approved,
    response_message,
    without_approval,
    without_calls,
)
from langchain_loopguard.interrupts import interrupt_payload, parse_resume, resume_schema
from langchain_loopguard.messages import (
    SKIPPED,
    STOPPED,
    MessageReader,
    final_message,
    makes_calls,
    plain_call,
    refusal_messages,
    tool_calls_of,
    with_notice,
)
from langchain_loopguard.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from langchain_core.messages import AnyMessage

    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.graph.turn import Turn
    from langchain_loopguard.interrupts import Resume
    from langchain_loopguard.options import OnDetected
    from langchain_loopguard.telemetry import Adapter

__all__ = ["Gate", "Step"]

logger = logging.getLogger("langchain_loopguard")

_CHECKPOINTER = "__pregel_checkpointer"
_TYPED_RESUME = "response_schema" in inspect.signature(interrupt).parameters

_WRAP_UP = (
    "No more tools can be used now. Answer the user with what you have found so far, and say "
    "what is missing."
)


@dataclass(slots=True, eq=False)
class Step:
    """How a run goes on.

    Attributes:
        to: `tools` runs the calls in `run`, `agent` calls the model, `end` ends the run. `error`
            has the gate asked once more, which then raises; `answer` has the model answer
            without tools.
        counts: The counts to save, `None` to leave them as they are.
        messages: Messages to add, or to put in the place of those with the same ids.
        run: The ids of the calls that run.
        message: The AI message as the tools are to see it.
        stored: Whether the state holds that message once `messages` are in it.
    """

    to: Literal["tools", "agent", "end", "error", "answer"]
    counts: dict[str, Any] | None = None
    messages: tuple[AnyMessage, ...] = ()
    run: frozenset[Any] = frozenset()
    message: AIMessage | None = None
    stored: bool = True


@dataclass(slots=True, eq=False)
class _Found:
    """A turn with the verdict on it.

    Attributes:
        turn: The turn.
        reader: What has read it.
        decision: The verdict.
        soon: Whether the gate is asked once more as soon as the batch has run, before anybody
            can shorten the messages.
    """

    turn: Turn
    reader: MessageReader
    decision: Decision
    soon: bool


class Gate:
    """Lets batches through, asks about them, or refuses them."""

    def __init__(
        self,
        policy: LoopGuardPolicy,
        *,
        adapter: Adapter,
        on_detected: OnDetected,
        agent_inbox: bool,
        fail_open: bool,
        answers_unreadable: bool,
        tools: Iterable[Any] = (),
        replaces: Callable[[], bool] | None = None,
    ) -> None:
        """Take the adapter's options.

        Args:
            policy: What counts as a loop.
            adapter: Who asks, for whoever hears of what is found.
            on_detected: What happens to a batch that is one.
            agent_inbox: Whether questions carry the form that Agent Inbox reads.
            fail_open: Whether a fault of the guard lets the agent go on.
            answers_unreadable: Whether calls that can't be parsed are answered before the
                others run: needed where the host never answers them.
            tools: Tools whose metadata say what they are.
            replaces: Tells whether a message takes the place of one with the same id in the
                state, as it does by default. Where it doesn't, no message is changed that
                stands there already.
        """
        self._policy = policy
        self._on_detected = on_detected
        self._agent_inbox = agent_inbox
        self._fail_open = fail_open
        self._answers_unreadable = answers_unreadable
        self._replaces = replaces
        self._declared = declarations(tools)
        self._at_hand = AtHand()
        self.telemetry = Telemetry(adapter, logger)
        self._logged = False

    # --- What an adapter asks -------------------------------------------------------------

    def step(self, turn: Turn, *, behind_tools: bool) -> Step | None:
        """Decide where the host doesn't say whether the batch has run.

        Args:
            turn: Where the run stands.
            behind_tools: Whether the gate is asked at once when the tools have run too.

        Returns:
            How the run goes on; `None` when the guard failed and the host goes on as without one.
        """
        said = turn.said_before
        if said is not None:
            return self._wrapped_up(turn, said)
        try:
            reader = self._reader(turn)
            if tools_ran(turn, reader):
                return self._take_in(turn, reader)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the guard's own fault
            self.fault(error)
            return None
        # Of several calls it can't be told from the answers alone whether they have run.
        return self._decide(turn, reader, soon=behind_tools and len(turn.calls) == 1)

    def before_tools(self, turn: Turn) -> Step | None:
        """Decide about a batch that no tool has run; returns as `step`."""
        said = turn.said_before
        if said is not None:
            return self._wrapped_up(turn, said)
        if not makes_calls(turn.own):
            return Step("tools")
        try:
            reader = self._reader(turn)
        except Exception as error:  # noqa: BLE001 - as in `step`
            self.fault(error)
            return None
        return self._decide(turn, reader, soon=True)

    def after_tools(self, turn: Turn) -> Step | None:
        """Take in what a batch got back; returns as `step`."""
        try:
            return self._take_in(turn, self._reader(turn))
        except Exception as error:  # noqa: BLE001 - as in `step`
            self.fault(error)
            return None

    def declare(self, known: Any, tools: Iterable[Any]) -> dict[str, Any] | None:
        """Add to saved counts what tools declare of themselves.

        Returns:
            The counts to save, `None` when they hold it already.
        """
        found = declarations(tools)
        if not found:
            return None
        try:
            counts = self._fresh().to_state() if known_counts(known) is None else known
            return with_declarations(counts, found) if isinstance(counts, Mapping) else None
        except Exception as error:  # noqa: BLE001 - as in `step`
            self.fault(error)
            return None

    def fault(self, error: Exception) -> None:
        """Log a fault of the guard once, or raise it."""
        self.telemetry.count("faults")
        if not self._fail_open:
            raise error
        if isinstance(error, GuardStateError):
            self._log("The loop guard is off for threads with this state: %s", error)
        else:
            self._log("The loop guard failed, the agent goes on unguarded.", exc_info=error)

    # --- The verdict and what it leads to -------------------------------------------------

    def _decide(self, turn: Turn, reader: MessageReader, *, soon: bool) -> Step | None:
        try:
            found = _Found(turn, reader, verdict(turn, reader), soon)
            asked = turn.calls or tool_calls_of(turn.own)
            asks = found.decision.action is Action.ASK and self._on_detected == "interrupt"
            question = (
                interrupt_payload(
                    found.decision,
                    asked,
                    cost=loop_cost(found.decision, turn.messages),
                    agent_inbox=self._agent_inbox,
                )
                if asks
                else None
            )
        except Exception as error:  # noqa: BLE001 - as in `step`
            self.fault(error)
            return None
        if question is None:
            return self._act(found)
        if not _checkpointed():
            self.telemetry.count("checked", "stopped")
            self._tell(found.decision)
            raise loop_detected_error(found.decision, NO_CHECKPOINTER)
        return self._carry_out(found, parse_resume(self._ask(found, question, asked), asked))

    def _ask(
        self, found: _Found, question: dict[str, Any], calls: Sequence[Mapping[str, Any]]
    ) -> Any:
        try:
            return _answer_to(question, calls)
        except GraphInterrupt:
            # A resume comes here once more and has its answer.
            self.telemetry.count("checked", "asked")
            self._tell(found.decision)
            raise

    def _act(self, found: _Found) -> Step:
        decision = found.decision
        self.telemetry.count("checked")
        self._tell(decision)
        if decision.action < Action.ASK or self._on_detected == "warn":
            if decision.findings:
                self.telemetry.count("warned")
            return self._run(found)
        if self._on_detected == "raise":
            return self._raise(found)
        if self._on_detected == "wrap_up":
            mark = wraps_up(f"Stopped. {decision.to_person}")
            return self._refuse(found, f"{_refusal(found)} {_WRAP_UP}", "answer", mark)
        if decision.action is Action.STOP:
            return self._stop(found)
        return self._refuse(found, _refusal(found))

    def _carry_out(self, found: _Found, resume: Resume) -> Step:
        if resume.kind == "continue":
            return self._run(found, approved=True)
        if resume.kind == "stop":
            return self._stop(found, resume.text)
        if resume.kind == "feedback":
            return self._refuse(found, resume.text)
        if found.turn.late:
            return self._settle_late(found, resume)
        answers: list[AnyMessage] = []
        edits: dict[Any, tuple[str, Mapping[str, Any]]] = {}
        run: set[Any] = set()
        for call, answer in zip(found.turn.calls, resume.calls, strict=True):
            if answer.kind == "refuse":
                answers.extend(refusal_messages([call], answer.text))
            elif answer.kind == "respond":
                answers.append(response_message(call, answer.text))
            else:
                run.add(call.get("id"))
                if answer.args is not None:
                    edits[call.get("id")] = (answer.name or str(call["name"]), answer.args)
        if not run:
            self.telemetry.count("refused")
            return Step("agent", self._refused(found), tuple(answers))
        return self._run(found, approved=True, run=run, edits=edits, answers=answers)

    def _settle_late(self, found: _Found, resume: Resume) -> Step:
        """Carry out single decisions about calls that have their answers already."""
        texts = " ".join(answer.text for answer in resume.calls if answer.kind != "run")
        if not any(answer.kind == "run" for answer in resume.calls):
            return self._refuse(found, texts)
        noted = self._noted(found.turn, texts, {}) if texts else ()
        self.telemetry.count("approved")
        return Step("tools", self._approved(found), noted)

    def _run(
        self,
        found: _Found,
        *,
        approved: bool = False,
        run: set[Any] | None = None,
        edits: Mapping[Any, tuple[str, Mapping[str, Any]]] | None = None,
        answers: Sequence[AnyMessage] = (),
    ) -> Step:
        """Let calls run; those that are not to run are answered here.

        Args:
            found: The batch and what was found.
            approved: Whether a person let it run.
            run: The ids of the calls to run, every call that waits by default.
            edits: For a call's id, what to run in its place.
            answers: The answers of the calls that are not to run.
        """
        if approved:
            self.telemetry.count("approved")
        turn, reader, edits = found.turn, found.reader, edits or {}
        message = edited_message(turn.batch.message, edits) if edits else turn.batch.message
        refused = bool(answers)
        asked = {call.get("id") for call in turn.calls} if run is None else run
        wanted = asked & {plain_call(call).get("id") for call in message.tool_calls}
        if self._answers_unreadable:
            unreadable = [c for c in turn.batch.unreadable if c.get("id") in asked - wanted]
            answers = [*answers, *invalid_call_messages(unreadable)]

        told = approved or answers or found.decision.findings or turn.batch.answered
        if found.soon and not told and turn.known is not None:
            # Nothing that has to be saved: when the answers are read, the calls are too.
            self._at_hand.keep(turn.known, reader, turn.batch.message)
            return Step("tools", run=frozenset(wanted), message=message)

        def settle() -> None:
            if approved:
                reader.approve(found.decision)
            if refused:
                reader.leave()
            if edits and not answers:
                # What runs is another batch than the one that was counted.
                reader.guard.check(tool_calls_of(message))

        counts = self._counts(turn, reader, settle)
        if not approved and turn.known is None and is_approved(message):
            message = without_approval(message)
        if approved and turn.known is None:
            # Where no counts are saved the messages are all that the next reading has.
            message = approved_message(message)
        changed = message is not turn.batch.message and self._can_replace(message)
        return Step(
            "tools" if wanted or not answers else "agent",
            counts,
            (*((message,) if changed else ()), *answers),
            frozenset(wanted),
            message,
            # Where a message can't be replaced, its edit reaches the tools only.
            stored=changed or not edits,
        )

    def _refuse(
        self,
        found: _Found,
        text: str,
        to: Literal["agent", "answer"] = "agent",
        mark: Mapping[str, Any] | None = None,
    ) -> Step:
        """Answer every call with `text`, or add it to the answers that the host gave."""
        self.telemetry.count("refused")
        turn = found.turn
        if turn.late:
            answers = self._noted(turn, text, mark or {})
        else:
            answers = marked(refusal_messages(turn.calls, text), mark or {})
        return Step(to, self._refused(found), answers)

    def _stop(self, found: _Found, reason: str = "") -> Step:
        self.telemetry.count("stopped")
        text = f"Stopped. {found.decision.to_person}"
        if reason:
            text += f" Reason: {reason}"
        answers = refusal_messages(found.turn.calls, STOPPED)
        return Step("end", self._refused(found), (*answers, final_message(text)))

    def _raise(self, found: _Found) -> Step:
        self.telemetry.count("stopped")
        error = loop_detected_error(found.decision, RAISED)
        if found.turn.late or not _checkpointed():
            raise error
        # The thread outlives this run. Raised now, the error would leave calls without answers
        # in it.
        answers = marked(refusal_messages(found.turn.calls, STOPPED), ends_in_error(error))
        return Step("error", self._refused(found), answers)

    def _take_in(self, turn: Turn, reader: MessageReader) -> Step:
        batch = turn.batch
        if turn.known is None:
            verdict(turn, reader)
        unparsed = invalid_call_messages(batch.unreadable)
        skipped = refusal_messages(batch.waiting, SKIPPED)
        told = None
        if makes_calls(turn.own) or reader.place(turn.messages) != batch.index:
            answered = [*turn.messages, *unparsed] if unparsed and not skipped else turn.messages
            revealed = reader.read(unread(reader, answered))
            if revealed is not None and revealed.findings:
                self.telemetry.count("warned")
                self._tell(revealed)
            told = reader.take_notice(turn.messages)
        else:
            # A person rejected every call of it, so it never ran.
            reader.refuse(Decision(Action.ALLOW, (), reader.guard.record_for(())))
        counts = self._counts(turn, reader, lambda: None) if turn.known is not None else None
        # It carries the notice in its own place, or nowhere.
        noted = [told] if told is not None and self._can_replace(told) else []
        return Step("agent", counts, (*noted, *unparsed, *skipped))

    # --- Messages that change -------------------------------------------------------------

    def _can_replace(self, message: AnyMessage) -> bool:
        return bool(message.id) and (self._replaces is None or self._replaces())

    def _noted(self, turn: Turn, text: str, mark: Mapping[str, Any]) -> tuple[AnyMessage, ...]:
        """Add a text to the host's last answer; none where that can't be replaced."""
        last = turn.messages[-1]
        if not isinstance(last, ToolMessage) or not self._can_replace(last):
            return ()
        return marked([with_notice(last, text)], mark)

    def _wrapped_up(self, turn: Turn, said: str) -> Step:
        """End a run in which the model made calls although it was to use no tools."""
        message = turn.batch.message
        if message.text.strip() and not turn.batch.answered:
            if self._can_replace(message):
                return Step("end", messages=(without_calls(message),))
            said = message.text
        return Step("end", messages=(*refusal_messages(turn.calls, STOPPED), final_message(said)))

    # --- Counts ---------------------------------------------------------------------------

    def _refused(self, found: _Found) -> dict[str, Any] | None:
        return self._counts(found.turn, found.reader, lambda: found.reader.refuse(found.decision))

    def _approved(self, found: _Found) -> dict[str, Any] | None:
        return self._counts(found.turn, found.reader, lambda: found.reader.approve(found.decision))

    def _counts(
        self, turn: Turn, reader: MessageReader, settle: Callable[[], None]
    ) -> dict[str, Any] | None:
        try:
            settle()
            counts = {**reader.to_state(), **kept_beside(turn.known)}
        except Exception as error:  # noqa: BLE001 - a person's answer is carried out all the same
            self.fault(error)
            return None
        same = counts == turn.known
        self._at_hand.keep(turn.known if same else counts, reader)
        return None if same else counts

    def _reader(self, turn: Turn) -> MessageReader:
        known = turn.known
        if known is not None:
            at_hand = self._at_hand.take(known, turn.batch.message)
            if at_hand is not None:
                return at_hand
        reader = self._fresh() if known is None else self._restored(known)
        for name, traits in {**self._declared, **saved_declarations(known)}.items():
            reader.guard.declare(name, {"loop_guard": traits._asdict()})
        return reader

    def _restored(self, known: Any) -> MessageReader:
        try:
            return MessageReader.from_state(self._policy, known)
        except GuardStateError as error:
            fresh = self._fresh()
            # The counts of a newer release are left alone for the process that wrote them. Any
            # other odd value is no reason to go on without a guard.
            if not self._fail_open or _is_newer(known, fresh.to_state()):
                raise
            self._log("The loop guard counts anew: %s", error)
            return fresh

    def _fresh(self) -> MessageReader:
        return MessageReader(LoopGuard(self._policy))

    def _tell(self, decision: Decision) -> None:
        """Tell what was found; it is logged where no person hears of it otherwise."""
        unheard = self._on_detected in {"warn", "refuse", "wrap_up"}
        self.telemetry.tell(decision, log=unheard or decision.action is Action.WARN)

    def _log(self, text: str, *args: object, exc_info: Exception | None = None) -> None:
        if not self._logged:
            self._logged = True
            logger.error(text, *args, exc_info=exc_info)


# --- Answers --------------------------------------------------------------------------------------


def _refusal(found: _Found) -> str:
    return found.decision.to_model if found.turn.late else found.decision.refusal


def _answer_to(question: dict[str, Any], calls: Sequence[Mapping[str, Any]]) -> Any:
    if _TYPED_RESUME:
        return interrupt(question, response_schema=resume_schema(calls))
    return interrupt(question)


def _checkpointed() -> bool:
    """Tell whether what the running graph saves outlives the run: whether it can be resumed."""
    try:
        settings = get_config().get("configurable", {})
    except RuntimeError:  # Not inside a graph.
        return False
    # LangGraph sets the key for every task, to None without a checkpointer. Should it be gone
    # one day, a thread id is what a checkpointer asks for.
    return settings.get(_CHECKPOINTER, settings.get("thread_id")) is not None


def _is_newer(known: Any, own: Mapping[str, Any]) -> bool:
    """Tell whether a later release wrote the counts."""
    if not isinstance(known, Mapping):
        return False
    pairs = [(known.get("v"), own["v"])]
    if isinstance(known.get("guard"), Mapping):
        pairs.append((known["guard"].get("v"), own["guard"]["v"]))
    return any(type(theirs) is int and theirs > ours for theirs, ours in pairs)
