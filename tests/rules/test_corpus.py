"""Does the default guard reach its figures on the open cases and the open corpus?

`python -m tests.rules.figures` prints the table alone.
"""

from __future__ import annotations

SOLVED_WITH_A_LOOP = "0fd148703610"
"""A solved run whose last five edits are one and the same; it is labelled a loop."""


def test_every_open_case_is_as_expected(figures):
    assert figures.wrong_cases == {}
    assert figures.cases == 61


def test_every_labelled_loop_is_asked_about(figures):
    assert figures.missed_loops == []
    assert figures.loops == 20


def test_loops_are_asked_about_within_six_batches_of_their_first_repeat(figures):
    assert figures.distance <= 6


def test_no_labelled_benign_run_is_asked_about(figures):
    assert figures.asked_benign == []
    assert figures.benign == 19


def test_no_solved_run_is_asked_about_but_the_one_with_a_loop(figures):
    assert figures.asked_solved == [SOLVED_WITH_A_LOOP]
    assert figures.solved == 366


def test_few_solved_runs_are_warned(figures):
    assert figures.warned_share <= 0.02


def test_the_incident_is_warned_by_call_9(figures):
    assert figures.incident_warn <= 9


def test_the_incident_is_asked_about_by_call_18(figures):
    assert figures.incident_ask <= 18
