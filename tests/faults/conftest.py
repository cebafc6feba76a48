"""One PostgreSQL server for the tests of this folder, and what is known not to hold yet."""

from __future__ import annotations

import pytest

from tests.faults.stores import available, postgres


@pytest.fixture(scope="session")
def postgres_uri(tmp_path_factory):
    """The URI of a server that is started when the first test needs it."""
    if "postgres" not in available():
        pytest.skip("pgserver is not installed")
    with postgres(tmp_path_factory.mktemp("postgres") / "data") as uri:
        yield uri


_HANDLER = (
    "a callback handler that knows nothing yet reads what the one before it did from the "
    "messages alone, and these traces are not in them"
)
_LOGGED = "LangChain logs the question, with the calls that it shows, when a handler raises it"
KNOWN = {
    "test_a_stop_holds_when_the_batch_ends_with_a_tool_that_does_not_exist": _HANDLER,
    "test_a_batch_that_a_person_let_run_is_not_asked_about_after_it_ran": _HANDLER,
    "test_a_loop_that_was_stopped_is_not_asked_about_in_the_next_turn": _HANDLER,
    "test_a_run_that_was_to_end_in_an_error_does_so_in_the_next_process": _HANDLER,
    "test_a_loop_that_ended_a_turn_in_an_error_does_not_end_the_next_turn": _HANDLER,
    "test_a_batch_that_was_let_run_in_part_counts_as_let_run": _HANDLER,
    "test_a_handler_that_asked_learns_of_the_answer_that_another_one_took[continue": _HANDLER,
    "test_the_logs_hold_nothing_of_calls_and_answers[interrupt-seed-handler": _LOGGED,
    "test_the_logs_hold_nothing_of_calls_and_answers[interrupt-default-handler": _LOGGED,
}
"""Beginnings of test names, each with why it fails; the node and the middleware pass."""

SOMETIMES = (
    "test_a_killed_run_ends_as_one_that_was_not[handler",
    "test_two_processes_by_turns_end_as_one_does[handler",
)
"""They fail when a kill happens to hit one of the places in `KNOWN`."""


def pytest_collection_modifyitems(items):
    for item in items:
        reason = next((KNOWN[name] for name in KNOWN if item.name.startswith(name)), None)
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
        elif item.name.startswith(SOMETIMES):
            item.add_marker(pytest.mark.xfail(reason=_HANDLER, strict=False))
