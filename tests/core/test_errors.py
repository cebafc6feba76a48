"""Does the error carry the facts, say what to do, and survive a pickle?"""

import pickle

import pytest

from langchain_loopguard.core.errors import GuardStateError, LoopDetectedError, facts_of

ERROR = LoopDetectedError("bash:5fb3ea759e512146", ["bash"], 3, 2)


def test_the_error_names_the_facts():
    assert (ERROR.signature, ERROR.tools, ERROR.count, ERROR.threshold) == (
        "bash:5fb3ea759e512146",
        ("bash",),
        3,
        2,
    )


@pytest.mark.parametrize("part", ["bash", "3 times", "2 allowed", "`break_run()`", "`max_strikes`"])
def test_the_text_names_the_tool_the_numbers_and_what_to_do(part):
    assert part in str(ERROR)


def test_the_text_says_so_when_a_tool_has_no_name():
    assert "a tool without a name" in str(LoopDetectedError(":0", ("",), 3, 2))


def test_a_wording_of_one_s_own_replaces_the_text():
    assert str(LoopDetectedError("t:0", ("t",), 3, 2, "Stop.")) == "Stop."


@pytest.mark.parametrize("message", ["", "Stop."])
def test_the_error_survives_a_pickle(message):
    error = LoopDetectedError("t:0", ("t",), 3, 2, message)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(again), vars(again), str(again)) == (type(error), vars(error), str(error))


def test_a_state_error_is_a_value_error():
    assert issubclass(GuardStateError, ValueError)


def test_the_facts_of_an_error_say_what_it_says():
    error = LoopDetectedError("s", ("a", "b"), 3, 2)
    assert facts_of(error) == {
        "signature": "s",
        "tools": ["a", "b"],
        "count": 3,
        "threshold": 2,
        "message": str(error),
    }
