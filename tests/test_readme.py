"""The README says what is so: its examples run, its numbers are the policy's, its links exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import langchain_loopguard
from langchain_loopguard import Action, LoopGuard, LoopGuardPolicy
from tests.hosts import ask, assert_valid_history, thread

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\]\(([^)#:]+)\)", README)
MOST_LINES = 200


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the examples leave behind, run one after the other as they stand."""
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(block, names)  # noqa: S102 - the README is ours
    return names


# --- The examples -----------------------------------------------------------------------------


def test_the_first_example_prints_what_is_shown(capsys) -> None:
    exec(blocks("python")[0], {})  # noqa: S102 - the README is ours
    assert capsys.readouterr().out == blocks("text")[0]


@pytest.mark.parametrize(
    "marker", ["LoopGuardMiddleware()", "add_loop_guard(", "LoopGuardCallbackHandler()"]
)
def test_an_adapter_takes_ten_lines(marker: str) -> None:
    _, *adapters = blocks("python")
    (example,) = [block for block in adapters if marker in block]
    assert len(example.splitlines()) <= 10


def test_the_callback_example_asks(names) -> None:
    assert names["handler"].stats()["asked"] == 1


@pytest.mark.parametrize("answer", ["stop", "continue", "always", "The order is A-71."])
def test_the_graph_takes_every_answer(names, answer: str) -> None:
    from langgraph.types import Command

    config = thread(answer)
    assert "__interrupt__" in names["graph"].invoke(ask(), config)
    if answer == "always":
        return  # The model does the same for ever, and nobody is asked about it again.
    result = names["graph"].invoke(Command(resume=answer), config)
    assert ("__interrupt__" in result) is (answer != "stop")
    if answer == "stop":
        assert_valid_history(result["messages"])


def test_the_changed_policy_is_what_the_text_says(names) -> None:
    policy = names["policy"]
    assert "in_vain" not in [rule.rule for rule in policy.rules]
    assert asked_at([("refund", {"order": 1}, "done")] * 9, policy) == 2


# --- What it says -----------------------------------------------------------------------------


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= MOST_LINES


def test_the_rules_and_their_numbers_are_the_default_policys() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*?\|([\d ]*)\| (\d+) \|$", README, flags=re.MULTILINE)
    shown = {name: (int(warn) if warn.strip() else None, int(ask)) for name, warn, ask in rows}
    own = {"ceiling": "changing", "cycle": "rounds"}
    assert shown == {
        rule.rule: (getattr(rule, "warn", None), getattr(rule, own.get(rule.rule, "ask")))
        for rule in LoopGuardPolicy().rules
    }


@pytest.mark.parametrize(
    "name",
    sorted(set(re.findall(r"`((?:LoopGuard|LoopDetected|add_loop|guard_sub)\w+)", README))),
)
def test_a_named_class_or_function_exists(name: str) -> None:
    assert name in langchain_loopguard.__all__


@pytest.mark.parametrize("link", LINKS)
def test_a_linked_file_exists(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_named_extras_are_those_there_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = re.findall(r"`\[(\w+)\]`|'\.\[(\w+(?:,\w+)*)\]'", README)
    named = {name for names in found for name in ",".join(names).split(",") if name}
    assert named == project["optional-dependencies"].keys()


def test_the_picture_shows_what_the_default_policy_does() -> None:
    from langchain_loopguard.demo.scripts import incident

    steps = [("bash", {"command": call.command}, call.result) for call in incident().calls]
    picture = (ROOT / "notebooks" / "incident.svg").read_text(encoding="utf-8")
    assert re.findall(r">a person is asked at (\d+)<", picture) == [str(asked_at(steps))]


# --- What is stopped wrongly, and what is missed ----------------------------------------------


def asked_at(
    steps: list[tuple[str, dict[str, Any], str]], policy: LoopGuardPolicy | None = None
) -> int | None:
    guard = LoopGuard(policy)
    for number, (name, args, text) in enumerate(steps, 1):
        decision = guard.check([{"name": name, "args": args, "id": "c"}])
        if decision.action >= Action.ASK:
            return number
        guard.record_results(decision.record, [{"tool_call_id": "c", "content": text}])
    return None


def letters(number: int) -> str:
    return chr(97 + number % 26) + chr(97 + number // 26)


@pytest.mark.parametrize(
    ("steps", "at"),
    [
        pytest.param([("click", {"on": "next"}, "Clicked.")] * 9, 6, id="equal-clicks"),
        pytest.param([("get_build", {"id": 7}, "#7: no result")] * 9, 6, id="undeclared-poll"),
        pytest.param(
            [("search", {"q": letters(at)}, "no results") for at in range(30)],
            17,
            id="searches-in-vain",
        ),
        pytest.param(
            [("edit_file", {"to": f"a = {' ' * at}1"}, "Edited.") for at in range(12)],
            6,
            id="edits-of-white-space",
        ),
    ],
)
def test_it_may_stop_wrongly(steps, at: int) -> None:
    assert asked_at(steps) == at


def test_a_log_that_grows_is_asked_about_at_call_50() -> None:
    lines = [f"{letters(number)} came" for number in range(60)]
    steps = [("read_file", {"path": "log"}, "\n".join(lines[:at])) for at in range(1, 60)]
    assert asked_at(steps) == 50


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [("send_message", {"text": f"bye {letters(at)}"}, "sent") for at in range(60)],
            id="good-byes-worded-differently",
        ),
        pytest.param(
            [
                ("book", {"seat": at}, f"We are sorry, seat {letters(at)} is gone.")
                for at in range(60)
            ],
            id="failures-in-prose",
        ),
    ],
)
def test_it_misses(steps) -> None:
    assert asked_at(steps) is None


# --- The set-up commands ----------------------------------------------------------------------


def test_there_are_exactly_two_set_up_commands() -> None:
    commands = [block.strip().splitlines() for block in blocks("sh")]
    assert [len(lines) for lines in commands] == [1, 1]


def test_ci_runs_the_readmes_test_command() -> None:
    test_command = blocks("sh")[1].strip()
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.split(" | tee ")[0] == test_command]
