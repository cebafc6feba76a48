"""The `loopguard` command, and what it says when its extra isn't installed."""

from __future__ import annotations

import errno
import os
import sys

_NEEDS = {"typer", "rich", "langgraph"}

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What a place that takes no more output answers with. A reader that left is another matter:
typer ends quietly then."""


def main() -> None:
    """Run the `loopguard` command.

    Raises:
        SystemExit: With the command's exit code; 1 when the extra `cli` isn't installed, 2 when
            the output can't be written.
    """
    try:
        # The command's own imports need the extra.
        from langchain_loopguard.cli.app import app  # noqa: PLC0415

        try:
            app(prog_name="loopguard")
        finally:
            # What is still held back is written here, where a fault can be told.
            if sys.stdout is not None:
                sys.stdout.flush()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _NEEDS:
            raise
        sys.exit(
            f"loopguard: the command needs {missing}, which isn't installed: "
            "pip install 'langchain-loopguard[cli]'"
        )
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise
        # Python writes what is left again as it ends, and would tell of the same fault again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.write(f"loopguard: the output can't be written: {error.strerror}\n")
        sys.exit(2)
