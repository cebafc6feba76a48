"""Which tests are the specification, and which take a service, a browser, a kernel or minutes?

`pytest` alone runs the first. The second are the folders and files below and every test marked
`slow`; `pytest -m slow` runs them, with the packages of the group `slow` installed. Without them
these files could not even be imported, so plain `pytest` does not look into them.

What else all tests share: nothing of the surroundings gets in, every run draws the same examples,
and what a test finds in memory is of its own file.
"""

from __future__ import annotations

import gc
import os
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

SLOW = {
    "faults": "kills processes; a Postgres server in a folder",
    "load": "a thousand users at once",
    "notebooks": "a kernel for each notebook",
    "server": "LangGraph's development server",
    "replay/test_fleet.py": "a Dask cluster",
    "replay/test_report_browser.py": "a browser",
}
"""Path below `tests/` -> what its tests take."""

_ROOT = Path(__file__).parent
_SLOW = [_ROOT / name for name in SLOW]

# Colours that are forced stand in the middle of the words that tests look for, and a trace that is
# switched on is sent. Typer reads its part when it is imported.
_COLOURS = {"FORCE_COLOR", "GITHUB_ACTIONS", "NO_COLOR", "PY_COLORS"}
for _name in list(os.environ):
    if _name in _COLOURS or _name.startswith(("TTY_", "LANGCHAIN_", "LANGSMITH_", "OTEL_")):
        del os.environ[_name]

# A commit fails for what it changes and not for what chance finds that day, so that every run draws
# the same examples. The weekly workflow draws others:
# `pytest -m "hypothesis and not slow" --hypothesis-profile=exploring`.
settings.register_profile("same", derandomize=True, database=None, deadline=None)
settings.register_profile(
    "exploring", derandomize=False, deadline=None, max_examples=1000, print_blob=True
)
settings.load_profile("same")


@cache
def _is_slow(path: Path) -> bool:
    return any(path == slow or slow in path.parents for slow in _SLOW)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what runs with `-m slow` only."""
    chosen = config.option.markexpr
    without = "not slow" in chosen and "slow" not in chosen.replace("not slow", "")
    return True if without and _is_slow(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the table lists."""
    for item in items:
        if _is_slow(item.path):
            item.add_marker(pytest.mark.slow)


def _hide_from_gc() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def nothing_of_other_files() -> None:
    """Hide from `gc` what is there before a file's first test.

    A test that counts what is in memory counts its own, and a collection looks at a thousandth.
    """
    _hide_from_gc()


@pytest.fixture
def alone() -> None:
    """Hide what other tests of the file left as well, an error with its frames for one."""
    _hide_from_gc()
