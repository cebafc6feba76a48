"""The `loopguard` command, and what it says when its extra isn't installed."""

from __future__ import annotations

import sys

_NEEDS = {"typer", "rich", "langgraph"}


def main() -> None:
    """Run the `loopguard` command.

    Raises:
        SystemExit: With the command's exit code; 1 when the extra `cli` isn't installed.
    """
    try:
        # The command's own imports need the extra.
        from langchain_loopguard.cli.app import app  # noqa: PLC0415

        app(prog_name="loopguard")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _NEEDS:
            raise
        sys.exit(
            f"loopguard: the command needs {missing}, which isn't installed: "
            "pip install 'langchain-loopguard[cli]'"
        )
