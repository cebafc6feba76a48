"""Draws what the notebooks and the README show. Needs matplotlib (extra `[notebooks]`).

Each function gets what was counted and returns a figure; nothing is judged here.
`python -m langchain_loopguard.demo.pictures FILE` draws the incident as SVG.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from matplotlib.ticker import MaxNLocator

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.demo.scripts import incident

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEW, KNOWN, ASK, WARN = "#4477aa", "#ee9944", "#aa3377", "#777777"
"""Colours that people with any colour vision can tell apart (Paul Tol's "bright")."""


def call_map(
    labels: Sequence[str], known: Sequence[bool], marks: Mapping[str, tuple[int, str]]
) -> Figure:
    """Draw a run: a row for each different call, a dot for each time it was made.

    Args:
        labels: The calls in their order.
        known: For each call whether its result had come before.
        marks: What happened -> the call at which it did, and its colour.
    """
    rows = list(dict.fromkeys(labels))
    fig, ax = plt.subplots(figsize=(10, 0.26 * len(rows) + 1.1))
    for is_known, colour, meaning in (
        (False, NEW, "a new result"),
        (True, KNOWN, "this result came before"),
    ):
        places = [place for place, one in enumerate(known) if one is is_known]
        at = [rows.index(labels[place]) for place in places]
        ax.scatter([place + 1 for place in places], at, c=colour, s=12, label=meaning)
    for place, (text, (call, colour)) in enumerate(marks.items()):
        ax.axvline(call, color=colour, linewidth=1)
        ax.annotate(
            f"{text} {call}",
            xy=(call, len(rows) - 1.2 * (place + 4)),
            xytext=(0.25 * len(labels), len(rows) - 1.2 * (place + 4)),
            arrowprops={"arrowstyle": "-", "color": colour},
            color=colour,
            va="center",
        )
    # No-break spaces: a picture would show two spaces as one.
    rows = [row.replace(" ", "\u00a0") for row in rows]
    ax.set_yticks(range(len(rows)), rows, family="monospace", fontsize=8)
    ax.set_ylim(len(rows), -1)
    ax.set_xlim(-0.06 * len(labels), 1.01 * len(labels) + 1)
    ax.set_xlabel("call")
    ax.legend(loc="upper right", frameon=False, ncols=2, bbox_to_anchor=(1, 1.14))
    return _plain(fig, ax)


def call_rows(runs: Mapping[str, Sequence[str]]) -> Figure:
    """Draw runs below each other, each call a square: blue the first time, orange after that."""
    fig, ax = plt.subplots(figsize=(9, 0.36 * len(runs) + 1.1))
    for row, calls in enumerate(runs.values()):
        colours = [KNOWN if call in calls[:at] else NEW for at, call in enumerate(calls)]
        ax.scatter(range(1, len(calls) + 1), [row] * len(calls), c=colours, marker="s", s=60)
    ax.set_yticks(range(len(runs)), list(runs))
    ax.invert_yaxis()
    ax.set_xlabel("tool calls that ran")
    ax.scatter([], [], c=NEW, marker="s", label="first time")
    ax.scatter([], [], c=KNOWN, marker="s", label="made before")
    ax.legend(loc="lower right", frameon=False, ncols=2, bbox_to_anchor=(1, 1))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.margins(y=0.2)
    return _plain(fig, ax)


def rule_counts(counts: Mapping[str, Sequence[int]], asks_at: Mapping[str, int]) -> Figure:
    """Draw a rule's count after each step, and the number at which it asks.

    Args:
        counts: Rule -> its count after each step.
        asks_at: Rule -> its number.
    """
    fig, axes = plt.subplots(len(counts), figsize=(10, 1.25 * len(counts)), sharex=True)
    for ax, (name, values) in zip(axes, counts.items(), strict=True):
        ask = asks_at[name]
        colours = [ASK if value >= ask else KNOWN for value in values]
        ax.bar(range(1, len(values) + 1), values, color=colours, width=1)
        ax.axhline(ask, color=ASK, linestyle="--", linewidth=1)
        ax.set_ylim(0, 1.5 * ask)
        ax.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
        ax.set_title(name, loc="left", fontsize=10)
        _plain(fig, ax)
    axes[-1].set_xlabel("step")
    return fig


def ranked(columns: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw one bar chart a column, with the rows' names on the left only."""
    names = list(next(iter(columns.values())))
    fig, axes = plt.subplots(
        1, len(columns), figsize=(10, 0.21 * len(names) + 0.6), sharey=True, squeeze=False
    )
    for ax, colour, (title, values) in zip(
        axes[0], (WARN, NEW, KNOWN), columns.items(), strict=False
    ):
        bars = ax.barh(names, [values[name] for name in names], color=colour)
        ax.bar_label(bars, padding=2, fontsize=8)
        ax.set_title(title, fontsize=9)
        ax.set_xticks([])
        ax.margins(x=0.15, y=0.01)
        _plain(fig, ax, "top", "right", "bottom")
    axes[0][0].invert_yaxis()
    return fig


def incident_picture() -> Figure:
    """Draw the 200 calls of the incident, and what the default guard says to them."""
    guard = LoopGuard()
    seen: set[str] = set()
    known: list[bool] = []
    marks: dict[str, tuple[int, str]] = {}
    commands = [call.command for call in incident().calls]
    for number, call in enumerate(incident().calls, 1):
        asked = {"name": "bash", "args": {"command": call.command}, "id": "1"}
        decision = guard.check([asked])
        found = max(
            decision.action,
            guard.record_results(decision.record, [{"id": "1", "content": call.result}]).action,
        )
        known.append(call.result in seen)
        seen.add(call.result)
        if found >= Action.WARN:
            marks.setdefault("the model is warned at", (number, WARN))
        if decision.action >= Action.ASK:
            marks.setdefault("a person is asked at", (number, ASK))
    return call_map(commands, known, marks)


def _plain(fig: Figure, ax: Axes, *hidden: str) -> Figure:
    ax.spines[list(hidden or ("top", "right"))].set_visible(False)
    fig.set_layout_engine("tight")
    # A notebook shows a figure that is returned; one that pyplot knows too would be shown twice.
    plt.close(fig)
    return fig


if __name__ == "__main__":
    # Equal pictures are equal files, and their texts stay texts.
    plt.rc("svg", hashsalt="loopguard", fonttype="none")
    incident_picture().savefig(sys.argv[1], metadata={"Date": None}, facecolor="white")
