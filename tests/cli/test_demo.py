"""Does the demo tell what its runs did, on a terminal and away from one?"""

from __future__ import annotations

import functools
import io
import re
import subprocess
import sys

import pytest
from langchain_core.messages import ToolMessage
from rich.console import Console
from typer.testing import CliRunner

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.cli.app import app
from langchain_loopguard.cli.demo import Teller, run_demo
from langchain_loopguard.core.rules import Stall
from langchain_loopguard.demo.agent import run_guarded, run_unguarded
from langchain_loopguard.demo.scripts import failing_call, incident
from tests.hosts import assert_valid_history
from tests.terminal import Terminal

SEED = LoopGuardPolicy.seed()
POLICIES = {
    "default": LoopGuardPolicy(),
    "seed": SEED,
    "nothing": LoopGuardPolicy(rules=()),
}


def ignore(_ran: object) -> None:
    pass


def guarded(answer: str, policy: LoopGuardPolicy = SEED, times: int = 30):
    return run_guarded(failing_call(times), policy, ignore, lambda _payload, _before: answer)


@functools.cache
def told(policy: str, answer: str = "stop", width: int = 80) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False)
    run_demo(Teller(console, answer=answer), POLICIES[policy])
    return out.getvalue()


# --- The runs ---------------------------------------------------------------------------------


def test_unguarded_the_incident_runs_all_200_calls() -> None:
    assert len(run_unguarded(incident(), ignore).ran) == 200


def test_unguarded_every_call_costs_a_model_call_and_one_more_ends_the_run() -> None:
    assert run_unguarded(failing_call(30), ignore).model_calls == 31


def test_the_seed_policy_does_not_see_the_incident() -> None:
    log = run_guarded(incident(), SEED, ignore, lambda _payload, _before: "stop")
    assert (len(log.ran), log.asked) == (200, [])


def test_guarded_the_failing_call_runs_twice() -> None:
    assert len(guarded("stop").ran) == 2


def test_the_question_comes_before_the_third_call() -> None:
    assert [asked.before for asked in guarded("stop").asked] == [3]


def test_stop_leaves_a_valid_history() -> None:
    assert_valid_history(guarded("stop").messages)


def test_continue_runs_the_held_call_and_asks_again_later() -> None:
    log = guarded("continue", times=10)
    assert len(log.ran) == 10
    assert len(log.asked) > 1


def test_a_text_reaches_the_model_in_place_of_the_answer() -> None:
    answers = [m for m in guarded("Ask me for the path.").messages if isinstance(m, ToolMessage)]
    assert "Ask me for the path." in answers[-1].text


def test_after_a_text_the_call_does_not_run_again() -> None:
    assert len(guarded("Ask me for the path.").ran) == 2


def test_warnings_are_noted_and_not_printed(capsys) -> None:
    policy = LoopGuardPolicy(rules=(Stall(warn=2, ask=30, ask_after_change=30),))
    log = guarded("stop", policy, times=5)
    # The first call brings something new; the next two don't.
    assert log.warned[0] == 3
    assert capsys.readouterr().err == ""


def test_tracing_that_is_switched_on_elsewhere_gets_nothing(monkeypatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_API_KEY", "none")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")
    sent = []
    monkeypatch.setattr(
        "langsmith.client.Client.create_run", lambda *args, **kwargs: sent.append(args)
    )
    guarded("stop")
    assert sent == []


# --- The telling ------------------------------------------------------------------------------


def test_a_caught_incident_is_the_headline() -> None:
    text = told("default")
    assert "Not caught" not in text
    assert failing_call().story not in text


def test_an_incident_that_is_not_caught_is_said_so_and_a_plainer_loop_is_shown() -> None:
    text = " ".join(told("seed").split())
    assert "Not caught: all 200 calls ran." in text
    assert failing_call().story in text


def test_a_policy_that_finds_nothing_is_told_plainly() -> None:
    text = told("nothing")
    assert "Not caught either" in text
    assert "What was saved" not in text


def test_the_table_holds_the_counts_of_both_runs() -> None:
    rows = [line.split() for line in told("seed").splitlines()]
    assert ["tool", "calls", "30", "2", "28"] in rows
    assert ["model", "calls", "31", "3", "28"] in rows


@pytest.mark.parametrize("width", [60, 40])
def test_a_narrow_trace_keeps_the_numbers(width: int) -> None:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False)
    Teller(console, answer="stop").trace(run_unguarded(incident(), ignore))
    lines = out.getvalue().split()
    assert {"195", "196", "197", "198", "199", "200"} <= set(lines)
    assert lines.count("before") == 6
    assert {"86", "50", "87", "56", "88", "51"} <= set(lines)


def test_the_trace_shows_the_last_six_calls() -> None:
    numbers = re.findall(r"^ +(\d+)  (?:git|pytest)", told("default"), flags=re.MULTILINE)
    assert numbers == ["195", "196", "197", "198", "199", "200"]


def test_the_question_names_the_choices() -> None:
    text = told("seed")
    for choice in ("continue", "always", "stop", "TEXT"):
        assert re.search(rf"^ +{choice}  ", text, flags=re.MULTILINE)


def test_many_questions_are_not_all_printed() -> None:
    assert told("default", answer="continue").count("is stopped") == 3


@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(len(line) for line in told("default", width=width).splitlines()) <= width


# --- The command ------------------------------------------------------------------------------


def command(*args: str, **env: str):
    return CliRunner().invoke(app, args, env={"COLUMNS": "80", **env})


def test_away_from_a_terminal_the_demo_stops_the_loop_by_itself_and_without_colour() -> None:
    result = command("demo")
    assert result.exit_code == 0
    assert "> stop" in result.output
    assert "\x1b[" not in result.output


def test_the_answer_option_answers() -> None:
    result = command("demo", "--answer", "Use the other file.")
    assert result.exit_code == 0
    assert "> Use the other file." in result.output


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["demo", "--answer", " "], id="empty answer"),
        pytest.param(["demo", "--pace", "-1"], id="negative pace"),
        pytest.param(["demo", "--paces", "1"], id="unknown option"),
        pytest.param(["demos"], id="unknown command"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(args: list[str]) -> None:
    assert command(*args).exit_code == 2


def test_version_prints_one_line() -> None:
    assert re.fullmatch(r"langchain-loopguard .+\n", command("--version").output)


@pytest.mark.parametrize("missing", ["typer", "rich", "langgraph"])
def test_without_the_extra_the_command_names_it(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['loopguard', 'demo']\n"
        "from langchain_loopguard.cli import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert "pip install 'langchain-loopguard[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


# --- A real terminal --------------------------------------------------------------------------


def test_on_a_terminal_the_demo_asks_until_it_has_an_answer_and_takes_it() -> None:
    with Terminal("demo") as terminal:
        terminal.wait_for("> ")
        assert "What was saved" not in terminal.output
        terminal.send("\n")
        terminal.wait_for("Type continue, always, stop, or a text")
        terminal.send("stop\n")
        assert terminal.finish() == 0
        assert "What was saved" in terminal.output


@pytest.mark.parametrize(
    "key", [pytest.param("\x04", id="ctrl-d"), pytest.param("\x03", id="ctrl-c")]
)
def test_on_a_terminal_leaving_at_the_question_is_no_crash(key: str) -> None:
    with Terminal("demo") as terminal:
        terminal.wait_for("> ")
        assert terminal.leave(key) == 130
        assert "Traceback" not in terminal.output


def test_on_a_terminal_the_answer_option_asks_nothing_and_no_color_is_respected() -> None:
    with Terminal("demo", "--answer", "stop", NO_COLOR="1") as terminal:
        assert terminal.finish() == 0
        assert "What was saved" in terminal.output
        assert not re.search(r"\x1b\[[0-9;]*3\dm", terminal.output)
