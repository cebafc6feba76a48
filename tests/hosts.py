"""Which hosts does the guard run on, and what do they need to run without a provider?

Scripted chat models (`models.py`), tools that count, and one small builder for each host. The
hosts are the real ones: only the model's answers are made up.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel

from tests.models import (
    ScriptedChatModel,
    ai_calls,
    listed_model,
    repeating_model,
    turns_since_human,
)

# --- Tools ------------------------------------------------------------------------------------


@dataclass
class Counter:
    """Counts how often tool bodies ran, by tool name."""

    runs: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, args: Mapping[str, Any]) -> int:
        """Note one run; gives its number for this tool, from 1."""
        with self._lock:
            self.runs.append((name, dict(args)))
            return sum(run[0] == name for run in self.runs)

    def of(self, name: str) -> int:
        """Say how often this tool's body ran."""
        with self._lock:
            return sum(run[0] == name for run in self.runs)

    @property
    def total(self) -> int:
        """Say how often any body ran."""
        return len(self.runs)


class Question(BaseModel):
    """The arguments of `name(q)`, which are made once and not for each tool."""

    q: str = ""


def counting_tool(
    counter: Counter,
    name: str = "search",
    answer: str | Callable[[int], Any] = "error: 503 service unavailable",
    *,
    native_async: bool = False,
    **options: Any,
) -> BaseTool:
    """Make a tool `name(q)` that counts its runs; `answer` may depend on the run's number."""

    def body(q: str = "") -> Any:
        number = counter.add(name, {"q": q})
        return answer(number) if callable(answer) else answer

    async def abody(q: str = "") -> Any:
        await asyncio.sleep(0)
        return body(q)

    return StructuredTool.from_function(
        func=body,
        coroutine=abody if native_async else None,
        name=name,
        description=f"The tool {name}.",
        **{"args_schema": Question, **options},
    )


# --- Hosts ------------------------------------------------------------------------------------


def agent_graph(
    model: BaseChatModel, tools: Sequence[BaseTool], *, checkpointer: Any = None, **options: Any
) -> Any:
    """Build an agent with `create_agent`: one task for each tool call."""
    from langchain.agents import create_agent

    return create_agent(model, list(tools), checkpointer=checkpointer, **options)


def tool_node_graph(
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    *,
    checkpointer: Any = None,
    **tool_node_options: Any,
) -> Any:
    """Build agent and `ToolNode` in a `StateGraph`: one task for the whole batch."""
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    bound = model.bind_tools(list(tools))

    def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    async def aagent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", RunnableLambda(agent, aagent))
    builder.add_node("tools", ToolNode(list(tools), **tool_node_options))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=checkpointer)


def lcel_chain(model: BaseChatModel, tools: Sequence[BaseTool]) -> Runnable:
    """Build one round of `model | tools` as a chain: message list in, new messages out."""
    by_name = {tool.name: tool for tool in tools}
    bound = model.bind_tools(list(tools))

    def call_tools(message: AIMessage) -> list[BaseMessage]:
        answers = [by_name[call["name"]].invoke(call) for call in message.tool_calls]
        return [message, *answers]

    async def acall_tools(message: AIMessage) -> list[BaseMessage]:
        answers = [await by_name[call["name"]].ainvoke(call) for call in message.tool_calls]
        return [message, *answers]

    return bound | RunnableLambda(call_tools, acall_tools)


def agent_executor(model: BaseChatModel, tools: Sequence[BaseTool], **options: Any) -> Runnable:
    """Build an `AgentExecutor` of langchain-classic around a tool-calling agent."""
    from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
    from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

    prompt = ChatPromptTemplate.from_messages(
        [("human", "{input}"), MessagesPlaceholder("agent_scratchpad")]
    )
    agent = create_tool_calling_agent(model, list(tools), prompt)
    return AgentExecutor(agent=agent, tools=list(tools), **options)


def functional_agent(
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    *,
    checkpointer: Any = None,
    native_async: bool = False,
) -> Any:
    """Build the same agent in the functional API: every call is a task of its own."""
    from langgraph.func import entrypoint, task
    from langgraph.graph.message import add_messages

    by_name = {tool.name: tool for tool in tools}
    bound = model.bind_tools(list(tools))

    if native_async:

        @task
        async def acall_model(messages: list[BaseMessage]) -> AIMessage:
            return await bound.ainvoke(messages)

        @task
        async def acall_tool(call: dict[str, Any]) -> ToolMessage:
            return await by_name[call["name"]].ainvoke(call)

        @entrypoint(checkpointer=checkpointer)
        async def async_agent(messages: list[BaseMessage]) -> list[BaseMessage]:
            answer = await acall_model(messages)
            while answer.tool_calls:
                results = await asyncio.gather(*(acall_tool(call) for call in answer.tool_calls))
                messages = add_messages(messages, [answer, *results])
                answer = await acall_model(messages)
            return add_messages(messages, [answer])

        return async_agent

    @task
    def call_model(messages: list[BaseMessage]) -> AIMessage:
        return bound.invoke(messages)

    @task
    def call_tool(call: dict[str, Any]) -> ToolMessage:
        return by_name[call["name"]].invoke(call)

    @entrypoint(checkpointer=checkpointer)
    def agent(messages: list[BaseMessage]) -> list[BaseMessage]:
        answer = call_model(messages).result()
        while answer.tool_calls:
            futures = [call_tool(call) for call in answer.tool_calls]
            results = [future.result() for future in futures]
            messages = add_messages(messages, [answer, *results])
            answer = call_model(messages).result()
        return add_messages(messages, [answer])

    return agent


def agent_as_tool(agent: Any, name: str = "task") -> BaseTool:
    """Wrap an agent as a tool `name(q)` of another agent, as multi-agent systems do."""

    def run(q: str = "") -> str:
        result = agent.invoke({"messages": [HumanMessage(q or "go")]})
        return str(result["messages"][-1].content)

    async def arun(q: str = "") -> str:
        result = await agent.ainvoke({"messages": [HumanMessage(q or "go")]})
        return str(result["messages"][-1].content)

    return StructuredTool.from_function(
        func=run, coroutine=arun, name=name, description=f"Hands work to the agent {name}."
    )


GRAPHS: dict[str, Callable[..., Any]] = {
    "create_agent": agent_graph,
    "tool_node": tool_node_graph,
}
"""The hosts with a graph state, by test id."""

MODES = ("invoke", "ainvoke", "stream", "astream")
"""The ways to run a graph or chain."""

every_graph = pytest.mark.parametrize("host", GRAPHS)
every_mode = pytest.mark.parametrize("mode", MODES)
every_graph_and_mode = pytest.mark.parametrize(
    ("host", "mode"),
    [(host, mode) for host in GRAPHS for mode in (MODES if host == "create_agent" else MODES[::3])],
)
"""All ways on one host; on the other the two that share no code, `invoke` and `astream`."""


# --- Running ----------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What a run left behind."""

    values: Any
    """The last state (or output) that the host gave."""
    interrupts: tuple[Any, ...] = ()
    """The interrupts that ended the run, in the order in which they appeared."""

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages of the last state."""
        return list(self.values["messages"])


async def drive(graph: Any, mode: str, value: Any, config: Mapping[str, Any]) -> Outcome:
    """Run a graph in one of `MODES` and give its last state and its interrupts.

    `invoke` and `stream` run in a thread of their own, so that they are truly synchronous.
    """
    if mode == "invoke":
        return _outcome(await asyncio.to_thread(graph.invoke, value, config))
    if mode == "ainvoke":
        return _outcome(await graph.ainvoke(value, config))
    stream_mode = ["values", "messages"]
    if mode == "stream":
        chunks = await asyncio.to_thread(
            lambda: list(graph.stream(value, config, stream_mode=stream_mode))
        )
    else:
        chunks = [item async for item in graph.astream(value, config, stream_mode=stream_mode)]
    values: dict[str, Any] = {}
    interrupts: list[Any] = []
    for kind, chunk in chunks:
        if kind == "values":
            interrupts.extend(chunk.get("__interrupt__", ()))
            values = {**values, **{k: v for k, v in chunk.items() if k != "__interrupt__"}}
    return Outcome(values, tuple(interrupts))


def _outcome(result: Any) -> Outcome:
    if isinstance(result, dict):
        return Outcome(
            {key: value for key, value in result.items() if key != "__interrupt__"},
            tuple(result.get("__interrupt__", ())),
        )
    return Outcome(result)


def thread(name: str, *handlers: Any, **options: Any) -> dict[str, Any]:
    """Make the config of one conversation."""
    return {
        "configurable": {"thread_id": name},
        "callbacks": list(handlers),
        "recursion_limit": 60,
        **options,
    }


def ask(text: str = "go") -> dict[str, Any]:
    """Make the input of one user turn."""
    return {"messages": [HumanMessage(text)]}


# --- Checks -----------------------------------------------------------------------------------


def assert_valid_history(messages: Sequence[BaseMessage]) -> None:
    """Check that every tool call is answered exactly once, directly after its AI message.

    Providers refuse any other history.
    """
    index = 0
    while index < len(messages):
        message = messages[index]
        assert not isinstance(message, ToolMessage), f"an answer without a call at {index}"
        index += 1
        if not isinstance(message, AIMessage):
            continue
        wanted = sorted(str(call["id"]) for call in message.tool_calls)
        answered = []
        while index < len(messages) and isinstance(messages[index], ToolMessage):
            answered.append(str(messages[index].tool_call_id))
            index += 1
        assert sorted(answered) == wanted, f"calls {wanted} are answered by {sorted(answered)}"


def open_calls(messages: Sequence[BaseMessage]) -> list[str]:
    """List the ids of the tool calls without an answer."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    return [
        str(call["id"])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["id"] not in answered
    ]


__all__ = [
    "GRAPHS",
    "MODES",
    "Counter",
    "Outcome",
    "ScriptedChatModel",
    "agent_as_tool",
    "agent_executor",
    "agent_graph",
    "ai_calls",
    "ask",
    "assert_valid_history",
    "counting_tool",
    "drive",
    "every_graph",
    "every_graph_and_mode",
    "every_mode",
    "functional_agent",
    "lcel_chain",
    "listed_model",
    "open_calls",
    "repeating_model",
    "thread",
    "tool_node_graph",
    "turns_since_human",
]
