"""Runs the notebooks from top to bottom, each in a kernel of its own.

`python -m tests.notebooks.execute` saves what they say, for a change that is meant to change it.
With names (`01 04`) it runs only those.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

_TIMEOUT = 100
"""Seconds for one cell. The slowest takes a few; a machine that is busy takes longer."""

_TRACERS = ("LANGCHAIN_", "LANGSMITH_", "OTEL_")
"""Settings of a tracer, which would send the runs somewhere."""


def read(path):
    """Read a notebook as it is saved."""
    return nbformat.read(path, as_version=4)


def execute(path, home):
    """Run a copy of a notebook in a fresh kernel.

    Args:
        path: The notebook.
        home: The folder to run in, any one; the kernel's own files are there too.

    Returns:
        The notebook with its outputs, without what differs from run to run.
    """
    notebook = read(path)
    client = NotebookClient(
        notebook,
        timeout=_TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(home)}},
        coalesce_streams=True,
        record_timing=False,
    )
    client.execute(env=_environment(home))
    # What this very Python is called is no part of the notebook.
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def build_font_cache():
    """Have matplotlib look for fonts, since it says so in the first notebook otherwise."""
    subprocess.run([sys.executable, "-c", "import matplotlib.pyplot"], check=True)


def _environment(home):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_TRACERS)}
    paths = [str(ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(paths),
        "IPYTHONDIR": str(home),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        # Its debugger would complain about modules that are built in.
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def _main(names):
    import tempfile

    build_font_cache()
    for path in NOTEBOOKS:
        if names and not path.name.startswith(tuple(names)):
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as home:
            notebook = execute(path, home)
        nbformat.write(notebook, path)
        print(f"{path.name}: {time.monotonic() - began:.1f} s")  # noqa: T201 - run by hand


if __name__ == "__main__":
    _main(sys.argv[1:])
