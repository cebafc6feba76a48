"""The tables of the evaluation: on a terminal, and as the marked blocks of `core/README.md`.

A block begins with `<!-- evaluation: its name -->` and ends with `<!-- end -->`. The benchmarks
write theirs in the same way.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.evaluation.score import heads, in_short

README = Path(__file__).parents[2] / "langchain_loopguard" / "core" / "README.md"

MACHINE_BLOCKS = ("times",)
"""Blocks whose figures differ from machine to machine."""

_BLOCK = re.compile(
    r"(?P<open><!-- \w+: (?P<name>\w+) -->\n)(?P<text>.*?)(?P<end><!-- end -->)", re.DOTALL
)


def goals_table(goals: list[dict[str, Any]]) -> str:
    """Show measures with their goals."""
    rows = [
        [
            goal["measure"],
            goal["landed"],
            goal["goal"],
            goal["measured"] if goal["holds"] else f"**{goal['measured']}**",
        ]
        for goal in goals
    ]
    return markdown_table(["measure", "first core", "goal", "measured"], rows)


def scores_table(scores: dict[str, dict[str, dict[str, int]]], prefix: str) -> str:
    """Show each set's score for the default and for the tasks that begin with a prefix."""
    columns = heads()
    shown = {task: one for task, one in scores.items() if task.startswith((prefix, "default"))}
    rows = [
        [task.removeprefix(prefix), *[in_short(one[name]) for name in columns]]
        for task, one in shown.items()
    ]
    return markdown_table(["", *columns.values()], rows)


def parts_table(mechanisms: dict[str, dict[str, Any]]) -> str:
    """Show what each part of the default decides."""
    rows = [
        [
            name,
            _counts(found["runs_helped"], found["runs_hurt"], found["runs_other"]),
            _counts(found["reports_helped"], found["reports_hurt"]),
            found["decides"],
            ", ".join(found["examples"]),
        ]
        for name, found in mechanisms.items()
    ]
    return markdown_table(
        [
            "part switched off",
            "runs better with / without / other",
            "reports better with / without",
            "decided by",
            "for example",
        ],
        rows,
    )


def _counts(*found: list[str]) -> str:
    return " / ".join([str(len(one)) for one in found])


def misses_table(wrong: dict[str, dict[str, str]]) -> str:
    """List what the default gets wrong, but for the made sets."""
    rows = []
    for name in ("corpus", "fresh", "cases", "reports2", "reports3", "reports"):
        missed = [one for one, told in wrong[name].items() if not told.startswith("asked at")]
        late = [one for one, told in wrong[name].items() if "was expected" in told]
        stopped = [one for one in wrong[name] if one not in missed and one not in late]
        rows.append([name, str(len(missed)), str(len(late)), ", ".join(stopped) or "none"])
    return markdown_table(["set", "loops missed", "loops found late", "good work stopped"], rows)


def classes_table(classes: dict[str, list[int]]) -> str:
    """Show how many loops of each kind are found."""
    return markdown_table(
        ["what the loop looks like", "found", "of"],
        [[name, str(found), str(of)] for name, (found, of) in classes.items()],
    )


def blocks(measured: dict[str, Any]) -> dict[str, str]:
    """Write the marked blocks of the README."""
    found = {
        "goals": goals_table(measured["goals"]),
        "misses": misses_table(measured["wrong"]),
        "classes": classes_table(measured["classes"]),
        "parts": parts_table(measured["mechanisms"]),
        "numbers": scores_table(measured["scores"], "number: "),
        "presets": scores_table(measured["scores"], "preset: "),
    }
    if "times" in measured:
        found["times"] = goals_table(measured["times"])
    return found


def written_blocks(text: str) -> dict[str, str]:
    """Read the marked blocks of a text."""
    return {found["name"]: found["text"].strip() for found in _BLOCK.finditer(text)}


def with_blocks(text: str, new: dict[str, str]) -> str:
    """Put new blocks in the place of the marked ones; others stay."""

    def put(found: re.Match[str]) -> str:
        block = new.get(found["name"])
        return found[0] if block is None else f"{found['open']}\n{block}\n\n{found['end']}"

    return _BLOCK.sub(put, text)


def markdown_table(heads: list[str], rows: list[list[str]]) -> str:
    """Write a table as the documents hold it."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join([f"| {' | '.join(line)} |" for line in lines])
