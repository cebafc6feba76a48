"""Writes what the guard did about a loop as feedback on the run in LangSmith.

The handler listens to the events that every adapter emits, whatever its mode, so it needs no
option of theirs: `graph.invoke(..., {"callbacks": [LangSmithFeedback()]})`. A run in LangSmith then
has `loop_guard` among its feedback, to filter and chart by. Events hold rules, counts and tool
names, never an argument.

Feedback is sent by a thread of its own, since an agent must not wait for it; one that can't be sent
is logged and lost.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler

from langchain_loopguard.langchain.telemetry import EVENT, logger

if TYPE_CHECKING:
    from concurrent.futures import Future
    from uuid import UUID

    from langsmith import Client

__all__ = ["LangSmithFeedback"]

_SCORES = {"observed": 0.5, "warned": 0.5}
"""What was done -> the score; 0 for anything that stopped or held up the run."""

_ATTEMPTS = 3


class LangSmithFeedback(BaseCallbackHandler):
    """Sends each event of the guard as feedback `loop_guard`: a score, what was done, and why."""

    def __init__(self, client: Client | None = None, *, session_id: UUID | None = None) -> None:
        """Start without a connection.

        Args:
            client: Whoever sends; `langsmith.Client()` by default, which reads the environment.
            session_id: The project's id in LangSmith; newer servers ask for it, and the client
                warns without it.
        """
        self._client = client
        self._session_id = session_id
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="loop-guard-feedback")
        self._under_way: set[Future[None]] = set()

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **_kwargs: Any) -> None:
        """Have an event of the guard sent; others are none of its business."""
        if name != EVENT or not isinstance(data, dict):
            return
        sent = self._sender.submit(self._send, run_id, dict(data))
        self._under_way.add(sent)
        sent.add_done_callback(self._under_way.discard)

    def flush(self, timeout: float | None = 10) -> None:
        """Wait until all that was emitted so far is sent, up to `timeout` seconds."""
        wait(list(self._under_way), timeout)

    def _send(self, run_id: UUID, event: dict[str, Any]) -> None:
        try:
            if self._client is None:
                from langsmith import Client  # noqa: PLC0415 - takes a while to load

                self._client = Client()
            done = str(event.get("done"))
            self._client.create_feedback(
                run_id,
                EVENT,
                score=_SCORES.get(done, 0),
                value=done,
                comment=str(event.get("message")),
                source_info={"findings": event.get("findings"), "adapter": event.get("adapter")},
                stop_after_attempt=_ATTEMPTS,
                session_id=self._session_id,
            )
        except Exception as error:  # noqa: BLE001 - whoever watches disturbs no agent
            logger.warning("no feedback was sent to LangSmith: %s", error)
