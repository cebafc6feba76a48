"""Where a command may write its file, and how the file gets there whole.

The place is looked at before the work, which may take minutes. Of what a path may lead to, a
regular file alone is replaced: the new one takes its name, and a pipe or a device would be gone.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from langchain_loopguard.cli.options import fail
from langchain_loopguard.replay.conversation import Problem
from langchain_loopguard.replay.sources import find_sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def target_of(output: Path, inputs: Iterable[str], *, force: bool) -> Path:
    """Find the file that an option `--output` means, through symbolic links.

    Args:
        output: The option.
        inputs: The paths that are read; what they hold is not written over, whatever `force`
            says.
        force: Whether a file that exists may be replaced.

    Raises:
        typer.BadParameter: If no file can be written there, or it may not be replaced.
    """
    try:
        target = Path(os.path.realpath(output))
        wrong = _wrong(output, target, inputs, force=force)
    except OSError as error:
        wrong = f"{output}: cannot be written: {error.strerror or error}"
    if wrong:
        raise typer.BadParameter(wrong, param_hint="--output")
    return target


def write_whole(target: Path, text: str, output: Path) -> None:
    """Write a file whole or not at all; one that exists keeps its mode.

    Raises:
        typer.Exit: With 2 if it can't be written; the line names `output`.
    """
    part = target.with_name(f".loopguard.{os.getpid()}.part")
    try:
        with part.open("x", encoding="utf-8") as file:
            file.write(text)
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        part.replace(target)
    except OSError as error:
        fail(f"{output}: {error.strerror or error}")
    finally:
        part.unlink(missing_ok=True)


def _wrong(output: Path, target: Path, inputs: Iterable[str], *, force: bool) -> str:
    if not target.parent.is_dir() or target.is_dir():
        return f"{output}: no such place for a file"
    if os.path.lexists(target):
        # A link that is left after following leads to itself.
        if target.is_symlink() or not target.is_file():
            return f"{output} is no regular file; -o takes a file's name"
        if any(_is_same(target, source) for source in _files(inputs)):
            return f"{output} is one of the files that are read; -o writes another"
        if not force:
            return f"{output} exists; --force replaces it, -o writes another"
    # Trying tells what modes alone do not: read-only file systems, quotas, lists of rights.
    with tempfile.TemporaryFile(dir=target.parent):
        return ""


def _files(inputs: Iterable[str]) -> Iterator[str | int]:
    """Yield the files on the disk that are read; addresses are not asked what they hold."""
    for source in find_sources(path for path in inputs if "://" not in path):
        if not isinstance(source, Problem):
            yield 0 if source.path == "-" else source.path


def _is_same(target: Path, source: str | int) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samefile(target, source)  # noqa: PTH121 - may be an open file's number
    return False
