"""One page that shows what the guard would have done, call by call.

One run becomes one JSON object with short keys, since a page may hold thousands of them. Calls,
tools and results are numbers into lists, so nothing of an argument or a result is in it unless
the content was asked for.

The page is one file: style, script and data are in it, and its own policy forbids it to load
anything or to send anything anywhere. The policy also names the only two pieces of style and
script that may take effect, by their hashes, so that text out of a run stays text even if it
found a way into the markup. How a run looks is `page/report.js`'s business.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from bisect import insort
from collections import Counter
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from langchain_loopguard.core.decision import Action
from langchain_loopguard.langchain.cost import number_of
from langchain_loopguard.langchain.masks import (
    mask_secrets,
    mask_value,
    shortened,
    shown_name,
    visible,
)
from langchain_loopguard.replay.run import replay
from langchain_loopguard.replay.totals import Problems

if TYPE_CHECKING:
    from langchain_loopguard import LoopGuardPolicy
    from langchain_loopguard.replay.conversation import Conversation
    from langchain_loopguard.replay.verdicts import Fire, ReplayReport

MOST_RUNS = 5_000
"""Runs listed on a page unless said otherwise. 5,000 runs of ten calls each are 1.2 MB and open in
half a second, with content 20 MB and a second. A page of a million would not open at all."""

_LONGEST = 2_000
"""Characters shown of arguments and of a result; what led to a loop is seen at their beginning."""

_MASKED = _LONGEST + 4_000
"""Characters that are masked before the text is cut to what is shown: a key that is cut in two
no longer looks like one."""

_FINDINGS = 50
"""Findings listed of one run, after those of one loop are put together."""

_LETTERS = {
    "new": "n",
    "known": "e",
    "failed": "x",
    "failed again": "y",
    "missing": "m",
    "refused": "r",
}
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


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
        content: Whether arguments and results are kept, with secrets masked.

    Returns:
        In JSON types: `i` id, `s` source, `@` place, `o` outcome, `l` label, `a` strongest action,
        `n` calls, `b` steps, `u` turns, `T` tokens, `S` seconds, `v` why; `w`, `k`, `h`, `x` first
        warning, ask, step stopped before it ran, and stop as step, call and whether before it ran;
        `d` calls saved; `f` findings as rule, action, first and last step, times, text. The
        timeline: `g` the tool of each different call, `c` for each call its place in `g`, `z` the
        steps' sizes unless all are 1, `m` a digit for each step: the strongest action, `t` the
        places of steps at which a turn begins, `r` a letter for each call: `n` new result, `e`
        known, `x` failed, `y` failed as before, `m` missing, `r` refused. With content: `p` the
        arguments of each different call, `y` the different results, `q` for each call the place
        of its result in `y`, -1 without one.
    """
    report = replay(conversation, policy, unattended=unattended)
    label = conversation.extra.get("label")
    run: dict[str, Any] = {
        "i": shown_name(report.id),
        "s": shown_name(report.source),
        "@": report.place,
        "o": report.outcome,
        "l": shown_name(label) if isinstance(label, str) else None,
        "a": _strongest(report),
        "n": report.calls,
        "b": report.step_count,
        "u": report.turns,
        "T": report.tokens,
        "S": report.seconds,
        "v": shown_name(report.why),
        "d": report.saved,
        "w": _place(report.warn),
        "k": _place(report.ask),
        "h": _place(report.held),
        "x": _place(report.stop),
    }
    run = {key: value for key, value in run.items() if value not in (None, "") or key in "is"}
    return {**run, "f": _findings(report), **_timeline(report, content=content)}


def _timeline(report: ReplayReport, *, content: bool) -> dict[str, Any]:
    places: dict[int, int] = {}
    tools: list[str] = []
    arguments: list[str] = []
    texts: dict[str, int] = {}
    text_of: list[int] = []
    calls = [call for step in report.steps for call in step.calls]
    for call in calls:
        if call.identity not in places:
            places[call.identity] = len(places)
            tools.append(shown_name(call.name))
            if content:
                arguments.append(_shown(_arguments(call.arguments)))
        if content and call.text is not None:
            text = _shown(call.text[: 4 * _MASKED].decode("utf-8", "replace"))
            text_of.append(texts.setdefault(text, len(texts)))
        else:
            text_of.append(-1)
    steps = report.steps
    sizes = [len(step.calls) for step in steps]
    return {
        "g": tools,
        "c": [places[call.identity] for call in calls],
        "r": "".join(_LETTERS[call.novelty] for call in calls),
        **({"p": arguments, "q": text_of, "y": list(texts)} if content else {}),
        **({"z": sizes} if any(size != 1 for size in sizes) else {}),
        "m": "".join(str(int(step.action)) for step in steps),
        "t": [at for at in range(1, len(steps)) if steps[at].turn != steps[at - 1].turn],
    }


def _findings(report: ReplayReport) -> list[list[Any]]:
    """Put the findings of one loop together; each step that goes on with it has one more."""
    loops: dict[tuple[Any, ...], list[Any]] = {}
    for found in report.findings:
        key = (found.rule, found.action, found.tools, found.since)
        loop = loops.get(key)
        if loop is None:
            loops[key] = [found.rule, int(found.action), found.step, found.step, 1, found.text]
        elif loop[3] != found.step:
            loop[3:] = [found.step, loop[4] + 1, found.text]
    listed = sorted(loops.values(), key=lambda loop: (-loop[1], loop[2]))[:_FINDINGS]
    return [[*loop[:5], shown_name(loop[5], _LONGEST)] for loop in listed]


def _strongest(report: ReplayReport) -> int:
    fires = {Action.STOP: report.stop, Action.ASK: report.ask, Action.WARN: report.warn}
    return next((int(action) for action, fire in fires.items() if fire is not None), 0)


def _place(fire: Fire | None) -> list[int] | None:
    return None if fire is None else [fire.step, fire.call, int(fire.before)]


def _arguments(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        return json.dumps(mask_value(arguments), ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):
        return "(arguments that cannot be written as JSON)"


def _shown(text: str) -> str:
    return shortened(visible(mask_secrets(text[:_MASKED]), keep="\n\t"), _LONGEST)


@dataclass(slots=True)
class Tally:
    """Counts of runs, and how many have each action as their strongest."""

    runs: int = 0
    calls: int = 0
    saved: int = 0
    actions: Counter[int] = field(default_factory=Counter)

    def add(self, run: dict[str, Any]) -> None:
        """Count what `draw_run` gave."""
        self.runs += 1
        self.calls += run["n"]
        self.saved += run["d"]
        self.actions[run["a"]] += 1

    def as_list(self) -> list[Any]:
        """Return runs, calls, the actions from quiet to stopped, and calls saved."""
        return [self.runs, self.calls, [self.actions[action] for action in Action], self.saved]


@dataclass
class Page:
    """Collects runs and writes them as a page; holds at most `most` of them at once.

    Attributes:
        policy: What the page calls the policy.
        content: Whether the runs were drawn with their content.
        most: How many runs to list. With more, those stay that have the strongest action, among
            them those with the most calls saved; the counts are of all.
        problems: What was not read.
    """

    policy: str
    content: bool = False
    most: int = MOST_RUNS
    problems: Problems = field(default_factory=Problems)
    all: Tally = field(default_factory=Tally)
    _kept: list[tuple[int, int, int, dict[str, Any]]] = field(default_factory=list)
    _outcomes: dict[str, Tally] = field(default_factory=dict)

    def add(self, run: dict[str, Any]) -> None:
        """Take in what `draw_run` gave."""
        self.all.add(run)
        self._outcomes.setdefault(run["o"], Tally()).add(run)
        # The number read keeps the order, and keeps runs from being compared.
        insort(self._kept, (-run["a"], -run["d"], self.all.runs, run))
        del self._kept[self.most :]

    def render(self) -> str:
        """Write the page as HTML."""
        style, script = _part("report.css"), _part("report.js")
        parts = {
            "policy": _content_policy(style, script),
            "style": style,
            "script": script,
            "summary": escape(self.summary()),
            "data": _json_for_html(self._data()),
        }
        # One pass, so that a placeholder inside a run's text is left alone.
        return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _part("report.html"))

    def summary(self) -> str:
        """Say the counts in a sentence."""
        quiet, warned, asked, stopped = (self.all.actions[action] for action in Action)
        return (
            f"{number_of(self.all.runs, 'run')} with {number_of(self.all.calls, 'call')}: {quiet:,}"
            f" quiet, {warned:,} warned, {asked:,} asked, {stopped:,} stopped;"
            f" {number_of(self.all.saved, 'call')} saved."
        )

    def _data(self) -> dict[str, Any]:
        tools: dict[str, int] = {}
        sources: dict[str, int] = {}
        kept = [run for *_, run in sorted(self._kept, key=lambda entry: entry[2])]
        same = Counter((run["s"], run["i"]) for run in kept)
        listed = []
        for run in kept:
            place = run.get("@", "")
            # Two runs of one name are told apart by their places.
            name = f"{run['i']}, {place}" if same[run["s"], run["i"]] > 1 and place else run["i"]
            source = sources.setdefault(run["s"], len(sources))
            names = [tools.setdefault(tool, len(tools)) for tool in run["g"]]
            listed.append({**run, "i": name, "s": source, "g": names})
        return {
            "policy": self.policy,
            "content": self.content,
            "all": self.all.as_list(),
            "outcomes": [
                [name, *self._outcomes[name].as_list()]
                for name in ("success", "fail", "unknown")
                if name in self._outcomes
            ],
            "problems": [shown_name(line) for line in self.problems.lines()],
            "ignored": [shown_name(line) for line in self.problems.ignored_names],
            "sources": list(sources),
            "tools": list(tools),
            "runs": listed,
        }


def _part(name: str) -> str:
    return files("langchain_loopguard.replay").joinpath("page", name).read_text("utf-8")


def _content_policy(style: str, script: str) -> str:
    hashes = (hashlib.sha256(text.encode()).digest() for text in (style, script))
    named = [f"'sha256-{base64.b64encode(one).decode()}'" for one in hashes]
    return (
        f"default-src 'none'; style-src {named[0]}; script-src {named[1]}; img-src data:;"
        " base-uri 'none'; form-action 'none'; require-trusted-types-for 'script';"
        " trusted-types 'none'"
    )


def _json_for_html(data: Any) -> str:
    """Write JSON that can stand in a script element: no `<`, so that nothing there ends it.

    ASCII only, so that lone surrogates and line separators are escaped too.
    """
    text = json.dumps(data, separators=(",", ":"))
    return re.sub("[<>&]", lambda found: _ESCAPES[found[0]], text)
