"""Measures everything: each policy and each part switched off, on every set."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from langchain_loopguard.policy import LoopGuardPolicy
from tests.evaluation import cost
from tests.evaluation.ablation import effect
from tests.evaluation.judge import Verdict, verdicts, wrong
from tests.evaluation.mechanisms import MECHANISMS, NUMBERS
from tests.evaluation.score import goals, scores
from tests.evaluation.sets import LOOKS, all_sets, name_of

_DEFAULT = "default"
_OFF = "off: "
_NUMBER = "number: "
_PRESET = "preset: "


def measure(*, workers: int | None = None, only_default: bool = False) -> dict[str, Any]:
    """Measure all that the tables show, in JSON types.

    Args:
        workers: How many processes; as many as there are processors by default.
        only_default: Leave out the parts and the presets.
    """
    tasks = [_DEFAULT]
    if not only_default:
        tasks += [_OFF + mechanism.name for mechanism in MECHANISMS]
        tasks += [_NUMBER + number.name for number in NUMBERS]
        tasks += [_PRESET + name for name in LoopGuardPolicy.preset_names()]
    if only_default:
        found = {_DEFAULT: judged(_DEFAULT)}
    else:
        # A fresh process: a fork of one with threads may hang.
        context = multiprocessing.get_context("spawn")
        workers = workers or len(os.sched_getaffinity(0))
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            found = dict(zip(tasks, pool.map(judged, tasks), strict=True))
    default = found[_DEFAULT]
    counted = {task: scores(one) for task, one in found.items()}
    return {
        "sets": {name: len(given) for name, given, _ in all_sets()},
        "goals": [goal._asdict() for goal in (*goals(counted[_DEFAULT]), cost.state_goal())],
        "scores": counted,
        "wrong": misses(default),
        "classes": classes(default["fresh"]),
        "mechanisms": {
            mechanism.name: effect(default, found[_OFF + mechanism.name]).as_dict()
            for mechanism in (() if only_default else MECHANISMS)
        },
    }


def judged(task: str) -> dict[str, list[Verdict]]:
    """Judge every set as a task says."""
    if task == _DEFAULT:
        return verdicts(LoopGuardPolicy())
    if task.startswith(_PRESET):
        return verdicts(LoopGuardPolicy.preset(task.removeprefix(_PRESET)))
    parts = {_OFF + one.name: one for one in MECHANISMS}
    mechanism = (parts | {_NUMBER + one.name: one for one in NUMBERS})[task]
    with mechanism.switched_off() as policy:
        return verdicts(policy)


def misses(found: dict[str, list[Verdict]]) -> dict[str, dict[str, str]]:
    """List what the verdicts get wrong: set -> conversation -> what is wrong."""
    return {
        name: {
            name_of(one): told
            for one, verdict in zip(given, found[name], strict=True)
            if (told := wrong(one, verdict))
        }
        for name, given, _ in all_sets()
    }


def classes(found: list[Verdict]) -> dict[str, list[int]]:
    """Count the labelled loops of the fresh runs by kind: found, and of how many."""
    (fresh,) = [given for name, given, _ in all_sets() if name == "fresh"]
    counted: dict[str, list[int]] = {}
    for run, verdict in zip(fresh, found, strict=True):
        if run.get("label") == "loop":
            kind = counted.setdefault(LOOKS.get(run["class"], "other"), [0, 0])
            kind[0] += verdict.ask is not None
            kind[1] += 1
    return dict(sorted(counted.items(), key=lambda item: -item[1][1]))
