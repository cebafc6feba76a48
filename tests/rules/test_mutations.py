"""Is there a fact for every number: one that fails as soon as the number is another one?

`NUMBERS` has a story for each number of a policy, `CONSTANTS` an observation for each number in
a file. Each is told with the number as it is and with the numbers beside it.
"""

from __future__ import annotations

import importlib

import pytest
from pydantic import BaseModel

from langchain_loopguard.core.answers import Answer, match_results
from langchain_loopguard.core.batch import Batch, Outcome
from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.progress import Progress
from langchain_loopguard.core.rules import (
    NothingNew,
    RepeatedBatch,
    SameAnswer,
    SameError,
    SameNumbers,
    UnbrokenCall,
)
from langchain_loopguard.core.stagnation import Stagnation, StagnationDetector
from langchain_loopguard.core.step_lines import StepLines
from tests.core.plays import HUMAN, UNKNOWN, call, run
from tests.rules.told import Told, change, findings, glance, look, only, shell, told, words

READ = look("a")

# --- The numbers of a policy --------------------------------------------------------------------


def clocked(n):
    return call("check_job", id=1, say=f"running\nqueue\nowner\nsince 12:{n:02}:00")


def fails(n):
    return change("x" * n, say="no match", fails=True)


def checked_thrice():
    checks = [shell(word, say=look(word)["say"]) for word in ("pytest", "ruff", "cat")]
    return [step for word in words(20) for step in (shell(f"sed {word}"), *checks)]


STORIES = {
    "same_answer.warn": (SameAnswer(), [READ] * 6, Told(3, 5, 6)),
    "same_answer.ask": (SameAnswer(), [READ] * 6, Told(3, 5, 6)),
    "same_answer.ask_poller": (
        SameAnswer(),
        [call("wait", say="pending")] * 25,
        Told(None, 20, 21),
    ),
    "same_answer.ask_clock": (SameAnswer(), [clocked(n) for n in range(20)], Told(None, 15, 16)),
    "nothing_new.warn": (NothingNew(), [READ] * 12, Told(5, 9, 10)),
    "nothing_new.ask": (NothingNew(), [READ] * 12, Told(5, 9, 10)),
    "nothing_new.first_looks": (
        NothingNew(),
        [look("a"), *({**look("a"), "args": {"path": word}} for word in words(30))],
        Told(9, 17, 18),
    ),
    "nothing_new.thoughts": (
        NothingNew(),
        [call("think", thought=word, say="Logged.") for word in words(30)],
        Told(None, 25, 26),
    ),
    "nothing_new.after_work": (NothingNew(), checked_thrice(), Told(20, 36, 37)),
    "unbroken_call.ask": (UnbrokenCall(), [change("x")] * 12, Told(None, 10, 10)),
    "unbroken_call.ask_shell": (UnbrokenCall(), [shell("x")] * 25, Told(None, 20, 20)),
    "unbroken_call.new_words": (
        UnbrokenCall(),
        [change("x", say=f"{word} is next") for word in words(25)],
        Told(None, 20, 20),
    ),
    "same_error.warn": (SameError(), [fails(n) for n in range(10)], Told(4, 8, 9)),
    "same_error.ask": (SameError(), [fails(n) for n in range(10)], Told(4, 8, 9)),
    "same_numbers.ask": (
        SameNumbers(),
        [call("get_page", page=n, say="none") for n in range(20)],
        Told(None, 15, 16),
    ),
    "repeated_batch.max_strikes": (RepeatedBatch(), [change("x")] * 5, Told(None, 3, 3)),
    "repeated_batch.max_observation_steps": (RepeatedBatch(), [READ] * 20, Told(None, 16, 16)),
}
"""Number -> its rule, a story, and where the rule first warns, asks and holds in it."""


def refusals(policy):
    """How often a loop is refused before the run ends."""
    guard = LoopGuard(policy)
    for _ in range(5):
        run(guard, READ)
    for refused in range(20):
        decision = guard.check([{"name": "read_file", "args": READ["args"], "id": "1"}])
        if decision.action is Action.STOP:
            return refused
        guard.refuse(decision)
    return None


def asked_after_a_user_turn(policy):
    steps = [*[READ] * 5, HUMAN, *[READ] * 2]
    return [number for number, _, f in findings(policy, steps) if f.action >= Action.ASK]


def prose(policy):
    """At which turn equal prose is found, back to back and with as much as may be between."""
    straight, wide = (StagnationDetector(policy.stagnation) for _ in range(2))
    turns = ["x"] * 5 + [f"turn {n}" for n in range(14)] + ["x"]
    found = [n for n in range(1, 9) if straight.check("x")]
    return found[0], [n for n, text in enumerate(turns, 1) if wide.check(text)]


POLICY = {
    "max_refusals": (refusals, 3, (2, 4)),
    "probation": (asked_after_a_user_turn, [5, 7], (False,)),
    "stagnation.max_repeats": (prose, (6, [20]), (4, 6)),
    "stagnation.window": (prose, (6, [20]), (19,)),
}
"""Number -> what to look at, what is seen, and other values."""


def numbers_of(model, name):
    return {f"{name}.{field}" for field, value in model if type(value) is int}


def test_every_number_of_every_rule_has_a_story():
    rules = (*LoopGuardPolicy().rules, RepeatedBatch())
    assert set(STORIES) == {number for rule in rules for number in numbers_of(rule, rule.rule)}


def test_every_number_of_the_policy_has_an_observation():
    plain = {name for name, value in LoopGuardPolicy() if type(value) in (int, bool)}
    nested = {name for name, value in LoopGuardPolicy() if isinstance(value, BaseModel)}
    assert nested == {"stagnation"}
    assert set(POLICY) == plain | numbers_of(Stagnation(), "stagnation")


@pytest.mark.parametrize("number", STORIES)
def test_the_story_of_a_number_is_true(number):
    rule, steps, expected = STORIES[number]
    assert told(only(rule), steps) == expected


@pytest.mark.parametrize("step", [-1, 1])
@pytest.mark.parametrize("number", STORIES)
def test_the_story_of_a_number_is_not_true_of_the_number_beside(number, step):
    rule, steps, expected = STORIES[number]
    field = number.partition(".")[2]
    other = type(rule)(**{field: getattr(rule, field) + step})
    assert told(only(other), steps) != expected


@pytest.mark.parametrize("number", POLICY)
def test_what_is_seen_of_a_number_of_the_policy(number):
    look_at, seen, _ = POLICY[number]
    assert look_at(LoopGuardPolicy()) == seen


@pytest.mark.parametrize(
    ("number", "value"), [(number, value) for number in POLICY for value in POLICY[number][2]]
)
def test_another_number_of_the_policy_is_seen(number, value):
    look_at, seen, _ = POLICY[number]
    name, _, field = number.partition(".")
    policy = LoopGuardPolicy(**{name: Stagnation(**{field: value}) if field else value})
    assert look_at(policy) != seen


def test_a_wider_window_of_prose_is_seen():
    turns = ["x"] * 5 + [f"turn {n}" for n in range(15)] + ["x"]
    found = {}
    for window in (20, 21):
        detector = StagnationDetector(Stagnation(window=window))
        found[window] = [detector.check(text) for text in turns][-1]
    assert found == {20: 0, 21: 6}


# --- The numbers in the files -------------------------------------------------------------------


def batch_of(*names, **args):
    calls = [{"name": name, "args": args, "id": str(place)} for place, name in enumerate(names)]
    return LoopGuard(only(NothingNew())).check(calls).record


def judge(progress, name, args, say):
    batch = batch_of(name, **args)
    results = [] if say is UNKNOWN else [{"id": "0", "content": say}]
    outcome = Outcome(batch, match_results(batch.ids, results))
    progress.judge(batch, outcome)
    return outcome.news.name


def how_many_calls_later_a_call_is_forgotten():
    progress = Progress()
    judge(progress, "search", {"q": "x"}, UNKNOWN)
    for n in range(1, 900):
        judge(progress, "search", {"q": n}, UNKNOWN)
        if not progress.ran_before(batch_of("search", q="x")):
            return n
    return None


def how_many_lines_are_a_short_answer():
    sizes = range(1, 9)
    texts = ("\n".join(words(n)) for n in sizes)
    return [judge(Progress(), "read_file", {}, text) for text in texts].count("UNDECIDED")


def how_many_known_lines_are_a_short_answer():
    seen = []
    for n in range(1, 9):
        progress, text = Progress(), "\n".join(words(n))
        judge(progress, "read_file", {}, "\n".join(words(9)))
        seen.append(judge(progress, "search", {}, text))
    return seen.count("UNDECIDED")


def how_many_clocks_make_no_news():
    known, counts = "\n".join(words(9)), []
    for n in range(1, 9):
        progress = Progress()
        for tick in range(3):
            clocks = "\n".join(f"{word} 12:{tick:02}:00" for word in words(n))
            found = judge(progress, "search", {"q": tick}, f"{known}\n{clocks}")
        counts.append(found)
    return counts.count("NOTHING")


def how_many_lines_are_known_as_a_whole_only():
    for n in range(5, 60):
        text = "\n".join(f"line {'i' * k}" for k in range(n))
        progress = Progress()
        judge(progress, "read_file", {"p": 1}, text)
        if judge(progress, "read_file", {"p": 2}, text[:-1]) == "SOMETHING":
            progress = Progress()
            judge(progress, "read_file", {"p": 1}, text)
            known = text.rpartition("\n")[0]
            if judge(progress, "read_file", {"p": 3}, known) == "SOMETHING":
                return n
    return None


def how_long_a_line_is_a_long_answer():
    sizes = range(8190, 8196)
    return [n for n in sizes if judge(Progress(), "read_file", {}, "x" * n) == "SOMETHING"]


def how_many_lines_are_in_a_frame():
    progress, common = Progress(), "\n".join(words(10))
    for word in ("one", "two"):
        judge(progress, "read_file", {"p": word}, f"{common}\n{word}\n{common.upper()}")
    ((_, lines, _),) = progress._frames.values()
    return len(lines)


def how_many_frames_are_kept():
    progress = Progress()
    for word in words(20):
        judge(progress, f"read_{word}", {}, "a\nb\nc")
    return len(progress._frames)


def which_cycles_same_answer_sees():
    cycles = ([glance(word) for word in words(n)] * 5 for n in (23, 24, 25))
    return [told(only(SameAnswer()), cycle).ask for cycle in cycles]


def how_many_errors_are_counted():
    sets = ([call(f"edit_{w}", say="no", fails=True) for w in words(n)] * 8 for n in (15, 16, 17))
    return [told(only(SameError()), steps).ask for steps in sets]


def how_many_batches_are_counted():
    sets = ([change(word, say="no", fails=True) for word in words(n)] * 10 for n in (7, 8, 9))
    return [told(only(UnbrokenCall()), steps).held for steps in sets]


def which_tools_a_finding_names():
    batch = [look(word, name=f"{word}{'x' * 100}") for word in words(20)]
    return [len(tool) for tool in findings(only(NothingNew()), [batch] * 9)[-1][2].tools]


def how_many_calls_are_on_probation():
    guard = LoopGuard(LoopGuardPolicy(rules=(SameAnswer(),)))
    for _ in range(5):
        run(guard, [look(word) for word in words(20)])
    return len(guard.to_state()["probation"]["flagged"])


def how_many_tools_are_at_hand():
    guard, most = LoopGuard(), 0
    for n in range(1100):
        guard.check([{"name": f"tool {n}", "args": {}, "id": "1"}])
        most = max(most, len(guard._tools))
    return most


def how_many_refused_loops_are_remembered():
    guard = LoopGuard(only(UnbrokenCall(ask=2, ask_shell=2)))
    for n in range(20):
        step = [{"name": "edit", "args": {"n": n}, "id": "1"}]
        guard.check(step)
        guard.refuse(guard.check(step))
    return len(guard.to_state()["refused"])


def which_version_a_state_has():
    return LoopGuard().to_state()["v"]


def masked(text, *arguments):
    answer = Answer(text, error=True)
    answer.mask_arguments("", dict(enumerate(arguments)))
    return answer.masked.decode()


def how_many_arguments_are_masked():
    texts = [f"<{word}>" for word in words(30)]
    return masked(" ".join(texts), *texts).count("~")


def how_short_an_argument_is_masked():
    return masked("a bc def ghij", "a", "bc", "def", "ghij")


def how_long_an_argument_is_masked():
    return [masked("x" * n, "x" * n) == "~" for n in range(4094, 4100)]


def how_long_a_batch_is_kept_by_its_signature():
    names = ["n" * (size - 17) for size in range(118, 124)]
    return [batch_of(name).key.startswith("1 calls:") for name in names]


def how_many_batches_later_a_result_is_forgotten():
    for n in range(30, 300):
        guard = LoopGuard(LoopGuardPolicy(rules=()))
        for word in ("x", *range(n), "x"):
            run(guard, call(cmd=word, say="x"))
        if not guard.ledger().identical_result_repeats:
            return n
    return None


def which_repeats_pass_on_a_changed_answer():
    guard, counts = LoopGuard(LoopGuardPolicy(rules=())), []
    for n in range(6):
        run(guard, call(say=n))
        counts.append(guard.ledger().passed_on_changed_answer)
    return counts


def counted(say, count=8, *, different=99, tools=("search", "read_file")):
    """What is left of the answers of steps that answer `say(number)`."""
    guard, lines, left = LoopGuard(only(NothingNew())), StepLines(), []
    for n in range(count):
        given = {"name": tools[n % len(tools)], "args": {"path": "i" * (n % different)}, "id": "0"}
        batch = guard.check([given]).record
        answers = match_results(batch.ids, [{"id": "0", "content": say(n)}])
        if lines.watching:
            answers = lines.without(batch, answers)
        left.append(answers[0].text.decode())
    return left


def done(n):
    return f"x\n{n} done"


def when_a_count_is_believed():
    return counted(done).index("x")


def over_how_many_calls_a_count_is_believed():
    return ["x" in counted(done, 20, different=calls, tools=["bash"]) for calls in (2, 3, 4, 5, 6)]


def over_how_many_tools_a_count_is_believed():
    names = ["search", "read_file", "get_page", "list_dir"]
    return ["x" in counted(done, 20, tools=names[:tools]) for tools in (1, 2, 3, 4)]


def how_long_a_count_is_watched():
    others = range(8, 14)
    return ["x" in counted(done, 20, tools=["search"] * n + ["read_file"] * 20) for n in others]


def how_far_in_the_arguments_a_number_is_looked_for():
    def watched(before):
        lines = StepLines()
        for n in "67":
            # `{"a":"iii6"}`
            calls = [{"name": "search", "args": {"a": "i" * before + n}}]
            batch = LoopGuard().check(calls).record
            lines.without(batch, [Answer(f"{n} done", error=False)])
        return lines.watching

    return [watched(before) for before in range(4087, 4093)]


def how_many_steps_may_be_missing():
    gaps = range(1, 7)
    return [counted(lambda n, gap=gap: done(n + gap * (n > 8)), 10)[9] == "x" for gap in gaps]


def leaves_out(form):
    return "done" not in counted(form)[7]


def how_many_lines_at_the_end_are_looked_at():
    texts = ["x\ny\nz\n{} done" + "\nlast" * below for below in range(4)]
    return [leaves_out(text.format) for text in texts]


def how_many_counts_are_left_out():
    return counted(lambda n: f"{n} a\n{n} b\nx\n{n} c\n{n} d")[7].count("7")


def how_long_a_count_may_be():
    return [leaves_out(("x\n{} done" + "i" * more).format) for more in range(191, 198)]


def how_many_numbers_a_count_may_have():
    return [leaves_out(("x\n{} done" + " 7" * more).format) for more in range(4)]


def how_many_digits_a_count_may_have():
    return [leaves_out(lambda n, d=digits: done(10**d + n)) for digits in range(6, 12)]


CORE = "langchain_loopguard.core"
CONSTANTS = {
    "progress.GENERATION": (how_many_calls_later_a_call_is_forgotten, 546),
    "progress.SHORT_ANSWER": (how_many_lines_are_a_short_answer, 2),
    "progress.SHORT_KNOWN": (how_many_known_lines_are_a_short_answer, 1),
    "progress._MAX_FRESH": (how_many_clocks_make_no_news, 3),
    "progress.LONG_ANSWER": (how_many_lines_are_known_as_a_whole_only, 33),
    "progress._LONG_TEXT": (how_long_a_line_is_a_long_answer, [8193, 8194, 8195]),
    "progress._FRAME_EDGE": (how_many_lines_are_in_a_frame, 8),
    "progress._MAX_FRAMES": (how_many_frames_are_kept, 8),
    "rules.same_answer._MAX_CALLS": (which_cycles_same_answer_sees, [93, 97, None]),
    "rules.same_error._MAX_STREAKS": (how_many_errors_are_counted, [106, 113, None]),
    "rules.unbroken_call._MAX_BATCHES": (how_many_batches_are_counted, [64, 73, None]),
    "rules.nothing_new._MAX_TOOLS": (which_tools_a_finding_names, [48] * 8),
    "tools._LONGEST_NAME": (which_tools_a_finding_names, [48] * 8),
    "step_lines._BATCHES": (when_a_count_is_believed, 5),
    "step_lines._CALLS": (over_how_many_calls_a_count_is_believed, [False] * 2 + [True] * 3),
    "step_lines._TOOLS": (over_how_many_tools_a_count_is_believed, [False] + [True] * 3),
    "step_lines._PATIENCE": (how_long_a_count_is_watched, [True] * 3 + [False] * 3),
    "step_lines._AHEAD": (how_many_steps_may_be_missing, [True] * 3 + [False] * 3),
    "step_lines._MOST_ARGUMENTS": (
        how_far_in_the_arguments_a_number_is_looked_for,
        [False] * 3 + [True] * 3,
    ),
    "step_lines._EDGE": (how_many_lines_at_the_end_are_looked_at, [True] * 2 + [False] * 2),
    "step_lines._MOST_KEPT": (how_many_counts_are_left_out, 2),
    "step_lines._LONGEST": (how_long_a_count_may_be, [True] * 4 + [False] * 3),
    "step_lines._MOST_NUMBERS": (how_many_numbers_a_count_may_have, [True] * 2 + [False] * 2),
    "step_lines._MOST_DIGITS": (how_many_digits_a_count_may_have, [True] * 3 + [False] * 3),
    "probation._MAX_CALLS": (how_many_calls_are_on_probation, 16),
    "guard._MAX_TOOLS": (how_many_tools_are_at_hand, 1024),
    "guard._MAX_REFUSED_LOOPS": (how_many_refused_loops_are_remembered, 16),
    "guard.STATE_VERSION": (which_version_a_state_has, 1),
    "answers._MASKED_WORDS": (how_many_arguments_are_masked, 16),
    "answers._SHORTEST_WORD": (how_short_an_argument_is_masked, "a bc ~ ~"),
    "answers._LONGEST_WORD": (how_long_an_argument_is_masked, [True] * 3 + [False] * 3),
    "batch._LONGEST_KEY": (how_long_a_batch_is_kept_by_its_signature, [False] * 3 + [True] * 3),
    "ledger._GENERATION": (how_many_batches_later_a_result_is_forgotten, 81),
    "ledger._FREE_REPEATS": (which_repeats_pass_on_a_changed_answer, [0, 0, 1, 2, 3, 4]),
}
"""Number -> an observation and what is seen."""

NO_NUMBERS = {
    # A mask of bits, the seed of a hash, more bytes than are needed: others would do as well.
    "_MASK",
    "_MASKED",
    "_NUMBERLESS",
    "_DUE",
    "_READS",
    "_BEFORE_VALUE",
    # How much of a stored state is accepted; see the tests of states in `tests/fuzz`.
    "_MAX_RULES",
    "_LONGEST_WINDOW",
    "_PARTS",
    "_MOST_HASHES",
    "_MOST_STORED",
    "_MOST_LINES",
}


def test_every_number_in_the_files_has_an_observation():
    found = set()
    files = {number.rpartition(".")[0] for number in CONSTANTS} | {
        "rules.same_numbers",
        "rules.repeated_batch",
        "clock",
        "packing",
        "policy",
        "stagnation",
        "tools",
    }
    for file in files:
        for name, value in vars(importlib.import_module(f"{CORE}.{file}")).items():
            if type(value) is int and name.isupper() and name not in NO_NUMBERS:
                found.add(f"{file}.{name}")
    assert set(CONSTANTS) == found


@pytest.mark.parametrize("step", [0, -1, 1])
@pytest.mark.parametrize("constant", CONSTANTS)
def test_what_is_seen_is_so_for_this_number_and_not_for_those_beside(constant, step, monkeypatch):
    observe, seen = CONSTANTS[constant]
    file, _, name = constant.rpartition(".")
    module = importlib.import_module(f"{CORE}.{file}")
    monkeypatch.setattr(module, name, getattr(module, name) + step)
    assert (observe() == seen) is (step == 0)


def test_a_key_of_a_batch_is_no_longer_than_its_limit():
    assert max(len(batch_of(*["n" * n] * m).key) for n in range(0, 200, 9) for m in (1, 2)) <= 120
    assert isinstance(batch_of("n"), Batch)
