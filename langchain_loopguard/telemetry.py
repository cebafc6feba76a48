"""Who hears of what the guard finds?

Every finding is told in each of these places that is there: a logger, the graph's custom stream
and custom events, the current LangSmith run, the current OpenTelemetry span. Nothing is sent
from here: runs and spans are only written to, and go where the application sends them anyway.
Nothing is imported for it either: a stream, a run or a span that is there was made by a module
that is loaded. What is told holds tool names and counts, never an argument or an answer.

A listener that fails never disturbs the agent. What is done about a finding is not decided here.
"""

from __future__ import annotations

import sys
import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping

    from langchain_loopguard.core.decision import Decision

__all__ = ["EVENT", "Adapter", "Count", "Telemetry"]

EVENT = "loop_guard"
"""The name of the event on every channel, and the prefix of names in runs and spans."""

Adapter = Literal["callback", "middleware", "node"]
"""Who found it."""

Count = Literal["checked", "warned", "asked", "stopped", "refused", "approved", "faults"]
"""What is counted, see `Telemetry.stats`."""


class Telemetry:
    """Tells of an adapter's findings, and counts what it did."""

    def __init__(self, adapter: Adapter, logger: logging.Logger) -> None:
        """Start with empty counts."""
        self._adapter = adapter
        self._logger = logger
        self._lock = threading.Lock()
        self._counts: dict[Count, int] = dict.fromkeys(get_args(Count), 0)

    def __reduce__(self) -> tuple[type[Telemetry], tuple[Adapter, logging.Logger]]:
        """Make of a copy one that has counted nothing."""
        return Telemetry, (self._adapter, self._logger)

    def count(self, *what: Count) -> None:
        """Count one of each; safe in any thread."""
        with self._lock:
            for name in what:
                self._counts[name] += 1

    def stats(self) -> Mapping[Count, int]:
        """Give the counts since the adapter was made, over all its threads and runs.

        Returns:
            A copy that can't be changed. `checked` counts the batches decided about; `warned`
            what was told and not held back; `asked` the batches that a person was asked about;
            `approved`, `refused` and `stopped` the batches that a person let run, that were
            answered in place of the tools, and with which a run ended; `faults` the guard's own.
        """
        with self._lock:
            return MappingProxyType(dict(self._counts))

    def tell(self, decision: Decision, *, log: bool) -> None:
        """Tell of a decision wherever somebody listens.

        Args:
            decision: What was found; nothing is told without findings.
            log: Whether it is logged as a warning too, because nobody hears of it otherwise.
        """
        if not decision.findings:
            return
        if log:
            self._logger.warning("%s", decision.to_person)
        for channel in (_to_stream, _to_callbacks, _to_run, _to_span):
            try:
                channel(decision, self._adapter)
            except Exception:
                # A listener's fault, or a host that is made in another way.
                self._logger.debug("%s: nothing was told", channel.__name__, exc_info=True)


def _news(decision: Decision, adapter: Adapter) -> dict[str, Any]:
    """Give the event in JSON types."""
    return {
        "type": EVENT,
        "adapter": adapter,
        "action": decision.action.name.lower(),
        "message": decision.to_person,
        "findings": [finding.as_dict() for finding in decision.findings],
    }


def _to_stream(decision: Decision, adapter: Adapter) -> None:
    """Write to the graph's stream, for `stream_mode="custom"`."""
    config = sys.modules.get("langgraph.config")
    if config is None:
        return
    try:
        write = config.get_stream_writer()
    except (KeyError, RuntimeError):  # Not inside a graph.
        return
    write(_news(decision, adapter))


def _to_callbacks(decision: Decision, adapter: Adapter) -> None:
    """Call the handlers' `on_custom_event`, which `astream_events` shows too."""
    manager = sys.modules.get("langchain_core.callbacks.manager")
    config = _config()
    if manager is None or getattr(config.get("callbacks"), "parent_run_id", None) is None:
        return  # Not inside a run, so there is nobody to hear it.
    manager.dispatch_custom_event(EVENT, _news(decision, adapter), config=config)


def _to_run(decision: Decision, adapter: Adapter) -> None:
    """Tag the current LangSmith run and add metadata to it, to search and filter by."""
    langsmith = sys.modules.get("langsmith.run_helpers")
    run = langsmith.get_current_run_tree() if langsmith is not None else None
    if run is None:
        return
    run.add_metadata({f"{EVENT}_{name}": value for name, value in _flat(decision, adapter).items()})
    tag = f"{EVENT}:{decision.action.name.lower()}"
    if tag not in (run.tags or ()):
        run.add_tags([tag])


def _to_span(decision: Decision, adapter: Adapter) -> None:
    """Add an event to the current OpenTelemetry span.

    Names that the semantic conventions for generative AI have are used as they define them:
    `gen_ai.tool.name` is one tool's, so it is left out where there are several.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    span = trace.get_current_span()
    if not span.is_recording():
        return
    attributes = {f"{EVENT}.{name}": value for name, value in _flat(decision, adapter).items()}
    tools = decision.findings[0].tools
    config = _config()
    metadata = config.get("metadata") or {}
    known = {
        "gen_ai.tool.name": tools[0] if len(tools) == 1 else None,
        "gen_ai.agent.name": metadata.get("lc_agent_name"),
        "gen_ai.conversation.id": metadata.get("thread_id")
        or config.get("configurable", {}).get("thread_id"),
    }
    attributes |= {name: str(value) for name, value in known.items() if value}
    span.add_event(EVENT, attributes)


def _config() -> Mapping[str, Any]:
    """Give the config of the run that this is called in, an empty one outside of runs."""
    runnables = sys.modules.get("langchain_core.runnables.config")
    return runnables.ensure_config() if runnables is not None else {}


def _flat(decision: Decision, adapter: Adapter) -> dict[str, Any]:
    """Give the strongest finding in values that runs and spans can hold."""
    finding = decision.findings[0]
    return {
        "adapter": adapter,
        "action": decision.action.name.lower(),
        "rules": [item.rule for item in decision.findings],
        "tools": list(finding.tools),
        "count": finding.count,
        "threshold": finding.threshold,
        "since": finding.since,
    }
