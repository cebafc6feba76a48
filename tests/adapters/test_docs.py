"""Does `adapters/README.md` list the options, the question and the traps that there are?"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

import langchain_loopguard as package
from tests.hosts import Counter, agent_graph, ask, counting_tool, repeating_model, thread

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "langchain_loopguard" / "adapters" / "README.md").read_text(encoding="utf-8")
SOURCES = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in ("adapters", "langchain")
    for path in (ROOT / "langchain_loopguard" / folder).glob("*.py")
)
TESTS = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))


def table(first):
    """The rows of the table whose head begins so, cell by cell."""
    lines = TEXT.partition(f"| {first} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def names_in(text):
    return re.findall(r"`([\w.]+)`", text)


@pytest.mark.parametrize(
    ("column", "adapter"),
    [
        (1, package.LoopGuardMiddleware.__init__),
        (2, package.add_loop_guard),
        (3, package.LoopGuardNode.__init__),
        (4, package.LoopGuardCallbackHandler.__init__),
    ],
    ids=["middleware", "add_loop_guard", "node", "handler"],
)
def test_every_option_of_an_adapter_is_listed(column, adapter):
    listed = {names_in(row[0])[0] for row in table("option") if row[column]}
    assert listed == {*inspect.signature(adapter).parameters} - {"self", "builder"}


def test_a_question_has_the_keys_that_are_listed():
    guard = package.LoopGuardMiddleware(agent_inbox=True)
    agent = agent_graph(
        repeating_model(),
        [counting_tool(Counter())],
        middleware=[guard],
        checkpointer=InMemorySaver(),
    )
    question = agent.invoke(ask(), thread("t", recursion_limit=100))["__interrupt__"][0].value
    listed = {name for row in table("key") for name in names_in(row[0])}
    assert listed == question.keys() - {"type", "tool_call_ids"}


@pytest.mark.parametrize("row", table("trap"), ids=lambda row: row[0][:40])
def test_the_place_and_the_test_of_a_trap_are_there(row):
    (tested,) = names_in(row[3])
    assert f"def {tested}(" in TESTS
    for place in names_in(row[2]):
        name = place.removesuffix(".py").rpartition(".")[2]
        assert place.endswith(".py") or re.search(rf"(?:def|class) {name}\b", SOURCES)
