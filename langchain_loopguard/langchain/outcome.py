"""What happens to a step, and who reads what of it?

`decide` is one table: what was found, the mode, whether anybody can be asked, and the person's
answer. It gives what happens to each call, what the model and the user read, what is emitted and
logged, how the run goes on, and what the core records. Adapters carry it out and decide nothing.
Pure: knows no host, keeps nothing, raises nothing.

Nobody can be asked where no thread is saved. The default mode ends such a run with a final message
instead: an error would lose its work, and a question that nobody can answer loses it too.

Advice of a person never ends a run: only refusals that no person made count towards
`LoopGuardPolicy.max_refusals`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.errors import facts_of
from langchain_loopguard.langchain.errors import NOBODY_TO_ASK, loop_error
from langchain_loopguard.langchain.marks import Mark, replacement, with_mark
from langchain_loopguard.langchain.messages import id_of
from langchain_loopguard.langchain.options import MODES, Mode
from langchain_loopguard.langchain.replies import Reply, read_reply

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import ToolMessage

    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.langchain.messages import MessageStep
    from langchain_loopguard.langchain.options import Options
    from langchain_loopguard.langchain.question import Asked
    from langchain_loopguard.langchain.replies import CallReply

Next = Literal["run", "ask", "model", "answer", "end", "raise"]
"""How a run goes on: the calls run, a person is asked, the model is called again, it is called
again without tools, the run ends with a message, or in an error."""

Settle = Literal["", "approve", "always", "refuse", "advise"]
"""What the core records, see `Reader.settle`. `advise` is a refusal that begins a turn."""

Emit = Literal["", "observed", "warned", "asked", "approved", "refused", "stopped"]
"""What is emitted and counted."""


class _Row(NamedTuple):
    found: str
    """`none`, `warn`, `loop` (`Action.ASK`), `final` (`Action.STOP`); `*` is any but `none`."""
    mode: str
    can_ask: bool | None
    """`None` is either."""
    reply: str
    """The reply's kind, `-` before there is one, `*` either."""
    next: Next
    settle: Settle
    emit: Emit
    logged: bool
    """Whether it is logged as a warning, because no person hears of it otherwise."""


# fmt: off
TABLE: tuple[_Row, ...] = tuple(_Row(*row) for row in (
    # found   mode         can ask reply        next      settle     emit        logged
    ("none",  "*",         None,   "*",         "run",    "",        "",         False),
    ("*",     "observe",   None,   "*",         "run",    "",        "observed", True),
    ("warn",  "*",         None,   "*",         "run",    "",        "warned",   True),
    ("*",     "*",         None,   "continue",  "run",    "approve", "approved", False),
    ("*",     "*",         None,   "always",    "run",    "always",  "approved", False),
    ("*",     "*",         None,   "stop",      "end",    "refuse",  "stopped",  False),
    ("*",     "*",         None,   "text",      "model",  "advise",  "refused",  False),
    ("*",     "*",         None,   "decisions", "run",    "approve", "approved", False),
    ("*",     "warn",      None,   "-",         "run",    "",        "warned",   True),
    ("loop",  "interrupt", True,   "-",         "ask",    "",        "asked",    False),
    ("loop",  "interrupt", False,  "-",         "end",    "refuse",  "stopped",  True),
    ("final", "interrupt", None,   "-",         "end",    "refuse",  "stopped",  True),
    ("loop",  "refuse",    None,   "-",         "model",  "refuse",  "refused",  True),
    ("final", "refuse",    None,   "-",         "end",    "refuse",  "stopped",  True),
    ("*",     "raise",     None,   "-",         "raise",  "refuse",  "stopped",  False),
    ("*",     "wrap_up",   None,   "-",         "answer", "refuse",  "refused",  True),
))
# fmt: on
"""The first row that fits is carried out. `decisions` in which nothing runs become `text`."""

_FOUND = {Action.ALLOW: "none", Action.WARN: "warn", Action.ASK: "loop", Action.STOP: "final"}


@dataclass(slots=True)
class CallOutcome:
    """What happens to one call.

    Attributes:
        do: `run` it, `replace` its result by the guard's own message, `fail` it with a message
            that counts as its result (no tool runs arguments that can't be parsed), or `leave` it:
            the host has given its result already.
        text: What the model reads in place of a result, with this `status`.
        args: The arguments to run it with and, in `name`, the tool, where a person changed it.
    """

    do: Literal["run", "replace", "fail", "leave"]
    text: str = ""
    status: Literal["success", "error"] = "error"
    name: str = ""
    args: Mapping[str, Any] | None = None


_RUNS = CallOutcome("run")


@dataclass(slots=True)
class Outcome:
    """What is done about a step.

    Attributes:
        next: How the run goes on.
        calls: What happens to each of `step.open_calls`; where all have a result already
            (`step.late`), to each of `step.calls`.
        settle: What `Reader.settle` records in the core.
        emit: What is emitted and counted, `""` for nothing.
        log: What is logged as a warning, `""` for nothing.
        late_text: What the model reads below the last result of a late step, through its next
            request or, where that is not to be had, in the saved message.
        final: The message that ends the run; with `next="answer"` what is said if the model has
            no words.
        facts: The error's facts with `next="raise"`; `errors.error_of_facts` makes it.
        asked: Whether a person answered, which `Reader.settle` notes.
    """

    next: Next
    calls: tuple[CallOutcome, ...] = ()
    settle: Settle = ""
    emit: Emit = ""
    log: str = ""
    late_text: str = ""
    final: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    asked: bool = False

    @property
    def prevented(self) -> int:
        """How many calls do not run because of it."""
        return sum(call.do == "replace" for call in self.calls)

    @property
    def ends(self) -> Mapping[str, Any]:
        """The mark for results after which the run ends; see `marks.Mark.ends`."""
        if self.next == "raise":
            return {"as": "raise", **self.facts}
        return {"as": "final", "text": self.final} if self.final else {}

    def messages(self, calls: Sequence[Any]) -> list[ToolMessage]:
        """Make the messages in place of results; the last one says how the run ends."""
        made = []
        for call, one in zip(calls, self.calls, strict=True):
            if one.do == "replace":
                made.append(replacement(call, one.text, one.status))
            elif one.do == "fail":
                failed = replacement(call, one.text)
                made.append(failed.model_copy(update={"additional_kwargs": {}}))
        if made and self.ends and any(one.do == "replace" for one in self.calls):
            made[-1] = with_mark(made[-1], Mark(ends=self.ends))
        return made

    def runs(self, calls: Sequence[Any]) -> frozenset[str | None]:
        """List the ids of the calls that run."""
        pairs = zip(calls, self.calls, strict=True)
        return frozenset(id_of(call) for call, one in pairs if one.do == "run")

    def edits(self, calls: Sequence[Any]) -> dict[str | None, tuple[str, Mapping[str, Any]]]:
        """List what a person changed: for the id of a call, the tool and its arguments."""
        pairs = zip(calls, self.calls, strict=True)
        return {id_of(call): (one.name, one.args) for call, one in pairs if one.args is not None}


class Detected(NamedTuple):
    """What a callable `on_detected` gets.

    Attributes:
        decision: What was found, `Action.ASK` or `Action.STOP`.
        calls: The calls that wait, as the model made them.
        can_ask: Whether the thread is saved, so that a person can be asked.
        asked: What is known of earlier questions about the loop.
    """

    decision: Decision
    calls: Sequence[Mapping[str, Any]]
    can_ask: bool
    asked: Asked


def resolve(options: Options, detected: Detected) -> tuple[Mode, Reply | None]:
    """Find the mode, asking the option's callable where it is one.

    The callable gives one of `MODES`, or an answer as a person would (see `replies.FORMS`), or
    `None` to warn; anything else raises `InvalidResumeError`. It is called for loops only, and
    again when a node that it interrupted is resumed.
    """
    chosen: Any = options.on_detected
    if not callable(chosen):
        return chosen, None
    if detected.decision.action < Action.ASK:
        return "warn", None
    chosen = chosen(detected)
    if chosen is None:
        return "warn", None
    if isinstance(chosen, str) and chosen in MODES:
        return chosen, None  # type: ignore[return-value]
    return "interrupt", read_reply(chosen, detected.calls)


def decide(
    decision: Decision,
    step: MessageStep,
    *,
    mode: Mode,
    can_ask: bool,
    options: Options,
    reply: Reply | None = None,
) -> Outcome:
    """Look a step up in the table; `mode` is what `resolve` gives, `reply` what a person said."""
    if decision.action is Action.ALLOW and reply is None and not (step.late or step.unparsed):
        return Outcome("run", (_RUNS,) * len(step.waiting))  # Nearly every step.
    if reply is not None and reply.kind == "decisions":
        reply = _without_runs(reply)
    row = _row(_FOUND[decision.action], mode, can_ask=can_ask, reply=reply)
    calls, late_text = _calls(row, decision, step, options, reply)
    if row.found == "none" and reply is None:
        return Outcome("run", calls)
    wording = options.wording
    nobody = row.next == "end" and mode == "interrupt" and reply is None and not can_ask
    final, log = "", decision.to_person if row.logged else ""
    if row.next in {"end", "answer"}:
        final = wording.say("final", found=decision.to_person)
        if nobody:
            final += wording.nobody
        if reply is not None and reply.text:
            final += wording.say("reason", reason=reply.text)
    return Outcome(
        row.next,
        calls,
        settle=row.settle,
        emit=row.emit,
        log=f"{log}\n{NOBODY_TO_ASK}" if nobody and decision.action is Action.ASK else log,
        late_text=late_text,
        final=final,
        facts=facts_of(loop_error(decision)) if row.next == "raise" else {},
        asked=reply is not None,
    )


def noticed(decision: Decision, options: Options) -> Outcome:
    """Say what is done about what results revealed: nothing is stopped, whatever was found.

    A loop is emitted when its next step is about to run, or one loop would be emitted twice; the
    model reads of it at once.
    """
    if decision.action is not Action.WARN:
        return Outcome("run")
    observes = options.on_detected == "observe"
    return Outcome("run", emit="observed" if observes else "warned", log=decision.to_person)


def _row(found: str, mode: str, *, can_ask: bool, reply: Reply | None) -> _Row:
    kind = "-" if reply is None else reply.kind
    for row in TABLE:
        if (
            (row.found == found or (row.found == "*" and found != "none"))
            and row.mode in {mode, "*"}
            and row.can_ask in {None, can_ask}
            and row.reply in {kind, "*"}
        ):
            return row
    raise LookupError(f"no row for {found}, {mode}, {can_ask}, {kind}")


def _without_runs(reply: Reply) -> Reply:
    """Give decisions in which nothing runs as they stand, but as the advice that they are."""
    if any(call.kind == "run" for call in reply.calls):
        return reply
    return Reply("text", calls=reply.calls)


def _calls(
    row: _Row, decision: Decision, step: MessageStep, options: Options, reply: Reply | None
) -> tuple[tuple[CallOutcome, ...], str]:
    """Say what happens to each call; on a late step, what the model reads instead."""
    wording = options.wording
    if row.next in {"run", "ask"} and reply is None and not step.late:
        failed = (CallOutcome("fail", wording.unparsed),) * len(step.unparsed)
        return (_RUNS,) * len(step.waiting) + failed, ""
    by_call = reply.calls if reply is not None else ()
    if reply is not None:
        text = reply.text or wording.declined
    else:
        text = decision.to_model if step.late else wording.say("refused", found=decision.to_model)
        text = f"{text} {wording.wrap_up}" if row.next == "answer" else text
    if step.late:
        if by_call:
            refused = [call.text or wording.declined for call in by_call if call.kind != "run"]
            text = " ".join(dict.fromkeys(refused))
        reads = bool(by_call) or row.next in {"model", "answer"}
        return tuple(CallOutcome("leave") for _ in step.calls), text if reads else ""
    if row.next in {"end", "raise"}:
        text = wording.stopped
    if by_call:
        return tuple(_by_person(call, wording.declined) for call in by_call), ""
    if row.next == "run":
        return _calls(row, decision, step, options, None)
    return tuple(CallOutcome("replace", text) for _ in step.open_calls), ""


def _by_person(call: CallReply, declined: str) -> CallOutcome:
    if call.kind == "respond":
        return CallOutcome("replace", call.text, "success")
    if call.kind == "refuse":
        return CallOutcome("replace", call.text or declined)
    return CallOutcome("run", name=call.name, args=call.args)
