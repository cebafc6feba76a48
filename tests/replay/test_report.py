"""Does the page hold what it should, and nothing that it must not?"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re

import pytest
from typer.testing import CliRunner

from langchain_loopguard.cli.app import app
from langchain_loopguard.replay.conversation import Problem
from langchain_loopguard.replay.report import Page, draw_run
from tests.replay.made_runs import batch, mixture, repeating, run, working

SECRET = "sk-ant-abcdefghijklmnopqrstuvwxyz"
SCRIPT = "</script><script>window.hurt = 1</script><img src=x onerror=window.hurt=1>"


def page_of(runs, *, content=False, **options):
    page = Page(policy="default", content=content, **options)
    for one in runs:
        page.add(draw_run(one, content=content))
    return page


def data_of(html):
    """Read the JSON as a browser would: up to the first end of a script."""
    start = html.index('id="data">') + len('id="data">')
    return json.loads(html[start : html.index("</script", start)])


# --- One run ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("second", "letters"),
    [
        pytest.param(("look", "a", "one"), "ne", id="equal"),
        pytest.param(("look", "a", "two"), "nn", id="other-answer"),
        pytest.param(("look", "b", "one"), "nn", id="other-call"),
        pytest.param(("look", "a", "one", "error"), "ny", id="equal-and-failed"),
        pytest.param(("look", "a", "two", "error"), "nx", id="failed"),
        pytest.param(("look", "a"), "nm", id="missing"),
    ],
)
def test_an_answer_is_told_as_equal_new_failed_or_missing(second, letters):
    drawn = draw_run(run(batch(("look", "a", "one")), batch(second, number=1)))
    assert drawn["r"] == letters


def test_equal_calls_have_one_number_and_others_another():
    made = [batch((tool, "a", "x"), number=at) for at, tool in enumerate(["p", "q", "p"])]
    drawn = draw_run(run(*made))
    assert (drawn["c"], drawn["g"]) == ([0, 1, 0], ["p", "q"])


def test_a_batch_of_one_call_needs_no_size():
    assert "z" not in draw_run(working(3))


def test_sizes_of_batches_are_kept():
    drawn = draw_run(run(batch(("p", "a", "x"), ("q", "b", "y")), batch(("p", "c", "z"), number=1)))
    assert drawn["z"] == [2, 1]


def test_a_user_turn_is_marked_before_the_batch_that_follows_it():
    drawn = draw_run(run("one", batch(("p", "a", "x")), "two", batch(("p", "b", "y"), number=1)))
    assert drawn["t"] == [1]


def test_a_refused_batch_is_told_as_refused():
    drawn = draw_run(run(batch(("p", "a", "held back"), refused=True)))
    assert drawn["r"] == "r"


def test_the_actions_of_the_batches_are_the_guards():
    assert draw_run(repeating(6))["m"] == "000122"


def test_a_loop_has_one_finding_for_all_its_batches():
    asked = [found for found in draw_run(repeating(7))["f"] if found[:2] == ["repeat", 2]]
    assert [found[:5] for found in asked] == [["repeat", 2, 5, 7, 3]]


def test_the_batch_that_was_held_back_says_what_is_saved():
    drawn = draw_run(repeating(9))
    assert (drawn["h"], drawn["d"]) == ([6, 6, 1], 4)


def test_a_run_without_calls_is_drawn():
    drawn = draw_run(run("hello"))
    assert (drawn["n"], drawn["c"], drawn["m"]) == (0, [], "")


def test_a_label_is_shown():
    assert draw_run(run("hello", label="benign"))["l"] == "benign"


# --- What is hidden -----------------------------------------------------------------------------


def test_arguments_and_answers_are_not_in_the_page():
    html = page_of([run(batch(("look", "my argument", "my answer")))]).render()
    assert "my argument" not in html
    assert "my answer" not in html


def test_arguments_and_answers_are_in_the_page_when_asked_for():
    one = run(batch(("look", "my argument", "my answer")))
    drawn = data_of(page_of([one], content=True).render())["runs"][0]
    assert (drawn["p"], drawn["y"], drawn["q"]) == (
        ['{"value": "my argument"}'],
        ["my answer"],
        [0],
    )


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(run(batch(("look", f"key {SECRET}", "x"))), id="argument"),
        pytest.param(run(batch(("look", "a", f"the key is {SECRET}"))), id="answer"),
        pytest.param(run(batch(("look", "a", [{"type": "text", "text": SECRET}]))), id="blocks"),
        pytest.param(run(batch((f"look {SECRET}", "a", "x"))), id="tool"),
        pytest.param(run(batch(("look", "a", "x")), name=f"run {SECRET}"), id="id"),
        pytest.param(run(batch(("look", "a", "x")), source=f"from {SECRET}"), id="source"),
        pytest.param(run(batch(("look", "a", "x" * 1990 + " " + SECRET))), id="cut-in-two"),
    ],
)
def test_a_secret_is_masked_even_with_content(one):
    assert "sk-ant-abc" not in page_of([one], content=True).render()


def test_a_secret_in_the_tool_of_a_finding_is_masked():
    assert "sk-ant-abc" not in page_of([repeating(9, tool=f"look {SECRET}")]).render()


def test_long_content_is_cut():
    drawn = draw_run(run(batch(("look", "a", "y" * 50_000))), content=True)
    assert len(drawn["y"][0]) == 2_000


def test_arguments_that_are_no_json_are_shown():
    made = batch(("look", "a", "x"))
    made["calls"][0]["args"] = {1, 2}
    assert draw_run(run(made), content=True)["p"] == ['"{1, 2}"']


# --- Hostile text -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SCRIPT, id="script"),
        pytest.param("<!--<script>", id="comment"),
        pytest.param("]]>&lt;&amp;", id="entities"),
        pytest.param("{{script}}{{data}}", id="placeholder"),
    ],
)
def test_text_of_a_run_comes_back_as_it_was(text):
    html = page_of([run(batch((text, "a", "x")), name=text, source=text)]).render()
    data = data_of(html.encode().decode())
    assert (data["runs"][0]["i"], data["tools"], data["sources"]) == (text, [text], [text])


def test_half_a_character_is_written():
    html = page_of([run(batch(("p", "a", "x")), name="\ud800")]).render()
    assert data_of(html.encode().decode())["runs"][0]["i"] == "<U+D800>"


def test_text_of_a_run_does_not_change_the_markup():
    def scripts(name):
        html = page_of([run(batch((name, "a", "x")), name=name, source=name)]).render()
        return len(re.findall("<script|<img|<!--", html))

    assert scripts(SCRIPT + "<!--") == scripts("plain")


# --- The page -----------------------------------------------------------------------------------


def test_the_page_refers_to_nothing_outside():
    html = page_of(mixture(5)).render()
    assert not re.findall(r"https?:|//[a-z]|@import|url\(|src=|import\(", html)


def test_only_the_pages_own_style_and_script_are_allowed():
    html = page_of([]).render()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)[1]
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        own = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(own[0].encode()).digest()).decode()
        assert len(own) == 1
        assert f"{rule} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_the_counts_are_of_all_runs():
    data = data_of(page_of([working(2), repeating(4), repeating(9)]).render())
    assert data["all"] == [3, 15, [1, 1, 1, 0], 4]


def test_a_row_says_why():
    assert draw_run(repeating(9))["v"] == "repeat: search, 5 times"


def test_characters_that_turn_text_round_are_shown_as_such():
    assert draw_run(run("hello", name="a\u202eb"))["i"] == "a<U+202E>b"


def test_runs_of_one_name_are_told_apart_by_their_places():
    runs = [dataclasses.replace(working(2), place=f"line {at}") for at in (1, 2)]
    names = [one["i"] for one in data_of(page_of(runs).render())["runs"]]
    assert names == ["good, line 1", "good, line 2"]


def test_runs_are_counted_by_outcome():
    runs = [working(2), repeating(9, outcome="success"), repeating(9, outcome="fail")]
    outcomes = data_of(page_of(runs).render())["outcomes"]
    assert outcomes == [["success", 2, 11, [1, 0, 1, 0], 4], ["fail", 1, 9, [0, 0, 1, 0], 4]]


def test_a_page_keeps_the_runs_with_the_most_to_tell():
    runs = [working(2, name="quiet"), repeating(9, name="nine"), repeating(30, name="thirty")]
    data = data_of(page_of(runs, most=2).render())
    assert ([one["i"] for one in data["runs"]], data["all"][0]) == (["nine", "thirty"], 3)


def test_a_full_page_keeps_the_first_of_equal_runs():
    runs = [working(2, name=f"run-{at}") for at in range(5)]
    assert [one["i"] for one in data_of(page_of(runs, most=2).render())["runs"]] == [
        "run-0",
        "run-1",
    ]


def test_inputs_that_were_not_read_are_named():
    page = page_of([])
    page.problems.add(Problem("a.jsonl", "not JSON", 3))
    page.problems.add(Problem("b.png", "an image", ignored=True))
    data = data_of(page.render())
    assert (data["problems"], data["ignored"]) == (
        ["a.jsonl, line 3: not JSON"],
        ["b.png: an image"],
    )


def test_the_page_of_no_runs_is_a_page():
    assert data_of(page_of([]).render())["runs"] == []


def test_the_summary_stands_where_scripts_do_not_run():
    html = page_of([working(2), repeating(9)]).render()
    noscript = re.search("<noscript>(.*?)</noscript>", html, re.DOTALL)[1]
    assert "2 runs with 11 calls: 1 quiet, 0 warned, 1 asked" in noscript


def test_the_summary_counts_one_as_one():
    assert page_of([working(1)]).summary().startswith("1 run with 1 call: 1 quiet")


# --- The command --------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path):
    """Run `loopguard report` on these lines; the page goes to `page.html`."""

    def called(lines, *words, out="page.html"):
        (tmp_path / "runs.jsonl").write_text("\n".join(lines))
        words = ["report", str(tmp_path / "runs.jsonl"), "-o", str(tmp_path / out), *words]
        return CliRunner().invoke(app, [*words, "--jobs", "1"])

    return called


def line(one):
    return json.dumps(one.to_dict())


def test_the_command_writes_the_page(command, tmp_path):
    ended = command([line(working(2)), line(repeating(9))])
    assert (ended.exit_code, ended.output.count("2 runs with 11 calls")) == (0, 1)
    assert data_of((tmp_path / "page.html").read_text())["all"][0] == 2


def test_the_command_hides_content_unless_it_is_asked_for(command, tmp_path):
    command([line(repeating(2))])
    hidden = (tmp_path / "page.html").read_text()
    command([line(repeating(2))], "--show-content", "--force")
    shown = (tmp_path / "page.html").read_text()
    assert ("nothing found" in hidden, "nothing found" in shown) == (False, True)


def test_the_page_names_the_policy(command, tmp_path):
    command([line(repeating(2))], "--policy", "seed")
    assert data_of((tmp_path / "page.html").read_text())["policy"] == "seed"


def test_the_page_names_a_policy_file_without_its_folder(command, tmp_path):
    (tmp_path / "mine.json").write_text("{}")
    command([line(repeating(2))], "--policy", str(tmp_path / "mine.json"))
    assert data_of((tmp_path / "page.html").read_text())["policy"] == "mine.json"


def test_the_number_of_runs_in_the_page_can_be_limited(command, tmp_path):
    command([line(working(2)), line(repeating(9))], "--max-runs", "1")
    assert len(data_of((tmp_path / "page.html").read_text())["runs"]) == 1


def test_unattended_a_refused_run_comes_to_a_stop(command, tmp_path):
    command([line(repeating(20))], "--unattended")
    assert data_of((tmp_path / "page.html").read_text())["all"][2] == [0, 0, 0, 1]


def test_a_bad_line_is_told_and_the_rest_is_in_the_page(command, tmp_path):
    ended = command([line(working(2)), "{broken"])
    assert (ended.exit_code, "line 2" in ended.output) == (2, True)
    data = data_of((tmp_path / "page.html").read_text())
    assert (data["all"][0], len(data["problems"])) == (1, 1)


def test_without_a_run_no_page_is_written(command, tmp_path):
    ended = command(["{broken"])
    assert (ended.exit_code, (tmp_path / "page.html").exists()) == (2, False)


def test_a_page_that_cannot_be_written_is_told(command):
    ended = command([line(working(2))], out="no such folder/page.html")
    assert ended.exit_code == 2
    assert "no such place" in ended.output


def test_a_page_that_is_there_is_replaced_and_keeps_its_rights(command, tmp_path):
    (tmp_path / "page.html").write_text("old")
    (tmp_path / "page.html").chmod(0o640)
    command([line(working(2))], "--force")
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o640
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
