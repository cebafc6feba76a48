"""Can one call be blamed for another whose signature is the same?

FNV-1a is easily made to collide: it multiplies by one number, so a short vector of a lattice gives
two texts of a dozen letters within a second. The default guard compares no signatures: it knows a
call by xxh3 of the arguments in 64 bits, seeded by the tool's name.
"""

import itertools

from fnv_c import fnv1a_64

from langchain_loopguard import LoopGuard, LoopGuardPolicy, call_signature
from langchain_loopguard.core.canonical import canonical_arguments
from langchain_loopguard.core.decision import Action

PAIR = ({"q": "iaMNxy-=h-slQ"}, {"q": "ia$4kiZX(t,hu"})


def a_call(args, number=0, name="edit"):
    return [{"name": name, "args": args, "id": str(number)}]


def strongest(policy, times, result):
    """Give the strongest action when the calls of the pair come by turns."""
    guard = LoopGuard(policy)
    found = Action.ALLOW
    for number, args in enumerate(itertools.islice(itertools.cycle(PAIR), times)):
        decision = guard.check(a_call(args, number))
        content = result(number)
        after = guard.record_results(decision.record, [{"id": str(number), "content": content}])
        found = max(found, decision.action, after.action)
    return found


def test_the_pair_collides():
    first, second = map(canonical_arguments, PAIR)
    assert first != second
    assert fnv1a_64(first) == fnv1a_64(second)
    assert call_signature(a_call(PAIR[0])[0]) == call_signature(a_call(PAIR[1])[0])


def test_the_default_guard_knows_the_pair_apart():
    guard = LoopGuard()
    first, second = (guard.check(a_call(args)).record.calls[0] for args in PAIR)
    assert first.identity != second.identity


def test_the_default_guard_blames_neither_for_the_other():
    assert strongest(LoopGuardPolicy(), 4, lambda n: f"entry {n}\n" * (2 + n)) is Action.ALLOW


def test_the_seeds_detector_treats_the_pair_as_one_run_which_is_a_known_limit():
    # By its specification: its signatures are compared with those of other implementations. The
    # results' hash tells the two apart, so all that is left is the ceiling of a run whose results
    # change.
    asked = [n for n in range(1, 20) if strongest(LoopGuardPolicy.seed(), n, lambda _: "same") > 1]
    assert asked == [16, 17, 18, 19]


def test_equal_arguments_of_two_tools_are_two_calls():
    guard = LoopGuard()
    names = ("a", "b", "c", "search", "search ")
    assert len({guard.check(a_call({"q": 1}, name=n)).record.calls[0].identity for n in names}) == 5
