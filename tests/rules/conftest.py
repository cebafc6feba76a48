from __future__ import annotations

import pytest

from tests.rules.figures import measure, table

_TABLE = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def figures(request):
    """The figures of the default policy; printed at the end of the test run."""
    found = measure()
    request.config.stash[_TABLE] = table(found)
    return found


def pytest_terminal_summary(terminalreporter, config):
    if _TABLE in config.stash:
        terminalreporter.section("figures of the default policy")
        terminalreporter.write_line(config.stash[_TABLE])
