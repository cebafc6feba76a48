"""How do many runs become one page?

The page is one file: style, script and data are in it, and its own policy forbids it to load
anything or to send anything anywhere. The policy also names the only two pieces of style and
script that may take effect, by their hashes, so that text out of a run stays text even if it
found a way into the markup.
"""

from __future__ import annotations

import base64
import hashlib
import heapq
import json
import re
from collections import Counter
from html import escape
from importlib.resources import files
from typing import Any

from langchain_loopguard.core.decision import Action

MOST_RUNS = 5_000
"""Runs listed on a page unless said otherwise. 5,000 runs of ten calls each are 1.2 MB and open in
half a second, with content 20 MB and a second. A page of a million would not open at all."""

_OUTCOMES = ("success", "fail", "unknown")
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


class Page:
    """Collects runs and writes them as a page; holds at most `most` of them at once.

    Attributes:
        bad: How many inputs could not be read.
    """

    def __init__(self, *, policy: str, content: bool = False, most: int = MOST_RUNS) -> None:
        """Start without runs.

        Args:
            policy: What the page calls the policy.
            content: Whether the runs were drawn with their content.
            most: How many runs to list. With more, those stay that have the strongest action,
                among them those with the most calls saved; the counts are of all.
        """
        self._policy = policy
        self._content = content
        self._most = most
        self.bad = 0
        self._read = 0
        self._kept: list[tuple[tuple[int, int, int], dict[str, Any]]] = []
        self._outcomes: dict[str, _Tally] = {}

    def add(self, run: dict[str, Any]) -> None:
        """Take in what `draw_run` gave."""
        self._read += 1
        self._outcomes.setdefault(run["o"], _Tally()).add(run)
        # The number read keeps the order, and keeps runs from being compared.
        entry = ((run["a"], run["d"], -self._read), run)
        if len(self._kept) < self._most:
            heapq.heappush(self._kept, entry)
        else:
            heapq.heappushpop(self._kept, entry)

    @property
    def runs(self) -> int:
        """How many runs were taken in."""
        return self._read

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
        total = self._total()
        quiet, warned, asked, stopped = total.actions
        return (
            f"{_number(total.runs, 'run')} with {_number(total.calls, 'call')}: {quiet:,} quiet, "
            f"{warned:,} warned, {asked:,} asked about, {stopped:,} stopped; "
            f"{_number(total.saved, 'call')} saved."
        )

    def _total(self) -> _Tally:
        total = _Tally()
        for tally in self._outcomes.values():
            total.merge(tally)
        return total

    def _data(self) -> dict[str, Any]:
        total = self._total()
        runs = [run for _, run in sorted(self._kept, key=lambda entry: -entry[0][2])]
        tools: dict[str, int] = {}
        sources: dict[str, int] = {}
        listed = []
        for run in runs:
            source = sources.setdefault(run["s"], len(sources))
            names = [tools.setdefault(name, len(tools)) for name in run["g"]]
            listed.append({**run, "s": source, "g": names})
        known = [name for name in _OUTCOMES if name in self._outcomes]
        return {
            "policy": self._policy,
            "content": self._content,
            "counts": {
                "runs": total.runs,
                "calls": total.calls,
                "actions": list(total.actions),
                "saved": total.saved,
                "bad": self.bad,
            },
            "outcomes": [
                [name, tally.runs, list(tally.actions), tally.saved]
                for name, tally in ((name, self._outcomes[name]) for name in known)
            ],
            "sources": list(sources),
            "tools": list(tools),
            "runs": listed,
        }


class _Tally:
    """Counts of runs."""

    def __init__(self) -> None:
        self.runs = self.calls = self.saved = 0
        self._actions: Counter[int] = Counter()

    @property
    def actions(self) -> tuple[int, int, int, int]:
        """How many runs have each action as their strongest."""
        quiet, warned, asked, stopped = (self._actions[action] for action in Action)
        return quiet, warned, asked, stopped

    def add(self, run: dict[str, Any]) -> None:
        self.runs += 1
        self.calls += run["n"]
        self.saved += run["d"]
        self._actions[run["a"]] += 1

    def merge(self, other: _Tally) -> None:
        self.runs += other.runs
        self.calls += other.calls
        self.saved += other.saved
        self._actions.update(other._actions)


def _part(name: str) -> str:
    return files("langchain_loopguard.replay").joinpath("page", name).read_text("utf-8")


def _content_policy(style: str, script: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json_for_html(data: Any) -> str:
    """Write JSON that can stand in a script element: no `<`, so that nothing there ends it.

    ASCII only, so that lone surrogates and line separators are escaped too.
    """
    text = json.dumps(data, separators=(",", ":"))
    return re.sub("[<>&]", lambda found: _ESCAPES[found[0]], text)


def _number(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
