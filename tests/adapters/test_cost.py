"""What is the person told that the loop has cost so far?"""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.utils.uuid import uuid7
from langgraph.types import Command

from langchain_loopguard import Action, Decision, Finding, LoopGuard, LoopGuardCallbackHandler
from langchain_loopguard.cost import cost_in_words, loop_cost
from langchain_loopguard.messages import MessageReader, refusal_messages
from tests.adapters.agents import guarded_agent
from tests.adapters.guarded import SEED, owned, with_channel
from tests.hosts import (
    MODES,
    Counter,
    ScriptedChatModel,
    agent_graph,
    ai_calls,
    ask,
    counting_tool,
    drive,
    thread,
    tool_node_graph,
)

USAGE = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
SECONDS = 1_000_000_000


def spoken(turn, usage=USAGE, name="search", **options):
    message = ai_calls([(name, {"q": "a"})], turn)
    return message.model_copy(update={"usage_metadata": usage, **options})


def answered(message):
    return [ToolMessage("503", tool_call_id=call["id"]) for call in message.tool_calls]


def conversation(*messages):
    """Put answers behind all AI messages but the last."""
    told = [HumanMessage("go", id="human")]
    for message in messages:
        told += [message, *answered(message)]
    return told[: -len(messages[-1].tool_calls)]


def found(messages, since):
    """Read a conversation, and say that a loop began at one of its batches."""
    reader = MessageReader(LoopGuard(SEED))
    reader.read(messages[:-1])
    record = reader.check(messages[-1]).record
    finding = Finding(
        "repeated_batch",
        Action.ASK,
        tools=["search"],
        count=3,
        threshold=3,
        since=since,
        loop="l",
        to_model="m",
        to_person="p",
    )
    return Decision(Action.ASK, (finding,), record)


def cost_of(messages, since):
    return loop_cost(found(messages, since), messages)


def at(seconds):
    return f"lc_run--{uuid7(seconds * SECONDS)}-0"


def test_calls_that_ran_and_model_calls_are_counted():
    messages = conversation(spoken(1), spoken(2), spoken(3))

    cost = cost_of(messages, since=1)

    assert (cost["calls"], cost["model_calls"]) == (2, 3)


def test_what_came_before_the_loop_costs_nothing():
    messages = conversation(spoken(0, name="look"), spoken(1), spoken(2), spoken(3))

    cost = cost_of(messages, since=2)

    assert (cost["calls"], cost["model_calls"]) == (2, 3)


def test_tokens_are_summed_from_the_messages():
    cost = cost_of(conversation(spoken(1), spoken(2), spoken(3)), since=1)

    assert {key: cost[key] for key in USAGE} == {key: 3 * value for key, value in USAGE.items()}


def test_tokens_that_no_message_tells_are_left_out():
    cost = cost_of(conversation(spoken(1, None), spoken(2, None)), since=1)

    assert not set(cost) & set(USAGE)


def test_tokens_that_one_message_does_not_tell_are_not_guessed():
    cost = cost_of(conversation(spoken(1), spoken(2, None), spoken(3)), since=1)

    assert cost["total_tokens"] == 220


@pytest.mark.parametrize(
    "usage", [{}, {"total_tokens": "many"}, {"total_tokens": -1}, {"total_tokens": True}, "none"]
)
def test_odd_usage_is_left_out(usage):
    cost = cost_of(conversation(spoken(1, usage), spoken(2, usage)), since=1)

    assert "total_tokens" not in cost


def test_refused_calls_did_not_run():
    first = spoken(1)
    refusals = refusal_messages(first.tool_calls, "no")
    messages = [HumanMessage("go", id="human"), first, *refusals, *conversation(spoken(2))[1:]]

    assert cost_of(messages, since=1)["calls"] == 0


def test_seconds_are_read_from_the_ids_of_the_messages():
    messages = conversation(spoken(1, id=at(1000)), spoken(2, id=at(1004)), spoken(3, id=at(1030)))

    assert cost_of(messages, since=1)["seconds"] == 30.0


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("a", "b"), id="no-uuid"),
        pytest.param((str(UUID(int=4, version=4)), str(UUID(int=5, version=4))), id="version-4"),
        pytest.param((at(20), at(10)), id="backwards"),
        pytest.param((None, None), id="none"),
    ],
)
def test_seconds_that_the_ids_do_not_tell_are_left_out(names):
    messages = conversation(spoken(1, id=names[0]), spoken(2, id=names[1]))

    assert "seconds" not in cost_of(messages, since=1)


def test_of_a_trimmed_history_the_rest_is_counted():
    messages = conversation(*[spoken(turn) for turn in range(1, 6)])
    decision = found(messages, since=1)

    cost = loop_cost(decision, [messages[0], *messages[-3:]])

    assert cost["model_calls"] == 2


def test_a_batch_that_is_not_among_the_messages_has_no_cost():
    messages = conversation(spoken(1), spoken(2))

    assert loop_cost(found(messages, since=1), messages[:-1]) == {}


def test_the_sentence_says_what_is_known():
    cost = {"calls": 1, "model_calls": 2, "total_tokens": 12345, "seconds": 3.5}

    assert cost_in_words(cost) == (
        "Since the loop began: 1 tool call, 2 model calls, 12,345 tokens, in 3.5 seconds."
    )


def test_the_sentence_leaves_out_what_is_not_known():
    assert (
        cost_in_words({"calls": 2, "model_calls": 3})
        == "Since the loop began: 2 tool calls, 3 model calls."
    )


# --- In the question, on each host ------------------------------------------------------------


def looping():
    def respond(messages):
        return spoken(sum(isinstance(message, AIMessage) for message in messages))

    return ScriptedChatModel(respond=respond), [counting_tool(Counter())]


def callback(build):
    return lambda saver: (
        build(*looping(), checkpointer=saver),
        [LoopGuardCallbackHandler(SEED)],
    )


HOSTS = {
    "callback-create_agent": callback(agent_graph),
    "callback-tool_node": callback(tool_node_graph),
    "middleware": lambda saver: (guarded_agent(*looping(), saver=saver), []),
    "node": lambda saver: (owned(*looping(), saver=saver), []),
    "node-schema": lambda saver: (with_channel(*looping(), saver=saver), []),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("host", HOSTS)
async def test_the_question_says_what_the_loop_has_cost(host, mode):
    from langgraph.checkpoint.memory import InMemorySaver

    graph, handlers = HOSTS[host](InMemorySaver())

    outcome = await drive(graph, mode, ask(), thread("t", *handlers))

    question = json.loads(json.dumps(outcome.interrupts[-1].value))
    finding, cost = question["findings"][0], question["cost"]
    assert cost["calls"] == finding["count"] - 1
    assert cost["model_calls"] == finding["count"]
    assert cost["seconds"] >= 0
    if "stream" not in mode:
        # The scripted model's chunks carry no usage.
        assert cost["total_tokens"] == finding["count"] * USAGE["total_tokens"]
    assert question["message"].endswith(cost_in_words(cost))


@pytest.mark.parametrize("host", HOSTS)
def test_after_an_approval_the_cost_is_counted_anew(host):
    from langgraph.checkpoint.memory import InMemorySaver

    graph, handlers = HOSTS[host](InMemorySaver())
    config = thread("t", *handlers)
    first = graph.invoke(ask(), config)["__interrupt__"][0].value

    second = graph.invoke(Command(resume="continue"), config)["__interrupt__"][0].value

    begun = second["findings"][0]["since"] - first["findings"][0]["since"]
    assert begun > 0
    assert second["cost"]["model_calls"] == second["findings"][0]["count"]
