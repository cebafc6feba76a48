"""Writes files of `tests/data/formats` with the software whose format they are: frameworks.

Run by hand where the packages of one software are installed, whose versions the functions name:
`python -m tests.replay.readers.write_samples pydantic_ai smolagents`. Each file tells about the
same run: two calls in one step, a call that fails, and a last one. `write_more_samples` has the
benchmarks and the programs.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import sys
from pathlib import Path

OUT = Path(__file__).parents[2] / "data" / "formats"
TEXT = "three hits"
STEPS = (
    [("search", {"query": "a"}), ("read_file", {"path": "b"})],
    [("search", {"query": "broken"})],
    [("search", {"query": "a"})],
)
"""The calls of each step; the query `broken` fails."""


def search(query: str) -> str:
    """Search the notes.

    Args:
        query: What to look for.
    """
    if query == "broken":
        raise ValueError("the index is broken")
    return TEXT


def read_file(path: str) -> str:
    """Read a file.

    Args:
        path: Which file.
    """
    return f"the text of {path}"


def save(name: str, text: str | bytes) -> None:
    """Write a file, without the paths of the machine that it was made on."""
    if isinstance(text, bytes) and name.endswith(".eval"):
        (OUT / name).write_bytes(text)
        return
    told = text.decode() if isinstance(text, bytes) else text
    told = re.sub(r"(?:/[\w.-]+)+/(?=site-packages|lib/python|write_samples)", "", told)
    told = told.replace(str(Path.home()), "~")
    (OUT / name).write_text(told, encoding="utf-8")


def answer_of(args: dict) -> str:
    """Say what the tools of the story give back."""
    try:
        return search(**args) if "query" in args else read_file(**args)
    except ValueError as error:
        return f"Error: {error}"


def pydantic_ai() -> None:
    """pydantic-ai-slim 2.68: messages, and the spans of its instrumentation as OTLP JSON."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.agent import InstrumentationSettings
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages, info):
        done = sum(isinstance(message, ModelResponse) for message in messages)
        if done >= len(STEPS):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(
            parts=[
                ToolCallPart(name, args, tool_call_id=f"c{done}{at}")
                for at, (name, args) in enumerate(STEPS[done])
            ]
        )

    def search_or_retry(query: str) -> str:
        try:
            return search(query)
        except ValueError as error:
            raise ModelRetry(str(error)) from error

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    agent = Agent(FunctionModel(answer), name="finder")
    agent.instrument = InstrumentationSettings(tracer_provider=provider)
    agent.tool_plain(name="search")(search_or_retry)
    agent.tool_plain(read_file)
    result = agent.run_sync("find it")
    save("pydantic_ai.json", result.all_messages_json())
    save("otlp_pydantic_ai.json", json.dumps(otlp(exporter.get_finished_spans())))


def otlp(spans) -> dict:
    """Encode spans as the OTLP exporter does, with ids in hex as OTLP JSON asks for."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    def hexed(value):
        if isinstance(value, dict):
            return {
                key: base64.b64decode(item).hex()
                if key in {"traceId", "spanId", "parentSpanId"}
                else hexed(item)
                for key, item in value.items()
            }
        return [hexed(item) for item in value] if isinstance(value, list) else value

    return hexed(MessageToDict(encode_spans(spans)))


def openinference() -> None:
    """openinference-instrumentation-langchain 0.1.80 on a LangGraph agent: spans as JSON lines."""
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools, **kwargs):
            return self

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    LangChainInstrumentor().instrument(tracer_provider=provider)
    messages = [
        AIMessage("", tool_calls=[
            {"name": name, "args": args, "id": f"c{number}{at}"}
            for at, (name, args) in enumerate(step)
        ])
        for number, step in enumerate(STEPS)
    ]  # fmt: skip
    from langchain.agents.middleware import wrap_tool_call
    from langchain_core.messages import ToolMessage

    @wrap_tool_call
    def told(request, handler):
        try:
            return handler(request)
        except ValueError as error:
            return ToolMessage(str(error), tool_call_id=request.tool_call["id"], status="error")

    agent = create_agent(
        Scripted(messages=iter([*messages, AIMessage("done")])),
        [tool(search), tool(read_file)], middleware=[told],
    )  # fmt: skip
    agent.invoke({"messages": [("user", "find it")]})
    spans = exporter.get_finished_spans()
    save("openinference_langchain.jsonl", "".join(s.to_json(indent=None) + "\n" for s in spans))


def smolagents() -> None:
    """smolagents, a tool-calling agent and a code agent."""
    from smolagents import CodeAgent, Model, ToolCallingAgent, tool
    from smolagents.models import (
        ChatMessage,
        ChatMessageToolCall,
        ChatMessageToolCallFunction,
        MessageRole,
    )

    class Scripted(Model):
        def __init__(self, answers):
            super().__init__(model_id="scripted")
            self.answers = list(answers)

        def generate(self, messages, **kwargs):
            return self.answers.pop(0)

    def calls(number, step):
        return ChatMessage(
            role=MessageRole.ASSISTANT, content="",
            tool_calls=[
                ChatMessageToolCall(
                    id=f"c{number}{at}", type="function",
                    function=ChatMessageToolCallFunction(name=name, arguments=args),
                )
                for at, (name, args) in enumerate(step)
            ],
        )  # fmt: skip

    end = [("final_answer", {"answer": "done"})]
    answers = [calls(number, step) for number, step in enumerate([*STEPS, end])]
    agent = ToolCallingAgent(
        tools=[tool(search), tool(read_file)],
        model=Scripted(answers),
        max_steps=6,
        verbosity_level=0,
    )
    result = agent.run("find it", return_full_result=True)
    save("smolagents.json", json.dumps(result.dict(), default=str))
    codes = ["search('a')", "search('broken')", "search('a')"]
    texts = [ChatMessage(role=MessageRole.ASSISTANT, content=f"<code>\nprint({c})\n</code>")
             for c in codes]  # fmt: skip
    agent = CodeAgent(
        tools=[tool(search)], model=Scripted([*texts, *texts]), max_steps=3, verbosity_level=0
    )
    with contextlib.suppress(Exception):
        agent.run("find it", return_full_result=True)
    save("smolagents_code.json", json.dumps(agent.memory.get_full_steps(), default=str))


def autogen() -> None:
    """autogen-agentchat and autogen-ext 0.7.5, with their replay client."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_core import CancellationToken, FunctionCall
    from autogen_core.models import CreateResult, RequestUsage
    from autogen_ext.models.replay import ReplayChatCompletionClient

    made = [
        CreateResult(
            finish_reason="function_calls", usage=RequestUsage(10, 5), cached=False,
            content=[
                FunctionCall(id=f"c{number}{at}", name=name, arguments=json.dumps(args))
                for at, (name, args) in enumerate(step)
            ],
        )
        for number, step in enumerate(STEPS)
    ]  # fmt: skip
    info = {"function_calling": True, "vision": False, "json_output": False,
            "family": "unknown", "structured_output": False}  # fmt: skip
    client = ReplayChatCompletionClient([*made, "done"], model_info=info)
    agent = AssistantAgent(
        "finder", client, tools=[search, read_file], max_tool_iterations=6,
        reflect_on_tool_use=False,
    )  # fmt: skip

    async def run():
        result = await agent.run(task="find it")
        state = await agent.save_state()
        await agent.on_reset(CancellationToken())
        client.reset()
        team = RoundRobinGroupChat([agent], max_turns=1)
        await team.run(task="find it")
        return result, state, await team.save_state()

    result, state, team = asyncio.run(run())
    save("autogen_team.json", json.dumps(dict(team), default=str))
    save("autogen.json", json.dumps(result.model_dump(mode="json")))
    save("autogen_state.json", json.dumps(dict(state), default=str))


def ag2() -> None:
    """ag2 below 1, two agents and a scripted reply."""
    from autogen import ConversableAgent

    steps = iter(enumerate(STEPS))

    def reply(recipient, messages, sender, config):
        found = next(steps, None)
        if found is None:
            return True, {"role": "assistant", "content": "done TERMINATE"}
        number, step = found
        calls = [
            {"id": f"c{number}{at}", "type": "function",
             "function": {"name": name, "arguments": json.dumps(args)}}
            for at, (name, args) in enumerate(step)
        ]  # fmt: skip
        return True, {"role": "assistant", "content": None, "tool_calls": calls}

    finder = ConversableAgent("finder", llm_config=False, human_input_mode="NEVER")
    finder.register_reply([ConversableAgent, None], reply, position=0)
    user = ConversableAgent(
        "user", llm_config=False, human_input_mode="NEVER",
        is_termination_msg=lambda message: "TERMINATE" in str(message.get("content")),
    )  # fmt: skip
    user.register_function({"search": search, "read_file": read_file})
    result = user.initiate_chat(finder, message="find it", max_turns=9)
    save("ag2.json", json.dumps(result.chat_history))


def ag2_events() -> None:
    """ag2 1.2.1, its test model and its event log."""
    from ag2 import Agent
    from ag2.events import ToolCallEvent
    from ag2.knowledge import MemoryKnowledgeStore
    from ag2.knowledge.constants import LOG_PREFIX
    from ag2.knowledge.log import EventLogWriter
    from ag2.testing import TestConfig

    steps = [
        [
            ToolCallEvent(name, arguments=json.dumps(args), id=f"c{number}{at}")
            for at, (name, args) in enumerate(step)
        ]
        for number, step in enumerate(STEPS)
    ]
    model = TestConfig(*steps, "done", raise_tool_errors=False)
    agent = Agent("finder", config=model, tools=[search, read_file])

    async def run():
        history = (await agent.ask("find it")).history
        store = MemoryKnowledgeStore()
        await EventLogWriter(store).persist(history.stream_id, list(await history.get_events()))
        return await store.read(f"{LOG_PREFIX}{history.stream_id}.jsonl")

    save("ag2_events.jsonl", asyncio.run(run()))


def google() -> None:
    """google-genai: contents as the SDK dumps them."""
    from google.genai import types

    contents = [types.Content(role="user", parts=[types.Part(text="find it")])]
    for step in STEPS:
        made = [types.Part.from_function_call(name=name, args=args) for name, args in step]
        contents.append(types.Content(role="model", parts=made))
        results = []
        for name, args in step:
            told = answer_of(args)
            response = {"error": told} if told.startswith("Error") else {"result": told}
            results.append(types.Part.from_function_response(name=name, response=response))
        contents.append(types.Content(role="user", parts=results))
    contents.append(types.Content(role="model", parts=[types.Part(text="done")]))
    told = [one.model_dump(mode="json", exclude_none=True, by_alias=True) for one in contents]
    save("gemini_contents.json", json.dumps({"contents": told}))
    plain = [one.model_dump(mode="json", exclude_none=True) for one in contents]
    save("gemini_contents_python.json", json.dumps(plain))


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for wanted in sys.argv[1:]:
        globals()[wanted]()
