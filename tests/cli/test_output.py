"""Do the commands that write a file leave alone what is none of theirs?"""

from __future__ import annotations

import json
import os
import stat

import pytest
from typer.testing import CliRunner

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.cli.app import app
from tests.replay.made_runs import working

WRITERS = pytest.mark.parametrize("name", ["report", "calibrate"])


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.jsonl"
    told = [{**working(4, name=f"run-{at}").to_dict(), "outcome": "success"} for at in range(2)]
    path.write_text("".join(json.dumps(one) + "\n" for one in told))
    return path


def command(*words):
    done = CliRunner().invoke(app, [*map(str, words), "--jobs", "1"])
    return done.exit_code, " ".join(done.output.replace("│", "").split())


def write(name, runs, output, *words):
    loose = ["--max-false-ask", "0.9"] if name == "calibrate" else []
    return command(name, runs, "-o", output, *loose, *words)


# --- What is read is never written over -----------------------------------------------------------


@WRITERS
def test_an_input_is_not_written_over_even_by_force(name, runs):
    before = runs.read_bytes()
    code, output = write(name, runs, runs, "--force")
    assert (code, "one of the files that are read" in output) == (2, True)
    assert runs.read_bytes() == before


@WRITERS
def test_a_policy_is_not_written_over_even_by_force(name, runs, tmp_path):
    policy = tmp_path / "policy.json"
    policy.write_text(LoopGuardPolicy().model_dump_json())
    before = policy.read_bytes()
    code, output = write(name, runs, policy, "--force", "--policy", policy)
    assert (code, "one of the files that are read" in output) == (2, True)
    assert policy.read_bytes() == before


@WRITERS
def test_a_file_that_is_called_like_a_policy_is_no_input(name, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "default").write_text("old")
    code, output = write(name, runs, "default", "--force", "--policy", "default")
    assert "one of the files that are read" not in output
    assert (code, (tmp_path / "default").read_text() == "old") == (0, False)


@pytest.mark.parametrize("given", ["directory", "pattern", "link", "hard link"])
def test_an_input_is_known_however_it_is_named(given, runs, tmp_path):
    before = runs.read_bytes()
    (tmp_path / "link.html").symlink_to(runs)
    (tmp_path / "hard.html").hardlink_to(runs)
    read = {"directory": tmp_path, "pattern": tmp_path / "*.jsonl"}.get(given, runs)
    out = {"link": tmp_path / "link.html", "hard link": tmp_path / "hard.html"}.get(given, runs)
    code, output = write("report", read, out, "--force")
    assert (code, "one of the files that are read" in output) == (2, True)
    assert runs.read_bytes() == before


def test_the_labels_are_not_written_over(runs, tmp_path):
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"id": "run-0", "label": "benign"}\n')
    code, _ = write("calibrate", runs, labels, "--force", "--label", labels)
    assert (code, "benign" in labels.read_text()) == (2, True)


# --- What exists ----------------------------------------------------------------------------------


@WRITERS
def test_a_file_that_exists_is_left_alone_without_force(name, runs, tmp_path):
    out = tmp_path / "out"
    out.write_text("mine")
    code, output = write(name, runs, out)
    assert (code, "--force replaces it" in output, out.read_text()) == (2, True, "mine")


@WRITERS
def test_force_replaces_a_file_that_exists(name, runs, tmp_path):
    out = tmp_path / "out"
    out.write_text("mine")
    assert write(name, runs, out, "--force")[0] == 0
    assert out.read_text() != "mine"


@WRITERS
def test_a_symbolic_link_stays_one_and_its_file_is_written(name, runs, tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    assert write(name, runs, link, "--force")[0] == 0
    assert (link.is_symlink(), target.read_text() == "old") == (True, False)


def test_a_symbolic_link_to_no_file_yet_makes_the_file(runs, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "new.html")
    assert write("report", runs, tmp_path / "link")[0] == 0
    assert (tmp_path / "new.html").is_file()
    assert (tmp_path / "link").is_symlink()


def test_a_symbolic_link_to_itself_is_refused(runs, tmp_path):
    (tmp_path / "link").symlink_to("link")
    assert write("report", runs, tmp_path / "link", "--force")[0] == 2
    assert (tmp_path / "link").is_symlink()


@WRITERS
def test_a_pipe_stays_a_pipe(name, runs, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code, output = write(name, runs, pipe, "--force")
    assert (code, "no regular file" in output) == (2, True)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


# --- Before the work ------------------------------------------------------------------------------


@WRITERS
@pytest.mark.parametrize("out", ["/proc/page.html", "x" * 300], ids=["no writing", "a long name"])
def test_a_place_that_takes_no_file_is_told_before_the_work(name, out, runs, tmp_path):
    runs.write_text("garbage\n")
    code, output = write(name, runs, tmp_path / out)
    assert (code, "cannot be written" in output, "not JSON" in output) == (2, True, False)
