"""What do the adapters' tests need around each test?

When a handler raises at the start of a streaming model call, LangChain never awaits the other
handlers' coroutines, and Python complains whenever it comes to collect them.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import warnings

import pytest

NEVER_AWAITED = "ignore:coroutine 'ahandle_event' was never awaited:RuntimeWarning"


def _streams(item) -> bool:
    spec = getattr(item, "callspec", None)
    return spec is not None and spec.params.get("mode") == "astream"


def pytest_collection_modifyitems(items):
    """Ignore the complaint in tests that stream."""
    for item in items:
        if _streams(item):
            item.add_marker(pytest.mark.filterwarnings(NEVER_AWAITED))


@pytest.fixture(autouse=True)
def leftovers(request):
    """Collect the coroutines that are left, lest the complaint comes in a later test."""
    yield
    if _streams(request.node):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()


@pytest.fixture(scope="module")
def left_behind(request, tmp_path_factory):
    """A SQLite file with open questions, whose process (the module's `ASKS`) was killed."""
    path = str(tmp_path_factory.mktemp("sqlite") / "checkpoints.db")
    done = subprocess.run(
        [sys.executable, "-c", request.module.ASKS, path],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "asked\n", done.stderr
    assert done.returncode == -signal.SIGKILL
    return path
