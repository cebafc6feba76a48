"""What does a count ask for?

Most systems climb the same ladder: a note at certain counts and only at them, so that the model
is not told the same at every step; then from some count on every further call is held back; then
from some count on the run ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_loopguard.core.decision import Action

if TYPE_CHECKING:
    from collections.abc import Iterable


def rung(
    count: int,
    *,
    notes: Iterable[int] = (),
    ask_at: int | None = None,
    stop_at: int | None = None,
) -> tuple[Action, int] | None:
    """Give the action of a count and the number that it reached, `None` for no action.

    Args:
        count: How often it was seen.
        notes: Exactly at these counts the model is told.
        ask_at: From here on a call is held back; `None` for never.
        stop_at: From here on the run ends; `None` for never.
    """
    if stop_at is not None and count >= stop_at:
        return Action.STOP, stop_at
    if ask_at is not None and count >= ask_at:
        return Action.ASK, ask_at
    return (Action.WARN, count) if count in notes else None
