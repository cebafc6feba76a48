"""Can each part be switched off alone, and is all as before then?"""

import pytest

from langchain_loopguard.core.kinds import kind_of_name
from langchain_loopguard.policy import LoopGuardPolicy
from tests.conversations import load
from tests.evaluation.judge import judge
from tests.evaluation.mechanisms import MECHANISMS, NUMBERS

SOME = load("reports2")[::19]


def verdicts(policy):
    return [judge(conversation, policy) for conversation in SOME]


@pytest.fixture(scope="module")
def default():
    return verdicts(LoopGuardPolicy())


@pytest.mark.parametrize("part", [*MECHANISMS, *NUMBERS], ids=lambda part: part.name)
def test_a_part_is_switched_off_and_on_again(part, default):
    with part.switched_off() as policy:
        verdicts(policy)
    assert verdicts(LoopGuardPolicy()) == default
    assert kind_of_name("bash").shell


def test_no_two_parts_have_one_name():
    names = [part.name for part in (*MECHANISMS, *NUMBERS)]
    assert len(set(names)) == len(names)
