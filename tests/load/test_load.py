"""A small part of what `python -m tests.load.run` does."""

from __future__ import annotations

import functools
import gc
import tracemalloc

import pytest

from langchain_loopguard import LoopGuardCallbackHandler
from langchain_loopguard.adapters import conversations
from tests.hosts import Counter, agent_graph, ask, counting_tool, listed_model
from tests.load.crowd import WAYS, crowd, guards
from tests.load.soak import KINDS, soak

# In the first 30,000 batches the tables of known names fill, a thousand names each.
BATCHES = {"guard": 40_000, "handler-tools": 3_000, "handler-chains": 800, "handler-agents": 800}

NOTED = 200
"""AI messages that are remembered as decided about; as many as usual would take an hour to fill."""

soaked = functools.cache(soak)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("guard", [guard for guard in guards() if guard != "none"])
def test_a_crowd_shares_a_guard_and_no_count(guard, way):
    done = crowd(guard, way, users=24, steps=12)
    assert done.wrong == []
    assert done.left == {}


@pytest.mark.parametrize("kind", KINDS)
def test_memory_stays_what_it_is(kind, monkeypatch):
    monkeypatch.setattr(conversations, "_NOTED", NOTED)
    done = soaked(kind, BATCHES[kind], traced=True)
    assert done.wrong == []
    assert done.left == {}
    # Over half of the batches, so it is less than 10 bytes a batch, beside what other threads of
    # the test run may ask for meanwhile.
    assert done.growth < BATCHES[kind] / 2 * 10 + 65_536


def test_the_state_of_a_guard_stays_small():
    assert 0 < soaked("guard", BATCHES["guard"], traced=True).state <= 8 * 1024


def test_a_handler_keeps_no_results_of_steps_that_are_done():
    # It would grow by what the tools answer, times the conversations that it remembers.
    size, steps = 100_000, 20

    def play(handlers) -> None:
        # Other answers each time, and so other objects.
        tool = counting_tool(Counter(), answer=lambda number: chr(96 + number) * size)
        model = listed_model(*[[("search", {"q": str(step)})] for step in range(steps)])
        config = {"callbacks": handlers, "configurable": {"thread_id": "t"}}
        agent_graph(model, [tool]).invoke(ask(), {**config, "recursion_limit": 100})

    handler = LoopGuardCallbackHandler(on_detected="warn", fail_open=False)
    # What is imported at the first use is none of the handler's keeping.
    play([LoopGuardCallbackHandler(on_detected="warn", fail_open=False)])
    gc.collect()
    tracemalloc.start()
    try:
        play([handler])
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(handler._deciding._conversations._idle) <= 1
    # One answer may be kept, that of the batch that was last, beside what names the calls.
    assert kept < 4 * size
