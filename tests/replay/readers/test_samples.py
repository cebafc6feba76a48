"""Is each format found, and is all of it read, as a count of its own on the raw JSON says?"""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_loopguard.replay.conversation import Conversation, Problem
from langchain_loopguard.replay.readers import FORMATS, format_of, read_values
from langchain_loopguard.replay.readers.chat import CHATS, MESSAGES
from tests.replay.readers.samples import SAMPLES, Counts
from tests.replay.stories import story, told

GENERIC = {MESSAGES.name, *(one.name for one in CHATS)}


def read(sample):
    return list(read_values(sample.numbered, "f", unit=sample.unit))


def counts(runs):
    steps = [e for run in runs for e in run.events if e["type"] == "batch"]
    results = [result for step in steps for result in step["results"]]
    return Counts(
        len(runs), sum(e["type"] == "human" for run in runs for e in run.events), len(steps),
        sum(len(step["calls"]) for step in steps), len(results),
        sum(result.get("status") == "error" for result in results),
    )  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_every_value_is_of_its_format_and_of_no_other(name):
    sample = SAMPLES[name]
    wrong = {
        number: found
        for number, value in sample.numbered
        if (found := _formats(value)) != {sample.format}
    }
    assert wrong == {}


def _formats(value):
    """The format that is chosen, and each special one that would take the value too."""
    chosen = format_of(value)
    if chosen is None and isinstance(value, list):
        chosen = format_of(value[0])
    special = {one.name for one in FORMATS if one.name not in GENERIC and one.matches(value)}
    return special | ({chosen.name} if chosen is not None else set())


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_read_is_what_the_raw_json_holds(name):
    sample = SAMPLES[name]
    assert counts(read(sample)) == sample.count(sample.values)


@pytest.mark.parametrize("name", [name for name, one in SAMPLES.items() if one.story])
def test_a_story_is_told_as_it_is(name):
    [run] = read(SAMPLES[name])
    assert told(run) == story()


def test_every_format_has_a_sample():
    missing = {one.name for one in FORMATS} - {one.format for one in SAMPLES.values()}
    assert missing == {"chat messages"}


# --- Malformed values -----------------------------------------------------------------------------

ODD = st.sampled_from([None, 0, -1, 1.5, True, "", "x", [], {}, [[]], [None], {"a": None}, ["x"]])


def places(value, path=()):
    """The path to each part of a value."""
    found = [path] if path else []
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            found.extend(places(inner, (*path, key)))
    return found


@st.composite
def mutated(draw):
    """A sample of which some parts are dropped or of another type."""
    name = draw(st.sampled_from(sorted(SAMPLES)))
    values = copy.deepcopy(SAMPLES[name].values)
    for _ in range(draw(st.integers(1, 4))):
        found = places(values)
        if not found:
            break
        *path, last = found[draw(st.integers(0, len(found) - 1))]
        at = values
        for key in path:
            at = at[key]
        if draw(st.booleans()):
            del at[last]
        else:
            at[last] = copy.deepcopy(draw(ODD))
    return name, values


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(mutated())
def test_a_malformed_sample_is_read_or_told_as_a_problem(case):
    name, values = case
    for unit, given_values in (("value", [values]), ("line", values)):
        for found in read_values(list(enumerate(given_values, 1)), name, unit=unit):
            assert isinstance(found, Conversation | Problem)
            if isinstance(found, Conversation):
                names = [call.get("name") for step in found.steps for call in step["calls"]]
                assert all(isinstance(name, str) for name in names)
