"""Does each adapter tell what is found in the model's prose?"""

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_loopguard import LoopGuardCallbackHandler, LoopGuardMiddleware
from langchain_loopguard.messages import NOTICE_MARK
from tests.adapters.guarded import owned
from tests.hosts import (
    MODES,
    Counter,
    ScriptedChatModel,
    agent_graph,
    ai_calls,
    ask,
    assert_valid_history,
    counting_tool,
    drive,
    thread,
)

SAID = "I will look at the file."


def handler(model, tools):
    graph = agent_graph(model, tools, checkpointer=InMemorySaver())
    return graph, [LoopGuardCallbackHandler()]


def node(model, tools):
    return owned(model, tools, policy=None), []


def middleware(model, tools):
    guard = LoopGuardMiddleware()
    return agent_graph(model, tools, middleware=[guard], checkpointer=InMemorySaver()), []


async def told_after(host, mode, times, caplog, *, speaks=None):
    """What the model is told behind its first call, when it said the same so often before."""
    counter = Counter()

    def respond(messages) -> AIMessage:
        said = sum(isinstance(message, AIMessage) for message in messages)
        if said == times:
            return ai_calls([("read_file", {"q": "a.py"})], 0)
        return AIMessage(SAID if said < times else "done")

    graph, handlers = host(
        ScriptedChatModel(respond=respond), [counting_tool(counter, "read_file")]
    )
    config = thread("1", *handlers)
    for turn in range(times + 1):
        new = ask(SAID) if turn in {0, speaks} else {"messages": []}
        outcome = await drive(graph, mode, new, config)
    assert_valid_history(outcome.messages)
    assert counter.total == 1
    logged = [record for record in caplog.records if "said the same thing" in record.getMessage()]
    return str(outcome.messages[-2].content), len(logged)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("host", [handler, node, middleware])
async def test_the_same_prose_six_times_is_told_with_the_next_batch(host, mode, caplog):
    told, logged = await told_after(host, mode, 6, caplog)
    assert NOTICE_MARK in told
    assert "You have said this several times" in told
    assert logged == 1


@pytest.mark.parametrize("host", [handler, node, middleware])
async def test_five_times_are_nothing_to_tell(host, caplog):
    told, logged = await told_after(host, "invoke", 5, caplog)
    assert (NOTICE_MARK in told, logged) == (False, 0)


@pytest.mark.parametrize("host", [handler, node, middleware])
@pytest.mark.parametrize("speaks", [3, 6])
async def test_a_person_who_speaks_in_between_clears_it(host, speaks, caplog):
    told, logged = await told_after(host, "invoke", 6, caplog, speaks=speaks)
    assert (NOTICE_MARK in told, logged) == (False, 0)
