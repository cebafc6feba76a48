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
    labels: dict[LabelKey, str] = {}
    for number, row in _json_rows(text) if text.lstrip()[:1] == "{" else _csv_rows(text):
        run, label, source = (row.get(name) for name in ("id", "label", "source"))
        wrong = ""
        if type(run) not in {str, int} or run == "":
            wrong = str(row.get(_WRONG) or "needs an id")
        elif label not in LABELS:
            wrong = f"the label must be one of {', '.join(LABELS)}"
        if wrong:
            raise LabelError(f"{path}, line {number}: {wrong}")
        labels[str(source) if source else None, str(run)] = str(label)
    return labels


_WRONG = "\0"
"""The key under which a row that cannot be read says why."""


def _json_rows(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            yield number, {_WRONG: "not JSON"}
        else:
            wrong = {_WRONG: "must be an object with id and label"}
            yield number, row if isinstance(row, dict) else wrong


def _csv_rows(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = csv.DictReader(text.splitlines())
    lines.fieldnames = [name.strip().lower() for name in lines.fieldnames or ()]
    if not {"id", "label"} <= set(lines.fieldnames):
        yield 1, {_WRONG: "the header must name the columns id and label"}
    try:
        for row in lines:
            texts = {name: value.strip() for name, value in row.items() if isinstance(value, str)}
            yield lines.line_num, texts
    except csv.Error as error:
        yield lines.line_num, {_WRONG: f"not CSV: {error}"}
