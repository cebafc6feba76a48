"""Which states, tools and agents does `add_loop_guard` run on?"""

import operator
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import pytest
from langchain.tools import ToolRuntime
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_loopguard import LoopGuardState, add_loop_guard
from tests.adapters.agents import looping
from tests.adapters.guarded import (
    assert_complete,
    assert_requests_complete,
    builder,
    builder_for,
    by_hand,
    compiled,
    owned,
    with_channel,
)
from tests.hosts import (
    Counter,
    ai_calls,
    ask,
    counting_tool,
    drive,
    every_mode,
    listed_model,
    repeating_model,
    thread,
)

SEARCH = ("search", {"q": "a"})
BATCH = [SEARCH, ("open", {"q": "b"})]
PARTLY = {"decisions": [{"type": "reject", "message": "no"}, {"type": "approve"}]}


# --- What tools nodes do --------------------------------------------------------------------------


@every_mode
async def test_tools_may_return_commands_and_read_their_runtime(mode):
    class State(MessagesState):
        pages: Annotated[list, operator.add]

    @tool
    async def search(q: str, runtime: ToolRuntime) -> Command:
        """Search."""
        page = f"{len(runtime.state['pages'])} {runtime.tool_call_id}"
        result = ToolMessage("error: 503", tool_call_id=runtime.tool_call_id)
        return Command(update={"pages": [page], "messages": [result]})

    @tool
    def plain(q: str, runtime: ToolRuntime) -> str:
        """Search."""
        return f"error: 503 {len(runtime.state['pages'])}"

    calls = [SEARCH, ("plain", {"q": "b"})] if mode.startswith("a") else [("plain", {"q": "b"})]
    model = repeating_model(*calls)
    tools = [search, plain] if mode.startswith("a") else [plain]
    graph = compiled(builder(model, tools, State))
    outcome = await drive(graph, mode, {**ask(), "pages": []}, thread("t"))
    assert outcome.interrupts
    assert len(outcome.values["pages"]) in {0, len(model.requests) - 1}
    assert_requests_complete(model)


def test_an_interrupt_inside_a_tool_has_its_own_answer_beside_the_guards():
    ran = []

    @tool
    def pay(q: str) -> str:
        """Pay."""
        ran.append(interrupt(f"pay for {q}?"))
        return "error: no money"

    model = repeating_model(("pay", {"q": "a"}))
    graph = compiled(builder(model, [pay]))
    result = graph.invoke(ask(), thread("t"))
    questions = []
    for answer in ("yes", "yes", "continue", "yes"):
        questions.append(result["__interrupt__"][0].value)
        result = graph.invoke(Command(resume=answer), thread("t"))
    kinds = [q if isinstance(q, str) else q["type"] for q in questions]
    assert kinds == ["pay for a?", "pay for a?", "loop_detected", "pay for a?"]
    assert ran == ["yes"] * 3
    assert_requests_complete(model)


def test_a_graph_wide_timeout_and_a_retry_policy_are_heeded():
    counter, model = Counter(), repeating_model()
    graph = StateGraph(MessagesState)
    if hasattr(graph, "set_node_defaults"):
        graph.set_node_defaults(timeout=5)

    async def agent(state):
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph.add_node("agent", agent)
    tools = ToolNode([counting_tool(counter)])
    graph.add_node("tools", tools, retry_policy=RetryPolicy(retry_on=Exception))
    graph.add_edge(START, "agent")
    graph = compiled(graph, on_detected="refuse")
    import asyncio

    result = asyncio.run(graph.ainvoke(ask(), thread("t")))
    assert counter.total == 2
    assert result["messages"][-1].text.startswith("Stopped.")


def test_tools_written_by_hand_see_an_ai_message_with_the_calls_to_run_last():
    class State(MessagesState):
        user: str

    seen = []

    def tools(state):
        last = state["messages"][-1]
        seen.append((state["user"], [call["name"] for call in last.tool_calls]))
        return {"messages": [ToolMessage("x", tool_call_id=c["id"]) for c in last.tool_calls]}

    model = listed_model(*[BATCH] * 3)
    graph, _, _ = looping(owned, model=model, tools_node=tools, schema=State)
    graph.invoke({**ask(), "user": "u"}, thread("t"))
    result = graph.invoke(Command(resume=PARTLY), thread("t"))
    assert seen == [("u", ["search", "open"])] * 2 + [("u", ["open"])]
    assert_complete(result["messages"])


def test_calls_that_the_tools_left_out_get_results():
    def only_the_first(state):
        call = state["messages"][-1].tool_calls[0]
        return {"messages": [ToolMessage("x", tool_call_id=call["id"])]}

    graph, _, model = looping(owned, model=listed_model(BATCH), tools_node=only_the_first)
    assert_complete(graph.invoke(ask(), thread("t"))["messages"])
    assert_requests_complete(model)


@pytest.mark.parametrize("build", [owned, with_channel, by_hand])
def test_tools_may_answer_with_an_image_only_or_besides(build):
    def image(state):
        runs.append(1)
        return {"messages": [HumanMessage("image", additional_kwargs={"lc_source": "media"})]}

    def besides(state):
        call = state["messages"][-1].tool_calls[0]
        return {"messages": [ToolMessage("x", tool_call_id=call["id"]), *image(state)["messages"]]}

    runs = []
    model = listed_model(*[[("search", {"q": str(turn)})] for turn in range(3)])
    model.respond = partial(_by_number, model.respond)
    graph, _, _ = looping(build, model=model, tools_node=image)
    assert graph.invoke(ask(), thread("t"))["messages"][-1].text == "done"
    assert len(runs) == 3
    graph, _, model = looping(build, tools_node=besides, model=repeating_model())
    model.respond = lambda messages: ai_calls(
        [SEARCH], sum(isinstance(message, AIMessage) for message in messages)
    )
    assert "__interrupt__" in graph.invoke(ask(), thread("t"))
    assert len(model.requests) == 3


def _by_number(respond, messages):
    return respond([m for m in messages if not m.additional_kwargs.get("lc_source")])


def test_an_agent_that_says_nothing_ends_the_run_and_a_note_hides_no_loop():
    graph, _, _ = looping(owned, agent_node=lambda _: {})
    assert [m.type for m in graph.invoke(ask(), thread("t"))["messages"]] == ["human"]

    def agent(state):
        turn = sum(isinstance(message, AIMessage) for message in state["messages"])
        return {"messages": [ai_calls([SEARCH], turn), SystemMessage("step noted")]}

    graph, counter, _ = looping(owned, agent_node=agent)
    assert "__interrupt__" in graph.invoke(ask(), thread("t"))
    assert counter.total == 2
    assert_complete(graph.invoke(Command(resume="stop"), thread("t"))["messages"])


def test_an_agent_that_gives_its_whole_history_saves_no_warning():
    counter, model = Counter(), repeating_model(times=12)

    def agent(state):
        return {"messages": [*state["messages"], model.invoke(state["messages"])]}

    graph = builder_for(model, [counting_tool(counter)], agent_node=agent)
    graph = compiled(graph, policy=None, on_detected="warn")
    messages = graph.invoke(ask(), thread("t"))["messages"]
    assert any("[Warning" in message.text for message in model.requests[-1])
    assert not any("[Warning" in message.text for message in messages)


# --- States ---------------------------------------------------------------------------------------


class Model(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages]
    user: str = "u"


@dataclass
class Data:
    messages: Annotated[list[AnyMessage], add_messages]
    user: str = "u"


class Appended(TypedDict):
    messages: Annotated[list, operator.add]


class AppendedAndCounts(Appended):
    loop_guard: dict


class Formatted(TypedDict):
    messages: Annotated[list, add_messages(format="langchain-openai")]


class Shortened(TypedDict):
    messages: Annotated[list, lambda left, right: add_messages(left, right)[-50:]]


SCHEMAS = [Model, Data, Appended, AppendedAndCounts, Formatted, Shortened, LoopGuardState]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("build", [owned, by_hand])
@pytest.mark.parametrize("value", ["stop", "continue", "use b", PARTLY])
def test_a_state_of_any_schema_works(build, schema, value):
    def agent(state):
        return {"messages": [model.invoke(getattr(state, "messages", None) or state["messages"])]}

    model = listed_model(*[BATCH] * 3)
    names = ("search", "open")
    graph, counter, _ = looping(build, model=model, names=names, schema=schema, agent_node=agent)
    assert "__interrupt__" in graph.invoke(ask(), thread("t"))
    result = graph.invoke(Command(resume=value), thread("t"))
    runs = {"stop": (2, 2), "continue": (3, 3), "use b": (2, 2)}.get(str(value), (2, 3))
    assert (counter.of("search"), counter.of("open")) == runs
    assert_complete(result["messages"])
    assert_requests_complete(model)


def test_a_reducer_that_only_appends_is_named_in_the_log(caplog):
    add_loop_guard(builder(schema=Appended))
    assert ["only appends" in record.getMessage() for record in caplog.records] == [True]


def test_messages_kept_as_mappings_are_guarded():
    def agent(state):
        function = {"name": "search", "arguments": '{"q": "a"}'}
        call = {"id": f"c{len(state['messages'])}", "type": "function", "function": function}
        return {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]}

    def tools(state):
        runs.append(1)
        last = state["messages"][-1]["tool_calls"][0]
        return {"messages": [{"role": "tool", "content": "error", "tool_call_id": last["id"]}]}

    runs = []
    graph = builder_for(repeating_model(), [], Appended, tools_node=tools, agent_node=agent)
    graph = compiled(graph)
    assert "__interrupt__" in graph.invoke({"messages": []}, thread("t"))
    assert len(runs) == 2
    result = graph.invoke(Command(resume="stop"), thread("t"))
    assert_complete(convert_to_messages(result["messages"]))


def test_open_calls_of_the_input_get_results_in_their_place():
    model = listed_model()
    graph = with_channel(model, [counting_tool(Counter())])
    step = ai_calls([("search", {"q": "a"}), ("search", {"q": "b"})], 1)
    first = ToolMessage("x", tool_call_id="call_1_0")
    given = [*ask()["messages"], step, first, *ask("next")["messages"]]
    messages = graph.invoke({"messages": given}, thread("t"))["messages"]
    assert [m.type for m in messages] == ["human", "ai", "tool", "tool", "human", "ai"]
    assert_complete(messages)
    before = list(messages)
    after = graph.invoke(ask("next"), thread("t"))["messages"]
    assert after[: len(before)] == before


def test_the_counts_are_json_small_and_no_part_of_the_output():
    import json

    for build, shown in ((owned, False), (with_channel, True)):
        graph, _, _ = looping(build, policy=None)
        result = graph.invoke(ask(), thread("t"))
        assert ("loop_guard" in result) is shown
        saved = graph.checkpointer.get_tuple(thread("t")).checkpoint["channel_values"]
        assert len(json.dumps(saved["loop_guard"])) < 4000
