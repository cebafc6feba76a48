"""Does a gate take a step once, however often an adapter brings it?"""

import pytest
from langchain_core.messages import HumanMessage

from langchain_loopguard.adapters.gate import Gate
from langchain_loopguard.langchain.messages import last_step
from langchain_loopguard.langchain.options import Options
from tests.langchain.made import LOOK, result, said


class WaitingError(Exception):
    """The run waits for a person."""


def waits(*_):
    raise WaitingError


def test_a_step_that_is_taken_again_with_its_answer_counts_once_and_keeps_its_result():
    gate = Gate(Options(), "node")
    reader, messages = gate.open(None), [HumanMessage("Look.", id="h")]
    for number in range(5):
        messages += [said(number, LOOK), result(number)]
    messages.append(said(5, LOOK))
    step = last_step(messages)
    with pytest.raises(WaitingError):
        gate.take(reader, step, messages, ask=waits)
    assert gate.take(reader, step, messages, ask=lambda *_: "continue").approved
    gate.read(reader, [*messages, result(5)])
    counted = reader.to_state()["guard"]
    assert counted["steps"] == 6
    assert [row[2] for row in counted["rules"]["repeat"]] == [1]
    assert gate.stats()["checked"] == 1
