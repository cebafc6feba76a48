"""Does everybody who listens hear of an event, once, and of a fault?"""

import copy
import logging
import pickle

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from opentelemetry import _logs, metrics
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from langchain_loopguard.core.decision import Action
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.langchain.messages import last_step
from langchain_loopguard.langchain.options import Options
from langchain_loopguard.langchain.outcome import decide
from langchain_loopguard.langchain.telemetry import SignalFilter, Telemetry
from tests.langchain.made import LOOK, decision, said


@pytest.fixture
def otel(monkeypatch):
    logs, measures = InMemoryLogRecordExporter(), InMemoryMetricReader()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(logs))
    meters = MeterProvider([measures])
    monkeypatch.setattr(_logs, "get_logger", provider.get_logger)
    monkeypatch.setattr(metrics, "get_meter", meters.get_meter)
    return logs, measures


def carry(telemetry, action=Action.ASK, mode="refuse", *, is_new=True):
    step = last_step([said(1, LOOK, LOOK)])
    outcome = decide(decision(action), step, mode=mode, can_ask=True, options=Options())
    telemetry.emit(decision(action), outcome, is_new=is_new)


def test_an_event_is_a_log_record_of_opentelemetry(otel):
    telemetry = Telemetry("node")
    config = {"configurable": {"thread_id": "t7"}, "metadata": {"lc_agent_name": "writer"}}
    RunnableLambda(lambda _: carry(telemetry)).invoke(1, config)
    (log,) = otel[0].get_finished_logs()
    record = log.log_record
    assert record.event_name == "loop_guard.finding"
    assert record.attributes["gen_ai.tool.name"] == "look"
    assert record.attributes["gen_ai.tool.call.id"] == "c1"
    assert record.attributes["gen_ai.agent.name"] == "writer"
    assert record.attributes["gen_ai.conversation.id"] == "t7"
    assert record.attributes["loop_guard.done"] == "refused"


def test_findings_and_prevented_calls_are_counters(otel):
    telemetry = Telemetry("node")
    carry(telemetry)
    carry(telemetry)
    (resource,) = otel[1].get_metrics_data().resource_metrics
    points = {
        metric.name: metric.data.data_points[0]
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert points["loop_guard.findings"].value == 2
    assert dict(points["loop_guard.findings"].attributes) == {
        "rule": "same_answer",
        "action": "refused",
    }
    assert points["loop_guard.calls_prevented"].value == 4


def test_what_was_emitted_before_is_counted_only(otel, caplog):
    telemetry = Telemetry("node")
    carry(telemetry, is_new=False)
    assert telemetry.stats.read()["refused"] == 1
    assert not otel[0].get_finished_logs()
    assert not caplog.records


def test_handlers_hear_a_custom_event():
    heard = []

    class Ear(BaseCallbackHandler):
        def on_custom_event(self, name, data, **kwargs):
            heard.append((name, data["done"]))

    telemetry = Telemetry("callback")
    RunnableLambda(lambda _: carry(telemetry, mode="warn")).invoke(1, {"callbacks": [Ear()]})
    assert heard == [("loop_guard", "warned")]


def test_the_log_line_carries_the_event(caplog):
    carry(Telemetry("node"), mode="observe")
    (record,) = caplog.records
    assert record.loop_guard["done"] == "observed"
    assert record.levelname == "WARNING"


def test_a_fault_is_logged_once_per_kind_and_thread(caplog):
    telemetry = Telemetry("node")
    for thread in ("a", "a", "b"):
        telemetry.fault(ValueError("x"), thread)
    telemetry.fault(GuardStateError("y"), "a")
    assert len(caplog.records) == 3
    assert telemetry.stats.read()["faults"] == 4


def test_a_fault_is_raised_where_that_is_wanted():
    with pytest.raises(ValueError, match="x"):
        Telemetry("node", fail_open=False).fault(ValueError("x"))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301
def test_a_copy_has_counted_nothing(again):
    telemetry = Telemetry("node")
    telemetry.stats.add("checked")
    assert not any(again(telemetry).stats.read().values())


@pytest.mark.parametrize("is_signal", [True, False])
def test_a_signal_of_a_handler_is_not_logged_as_an_error(caplog, is_signal):
    class OwnHandler(BaseCallbackHandler):
        raise_error = True

        def on_chain_start(self, *args, **kwargs):
            error = KeyError(f"signal {is_signal}")
            if is_signal:
                SignalFilter.announce(error, "asks a person")
            raise error

    with caplog.at_level(logging.INFO), pytest.raises(KeyError):
        RunnableLambda(str).invoke(1, {"callbacks": [OwnHandler()]})
    (record,) = caplog.records
    said = "The loop guard asks a person (on_chain_start); no error."
    assert (record.getMessage() == said) is is_signal
    assert record.levelname == ("INFO" if is_signal else "WARNING")
