"""Does the README say what is so?"""

from __future__ import annotations

import functools
import io
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import langchain_loopguard
from langchain_loopguard import Action, LoopGuard, LoopGuardPolicy
from langchain_loopguard.cli.demo import Teller
from langchain_loopguard.demo.agent import run_unguarded
from langchain_loopguard.demo.scripts import incident
from tests.hosts import assert_valid_history, open_calls, repeating_model

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LOOP = ("read_log", {"path": "build.log"})


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def example(marker: str) -> str:
    return next(block for block in blocks("python") if marker in block)


@functools.cache
def run_example(marker: str) -> dict[str, Any]:
    """Run the shared set-up and one example as they stand, on a model that repeats one call."""
    from langchain import chat_models

    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chat_models, "init_chat_model", lambda _name: repeating_model(LOOP))
        exec(example("init_chat_model"), names)  # noqa: S102 - the README is ours
    exec(example(marker), names)  # noqa: S102 - the README is ours
    return names


# --- The examples -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "marker", ["LoopGuardCallbackHandler", "LoopGuardMiddleware", "add_loop_guard"]
)
def test_an_example_has_twelve_lines(marker: str) -> None:
    assert len(example(marker).splitlines()) == 12


def test_the_callback_example_asks_and_is_stopped(capsys) -> None:
    run_example.cache_clear()
    result = run_example("LoopGuardCallbackHandler")["result"]
    assert "__interrupt__" not in result
    assert open_calls(result["messages"]) == []
    assert "read_log" in capsys.readouterr().out


def test_the_callback_example_leaves_a_valid_history() -> None:
    assert_valid_history(run_example("LoopGuardCallbackHandler")["result"]["messages"])


def test_the_middleware_example_asks_and_goes_on_with_a_text() -> None:
    messages = run_example("LoopGuardMiddleware")["result"]["messages"]
    assert "Read test.log instead." in [message.content for message in messages]


def test_the_node_example_asks() -> None:
    assert "__interrupt__" in run_example("add_loop_guard")["result"]


@pytest.mark.parametrize("answer", ["stop", "continue", "Read the other log."])
def test_the_node_example_takes_every_answer(answer: str) -> None:
    from langgraph.types import Command

    run_example.cache_clear()
    names = run_example("add_loop_guard")
    config = {"configurable": {"thread_id": "1"}}
    result = names["graph"].invoke(Command(resume=answer), config)
    # The model heeds nothing, so it is asked about again unless it was stopped.
    assert ("__interrupt__" in result) is (answer != "stop")
    if answer == "stop":
        assert_valid_history(result["messages"])
    elif answer != "continue":
        assert answer in [message.content for message in result["messages"]]


# --- What it says -----------------------------------------------------------------------------


def test_the_trace_is_the_demos_own() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, highlight=False)
    Teller(console, answer="stop").trace(run_unguarded(incident(), lambda _ran: None))
    shown = [line.strip() for line in out.getvalue().splitlines()]
    (trace,) = blocks("text")
    assert trace.splitlines() == shown


def test_the_rules_and_their_numbers_are_the_default_policys() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*?\|([\d ]*)\| (\d+) \|$", README, flags=re.MULTILINE)
    told = {name: (int(warn) if warn.strip() else None, int(ask)) for name, warn, ask in rows}
    rules = LoopGuardPolicy().rules
    assert told == {rule.rule: (getattr(rule, "warn", None), rule.ask) for rule in rules}


def test_every_named_class_and_function_exists() -> None:
    for name in re.findall(r"`((?:LoopGuard|LoopDetected|add_loop|guard_sub)\w+)", README):
        assert name in langchain_loopguard.__all__


def asked_at(
    steps: list[tuple[str, dict[str, Any], str]], policy: LoopGuardPolicy | None = None
) -> int | None:
    guard = LoopGuard(policy or LoopGuardPolicy())
    for number, (name, args, answer) in enumerate(steps, 1):
        decision = guard.check([{"name": name, "args": args, "id": "c"}])
        if decision.action >= Action.ASK:
            return number
        guard.record_results(decision.record, [{"tool_call_id": "c", "content": answer}])
    return None


def test_a_growing_log_is_not_caught() -> None:
    lines = [f"request {chr(97 + number % 26)}{number}" for number in range(60)]
    steps = [("read_file", {"path": "log"}, "\n".join(lines[:end])) for end in range(1, 60)]
    assert asked_at(steps) is None


def test_changing_calls_in_ever_new_words_are_not_caught() -> None:
    steps = [("send_message", {"text": "bye" + "!" * count}, "sent") for count in range(60)]
    assert asked_at(steps) is None


def test_searches_in_vain_are_not_caught_but_where_numbers_or_errors_tell() -> None:
    words = [chr(97 + at % 26) + chr(97 + at // 26) for at in range(100)]
    assert asked_at([("search", {"q": word}, "no results") for word in words]) is None
    assert asked_at([("search", {"q": at}, "no results") for at in range(100)]) == 16


def test_of_an_unbroken_call_nine_run() -> None:
    steps = [("insert", {"row": 1}, f"row {at}\nof a table\nthat grows") for at in range(20)]
    assert asked_at(steps) == 10
    words = [f"{chr(97 + at)}, a word\nof a text\nthat goes on" for at in range(26)]
    assert asked_at([("insert", {"row": 1}, answer) for answer in words]) == 20


@pytest.mark.parametrize(("tool", "held"), [("read_file", 16), ("read_log", 3), ("insert", 3)])
def test_the_seed_goes_by_names_of_its_own(tool: str, held: int) -> None:
    steps = [(tool, {"path": "log"}, "the same")] * 20
    assert asked_at(steps, LoopGuardPolicy.seed()) == held


def test_the_named_extras_are_those_there_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = {
        name for names in re.findall(r"\[([a-z,]+)\](?!\()", README) for name in names.split(",")
    }
    assert told == project["optional-dependencies"].keys() - {"dev"}


# --- The set-up commands ----------------------------------------------------------------------


def test_there_are_exactly_two_set_up_commands() -> None:
    commands = [block.strip().splitlines() for block in blocks("sh")]
    assert [len(lines) for lines in commands] == [1, 1]


def test_ci_runs_the_readmes_test_command() -> None:
    test_command = blocks("sh")[1].strip()
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.split(" | tee ")[0] == test_command]
