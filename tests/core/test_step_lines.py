"""Is a line that counts the steps told from what counts by itself?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_loopguard.core.answers import match_results
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.rules import NothingNew
from langchain_loopguard.core.step_lines import StepLines
from tests.core.plays import UNKNOWN, call, parts

GUARD = LoopGuard(LoopGuardPolicy(rules=(NothingNew(),)))
TOOLS = ("read_file", "search", "edit_file")


def look(lines, step):
    """What is left of the answers of a step."""
    given, results = parts(step)
    batch = GUARD.check(given).record
    answers = match_results(batch.ids, results)
    if lines.watching:
        answers = lines.without(batch, answers)
    return [None if answer is None else answer.text.decode() for answer in answers]


def left(steps, *, reload=False):
    """What is left of the first answer of each step."""
    lines, texts = StepLines(), []
    for step in steps:
        if reload:
            state = json.loads(json.dumps(lines.to_state()))
            lines = StepLines()
            lines.load_state(state)
        texts.append(look(lines, step)[0])
    return texts


def steps(told, count=9, *, tools=TOOLS, different=99):
    """Steps whose answers are `told(number)`."""
    return [
        call(tools[n % len(tools)], path=f"file {'i' * (n % different)}", say=told(n))
        for n in range(count)
    ]


def under(form):
    """An answer of two lines with a count, and the same answer without."""
    return lambda n: form.format(n=n, left=100 - n, text=f"one {'i' * n}\ntwo"), "one {}\ntwo"


@pytest.mark.parametrize("reload", [False, True])
@pytest.mark.parametrize(
    "form",
    [
        "Step {n}/100\n{text}",
        "{text}\n[{left} steps left]",
        "{text}\n\nENVIRONMENT REMINDER: You have {left} turns left to complete the task.",
        "step {n:02}\n{text}",
        "[2026-11-29 10:00:{n:02}] step {n}\n{text}",
        "exit code 0\nstep {n}\n{text}\n{left} left\n",
    ],
)
def test_a_line_that_counts_the_steps_is_left_out_from_the_sixth_answer_on(form, reload):
    told, kept = under(form)
    texts = left(steps(told), reload=reload)
    assert texts[:5] == [told(n) for n in range(5)]
    for n, text in enumerate(texts[5:], 5):
        rest = text.removeprefix("exit code 0\n").strip()
        assert rest == kept.format("i" * n)


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(lambda n: f"word\nused {n * 537} tokens", id="by more than one"),
        pytest.param(lambda n: f"word\n{n // 2} of 9", id="not with every batch"),
        pytest.param(lambda n: f"word\n{'one two six ten'.split()[n % 4]} left", id="in words"),
        pytest.param(lambda n: f"word\n{n} done, {99 - n} left", id="with two numbers at once"),
        pytest.param(lambda n: f"a\nb\nc\nstep {n}\nd\ne\nf", id="in the middle"),
        pytest.param(lambda n: f"word\n{n} of {n + 1}, {n} more", id="with three numbers"),
        pytest.param(lambda n: f"word\n{'x' * 200}{n}", id="in a long line"),
        pytest.param(lambda n: f"word\n{10**9 + n}", id="by a number of ten digits"),
        pytest.param(lambda n: "word\nstep 3", id="not at all"),
        pytest.param(lambda n: f"word\nstep {n}" if n != 3 else "word", id="not once"),
    ],
)
def test_any_other_line_is_left_in(told):
    assert left(steps(told, 14)) == [told(n) for n in range(14)]


COUNT = under("{text}\n{n} done")[0]


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(steps(COUNT, 14, tools=["search"]), id="one tool"),
        pytest.param(steps(COUNT, 14, different=3), id="three calls"),
        pytest.param(
            [call("poll", job=1, say=f"{n} %\nrunning") for n in range(14)], id="one call"
        ),
        pytest.param(
            [call("bash", command=f"check {n}", say=f"record {n}\nok") for n in range(14)],
            id="numbers of the calls' own",
        ),
    ],
)
def test_what_counts_over_too_little_or_what_the_call_said_is_left_in(story):
    assert left(story) == [step["say"] for step in story]


def test_the_calls_of_a_shell_are_as_good_as_calls_of_several_tools():
    story = [call("bash", command="i" * n, say=f"out\n{99 - n} left") for n in range(7)]
    assert left(story)[5:] == ["out", "out"]


def test_a_number_that_happens_to_stand_in_a_call_makes_no_difference_to_the_rest():
    story = [call("bash", command="i" * n, say=f"out\n{99 - n} left") for n in range(7)]
    story[2] = call("bash", command="head -97 x", say="out\n97 left")
    assert left(story)[6] == "out"


def test_all_answers_of_parallel_calls_may_have_the_same_count():
    pairs = [
        [call(tool, path=f"{tool} {'i' * n}", say=f"out\nstep {n}") for tool in TOOLS[:2]]
        for n in range(8)
    ]
    lines = StepLines()
    assert [look(lines, pair) for pair in pairs][6:] == [["out", "out"]] * 2


def test_up_to_three_batches_may_be_missing():
    story = steps(lambda n: f"out\nstep {n}", 20)
    story[6:9] = [call("search", q="x", say=UNKNOWN)] * 3
    assert left(story)[9] == "out"
    story[9] = story[6]
    assert left(story)[10:12] == ["out\nstep 10", "out\nstep 11"]


def test_batches_without_answers_teach_nothing():
    lost = [call("search", q="x", say=UNKNOWN)] * 3
    story = [*lost, *steps(lambda n: f"out\nstep {n}")]
    assert left(story)[-4:] == ["out"] * 4


def test_a_user_turn_begins_anew():
    lines, story = StepLines(), steps(lambda n: f"out\nstep {n}", 6)
    assert [look(lines, step) for step in story][5] == ["out"]
    lines.human_message()
    assert [look(lines, step) for step in story][4:] == [["out\nstep 4"], ["out"]]


def test_nothing_is_looked_at_where_no_line_counts():
    lines = StepLines()
    look(lines, call("search", say="no number"))
    assert not lines.watching
    assert lines.to_state() is None


def test_it_gives_up_on_numbers_that_the_first_two_calls_said():
    lines, watched = StepLines(), []
    for n in range(2):
        look(lines, call("read_file", path=f"part {n}", say=f"part {n}\nof {9 - n}"))
        watched.append(len(lines.to_state()[4]))
    assert watched == [4, 1]


NUMBERED = st.sampled_from(
    ["step {n}", "{n} of {n}", "{m} left", "[{n}:07:1{m}] {n}", "a{n}b {m}", "0{n}", "{n}", "ok"]
)


@given(st.lists(NUMBERED, min_size=1, max_size=6), st.lists(NUMBERED, max_size=2), st.data())
def test_whether_it_is_stored_in_between_makes_no_difference(said, path, data):
    story = []
    for n in range(data.draw(st.integers(1, 3)), 9):
        tool = data.draw(st.sampled_from(TOOLS[:2]))
        texts = ["\n".join(form.format(n=n, m=9 - n) for form in forms) for forms in (said, path)]
        story.append(call(tool, path=f"{texts[1]} {'i' * n}", say=texts[0]))
    assert left(story) == left(story, reload=True)


def test_it_gives_up_on_lines_that_count_over_one_call_only():
    lines = StepLines()
    watched = [lines.watching]
    for n in range(13):
        look(lines, call("poll", job=1, say=f"{n} %"))
        watched.append(lines.watching)
    assert watched.count(True) == 12


def test_blocks_of_text_are_looked_at_too():
    def told(n):
        return [{"type": "text", "text": "out"}, {"type": "text", "text": f"step {n}"}]

    assert left(steps(told))[5:] == ["out"] * 4


def test_a_failure_stays_one():
    lines, story = StepLines(), steps(lambda n: f"out\nstep {n}", 7)
    for step in story[:6]:
        look(lines, step)
    batch = GUARD.check([{"name": "search", "args": {}, "id": "c0"}]).record
    answers = match_results(batch.ids, [{"id": "c0", "content": "no\nstep 6", "status": "error"}])
    (answer,) = lines.without(batch, answers)
    assert (answer.error, answer.text) == (True, b"no")


def test_the_state_holds_no_number_of_an_answer_and_is_small():
    lines = StepLines()
    for n in range(9):
        say = f"card 411111 {n}\n4222 {n}\nout\n4333 {n}\n44444 {n}"
        look(lines, call(TOOLS[n % 3], path=f"{'i' * n}", say=say))
        state = json.dumps(lines.to_state())
        assert len(state) < (512 if n == 0 else 250)
        assert not any(number in state for number in ("411111", "4222", "4333", "44444"))


def test_a_stored_line_with_other_numbers_than_the_one_that_comes_is_none():
    lines = StepLines()
    for n in range(6):
        look(lines, call(TOOLS[n % 3], path="i" * n, say=f"step {n}"))
    state = lines.to_state()
    ((moves, ahead),) = state[4]
    assert moves == [1]
    lines.load_state([*state[:4], [[[1, 0], ahead]]])
    assert look(lines, call("search", q="x", say="step 6")) == ["step 6"]


@pytest.mark.parametrize("count", range(1, 9))
def test_the_state_of_any_number_of_lines_is_read_again(count):
    lines, other = StepLines(), StepLines()
    look(lines, call("search", say="\n".join(f"{n} of {n}" for n in range(count))))
    state = lines.to_state()
    other.load_state(state)
    assert other.to_state() == state


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, None),
        (1, -1),
        (2, ["x"]),
        (3, [5]),
        (3, ["1", "2", "3"]),
        (4, 5),
        (4, [[[2], ""]]),
        (4, [[[1, 1, 1], ""]]),
        (4, [[[1]]]),
        (4, [[[1], 5]]),
    ],
)
def test_a_state_of_another_form_is_refused_and_changes_nothing(place, value):
    lines = StepLines()
    look(lines, call("search", say="step 1"))
    state = lines.to_state()
    other = [*state[:place], value, *state[place + 1 :]]
    with pytest.raises((ValueError, TypeError)):
        lines.load_state(other)
    assert lines.to_state() == state
