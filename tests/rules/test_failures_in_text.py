"""Are loops of errors found where no status tells of them, and is good work left alone?

LangChain gives every tool that returns the status `success`; see `failures`. The corpus can't be
told so: its texts are structure only.
"""

import pytest

from langchain_loopguard.failures import says_it_failed
from tests.conversations import load, policy_for, read_through
from tests.rules.figures import unexpected

NAMES = ("cases", "policy", "reports")

STILL_LOST = {
    "e-ts": "opens with a time of day",
    "err-edit-lineno": "opens with a sentence about the edit",
    "err-nonlatin": "is Chinese",
    "loop-16": "opens with the level of a log line",
    "loop-25": "opens with a place in a notebook",
    "loop-35": "opens with the name of a function",
    "loop-39": "says only what the arguments must have",
    "loop-45": "opens with a sentence about the edit",
    "loop-60": "is a log whose first line is none of an error",
}
"""Loops of errors whose text does not open like one."""


def told(event, statuses):
    """An event with other statuses."""
    results = event.get("results")
    if not results:
        return event
    return {**event, "results": [{**one, "status": statuses(one)} for one in results]}


def wrong(statuses):
    """The conversations that are judged wrongly."""
    return {
        case["id"]
        for name in NAMES
        for case in load(name)
        if unexpected(
            case,
            read_through([told(event, statuses) for event in case["events"]], policy_for(case)),
        )
    }


def as_told(result):
    return result.get("status")


def as_langchain(_):
    return "success"


def by_text(result):
    return "error" if says_it_failed(result["content"]) else "success"


def by_both(result):
    return "error" if says_it_failed(result["content"]) else result.get("status")


@pytest.fixture(scope="module")
def known():
    return wrong(as_told)


def test_without_statuses_the_text_brings_most_loops_of_errors_back(known):
    assert wrong(by_text) - known == set(STILL_LOST)
    assert len(wrong(as_langchain) - known) == 34


def test_beside_statuses_the_text_changes_nothing(known):
    assert wrong(by_both) == known
