"""Does a channel of messages put a message in the place of the one with the same id?

`add_messages` does; `operator.add`, which many graphs use, keeps both, and a message that was to
be changed would stand there twice. Nothing tells them apart but what they do, so a channel is
asked with two messages of nobody's. This file must not know why a message is changed.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.config import get_config
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages

__all__ = ["replaces_by_id", "running_channel"]

_READ = "__pregel_read"
"""Where a task's config holds what reads the graph's channels: a partial of a function that takes
the channels as its second argument. Internal, so it may be gone one day."""


def replaces_by_id(channel: Any) -> bool:
    """Tell whether a message replaces one with the same id, and whether a history can be replaced.

    Args:
        channel: A graph's channel; it is not changed.
    """
    if getattr(channel, "operator", None) is add_messages:
        return True
    try:
        probe = channel.from_checkpoint([HumanMessage("a", id="1"), AIMessage("b", id="2")])
        probe.update([[AIMessage("c", id="2")]])
        # By the texts, since a reducer may give the content another form and drop the ids.
        changed = [str(message.text) for message in probe.get()]
        probe.update([[RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("d", id="3")]])
        return changed == ["a", "c"] and [str(message.text) for message in probe.get()] == ["d"]
    except Exception:  # noqa: BLE001 - the reducer is somebody else's and may do anything
        return False


def running_channel(key: str) -> Any:
    """Give a channel of the graph that this is called in, `None` where it can't be found."""
    try:
        return get_config()["configurable"][_READ].args[1][key]
    except Exception:  # noqa: BLE001 - the host's internals
        return None
