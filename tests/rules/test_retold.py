"""Does the default guard judge a run by what happened, whoever tells it?

The open corpus once more, each run told as another host would: tools under names that say nothing,
steps in parallel or one by one, answers in JSON, in frames, with clocks and ids of the host's own,
cut short, or without the sign of failure. Good runs must not be asked about however they are told.
A labelled loop may be found later, since some of what gave it away is hidden: so it goes on here,
as loops do, and must be found before it ends.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache

import pytest

from tests.conversations import load, read_through
from tests.rules.test_corpus import SOLVED_WITH_A_LOOP

_LAP, _LAPS = 6, 4
"""A labelled loop goes on with its last six batches, four times over."""


def _answers(told):
    """Tell each answer in other words: `told(content, number of the batch, failed)`."""

    def retell(events):
        number = 0
        for event in events:
            if event["type"] == "batch":
                number += 1
                yield {**event, "results": [one(result, number) for result in _results(event)]}
            else:
                yield event

    def one(result, number):
        content = result["content"]
        text = content if isinstance(content, str) else json.dumps(content)
        return {**result, "content": told(text, number, result["status"] == "error")}

    return retell


def _results(event):
    return event.get("results") or []


def _nameless(events):
    """Tools under names that say nothing of what they do."""
    names = {}
    for event in events:
        calls = [
            {**call, "name": names.setdefault(call["name"], f"tool_{len(names)}")}
            for call in event.get("calls", ())
        ]
        yield {**event, "calls": calls} if calls else event


def _together(count):
    """Make one parallel batch of so many steps."""

    def retell(events):
        open_batch = None
        for event in events:
            if event["type"] == "batch":
                if open_batch is None:
                    open_batch = {"type": "batch", "calls": [], "results": [], "steps": 0}
                step = f"{open_batch['steps']}-"
                for part in ("calls", "results"):
                    of_step = event.get(part) or []
                    open_batch[part] += [{**one, "id": step + one["id"]} for one in of_step]
                open_batch["steps"] += 1
            if open_batch and (event["type"] != "batch" or open_batch["steps"] == count):
                yield open_batch
                open_batch = None
            if event["type"] != "batch":
                yield event
        if open_batch:
            yield open_batch

    return retell


def _one_by_one(events):
    """Make a step of each call of a batch."""
    for event in events:
        if event["type"] != "batch":
            yield event
            continue
        for call in event["calls"]:
            results = [result for result in _results(event) if result["id"] == call["id"]]
            yield {"type": "batch", "calls": [call], "results": results}


def _unmarked(events):
    """Failures that are not marked as such."""
    for event in events:
        results = [{**result, "status": "success"} for result in _results(event)]
        yield {**event, "results": results} if results else event


def _in_lines(text, _number, failed):
    return json.dumps({"success": not failed, "lines": text.split("\n")}, indent=2)


def _as_shell(text, number, failed):
    seconds = number * 7 % 501 / 100
    return json.dumps({"output": text, "exit_code": int(failed), "duration_seconds": seconds})


def _stamped(text, number, failed):
    day, hour, minute = 1 + number // 1440, number // 60 % 24, number % 60
    head = f"[2026-11-{day:02} {hour:02}:{minute:02}:13] done in {0.1 + number % 7 * 0.13:.2f} s"
    return f"{head}\n{text}\n(exit code {int(failed)})"


def _requested(text, number, _failed):
    return f"{text}\nrequest_id: {hashlib.sha256(str(number).encode()).hexdigest()[:32]}"


def _counted_down(text, number, _failed):
    return f"{text}\nENVIRONMENT REMINDER: You have {500 - number} turns left."


WAYS = {
    "as it was": iter,
    "tools without names": _nameless,
    "two steps at once": _together(2),
    "three steps at once": _together(3),
    "one call a step": _one_by_one,
    "failures unmarked": _unmarked,
    "in a JSON object": _answers(lambda text, *_: json.dumps({"output": text})),
    "in JSON over many lines": _answers(_in_lines),
    "as a shell with durations": _answers(_as_shell),
    "between tags": _answers(lambda text, *_: f"<result>\n<output>\n{text}\n</output>\n</result>"),
    "under a clock": _answers(_stamped),
    "with an id for each request": _answers(_requested),
    "with other line ends": _answers(lambda text, *_: text.replace("\n", "  \r\n") + "\r\n"),
    "all in one line": _answers(lambda text, *_: " ".join(text.split())),
    "with a count of steps": _answers(lambda text, number, _: f"Step {number}/500\n{text}"),
    "with the steps that are left": _answers(_counted_down),
    "cut short": _answers(lambda text, *_: text[:200] + "\n... truncated" * (len(text) > 200)),
}


@cache
def _runs(label):
    if label == "loop":
        return [run for run in load("corpus") if run.get("label") == "loop"]
    return [
        run
        for run in load("corpus")
        if run["id"] != SOLVED_WITH_A_LOOP
        and (run.get("label") == "benign" or run["outcome"] == "success")
    ]


def _asked(label, retell, *, further=False):
    """Where the guard asks first, for each run with a label."""
    asked = {}
    for run in _runs(label):
        events = list(run["events"])
        if further:
            batches = [event for event in events if event["type"] == "batch"]
            events += batches[-_LAP:] * _LAPS
        asked[run["id"]] = read_through(retell(events)).ask
    return asked


@pytest.mark.parametrize("way", WAYS)
def test_a_good_run_is_never_asked_about_however_it_is_told(way):
    asked = _asked("good", WAYS[way])
    assert len(asked) > 370
    assert {run: at for run, at in asked.items() if at is not None} == {}


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_that_goes_on_is_found_however_it_is_told(way):
    asked = _asked("loop", WAYS[way], further=True)
    assert len(asked) == 20
    assert [run for run, at in asked.items() if at is None] == []
