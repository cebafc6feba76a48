"""What somebody who looked at runs says that they are.

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
    read = _json_rows if text.lstrip()[:1] == "{" else _csv_rows
    labels: dict[LabelKey, str] = {}
    for number, row in read(path, text):
        run, label, source = (row.get(name) for name in ("id", "label", "source"))
        if type(run) not in {str, int} or run == "":
            raise LabelError(f"{path}, line {number}: needs an id")
        if label not in LABELS:
            allowed = ", ".join(LABELS)
            raise LabelError(f"{path}, line {number}: the label must be one of {allowed}")
        labels[str(source) if source else None, str(run)] = str(label)
    return labels


def _json_rows(path: str | Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise LabelError(f"{path}, line {number}: not JSON") from None
        if not isinstance(row, dict):
            raise LabelError(f"{path}, line {number}: must be an object with id and label")
        yield number, row


def _csv_rows(path: str | Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = csv.DictReader(text.splitlines())
    lines.fieldnames = [name.strip().lower() for name in lines.fieldnames or ()]
    if not {"id", "label"} <= set(lines.fieldnames):
        raise LabelError(f"{path}, line 1: the header must name the columns id and label")
    try:
        for row in lines:
            texts = {name: value.strip() for name, value in row.items() if isinstance(value, str)}
            yield lines.line_num, texts
    except csv.Error as error:
        raise LabelError(f"{path}, line {lines.line_num}: not CSV: {error}") from error
