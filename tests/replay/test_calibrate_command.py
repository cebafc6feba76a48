"""Does `loopguard calibrate` read labels, write the policy, and say what it could not show?"""

from __future__ import annotations

import importlib.util
import json
import math
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from langchain_loopguard import LoopGuardCallbackHandler, LoopGuardNode, LoopGuardPolicy
from langchain_loopguard.cli.app import app
from langchain_loopguard.replay.calibrate import upper_bound
from langchain_loopguard.replay.labels import LabelError, read_labels
from tests.replay.made_runs import good, patient, repeating

# --- Labels -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"id": "a", "label": "loop"}\n\n{"id": 7, "label": "benign"}\n', id="json"),
        pytest.param("id,label\na,loop\n7,benign\n", id="csv"),
        pytest.param("\ufeffLabel, Id\r\nloop,a\r\nbenign, 7\r\n", id="csv-of-a-spreadsheet"),
    ],
)
def test_labels_are_read(tmp_path, text):
    (tmp_path / "labels").write_bytes(text.encode())
    assert read_labels(tmp_path / "labels") == {(None, "a"): "loop", (None, "7"): "benign"}


def test_a_label_may_name_the_source(tmp_path):
    (tmp_path / "labels").write_text("source,id,label\nhere,a,loop\n,b,loop\n")
    assert set(read_labels(tmp_path / "labels")) == {("here", "a"), (None, "b")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param('{"id": "a", "label": "bad"}', "line 1: the label must be one of", id="label"),
        pytest.param('{"id": "a", "label": "loop"}\n{"label": "loop"}', "line 2: needs an id"),
        pytest.param('{"id": true, "label": "loop"}', "line 1: needs an id", id="bool"),
        pytest.param('{"id": "a"', "line 1: not JSON", id="json"),
        pytest.param('{"id": "a", "label": "loop"}\n[1]', "line 2: must be an object", id="list"),
        pytest.param("a,loop\n", "line 1: the header must name", id="header"),
        pytest.param("", "line 1: the header must name", id="empty"),
        pytest.param("id,label\na\n", "line 2: the label must be one of", id="short"),
        pytest.param("id,label\na," + "x" * 200_000, "not CSV", id="long"),
    ],
)
def test_a_wrong_label_is_told_with_its_line(tmp_path, text, said):
    (tmp_path / "labels").write_text(text)
    with pytest.raises(LabelError, match=re.escape(said)):
        read_labels(tmp_path / "labels")


def test_a_binary_file_holds_no_labels(tmp_path):
    (tmp_path / "labels").write_bytes(b"\xff\x00")
    with pytest.raises(LabelError, match="not a text"):
        read_labels(tmp_path / "labels")


# --- The command --------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path):
    """Write runs to a file, one a line."""

    def write(runs, name="runs.jsonl"):
        file = tmp_path / name
        file.write_text("".join(json.dumps(one.to_dict()) + "\n" for one in runs))
        return str(file)

    return write


@pytest.fixture
def command(tmp_path):
    """Run `loopguard calibrate`; the policy goes to `policy.json`."""

    def called(*words):
        out = str(tmp_path / "policy.json")
        return CliRunner().invoke(app, ["calibrate", *words, "-o", out, "--jobs", "1"])

    return called


def flat(text):
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


def test_the_policy_is_written_and_read_by_every_adapter(command, written, tmp_path):
    runs = written([*good(59), repeating(4, label="loop")])
    assert command(runs, "--max-false-ask", "0.05").exit_code == 0
    policy = LoopGuardPolicy.from_file(tmp_path / "policy.json")
    assert policy.rules[0].ask == 4
    assert LoopGuardCallbackHandler(policy=policy).policy == policy
    assert LoopGuardNode(policy=policy).policy == policy


def test_the_trade_off_is_printed(command, written):
    ended = command(written([*good(80), *patient(10)]), "--max-false-ask", "0.05")
    rows = [line.split() for line in ended.output.splitlines() if "->" in line]
    # The proposal, and the first rung that does not hold: 10 of 90 good runs.
    holds = ["cycle", "12", "->", "9", "0", "3.28", "%", "yes"]
    fails = ["repeat", "8/18/30", "->", "6/15/25", "10", bound(10, 90), "%", "no"]
    assert [row for row in (holds, fails) if row not in [found[:8] for found in rows]] == []


def bound(asked, runs):
    return f"{math.ceil(upper_bound(asked, runs) * 10_000) / 100:.4g}"


def test_too_few_runs_are_told_with_the_number_that_is_needed(command, written, tmp_path):
    ended = command(written(good(100)))
    assert ended.exit_code == 1
    assert "Too few good runs: 100" in ended.output
    assert "299 are needed" in flat(ended.output)
    assert "3 % at best: --max-false-ask 0.03" in flat(ended.output)
    assert not (tmp_path / "policy.json").exists()


def test_the_share_that_is_named_as_possible_is_possible(command, written):
    runs = written(good(100))
    assert command(runs, "--max-false-ask", "0.03").exit_code == 0


def test_without_good_runs_it_says_what_a_good_run_is(command, written):
    ended = command(written([repeating(9)]))
    assert ended.exit_code == 1
    assert "There is no good run" in ended.output


def test_when_nothing_is_loose_enough_it_says_so(command, written):
    runs = written([*good(60), *patient(20, times=20)])
    ended = command(runs, "--max-false-ask", "0.05")
    assert ended.exit_code == 1
    assert "20 of 80 are interrupted" in flat(ended.output)


def test_labels_are_taken_from_a_file(command, written, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\nloop,loop\nnobody,benign\n")
    runs = written([*good(59), repeating(4)])
    ended = command(runs, "--label", str(labels), "--max-false-ask", "0.05")
    assert "59 good, 1 labelled as loops, 0 others" in flat(ended.output)
    assert "1 of the labels name no run" in flat(ended.output)


def test_json_is_printed(command, written):
    ended = command(written(good(59)), "--max-false-ask", "0.05", "--json")
    result = json.loads(ended.output)
    assert (result["good"], result["rows"][result["chosen"]]["asked"]) == (59, 0)


def test_a_policy_file_is_not_replaced_unasked(command, written, tmp_path):
    (tmp_path / "policy.json").write_text("mine")
    ended = command(written(good(59)), "--max-false-ask", "0.05")
    assert (ended.exit_code, (tmp_path / "policy.json").read_text()) == (2, "mine")
    assert command(written(good(59)), "--max-false-ask", "0.05", "--force").exit_code == 0


def test_bad_input_is_told_and_the_rest_is_used(command, written, tmp_path):
    file = Path(written(good(59)))
    file.write_text(file.read_text() + "{broken\n")
    ended = command(str(file), "--max-false-ask", "0.05")
    assert ended.exit_code == 2
    assert "line 60" in ended.output
    assert (tmp_path / "policy.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["--max-false-ask", "0"], "must be above 0 and below 1", id="share"),
        pytest.param(["--confidence", "1"], "must be above 0 and below 1", id="confidence"),
        pytest.param(["--policy", "seed"], "no rule that can be tuned", id="policy"),
        pytest.param(["--policy", "nobody"], "neither a file nor", id="name"),
        pytest.param(["--label", "/no/such/file"], "No such file", id="labels"),
    ],
)
def test_a_wrong_option_is_told(command, written, words, said):
    ended = command(written(good(1)), *words)
    assert ended.exit_code == 2
    assert said in flat(ended.output)


def test_without_scipy_the_extra_is_named(command, written, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "scipy" else found(name, *a)
    )
    ended = command(written(good(1)))
    assert (ended.exit_code, "langchain-loopguard[calibrate]" in ended.output) == (2, True)
