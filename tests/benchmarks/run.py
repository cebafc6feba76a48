"""What does a guard cost? One command measures it and prints tables.

    python -m tests.benchmarks.run [--json FILE] [--quick] [--only NAME]... [--peers-python FILE]
    python -m tests.benchmarks.run --only agents --write-docs

Each question is a file beside this one and is measured in a process of its own, one after the
other; all of them take some ten minutes. On a machine that does other things meanwhile the
columns that compare are right and the others too high. `--write-docs` puts the figures of `agents`
into `adapters/README.md`, in the place of its marked blocks.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.evaluation.tables import with_blocks

QUESTIONS = ("core", "agents", "checkpoints", "startup", "peers")

README = Path(__file__).parents[2] / "langchain_loopguard" / "adapters" / "README.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is asked for; gives the exit status."""
    options = _parse(argv)
    if options.part:
        logging.disable(logging.CRITICAL)
        found = _question(options.part).measure(**_more(options, options.part))
        Path(options.json).write_text(json.dumps(found), encoding="utf-8")
        return 0
    console = Console(width=130)
    results: dict[str, Any] = {"machine": _machine()}
    for name in options.only or QUESTIONS:
        results[name] = _apart(name, options)
        for table in _question(name).tables(results[name]):
            console.print(table)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.write_docs:
        blocks = _question("agents").blocks(results["agents"])
        text = README.read_text(encoding="utf-8")
        README.write_text(with_blocks(text, blocks), encoding="utf-8")
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", metavar="FILE", help="where all figures are written")
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--only", action="append", choices=QUESTIONS, metavar="NAME")
    parser.add_argument("--write-docs", action="store_true", help="rewrite adapters/README.md")
    parser.add_argument(
        "--peers-python",
        metavar="FILE",
        default=sys.executable,
        help="the interpreter of an environment with the peers",
    )
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.write_docs and "agents" not in (options.only or QUESTIONS):
        parser.error("--write-docs needs the figures of agents")
    return options


def _question(name: str) -> Any:
    return importlib.import_module(f"tests.benchmarks.{name}")


def _more(options: argparse.Namespace, name: str) -> dict[str, Any]:
    python = {"python": options.peers_python} if name == "peers" else {}
    return {"quick": options.quick, **python}


def _apart(name: str, options: argparse.Namespace) -> Any:
    """Measure one question in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        command = [sys.executable, "-m", "tests.benchmarks.run", "--part", name, "--json", file]
        command += ["--peers-python", options.peers_python, *(["--quick"] * options.quick)]
        subprocess.run(command, cwd=Path(__file__).parents[2], check=True)
        return json.loads(file.read_text(encoding="utf-8"))


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
    }


if __name__ == "__main__":
    sys.exit(main())
