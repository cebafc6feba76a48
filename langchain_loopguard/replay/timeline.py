"""What does the report draw of one run?

One run becomes one JSON object with short keys, since a page may hold thousands of them. Calls,
tools and answers are numbers into lists, so nothing of an argument or an answer is in it unless
the content was asked for. How it looks is `page/report.js`'s business.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from langchain_loopguard.core.answers import match_results
from langchain_loopguard.core.batch import Batch
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.replay.redact import mask_secrets, mask_value
from langchain_loopguard.replay.run import replay

if TYPE_CHECKING:
    from langchain_loopguard.core.answers import Answer
    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.replay.conversation import Conversation
    from langchain_loopguard.replay.run import Fire, ReplayReport

_LONGEST_NAME = 300
"""Characters shown of an id, a source or a tool's name; who searches for one types less."""

_LONGEST_CONTENT = 2_000
"""Characters shown of arguments and of an answer. A page of a thousand runs must stay small
enough to open; what led to a loop is seen at the beginning of an answer."""

_TEXT_WITH_MARGIN = _LONGEST_CONTENT + 4_000
"""Characters that are masked before the text is cut to what is shown: a key that is cut in two
no longer looks like one."""

_FINDINGS = 50
"""Findings listed of one run, after those of one loop are put together."""


@dataclass(frozen=True, slots=True)
class DrawWork:
    """Draws a run; made to be sent to another process.

    Attributes:
        policy: The guard's policy.
        unattended: As in `replay`.
        content: As for `draw_run`.
    """

    policy: LoopGuardPolicy
    unattended: bool = False
    content: bool = False

    def __call__(self, run: Conversation) -> dict[str, Any]:
        """Draw one run."""
        return draw_run(run, self.policy, unattended=self.unattended, content=self.content)


def draw_run(
    conversation: Conversation,
    policy: LoopGuardPolicy | None = None,
    *,
    unattended: bool = False,
    content: bool = False,
) -> dict[str, Any]:
    """Replay a run and note what a page shows of it.

    Args:
        conversation: The run.
        policy: The guard's policy, `LoopGuardPolicy()` by default.
        unattended: As in `replay`.
        content: Whether arguments and answers are kept, with secrets masked.

    Returns:
        In JSON types: `i` id, `s` source, `o` outcome, `l` label, `a` strongest action, `n` calls,
        `b` batches, `u` user turns; `w`, `k`, `h`, `x` first warning, ask, held batch and stop as
        batch, call and whether before it ran; `d` calls saved; `f` findings as rule, action, first
        and last batch, times, text. The timeline: `g` the tool of each different call, `c` for
        each call its place in `g`, `z` the batches' sizes unless all are 1, `m` a digit for each
        batch: the strongest action, `t` the places of batches before which a person spoke, `r` a
        letter for each call: `n` new answer, `e` known answer, `x` failed, `y` failed as before,
        `m` missing, `r` refused. With content: `p` the arguments of each different call, `y` the
        different answers, `q` for each call the place of its answer in `y`, -1 without one.
    """
    report = replay(conversation, policy, unattended=unattended)
    run: dict[str, Any] = {
        "i": _name(report.id),
        "s": _name(report.source),
        "o": report.outcome,
        "a": _strongest(report),
        "n": report.calls,
        "b": report.batches,
        "u": report.turns,
        "d": report.saved,
        "f": _findings(report),
    }
    label = conversation.extra.get("label")
    if isinstance(label, str):
        run["l"] = _name(label)
    for key, fire in (
        ("w", report.warn),
        ("k", report.ask),
        ("h", report.held),
        ("x", report.stop),
    ):
        if fire is not None:
            run[key] = _place(fire)
    return {**run, **_timeline(conversation, report, policy, content=content)}


def _timeline(
    conversation: Conversation,
    report: ReplayReport,
    policy: LoopGuardPolicy | None,
    *,
    content: bool,
) -> dict[str, Any]:
    calls = _Calls(content=content)
    # A guard that only reads calls: it counts nothing.
    reader = LoopGuard(policy)
    for event, mark in zip(conversation.batches, report.marks, strict=False):
        record = reader.record_for(event["calls"])
        if not isinstance(record, Batch):  # pragma: no cover - a guard's record is a batch
            continue
        answers = match_results(record.ids, event.get("results") or ())
        calls.add(record, answers, refused=mark.refused)
    marks = report.marks
    drawn = calls.as_dict()
    if any(mark.calls != 1 for mark in marks):
        drawn["z"] = [mark.calls for mark in marks]
    drawn["m"] = "".join(str(int(mark.action)) for mark in marks)
    drawn["t"] = [
        place for place, (one, two) in enumerate(pairwise(marks), 1) if one.turn != two.turn
    ]
    return drawn


class _Calls:
    """The calls of a run, each different one named once."""

    def __init__(self, *, content: bool) -> None:
        self._content = content
        self._places: dict[int, int] = {}
        self._tools: list[str] = []
        self._calls: list[int] = []
        self._answers: list[str] = []
        self._seen: set[tuple[int, int]] = set()
        self._arguments: list[str] = []
        self._texts: dict[str, int] = {}
        self._text_of: list[int] = []

    def add(self, batch: Batch, answers: list[Answer | None], *, refused: bool) -> None:
        for place, (key, answer) in enumerate(zip(batch.keys, answers, strict=True)):
            at = self._places.setdefault(key, len(self._places))
            if at == len(self._tools):
                self._tools.append(_name(batch.names[place]))
                if self._content:
                    self._arguments.append(_shown(_arguments(batch.calls[place])))
            self._calls.append(at)
            self._answers.append("r" if refused else self._kind(key, answer))
            if self._content:
                self._text_of.append(self._text(answer))

    def _kind(self, key: int, answer: Answer | None) -> str:
        if answer is None:
            return "m"
        known = (key, answer.digest) in self._seen
        self._seen.add((key, answer.digest))
        return ("y" if known else "x") if answer.error else ("e" if known else "n")

    def _text(self, answer: Answer | None) -> int:
        if answer is None:
            return -1
        text = _shown(answer.text[: 4 * _TEXT_WITH_MARGIN].decode("utf-8", "replace"))
        return self._texts.setdefault(text, len(self._texts))

    def as_dict(self) -> dict[str, Any]:
        drawn: dict[str, Any] = {"g": self._tools, "c": self._calls, "r": "".join(self._answers)}
        if self._content:
            drawn.update(p=self._arguments, q=self._text_of, y=list(self._texts))
        return drawn


def _findings(report: ReplayReport) -> list[list[Any]]:
    """Put the findings of one loop together; each batch that goes on with it has one more."""
    loops: dict[tuple[Any, ...], list[Any]] = {}
    for found in report.findings:
        key = (found.rule, found.action, found.tools, found.since)
        loop = loops.get(key)
        if loop is None:
            loops[key] = [found.rule, int(found.action), found.batch, found.batch, 1, found.text]
        elif loop[3] != found.batch:
            loop[3:] = [found.batch, loop[4] + 1, found.text]
    listed = sorted(loops.values(), key=lambda loop: (-loop[1], loop[2]))[:_FINDINGS]
    return [[*loop[:5], _cut(mask_secrets(loop[5]), _LONGEST_CONTENT)] for loop in listed]


def _strongest(report: ReplayReport) -> int:
    if report.stop is not None:
        return int(Action.STOP)
    if report.ask is not None:
        return int(Action.ASK)
    return int(Action.WARN if report.warn is not None else Action.ALLOW)


def _place(fire: Fire) -> list[int]:
    return [fire.batch, fire.call, int(fire.before)]


def _arguments(call: Any) -> str:
    arguments = call.get("args") if isinstance(call, dict) else None
    if isinstance(arguments, str):
        return arguments
    try:
        return json.dumps(mask_value(arguments), ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):
        return "(arguments that cannot be written as JSON)"


def _shown(text: str) -> str:
    return _cut(mask_secrets(text[:_TEXT_WITH_MARGIN]), _LONGEST_CONTENT)


def _name(text: str) -> str:
    return _cut(mask_secrets(text[: 2 * _LONGEST_NAME]), _LONGEST_NAME)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
