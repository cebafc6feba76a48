"""Does the default policy reach its goals, and is what it misses what is known to be missed?"""

import pytest

from tests.evaluation import cost, tables
from tests.evaluation.run import measure

NOT_REACHED = "fresh runs"
"""12 of 354 solved runs are warned, one and a half too many; 9 of the 12 are labelled loops."""

WRONG = {
    "corpus": [],
    "cases": [],
    "reports2": ["g2-22-vol", "r2-29-reason"],
    "reports": [
        *"good-107 loop-08 loop-28 loop-32 loop-36 loop-43 loop-49".split(),
        *"loop-56 loop-58 loop-59 loop-62 loop-70".split(),
    ],
    "shapes": [
        "goodbye-in-new-words",
        "numbered-receipts",
        "one-change-with-a-fresh-key",
        "pages-beyond-the-end",
        "poll-undeclared-constant",
        "poll-undeclared-with-growing-sleeps",
        "rollout-status-12",
        "search-vain-in-json-forever",
    ],
    "corpus+description": [],
    "corpus+reason": [],
    "cases+description": [],
}
"""Every conversation that the default is known to judge wrong."""

STOPPED = ["enigma/6494cbb87a00"]
"""The one good run, of all runs, that a person is asked about."""


@pytest.fixture(scope="module")
def measured():
    return measure(only_default=True)


def test_the_goals_are_reached(measured):
    missed = [goal["measure"] for goal in measured["goals"] if not goal["holds"]]
    assert [one.partition(":")[0] for one in missed] == [NOT_REACHED]


def test_the_readmes_figures_of_the_default_are_those_measured(measured):
    written = tables.written_blocks(tables.README.read_text(encoding="utf-8"))
    new = tables.blocks(measured)
    for name in ("goals", "misses", "classes"):
        assert written[name] == new[name], name
    default = tables.scores_table(measured["scores"], "preset: ").splitlines()[2]
    assert default in written["presets"].splitlines()


def test_few_solved_runs_are_warned_without_a_loop(measured):
    for name in ("corpus", "fresh"):
        count = measured["scores"]["default"][name]
        assert count["warned"] - count["warned_loops"] <= 0.03 * count["solved"]


@pytest.mark.parametrize("name", WRONG)
def test_what_is_judged_wrong_is_known(measured, name):
    assert sorted(measured["wrong"][name]) == WRONG[name]


def test_no_good_run_is_stopped_but_one(measured):
    wrong = {**measured["wrong"]["corpus"], **measured["wrong"]["fresh"]}
    assert [name for name, told in wrong.items() if told != "missed"] == STOPPED


def test_most_policy_cases_are_right(measured):
    assert len(measured["wrong"]["policy"]) <= 24


def test_the_state_is_small_whatever_happens():
    assert max(cost.state_bytes().values()) <= 8192


@pytest.mark.usefixtures("alone")
def test_a_large_repeat_costs_little_whatever_its_text():
    goal = cost.repeat_goal()
    assert goal.holds, goal.measured
