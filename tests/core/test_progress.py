"""Is it known whether a batch brought anything new?"""

import json

import pytest

from langchain_loopguard.core.answers import match_results
from langchain_loopguard.core.batch import Outcome
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.progress import News, Progress
from langchain_loopguard.core.rules import NothingNew
from tests.core.plays import UNKNOWN, call, parts

NOTHING, UNDECIDED, SOMETHING = News
GUARD = LoopGuard(LoopGuardPolicy(rules=(NothingNew(),), poll_tools=("job",)))


def judge(progress, step):
    """Judge what a step of a story brought."""
    given, results = parts(step)
    batch = GUARD.check(given).record
    answers = match_results(batch.ids, results)
    for place, answer in enumerate(answers):
        if answer is not None and answer.error:
            answer.mask_arguments(batch.names[place], batch.calls[place]["args"])
    outcome = Outcome(batch, answers)
    progress.judge(batch, outcome)
    return outcome


def last(*steps):
    progress = Progress()
    return [judge(progress, step) for step in steps][-1]


def text(word, lines=4):
    return "\n".join(f"{word} {'i' * n}" for n in range(lines))


READ = call("read_file", path="a", say=text("a"))
ONE = call("read_file", path="a", say="one")


def clocked(n, name="check_job", lines=4):
    return call(name, id=1, say=f"{text('state', lines)}\nsince 12:{n:02}:00")


# --- Of a first call ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "news", "worked", "changed"),
    [
        pytest.param(READ, SOMETHING, True, False, id="a look"),
        pytest.param(ONE, UNDECIDED, False, False, id="a look with one line"),
        pytest.param({**ONE, "say": ""}, UNDECIDED, False, False, id="an empty look"),
        pytest.param({**ONE, "say": UNKNOWN}, UNDECIDED, False, False, id="an unknown answer"),
        pytest.param(call("edit", say="ok"), SOMETHING, True, True, id="a change"),
        pytest.param(call("edit", say=""), SOMETHING, True, True, id="a silent change"),
        pytest.param(
            call("edit", say="no", fails=True), UNDECIDED, False, False, id="a change that fails"
        ),
        pytest.param(
            call("edit", say=text("no"), fails=True), SOMETHING, True, False, id="a long error"
        ),
        pytest.param(call(cmd="x", say=""), UNDECIDED, True, True, id="a silent command"),
        pytest.param(call(cmd="x", say="ok"), UNDECIDED, True, True, id="a command, one line"),
        pytest.param(call(cmd="x", say=text("x")), SOMETHING, True, False, id="a command's output"),
        pytest.param(call("job", say="pending"), SOMETHING, True, True, id="an unknown poller"),
        pytest.param([ONE, call("edit", say="ok")], SOMETHING, True, True, id="two calls"),
        pytest.param([ONE, {**ONE, "args": {"p": 2}}], UNDECIDED, False, False, id="two short"),
    ],
)
def test_what_a_first_call_brings(step, news, worked, changed):
    outcome = last(step)
    assert (outcome.news, outcome.worked, outcome.changed) == (news, worked, changed)


@pytest.mark.parametrize(
    ("step", "news", "worked"),
    [
        pytest.param({**READ, "args": {"path": "b"}}, NOTHING, False, id="a look, known lines"),
        pytest.param(call(cmd="x", say=text("a")), NOTHING, False, id="a command, known lines"),
        pytest.param(call(cmd="x", say="a iii"), UNDECIDED, True, id="a command, one known line"),
        pytest.param(call("edit", say=text("a")), SOMETHING, True, id="a change, known lines"),
        pytest.param(
            call("search", say=f"{text('a')}\nb"), SOMETHING, True, id="a look, one line is new"
        ),
        pytest.param(call("search", say="a iii"), UNDECIDED, False, id="a look, one known line"),
        pytest.param(
            call("edit", say="a iii", fails=True), NOTHING, False, id="an error of another call"
        ),
        pytest.param(
            call("edit", say="x iii", fails=True), UNDECIDED, False, id="a short error, new"
        ),
    ],
)
def test_what_a_first_call_brings_after_another(step, news, worked):
    outcome = last(READ, step)
    assert (outcome.news, outcome.worked) == (news, worked)


@pytest.mark.parametrize(
    ("before", "news"),
    [
        pytest.param(call("edit", say=text("a")), SOMETHING, id="after a change"),
        pytest.param([call("edit", say=text("a")), ONE], SOMETHING, id="beside another call"),
        pytest.param(call("edit", say=text("a"), fails=True), NOTHING, id="after one that failed"),
        pytest.param(call(cmd="x", say=text("a")), NOTHING, id="after a command"),
    ],
)
def test_what_a_change_answered_is_news_to_who_reads_it_back(before, news):
    assert last(before, READ).news is news


# --- Of a call that ran before ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "again", "news"),
    [
        pytest.param(READ, READ, NOTHING, id="the same answer"),
        pytest.param(ONE, ONE, NOTHING, id="the same line"),
        pytest.param({**ONE, "say": ""}, {**ONE, "say": ""}, NOTHING, id="empty again"),
        pytest.param(ONE, {**ONE, "say": "two"}, SOMETHING, id="another line"),
        pytest.param(READ, {**READ, "say": text("b")}, SOMETHING, id="another answer"),
        pytest.param(READ, {**READ, "say": text("a", 3)}, NOTHING, id="fewer lines"),
        pytest.param(ONE, {**ONE, "say": ""}, NOTHING, id="empty now"),
        pytest.param(READ, {**READ, "say": UNKNOWN}, NOTHING, id="unknown now"),
        pytest.param({**READ, "say": UNKNOWN}, READ, SOMETHING, id="known now"),
        pytest.param(ONE, {**ONE, "say": "10 %"}, SOMETHING, id="a number moves"),
        pytest.param(
            {**ONE, "say": "line 1", "fails": True},
            {**ONE, "say": "line 2", "fails": True},
            NOTHING,
            id="a number moves in an error",
        ),
        pytest.param(
            {**ONE, "say": "no", "fails": True},
            {**ONE, "say": "never", "fails": True},
            SOMETHING,
            id="another error",
        ),
        pytest.param(call("edit", say="ok"), call("edit", say="ok"), NOTHING, id="a change"),
        pytest.param(
            call("edit", say="ok"),
            call("edit", say="fine"),
            SOMETHING,
            id="a change, other receipt",
        ),
        pytest.param([READ, READ], [READ], NOTHING, id="twice in a batch, then once"),
    ],
)
def test_what_a_call_brings_that_ran_before(first, again, news):
    outcome = last(first, again)
    assert outcome.news == news
    assert outcome.worked is (news is SOMETHING)
    assert not outcome.changed


def test_a_second_copy_in_a_batch_ran_before():
    assert last(READ, [call("search", q=1, say=text("a")), READ]).news is NOTHING


def test_after_a_user_turn_all_is_new_again():
    progress = Progress()
    judge(progress, READ)
    progress.human_message()
    assert judge(progress, READ).news is SOMETHING


def test_it_is_known_which_batches_ran_before():
    progress = Progress()
    batch = GUARD.check([{"name": "read_file", "args": {"path": "a"}, "id": "1"}]).record
    assert not progress.ran_before(batch)
    judge(progress, READ)
    assert progress.ran_before(batch)
    both = [{"name": "read_file", "args": {"path": path}, "id": path} for path in "ab"]
    assert not progress.ran_before(GUARD.check(both).record)


# --- Clocks -------------------------------------------------------------------------------------


def test_the_second_time_that_a_clock_moves_is_no_news():
    # The first could be anything: what the answer was without its clock is not kept from the start.
    assert last(clocked(0), clocked(1)).news is SOMETHING
    outcome = last(clocked(0), clocked(1), clocked(2))
    assert (outcome.news, outcome.clock_only, outcome.worked) == (UNDECIDED, True, False)


def test_a_clock_in_the_answer_of_a_change_is_nothing():
    outcome = last(*(clocked(n, "update_job") for n in range(3)))
    assert (outcome.news, outcome.clock_only) == (NOTHING, False)


def test_more_than_a_clock_is_news():
    steps = [clocked(0), clocked(1), clocked(2)]
    assert last(*steps, {**clocked(3), "say": f"{clocked(3)['say']}\nnew"}).news is SOMETHING


def test_a_clock_in_a_long_answer_is_no_news():
    steps = [clocked(n, lines=100) for n in range(3)]
    assert last(*steps).news is UNDECIDED


def listed(n, *, extra=""):
    return call("search", q=n, say=f"{text('hit', 12)}\ntook 0.{n}s{extra}")


def test_a_clock_in_the_answer_of_a_first_call_is_no_news_from_the_third_on():
    steps = [listed(n) for n in range(3)]
    assert [last(*steps[:n]).news for n in (1, 2, 3)] == [SOMETHING, SOMETHING, NOTHING]


def test_more_than_a_clock_in_the_answer_of_a_first_call_is_news():
    assert last(*(listed(n) for n in range(3)), listed(3, extra="\nmore")).news is SOMETHING


def test_ever_new_answers_with_clocks_are_news():
    steps = [call("search", q=w, say=f"{text(w)}\ntook 1s\ntook 1s") for w in "abcdef"]
    assert last(*steps).news is SOMETHING


# --- Echoes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("say", "news"),
    [
        pytest.param(text("hm"), UNDECIDED, id="what the call said"),
        pytest.param(text("hm", 3), UNDECIDED, id="a part of it"),
        pytest.param(f"\n{text('hm')}\n", UNDECIDED, id="with space around it"),
        pytest.param(f"Noted:\n{text('hm')}", SOMETHING, id="with other words"),
        pytest.param([text("hm")], UNDECIDED, id="in a block"),
    ],
)
def test_an_answer_that_says_what_the_call_said_counts_neither_way(say, news):
    assert last(call("show", thought=text("hm"), n=1, say=say)).news is news


def test_arguments_that_are_no_mapping_echo_nothing():
    assert last({**call("show", say=text("hm")), "args": text("hm")}).news is SOMETHING


# --- Long answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [33, 100, 5000])
def test_a_long_answer_is_new_when_it_is_new_as_a_whole(lines):
    long = {**READ, "say": text("a", lines)}
    other = {**READ, "args": {"path": "b"}, "say": text("a", lines)[:-1]}
    assert last(long, other).news is SOMETHING
    assert last(long, other, other).news is NOTHING
    assert last(long, {**long, "args": {"path": "c"}}).news is NOTHING


def test_an_answer_of_32_lines_is_known_line_by_line():
    known = {**READ, "say": text("a", 32)}
    assert last(known, {**READ, "args": {"path": "b"}, "say": text("a", 31)}).news is NOTHING


def test_one_line_of_9000_letters_is_long():
    long = {**READ, "say": "a" * 9000}
    assert last(long).news is SOMETHING
    assert last({**READ, "say": "a" * 8000}).news is UNDECIDED


# --- Frames -------------------------------------------------------------------------------------


def framed(n, body=""):
    return call(cmd=n, say=f"Ran it.\n{body}\ncwd: /repo\nexit code 0")


def test_a_line_in_a_frame_is_a_short_answer():
    steps = [framed(1, text("a")), framed(2, text("b")), framed(3, "ok")]
    assert last(*steps).news is UNDECIDED


def test_silence_in_a_frame_is_a_short_answer():
    outcome = last(framed(1, text("a")), framed(2))
    assert (outcome.news, outcome.worked, outcome.changed) == (UNDECIDED, True, True)


def test_before_two_answers_differ_there_is_no_frame():
    assert last(framed(1), framed(2), framed(3)).news is NOTHING


def test_the_same_lines_in_another_order_make_no_frame():
    lines = [f"[doc {n}] a passage" for n in range(4)]
    ranked = [call(cmd=n, say="\n".join(lines[n:] + lines[:n])) for n in range(4)]
    assert last(*ranked).news is NOTHING


def test_lines_that_an_answer_lacks_leave_the_frame():
    bare = call(cmd=9, say=text("c"))
    assert last(framed(1, text("a")), bare, framed(2), framed(3)).news is NOTHING


def test_a_tool_without_any_common_line_has_no_frame():
    steps = [call(cmd=word, say=text(word)) for word in "abc"]
    assert last(*steps).news is SOMETHING
    assert last(*steps, call(cmd="d", say=text("a"))).news is NOTHING


def test_a_frame_is_the_tools_own_and_outlives_a_user_turn():
    progress = Progress()
    judge(progress, framed(1, text("a")))
    judge(progress, framed(2, text("b")))
    progress.human_message()
    assert judge(progress, framed(3)).news is UNDECIDED
    other = {**framed(3), "name": "search"}
    assert judge(progress, other).news is NOTHING


# --- Size ---------------------------------------------------------------------------------------


def test_a_call_is_remembered_while_272_others_come_and_forgotten_after_544():
    # Of a call with an unknown answer nothing but the call is kept.
    for others, remembered in ((272, True), (545, True), (546, False)):
        progress = Progress()
        first = call("search", q="x", say=UNKNOWN)
        judge(progress, first)
        for n in range(others):
            judge(progress, call("search", q=n, say=UNKNOWN))
        batch = GUARD.check([{"name": "search", "args": {"q": "x"}, "id": "1"}]).record
        assert progress.ran_before(batch) is remembered, others


def test_a_stored_memory_says_the_same():
    steps = [READ, ONE, clocked(0), framed(1, text("a")), clocked(1), framed(2), READ, clocked(2)]
    straight, stored = Progress(), Progress()
    for step in steps * 3:
        state = json.loads(json.dumps(stored.to_state()))
        stored = Progress()
        stored.load_state(state)
        one, other = judge(straight, step), judge(stored, step)
        assert (one.news, one.worked, one.changed, one.clock_only) == (
            other.news,
            other.worked,
            other.changed,
            other.clock_only,
        )
