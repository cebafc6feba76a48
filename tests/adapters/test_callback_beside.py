"""Does the handler decide beside other middleware, wrappers of the model and other people?"""

from __future__ import annotations

import pytest
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelRetryMiddleware,
    ToolRetryMiddleware,
    wrap_tool_call,
)
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from langchain_loopguard import LoopGuardCallbackHandler, LoopGuardPolicy
from tests.adapters.handled import (
    Looping,
    graph_of,
    handler,
    make,
    marks_a_persons_answer,
    since_langchain_1_3_15,
)
from tests.hosts import (
    GRAPHS,
    Counter,
    ScriptedChatModel,
    ai_calls,
    ask,
    assert_valid_history,
    counting_tool,
    drive,
    every_graph,
    every_mode,
    repeating_model,
    thread,
)


@since_langchain_1_3_15
@every_mode
async def test_retries_of_middleware_swallow_no_decision(mode):
    ran, model = Counter(), repeating_model()
    retries = [
        ToolRetryMiddleware(max_retries=2, initial_delay=0),
        ModelRetryMiddleware(max_retries=2, initial_delay=0),
    ]
    graph, config = make("create_agent", model, ran, middleware=retries), thread("t", handler())
    assert len((await drive(graph, mode, ask(), config)).interrupts) == 1
    await drive(graph, mode, Command(resume="stop"), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert messages[-1].content.startswith("Stopped.")
    assert (len(model.requests), ran.total) == (3, 2)


@wrap_tool_call
async def error_to_text(request, call):
    """Turn every exception into a result, as LangChain's documentation has it."""
    try:
        return await call(request)
    except Exception as error:  # noqa: BLE001 - that is the point
        return ToolMessage(f"Tool error: {error}", tool_call_id=request.tool_call["id"])


@pytest.mark.parametrize(
    ("answer", "calls", "ends"), [("stop", 2, True), ("continue", 4, False), ("Try b.", 4, False)]
)
async def test_a_question_that_is_swallowed_is_asked_again_at_the_model(answer, calls, ends):
    agent = Looping("create_agent", build={"middleware": [error_to_text]})
    assert len((await agent.play("ainvoke")).interrupts) == 1
    assert agent.ran.total == 2
    assert agent.guard.stats()["lost"] == 1
    assert "a person is asked first" in agent.results(1)[0].content
    outcome = await agent.resume("ainvoke", answer)
    assert bool(outcome.interrupts) is not ends
    assert agent.ran.total == calls
    if ends:
        assert agent.messages[-1].content.startswith("Stopped.")


WRAPPERS = {
    "with_retry": lambda m: m.with_retry(stop_after_attempt=2, wait_exponential_jitter=False),
    "with_fallbacks": lambda model: model.with_fallbacks([model]),
}


@pytest.mark.parametrize("call", [("search", {"q": "a"}), ("no_such_tool", {})])
@pytest.mark.parametrize("wrap", WRAPPERS)
def test_wrappers_of_the_model_undo_neither_a_question_nor_a_stop(wrap, call):
    model = repeating_model(call)
    wrapped = WRAPPERS[wrap](model)
    graph = graph_of(
        lambda state: {"messages": [wrapped.invoke(state["messages"])]}, [counting_tool(Counter())]
    )
    config = thread("t", handler())
    assert len(graph.invoke(ask(), config)["__interrupt__"]) == 1
    asked = len(model.requests)
    messages = graph.invoke(Command(resume="stop"), config)["messages"]
    assert messages[-1].content.startswith("Stopped.")
    assert_valid_history(messages)
    assert len(model.requests) == asked


@pytest.mark.parametrize(
    ("decision", "runs", "found"),
    [
        ({"type": "approve"}, 2, True),
        pytest.param({"type": "reject"}, 0, False, marks=marks_a_persons_answer),
    ],
)
def test_what_a_person_decides_elsewhere_is_counted_once_or_not_at_all(decision, runs, found):
    ran = Counter()
    other = HumanInTheLoopMiddleware(interrupt_on={"search": True})
    graph = make("create_agent", repeating_model(), ran, middleware=[other])
    config = thread("t", handler())
    result = graph.invoke(ask(), config)
    for _ in range(3):
        assert "type" not in result["__interrupt__"][0].value
        result = graph.invoke(Command(resume={"decisions": [decision]}), config)
    assert (result["__interrupt__"][0].value.get("type") == "loop_detected") is found
    assert ran.total == runs


def test_a_history_is_read_anew_in_each_of_nine_processes():
    ran = Counter()
    graph = make("create_agent", repeating_model(), ran)
    for process in range(9):
        guard = LoopGuardCallbackHandler(LoopGuardPolicy(), fail_open=False)
        try:
            result = graph.invoke(None if process else ask(), thread("t", guard, recursion_limit=2))
        except GraphRecursionError:
            continue
        break
    assert "__interrupt__" in result
    assert ran.total < 9


# --- The default policy on agents that heed no advice -----------------------------------------


def endless(*steps):
    """Make a model that takes the steps in turn, for ever."""

    def respond(messages):
        turn = sum(isinstance(message, AIMessage) for message in messages)
        return ai_calls(steps[turn % len(steps)], turn)

    return ScriptedChatModel(respond=respond)


S, D, T = ("shell", {"q": "ls"}), ("diff", {"q": ""}), ("tests", {"q": ""})


@pytest.mark.parametrize("on_detected", ["interrupt", "refuse"])
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([[S], [D], [S], [T]], id="rotation"),
        pytest.param([[S, D], [D, S]], id="parallel in either order"),
        pytest.param([[("no_such_tool", {})]], id="a missing tool"),
    ],
)
@every_graph
def test_the_default_policy_ends_it_with_a_valid_history(host, steps, on_detected):
    tools = [
        counting_tool(Counter(), name, f"{name}: as ever") for name in ("shell", "diff", "tests")
    ]
    graph = GRAPHS[host](endless(*steps), tools, checkpointer=InMemorySaver())
    guard = LoopGuardCallbackHandler(on_detected=on_detected, fail_open=False)
    config = thread("t", guard, recursion_limit=200)
    graph.invoke(ask(), config)
    if on_detected == "interrupt":
        graph.invoke(Command(resume="stop"), config)
    messages = graph.get_state(config).values["messages"]
    assert_valid_history(messages)
    assert messages[-1].content.startswith("Stopped.")
    assert sum(isinstance(message, AIMessage) for message in messages) <= 25
