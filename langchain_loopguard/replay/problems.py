"""What could not be read, and where?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of the input that was skipped.

    Attributes:
        source: The file, or whatever else was read.
        text: What is wrong, in one line; quotes nothing of the input.
        at: The number of the line (or of the item of a list), from 1; `None` for the whole.
        unit: What `at` counts.
        ignored: Whether it is a file that was only found in a directory and holds no
            conversation, which is no fault of the input.
    """

    source: str
    text: str
    at: int | None = None
    unit: str = "line"
    ignored: bool = False

    def __str__(self) -> str:
        """Say it in one line."""
        where = self.source if self.at is None else f"{self.source}, {self.unit} {self.at}"
        return f"{where}: {self.text}"

    def as_dict(self) -> dict[str, Any]:
        """Give it in JSON types."""
        return {"source": self.source, "at": self.at, "unit": self.unit, "problem": self.text}
