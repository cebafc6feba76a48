"""The notebooks run, from any folder, and still say what is saved in them.

After a change that is meant to change it: `python -m tests.notebooks.execute`.
"""

from __future__ import annotations

import re

import pytest

from tests.notebooks.execute import NOTEBOOKS, ROOT, build_font_cache, execute, read

MAX_BYTES = 300_000
"""Of a notebook with its pictures: code hosts show smaller files at once."""

MACHINE = re.compile(
    r"/(?:home|root|tmp|usr|opt|private|Users|work)\b|[A-Za-z]:\\|site-packages|localhost"
    r"|ipykernel_\d|\bat 0x[0-9a-f]+|\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
)
"""Paths, hosts, process numbers, addresses in memory, times of day."""

TIME = re.compile(r",\s+in\s+[\d,.]+\s+seconds")
"""How long the agent took: shown from one second on, which it takes on a busy machine only."""

every_notebook = pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem) for path in NOTEBOOKS]
)


@pytest.fixture(scope="module")
def fonts():
    build_font_cache()


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose_of(path):
    return "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")


def outputs_of(notebook):
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def shown(notebook):
    """What each cell shows: texts as they are, of pictures that there is one."""
    return [[_text(output) for output in cell.outputs] for cell in code_cells(notebook)]


def _text(output):
    if output.output_type == "stream":
        return output.name, TIME.sub("", output.text)
    if output.output_type == "error":
        return output.ename, output.evalue
    kinds = sorted(output.data.items())
    return [kind if kind.startswith("image/") else (kind, content) for kind, content in kinds]


@every_notebook
def test_a_notebook_shows_what_is_saved_in_it(path, tmp_path, fonts):
    assert shown(execute(path, tmp_path)) == shown(read(path))


@every_notebook
def test_a_saved_notebook_was_run_from_top_to_bottom(path):
    counts = [cell.execution_count for cell in code_cells(read(path))]
    assert counts == [*range(1, len(counts) + 1)]


@every_notebook
def test_a_saved_notebook_holds_no_warning_and_no_error(path):
    kinds = {output.get("name", output.output_type) for output in outputs_of(read(path))}
    assert kinds <= {"stdout", "display_data", "execute_result"}


@every_notebook
def test_a_saved_notebook_shows_nothing_of_the_machine(path):
    texts = [
        output.get("text", output.get("data", {}).get("text/plain", ""))
        for output in outputs_of(read(path))
    ]
    assert MACHINE.findall("\n".join(texts)) == []


@every_notebook
def test_a_notebook_opens_with_its_title_and_its_question(path):
    first = read(path).cells[0].source
    assert first.startswith(f"# {int(path.name[:2])}. ")
    assert re.search(r"\*\*[^*]+\?\*\*", first)


@every_notebook
def test_a_saved_notebook_is_small(path):
    assert path.stat().st_size < MAX_BYTES


@every_notebook
def test_the_files_that_a_notebook_links_to_are_there(path):
    linked = [path.parent / link for link in re.findall(r"\]\(([^):]+)\)", prose_of(path))]
    assert [link for link in linked if not link.exists()] == []


@every_notebook
def test_the_extra_that_a_notebook_names_is_there(path):
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = re.findall(r"\.\[(\w+)\]", prose_of(path))
    assert extras
    assert [extra for extra in extras if f"\n{extra} = [" not in settings] == []
