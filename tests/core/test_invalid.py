"""Is a policy's fault told in the words of rules and fields?"""

import pytest
from pydantic import ValidationError

from langchain_loopguard.core.invalid import in_words
from langchain_loopguard.core.policy import LoopGuardPolicy


def fault(data):
    with pytest.raises(ValidationError) as caught:
        LoopGuardPolicy.model_validate(data)
    return in_words(caught.value, data)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (5, "must be an object of fields"),
        ({"rules": 5}, "rules: must be a list"),
        ({"rules": [5]}, "rules.0: must be an object of fields"),
        ({"rules": {5}}, "rules.0: must be an object of fields"),
        ({"rules": [{"ask": 5}]}, "rules.0: must name its rule"),
        ({"rules": [{"rule": 7}]}, "rules.0: "),
        ({"rules": [{"rule": "same_answers"}]}, "rules.0: there is no such rule; there are"),
        ({"rules": [{"rule": "same_answer", "asks": 5}]}, "same_answer.asks: no such field; the"),
        ({"rules": [{"rule": "same_answer", "ask": "x"}]}, "same_answer.ask: must be a whole"),
        ({"rules": [{"rule": "same_answer", "ask": 1}]}, "same_answer.ask: must be greater"),
        (
            {"rules": [{"rule": "same_answer", "warn": 9}]},
            "warn <= ask <= ask_poller; here warn is 9, ask is 5, ask_poller is 20",
        ),
        ({"probation": "perhaps"}, "probation: must be true or false"),
        ({"no_such": 1}, "no_such: no such field"),
        ({"stagnation": {"window": 0, "turns": 1}}, "stagnation.turns: no such field; the fields"),
    ],
)
def test_a_fault_names_its_field_and_what_is_allowed(data, told):
    assert told in fault(data)
    assert "discriminator" not in fault(data)


def test_several_faults_are_all_told():
    told = fault({"probation": "perhaps", "max_refusals": "x"})
    assert told == "max_refusals: must be a whole number; probation: must be true or false"
