"""Who hears of what the guard finds and does?

Each event goes to every place that is there: a logger, the graph's custom stream and custom
events, the current LangSmith run, OpenTelemetry's logs and counters. Nothing is sent from here
and nothing is imported for it: a stream, a run or a provider that is there was made by a module
that is loaded. An event holds tool names and counts, never an argument or a result.

A listener that fails never disturbs the agent. What is done about a finding is not decided here.
"""

from __future__ import annotations

import logging
import sys
import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from langchain_loopguard.core.errors import GuardStateError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain_loopguard.core.decision import Decision
    from langchain_loopguard.langchain.outcome import Outcome

EVENT = "loop_guard"
"""The name of the event on every channel, and the prefix of names in runs and records."""

Adapter = Literal["callback", "middleware", "node"]
"""Who found it."""

Count = Literal[
    "checked", "observed", "warned", "asked", "lost", "approved", "refused", "stopped", "faults"
]
"""What is counted, see `Stats`."""

_MOST_FAULTS = 1000
"""Faults that are known to be logged. Past that, each is logged again once."""

_MANAGER = "langchain_core.callbacks.manager"

logger = logging.getLogger("langchain_loopguard")


class Stats:
    """Counts what an adapter did since it was made, over all its threads and runs.

    `checked` counts the steps decided about; `observed` what mode `observe` only recorded;
    `warned` what was emitted and not stopped; `asked` the steps at which a person was asked
    and `lost` those of them whose question somebody else's code swallowed; `approved`, `refused`
    and `stopped` the steps that a person approved, that were answered in place of the tools, and
    with which a run ended; `faults` the guard's own.
    """

    def __init__(self) -> None:
        """Start with zeros."""
        self._lock = threading.Lock()
        self._counts: dict[Count, int] = dict.fromkeys(get_args(Count), 0)

    def __reduce__(self) -> tuple[type[Stats], tuple[()]]:
        """Make of a copy one that has counted nothing."""
        return Stats, ()

    def add(self, *what: Count) -> None:
        """Count one of each; safe in any thread."""
        with self._lock:
            for name in what:
                self._counts[name] += 1

    def read(self) -> Mapping[Count, int]:
        """Give a copy that can't be changed."""
        with self._lock:
            return MappingProxyType(dict(self._counts))


class Telemetry:
    """Emits an adapter's findings, counts what it did, and logs its faults."""

    def __init__(self, adapter: Adapter, *, fail_open: bool = True) -> None:
        """Start with empty counts; with `fail_open` a fault is logged and not raised."""
        self.stats = Stats()
        self.notify: Callable[[Decision], None] | None = None
        """Called with each decision that is emitted, in place of the log."""
        self._adapter = adapter
        self._fail_open = fail_open
        self._faults: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Make of a copy one that has counted nothing."""
        return _again, (self._adapter, self._fail_open)

    def emit(self, decision: Decision, outcome: Outcome, *, is_new: bool = True) -> None:
        """Count an outcome, and emit it where somebody listens if it `is_new` (`Reader.emit`)."""
        if not outcome.emit or not decision.findings:
            return
        self.stats.add(outcome.emit)
        if outcome.prevented:
            self._measure("loop_guard.calls_prevented", outcome.prevented, {})
        if not is_new:
            return
        event = _event(decision, outcome, self._adapter)
        self._log(decision, outcome, event)
        for channel in (_to_stream, _to_callbacks, _to_run, _to_otel_log):
            try:
                channel(event, decision)
            except Exception:
                # A listener's fault, or a host that is made in another way.
                logger.debug("%s: nothing was emitted", channel.__name__, exc_info=True)
        for finding in decision.findings:
            self._measure("loop_guard.findings", 1, {"rule": finding.rule, "action": outcome.emit})

    def _log(self, decision: Decision, outcome: Outcome, event: dict[str, Any]) -> None:
        if self.notify is None:
            if outcome.log:
                logger.warning("%s", outcome.log, extra={EVENT: event})
        elif not outcome.asked:  # It was notified of when the person was asked.
            try:
                self.notify(decision)
            except Exception as error:  # noqa: BLE001 - whoever is notified disturbs no agent
                self.fault(error)

    def fault(self, error: Exception, thread: str = "") -> None:
        """Count a fault of the guard, log it once per kind and thread, or raise it.

        `thread` is the conversation that it befell, by default the running one.
        """
        thread = thread or _thread(_config())
        self.stats.add("faults")
        if not self._fail_open:
            raise error
        key = (f"{type(error).__module__}.{type(error).__qualname__}", thread)
        with self._lock:
            known = key in self._faults
            if len(self._faults) >= _MOST_FAULTS:
                self._faults.clear()
            self._faults.add(key)
        if known:
            return
        where = f" in thread {thread!r}" if thread else ""
        if isinstance(error, GuardStateError):
            logger.error("The loop guard can't read the counts%s: %s", where, error)
        else:
            logger.error(
                "The loop guard failed%s, the agent goes on unguarded.", where, exc_info=error
            )

    def _measure(self, name: str, amount: int, attributes: Mapping[str, str]) -> None:
        metrics = sys.modules.get("opentelemetry.metrics")
        if metrics is None:
            return
        try:
            metrics.get_meter("langchain_loopguard").create_counter(name).add(amount, attributes)
        except Exception:
            logger.debug("%s: nothing was counted", name, exc_info=True)


def _again(adapter: Adapter, fail_open: bool) -> Telemetry:
    return Telemetry(adapter, fail_open=fail_open)


class SignalFilter(logging.Filter):
    """Turns LangChain's "Error in ..." for a handler's own signals into an informative line.

    LangChain logs whatever leaves a callback handler as an error; a question, a refusal and an
    end leave it so on purpose. Everything else passes as it is, a fault of the guard too.
    """

    _announced = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        """Reword a record that is about the signal announced last; holds none back."""
        shown, does = getattr(self._announced, "signal", (None, ""))
        given = list(record.args) if isinstance(record.args, tuple) else []
        if shown is not None and len(given) == len(("class", "event", "error")):
            _, event, error = given
            if error == shown:
                record.msg, record.args = "The loop guard %s (%s); no error.", (does, event)
                record.levelno, record.levelname = logging.INFO, "INFO"
        return True

    @classmethod
    def announce(cls, error: Exception, does: str) -> None:
        """Note a signal, and what it does, right before a handler raises it in this thread."""
        target = logging.getLogger(_MANAGER)
        if not any(isinstance(known, cls) for known in target.filters):
            target.addFilter(cls())
        cls._announced.signal = (repr(error), does)


# --- Channels -------------------------------------------------------------------------------------


def _event(decision: Decision, outcome: Outcome, adapter: Adapter) -> dict[str, Any]:
    """Give the event in JSON types."""
    return {
        "type": EVENT,
        "adapter": adapter,
        "action": decision.action.name.lower(),
        "done": outcome.emit,
        "prevented": outcome.prevented,
        "thread": _thread(_config()),
        "message": decision.to_person,
        "findings": [finding.as_dict() for finding in decision.findings],
    }


def _to_stream(event: dict[str, Any], _: Decision) -> None:
    """Write to the graph's stream, for `stream_mode="custom"`."""
    config = sys.modules.get("langgraph.config")
    if config is None:
        return
    try:
        write = config.get_stream_writer()
    except (KeyError, RuntimeError):  # Not inside a graph.
        return
    write(event)


def _to_callbacks(event: dict[str, Any], _: Decision) -> None:
    """Call the handlers' `on_custom_event`, which `astream_events` shows too."""
    manager = sys.modules.get("langchain_core.callbacks.manager")
    config = _config()
    if manager is None or getattr(config.get("callbacks"), "parent_run_id", None) is None:
        return  # Not inside a run, so there is nobody to hear it.
    manager.dispatch_custom_event(EVENT, event, config=config)


def _to_run(event: dict[str, Any], _: Decision) -> None:
    """Tag the current LangSmith run and add metadata to it, to search and filter by."""
    langsmith = sys.modules.get("langsmith.run_helpers")
    run = langsmith.get_current_run_tree() if langsmith is not None else None
    if run is None:
        return
    run.add_metadata({f"{EVENT}_{name}": value for name, value in _flat(event).items()})
    tag = f"{EVENT}:{event['action']}"
    if tag not in (run.tags or ()):
        run.add_tags([tag])


def _to_otel_log(event: dict[str, Any], decision: Decision) -> None:
    """Write an OpenTelemetry event, which is a log record with a name, into the current trace.

    Names that the semantic conventions for generative AI have are used as they define them: a
    tool's name and a call's id are one call's, so they are left out where there are several.
    """
    logs = sys.modules.get("opentelemetry._logs")
    if logs is None:
        return
    config = _config()
    calls = decision.record.calls
    tools = decision.findings[0].tools
    known = {
        "gen_ai.tool.name": tools[0] if len(tools) == 1 else None,
        "gen_ai.tool.call.id": _id_of(calls[0]) if len(calls) == 1 else None,
        "gen_ai.agent.name": (config.get("metadata") or {}).get("lc_agent_name"),
        "gen_ai.conversation.id": _thread(config),
    }
    attributes = {f"{EVENT}.{name}": value for name, value in _flat(event).items()}
    attributes |= {name: str(value) for name, value in known.items() if value}
    logs.get_logger("langchain_loopguard").emit(
        severity_number=logs.SeverityNumber.WARN,
        body=event["message"],
        attributes=attributes,
        event_name=f"{EVENT}.finding",
    )


def _id_of(call: Any) -> Any:
    return call.get("id") if isinstance(call, dict) else getattr(call, "id", None)


def _config() -> Mapping[str, Any]:
    """Give the config of the run that this is called in, an empty one outside of runs."""
    runnables = sys.modules.get("langchain_core.runnables.config")
    return runnables.ensure_config() if runnables is not None else {}


def _thread(config: Mapping[str, Any]) -> str:
    """Read the id of the thread as a checkpointer knows it; metadata may say something else."""
    return str((config.get("configurable") or {}).get("thread_id") or "")


def _flat(event: dict[str, Any]) -> dict[str, Any]:
    """Give the strongest finding in values that runs and records can hold."""
    first = event["findings"][0]
    return {
        **{name: event[name] for name in ("adapter", "action", "done")},
        "rules": [finding["rule"] for finding in event["findings"]],
        **{name: first[name] for name in ("tools", "count", "threshold", "since")},
    }
