"""Do `loopguard replay` and `loopguard compare` print and end as they should?"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.cli.app import app
from tests.conversations import DATA
from tests.replay.made_runs import batch, repeating, run, working
from tests.terminal import Terminal

SECRET = "sk-" + "ant-" + "Ab1" * 12


@pytest.fixture
def write(tmp_path):
    def written(*runs, name="runs.jsonl", extra=""):
        path = tmp_path / name
        path.write_text("".join(json.dumps(one.to_dict()) + "\n" for one in runs) + extra)
        return str(path)

    return written


def command(*args, **options):
    return CliRunner().invoke(app, list(args), **options)


def words(text):
    """A line's words, whatever the spaces between them."""
    return text.split()


# --- Exit codes ----------------------------------------------------------------------------------


def test_runs_without_a_loop_end_with_0(write):
    assert command("replay", write(working(20))).exit_code == 0


def test_a_loop_ends_with_1(write):
    assert command("replay", write(working(20), repeating(9))).exit_code == 1


def test_bad_input_ends_with_2_and_the_rest_is_read(write):
    done = command("replay", write(repeating(9), extra="garbage\n"))
    assert done.exit_code == 2
    assert "runs.jsonl, line 2: not JSON" in done.output
    assert "made · loop" in done.output


def test_an_input_without_runs_ends_with_2(tmp_path):
    (tmp_path / "package.json").write_text('{"name": "x"}')
    done = command("replay", str(tmp_path))
    assert done.exit_code == 2
    assert "No run was found." in done.output


@pytest.mark.parametrize(
    ("args", "text"),
    [
        pytest.param(["--policy", "nope"], "neither a file nor a policy's name", id="policy"),
        pytest.param(["--jobs", "0"], "--jobs", id="jobs"),
    ],
)
def test_a_wrong_option_is_a_usage_error(args, text, write):
    done = command("replay", write(working(3)), *args)
    assert done.exit_code == 2
    assert text in " ".join(words(done.output.replace("│", "")))


def flat(text):
    return " ".join(words(text.replace("│", "")))


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        pytest.param("", "'': neither a file nor a policy's name", id="no name"),
        pytest.param("/", "--policy: /: Is a directory", id="a directory"),
        pytest.param("x" * 300, ": File name too long", id="a name that is too long"),
    ],
)
def test_a_policy_that_cannot_be_read_is_told_with_the_option(policy, text, write):
    done = command("replay", write(working(3)), "--policy", policy)
    assert (done.exit_code, "--policy" in done.output) == (2, True)
    assert text in flat(done.output)
    assert "Errno" not in done.output


def test_a_policy_without_rules_is_told_to_find_nothing(write):
    done = command("replay", write(repeating(9)), "--policy", "codex")
    assert "the policy codex has no rules" in done.stderr
    assert "no rules" not in command("replay", write(repeating(9))).stderr


def test_threads_are_not_looked_for_in_a_file_that_has_none(write):
    done = command("replay", write(repeating(9)), "--thread", "1")
    assert (done.exit_code, "no checkpointer" in flat(done.output)) == (2, True)


# --- What is printed -----------------------------------------------------------------------------


def test_the_table_tells_where_it_warns_and_asks(write):
    output = command("replay", write(repeating(9))).output
    assert "made · loop outcome unknown 9 4 5 - 4 repeat: search, 5 times" in " ".join(
        words(output)
    )


def test_calls_and_batches_are_told_apart(write):
    pair = [batch(("f", 1, "a"), ("g", 1, "a"), number=at) for at in range(8)]
    assert "9 (step 5)" in command("replay", write(run("go", *pair))).output


def test_the_totals_are_split_by_outcome(write):
    output = command("replay", write(repeating(9, outcome="fail"), working(20))).output
    lines = [words(line) for line in output.splitlines()]
    assert ["all", "2", "29", "1", "1", "0", "4", "(13.8%)"] in lines
    assert ["solved", "1", "20", "0", "0", "0", "0", "(0.0%)"] in lines


def test_the_runs_with_the_most_calls_saved_are_listed(write):
    path = write(*[repeating(9 + at, name=f"loop-{at}") for at in range(5)])
    output = command("replay", path, "--top", "2").output
    assert re.findall(r"loop-\d", output) == ["loop-4", "loop-3"]
    assert "and 3 more" in output


def test_json_is_one_object_with_every_run(write):
    done = command("replay", write(repeating(9), working(4), extra="x\n"), "--json")
    told = json.loads(done.output)
    assert [one["id"] for one in told["runs"]] == ["loop", "good"]
    assert told["runs"][0]["ask"] == {
        "step": 5, "call": 5, "before": False, "steps_after": 4, "calls_after": 4,
        "tokens_after": 0, "seconds_after": 0.0,
    }  # fmt: skip
    assert told["summary"]["runs"] == 2
    assert [one["at"] for one in told["problems"]] == [3]


def test_another_policy_is_used(write):
    path = write(repeating(4))
    assert command("replay", path).exit_code == 0
    assert command("replay", path, "--policy", "pr_32089").exit_code == 1


def test_a_policy_file_is_used(write, tmp_path):
    LoopGuardPolicy.preset("pr_32089").to_file(tmp_path / "mine.json")
    assert command("replay", write(repeating(4)), "--policy", str(tmp_path / "mine.json")).exit_code


def test_unattended_tells_where_the_run_would_have_ended(write):
    told = json.loads(command("replay", write(repeating(30)), "--unattended", "--json").output)
    assert told["runs"][0]["stop"]["step"] == 9


def test_content_is_hidden(write):
    loop = [batch(("search", "my-argument", "my-answer"), number=at) for at in range(9)]
    path = write(run("go", *loop))
    output = command("replay", path).output + command("replay", path, "--json").output
    assert "my-" not in output


def test_content_is_shown_when_asked_for_and_secrets_are_masked(write):
    answer = f"my-answer {SECRET}"
    loop = [batch(("search", f"my-argument {SECRET}", answer), number=at) for at in range(9)]
    path = write(run("go", *loop))
    for args in ([], ["--json"]):
        output = command("replay", path, "--show-content", *args).output
        assert "my-argument" in output
        assert "my-answer" in output
        assert SECRET not in output


def test_what_a_file_says_cannot_steer_the_terminal(write):
    loop = [batch(("\x1b[31m[bold]tool", 1, "a"), number=at) for at in range(9)]
    told = run("go", *loop, name="\x1b]0;title\x07[red]id")
    output = command("replay", write(told)).output
    assert "\x1b" not in output
    assert "[red]id" in output


def test_a_long_list_of_problems_is_cut(write):
    output = command("replay", write(working(3), extra="garbage\n" * 100)).output
    assert "100 parts of the input could not be read" in output
    assert "line 2: not JSON" in output
    assert "(and 99 more like it)" in output


# --- Compare -------------------------------------------------------------------------------------

INCIDENT = [
    "opencode #32089 - 8 - 193 - / 7 / -",
    "opencode #47797 - 40 - 161 - / 39 / -",
    "only opencode signal A 8 22 - 176 7 / 21 / -",
    "only opencode signal B 8 13 17 187 7 / 12 / 16",
    "crewAI - - 20 180 - / - / 19",
    "hermes-agent 40 - 46 154 39 / - / 45",
    "gemini-cli 46 - 47 154 45 / - / 46",
    "OpenClaw 47 - - 0 46 / - / -",
    *(
        f"{name} never - - 0 -"
        for name in (
            "gglib", "kimi-code", "Cline", "Roo Code", "takt", "AutoGPT", "opencode v1",
        )
    ),
    "Claude Code no detector - - 0 -",
]  # fmt: skip


@pytest.fixture(scope="module")
def incident_lines():
    done = command("compare", "--incident")
    assert done.exit_code == 0
    return [" ".join(words(line)) for line in done.output.splitlines()]


@pytest.mark.parametrize("line", INCIDENT)
def test_comparing_on_the_incident_prints_the_known_numbers(line, incident_lines):
    assert [one for one in incident_lines if f"{one} ".startswith(f"{line} ")]


def test_comparing_shows_which_version_of_each_system_is_re_told(incident_lines):
    [row] = [line for line in incident_lines if line.startswith("crewAI ")]
    assert row.endswith("crewai@1.15.30, read 2026-11-30")


def test_comparing_several_runs_counts_for_each_system(write):
    output = command("compare", write(repeating(9), working(9), working(20, name="b"))).output
    lines = [" ".join(words(line)) for line in output.splitlines()]
    assert "loopguard 1 1 0 5 4 (10.5%) 0" in lines
    assert any(line.startswith("opencode #32089 0 1 0 3 7") for line in lines)


def test_comparing_in_json_has_every_run_and_every_system(write):
    told = json.loads(command("compare", write(repeating(9), working(9)), "--json").output)
    assert [one["id"] for one in told["runs"]] == ["loop", "good"]
    assert told["runs"][0]["systems"]["pr_32089"]["ask"]["call"] == 3
    assert {one["name"] for one in told["systems"]} >= {"default", *LoopGuardPolicy.preset_names()}


@pytest.mark.parametrize("args", [[], ["x.jsonl", "--incident"]], ids=["neither", "both"])
def test_comparing_takes_either_paths_or_the_incident(args):
    assert command("compare", *args).exit_code == 2


def test_comparing_bad_input_ends_with_2(write):
    assert command("compare", write(working(3), extra="garbage\n")).exit_code == 2


# --- As a process --------------------------------------------------------------------------------


def process(*args, **options):
    code = "from langchain_loopguard.cli import main; main()"
    start = [sys.executable, "-c", code, *args]
    return subprocess.run(start, capture_output=True, check=False, timeout=100, **options)


def test_the_standard_input_is_read(write):
    with Path(write(repeating(9))).open("rb") as file:
        done = process("replay", "-", stdin=file)
    assert done.returncode == 1, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize(
    "name",
    [
        "--help",
        "replay",
        "replay --json",
        pytest.param("compare", marks=pytest.mark.slow),
        pytest.param("demo", marks=pytest.mark.slow),
    ],
)
def test_an_output_that_cannot_be_written_is_told_in_a_line(name, write):
    paths = {"compare": ["--incident"], "replay": [write(repeating(9))]}
    command, *options = name.split()
    code = "from langchain_loopguard.cli import main; main()"
    start = [sys.executable, "-c", code, command, *paths.get(command, ()), *options]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(start, stdout=full, stderr=subprocess.PIPE, check=False, timeout=100)
    assert done.returncode == 2
    said = b"loopguard: the output can't be written: No space left on device\n"
    assert done.stderr == said


def test_away_from_a_terminal_there_is_no_progress_bar(write):
    assert process("replay", write(repeating(9))).stderr == b""


def test_on_a_terminal_there_is_a_progress_bar(write):
    with Terminal("replay", write(*[repeating(9)] * 800)) as terminal:
        assert terminal.finish() == 1
        assert re.search(r"reading .*MB", terminal.output)


def test_ctrl_c_ends_with_130_and_no_traceback(write):
    with Terminal("replay", write(*[repeating(9)] * 3000), "--jobs", "2") as terminal:
        terminal.press("\x03", at=r"[1-9]\.\d/[\d.]+ MB")
        assert terminal.finish() == 130
        assert "Traceback" not in terminal.output


def test_a_reader_that_leaves_early_is_no_error(write):
    path = write(*[repeating(9, name=f"loop-{at}") for at in range(3000)])
    code = "from langchain_loopguard.cli import main; main()"
    start = [sys.executable, "-c", code, "replay", "--json", path]
    with subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        done.stdout.read(10)
        done.stdout.close()
        assert b"Traceback" not in done.stderr.read()


@pytest.mark.slow
def test_the_open_corpus_replays_within_what_two_cores_do_in_five_seconds():
    """The wall clock of a busy machine says nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = process("replay", str(DATA / "corpus.jsonl.xz"), "--json")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert json.loads(done.stdout)["summary"]["runs"] == 1359
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 2 * 5


def peak_megabytes(path):
    """The most memory that a replay of a file takes, workers included."""
    code = (
        "import resource, sys\n"
        "from langchain_loopguard.cli import main\n"
        "try: main()\n"
        "finally:\n"
        "    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)\n"
        "    print(max(resource.getrusage(kind).ru_maxrss for kind in kinds), file=sys.stderr)\n"
    )
    start = [sys.executable, "-c", code, "replay", "--json", str(path)]
    done = subprocess.run(
        start, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, timeout=100
    )
    return int(done.stderr.split()[-1]) / 1024


@pytest.mark.slow
def test_memory_does_not_grow_with_the_input(tmp_path):
    told = json.dumps(working(40).to_dict()) + "\n"
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    small.write_text(told * (2 * 2**20 // len(told)))
    large.write_text(told * (10 * 2**20 // len(told)))
    assert peak_megabytes(large) < peak_megabytes(small) + 6
