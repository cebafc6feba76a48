"""One word a thing: the rivals that a reader would have to guess apart stand in no public text.

Read are the documents, the notebooks with their outputs, and of the package's source the
docstrings and every text that somebody may be shown. What stands in backticks is code: public
names such as `BatchRecord` keep theirs.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "langchain_loopguard"

RIVALS = {
    r"(?:tools?|calls?)(?:'s?)? answers?\b|\banswers? of (?:a|the|its) (?:tool|call)s?": "result",
    r"batch(?:es)?": "step",
    r"(?<!re-)told(?! apart)": "emitted, logged, notified, warned",
    r"(?:over)?heard": "observed",
    r"(?<!§ )(?:is|are|was|were|be|been) held|held back|hold(?:s|ing)? back": "stopped before it ran",  # noqa: E501
    r"taken for": "treated as",
    r"let(?:s|ting)? run": "approved",
    r"ever (?:other|new)": "different each time, new each time",
    r"once more|anew": "again",
    r"ask(?:s|ed|ing)? about": "interrupts, asks a person",
    r"(?<!MCP's )(?<!type )hints?": "warning",
    r"notices?": "warning",
    r"acquit\w*|(?:on )?probation": "clear, previously flagged",
    r"human_message": "start_turn",
    r"undone|spared|at hand|last word": "abandoned, without defaults, cached, final answer",
    r"(?:counts?|counted) neither way": "is inconclusive",
}
"""What isn't written -> what is."""

OWN_WORDS = {"seed": ("batch",)}
"""Package -> words that it keeps: the seed's public names speak of a batch."""

NAMES = {"acquit", "at_hand", "heard", "spared", "told", "undone", "worked", "Fate", "News"}
"""Names that no function, class, parameter or attribute of the package has."""

_CODE = re.compile(r"```.*?```|``.*?``|`[^`\n]*`|\"type\": \"batch\"", re.DOTALL)
# What is code becomes a sign, so that "`lock` is held" can be told from a call that is held.
_FEWEST_WORDS = 3
"""A shorter text is a key, a name or a pattern."""


def documents():
    folders = (ROOT, ROOT / ".github", ROOT / "tests")
    found = [path for folder in folders for path in folder.glob("*.md")]
    return [*found, *PACKAGE.rglob("*.md")]


def texts_of_document(path):
    return [_CODE.sub("§", path.read_text(encoding="utf-8"))]


def texts_of_source(path):
    """Docstrings, and literals that are sentences; an f-string's parts are joined."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    texts = [
        "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        for node in joined
    ]
    texts += [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
    ]
    return [_CODE.sub("§", text) for text in texts if len(text.split()) >= _FEWEST_WORDS]


def texts_of_notebook(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    written = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    shown = ["".join(out.get("text", "")) for cell in cells for out in cell.get("outputs", ())]
    return [_CODE.sub("§", text) for text in (*written, *shown)]


SOURCES = [
    *((path, texts_of_document) for path in documents()),
    *((path, texts_of_source) for path in PACKAGE.rglob("*.py")),
    *((path, texts_of_notebook) for path in (ROOT / "notebooks").glob("*.ipynb")),
]


def rivals_in(text, kept=()):
    """Each rival in a text, with the words around it and what to write."""
    plain = " ".join(text.split())
    return [
        f"…{plain[max(0, found.start() - 30) : found.end() + 20]}… -> {better}"
        for rival, better in RIVALS.items()
        for found in re.finditer(rf"\b(?:{rival})\b", plain, re.IGNORECASE)
        if not any(word in found[0].lower() for word in kept)
    ]


@pytest.mark.parametrize(
    ("path", "texts_of"),
    [pytest.param(path, read, id=str(path.relative_to(ROOT))) for path, read in sorted(SOURCES)],
)
def test_no_rival_word_stands_in(path, texts_of) -> None:
    inside = path.relative_to(PACKAGE).parts[0] if PACKAGE in path.parents else ""
    texts = texts_of(path)
    assert [hit for text in texts for hit in rivals_in(text, OWN_WORDS.get(inside, ()))] == []


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_no_name_is_a_rival_word(path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name.strip("_") for node in ast.walk(tree) if isinstance(node, named)}
    names |= {node.arg.strip("_") for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names |= {node.attr.strip("_") for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert names & NAMES == set()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("The tool's answer came before.", id="answer"),
        pytest.param("Steps are held\n    back.", id="over-a-line-break"),
        pytest.param("A batch is asked about.", id="two"),
        pytest.param("Nobody was Told.", id="capitals"),
    ],
)
def test_a_rival_is_found(text: str) -> None:
    assert rivals_in(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("A person's answer can be told apart.", id="a-person-answers"),
        pytest.param("Rules re-told from their sources, in their own words.", id="re-told"),
        pytest.param("It reads MCP's hints. Whoever holds it is no holder.", id="other-meanings"),
    ],
)
def test_other_meanings_pass(text: str) -> None:
    assert rivals_in(text) == []
