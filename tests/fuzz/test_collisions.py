"""Can one call be blamed for another whose signature is the same?

FNV-1a is easily made to collide: it multiplies by one number, so a short vector of a lattice gives
two texts of a dozen letters within a second. The default guard compares no signatures: it knows a
call by xxh3 of the arguments in 64 bits, seeded by the tool's name.
"""

import itertools

import pytest
from fnv_c import fnv1a_64
from xxhash import xxh3_64_intdigest

from langchain_loopguard import LoopGuard, LoopGuardPolicy, call_signature
from langchain_loopguard.core.canonical import canonical_arguments
from langchain_loopguard.core.decision import Action

PAIR = ({"q": "iaMNxy-=h-slQ"}, {"q": "ia$4kiZX(t,hu"})


def a_call(args, number=0):
    return [{"name": "edit", "args": args, "id": str(number)}]


def strongest(policy, arguments, answer):
    """Give the strongest action when these calls come in turn, each with its own answer."""
    guard = LoopGuard(policy)
    found = Action.ALLOW
    for number, args in enumerate(arguments):
        decision = guard.check(a_call(args, number))
        content = answer(number)
        after = guard.record_results(decision.record, [{"id": str(number), "content": content}])
        found = max(found, decision.action, after.action)
    return found


def test_the_pair_collides():
    first, second = map(canonical_arguments, PAIR)
    assert first != second
    assert fnv1a_64(first) == fnv1a_64(second)
    assert call_signature(a_call(PAIR[0])[0]) == call_signature(a_call(PAIR[1])[0])


def test_the_default_guard_tells_the_pair_apart():
    guard = LoopGuard()
    first, second = (guard.check(a_call(args)).record for args in PAIR)
    assert first.keys != second.keys
    assert first.digest != second.digest


def test_the_default_guard_blames_neither_for_the_other():
    def growing(number):
        return f"entry {number}\n" * (2 + number)

    assert strongest(LoopGuardPolicy(), itertools.islice(itertools.cycle(PAIR), 4), growing) == 0


def test_the_seeds_detector_takes_the_pair_for_one_run():
    # It is told to: its signatures are compared with those of other implementations. The answers'
    # hash tells the two apart, so all that is left is the ceiling of a run whose answers change.
    def asked(times):
        arguments = itertools.islice(itertools.cycle(PAIR), times)
        return strongest(LoopGuardPolicy.seed(), arguments, lambda _: "same") is Action.ASK

    assert [times for times in range(1, 20) if asked(times)] == [16, 17, 18, 19]


def test_one_tools_call_never_has_the_key_of_anothers_by_its_arguments():
    guard = LoopGuard()
    keys = {
        guard.check([{"name": name, "args": {"q": 1}, "id": "1"}]).record.keys[0]
        for name in ("a", "b", "c", "search", "search ")
    }
    assert len(keys) == 5


@pytest.mark.parametrize("bits", [16, 20])
def test_truncated_keys_would_collide_and_whole_ones_do_not(bits):
    seen = {}
    pairs = 0
    whole = set()
    for number in range(2**13):
        key = xxh3_64_intdigest(canonical_arguments({"q": number}), 7)
        whole.add(key)
        pairs += key >> (64 - bits) in seen
        seen[key >> (64 - bits)] = number
    assert pairs
    assert len(whole) == 2**13
