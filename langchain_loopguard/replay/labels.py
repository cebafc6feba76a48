"""Which runs did somebody look at, and what are they?

A file of labels is JSON lines, `{"id": "run-1", "label": "loop"}`, or CSV with a header line,
`id,label`. Both may name a `source` too, where ids alone are not unique. The labels are `loop`,
`benign` and `unclear`; other keys and columns are ignored.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LABELS = ("loop", "benign", "unclear")

LabelKey: TypeAlias = "tuple[str | None, str]"
"""Source and id of a run; the source is `None` where the label names none."""

Labels: TypeAlias = "Mapping[LabelKey, str]"


class LabelError(ValueError):
    """A file of labels cannot be read; the message names the line and what is allowed."""


def read_labels(path: str | Path) -> dict[LabelKey, str]:
    """Read a file of labels. A run that is labelled twice has its last label.

    Args:
        path: The file.

    Raises:
        LabelError: If a line is not a label.
        OSError: If the file cannot be opened.
    """
    try:
        text = Path(path).read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LabelError(f"{path}: not a text in UTF-8") from error
    try:
        rows = _json_rows(text) if text.lstrip()[:1] == "{" else _csv_rows(text)
        return dict(_label(number, row) for number, row in rows)
    except LabelError as error:
        raise LabelError(f"{path}, {error}") from None


def _label(number: int, row: dict[str, Any]) -> tuple[LabelKey, str]:
    run, label, source = (row.get(name) for name in ("id", "label", "source"))
    if not isinstance(run, str | int) or isinstance(run, bool) or run == "":
        raise LabelError(f"line {number}: needs an id")
    if label not in LABELS:
        raise LabelError(f"line {number}: the label must be one of {', '.join(LABELS)}")
    return (str(source) if source else None, str(run)), label


def _json_rows(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise LabelError(f"line {number}: not JSON") from error
        if not isinstance(row, dict):
            raise LabelError(f"line {number}: must be an object with id and label")
        yield number, row


def _csv_rows(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = csv.DictReader(text.splitlines())
    names = [name.strip().lower() for name in lines.fieldnames or ()]
    if not {"id", "label"} <= set(names):
        raise LabelError("line 1: the header must name the columns id and label")
    lines.fieldnames = names
    try:
        for row in lines:
            yield (
                lines.line_num,
                {name: value.strip() for name, value in row.items() if isinstance(value, str)},
            )
    except csv.Error as error:
        raise LabelError(f"line {lines.line_num}: not CSV: {error}") from error
