# ruff: noqa: N802, N815 - BFCL names its methods so
"""Writes the files of `tests/data/formats` with the software whose format they are.

Run by hand, with the packages of one software installed (their versions stand in the table below):
`python tests/replay/readers/write_samples.py inspect_ai pydantic_ai`. Each tells about the same
run: two calls in one step, a call that fails, and a last one.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
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


def inspect_ai() -> None:
    """inspect_ai 0.3.285, its mock model; `.eval` and JSON."""
    from inspect_ai import Task
    from inspect_ai import eval as run
    from inspect_ai.dataset import Sample
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ModelOutput,
        ModelUsage,
        get_model,
    )
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate, use_tools
    from inspect_ai.tool import ToolCall, ToolError, tool

    @tool(name="search")
    def search_tool():
        async def execute(query: str) -> str:
            """Search the notes.

            Args:
                query: What to look for.
            """
            try:
                return search(query)
            except ValueError as error:
                raise ToolError(str(error)) from error

        return execute

    @tool(name="read_file")
    def read_tool():
        async def execute(path: str) -> str:
            """Read a file.

            Args:
                path: Which file.
            """
            return read_file(path)

        return execute

    usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)

    def outputs(answer):
        made = []
        for number, step in enumerate(STEPS):
            calls = [
                ToolCall(id=f"c{number}{at}", function=name, arguments=args)
                for at, (name, args) in enumerate(step)
            ]
            message = ChatMessageAssistant(content="", tool_calls=calls, source="generate")
            choice = ChatCompletionChoice(message=message, stop_reason="tool_calls")
            made.append(ModelOutput(model="mockllm/model", choices=[choice], usage=usage))
        last = ModelOutput.from_content("mockllm/model", answer)
        last.usage = usage
        return [*made, last]

    for form in ("eval", "json"):
        model = get_model("mockllm/model", custom_outputs=outputs("three hits") + outputs("none"))
        task = Task(
            dataset=[Sample(input="find it", target="three hits", id=1),
                     Sample(input="find it again", target="three hits", id=2)],
            solver=[use_tools(search_tool(), read_tool()), generate()], scorer=includes(),
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            run(task, model=model, log_dir=folder, log_format=form, display="none", max_samples=1)
            [path] = Path(folder).iterdir()
            save(f"inspect_ai.{form}", path.read_bytes())


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
    import base64

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
    from autogen_core import FunctionCall
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
        return result, await agent.save_state()

    result, state = asyncio.run(run())
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


def agentdojo() -> None:
    """agentdojo 0.1.35: a user task of the workspace suite with a scripted model."""
    from agentdojo.agent_pipeline import AgentPipeline, InitQuery, ToolsExecutionLoop, ToolsExecutor
    from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
    from agentdojo.benchmark import benchmark_suite_without_injections
    from agentdojo.functions_runtime import FunctionCall
    from agentdojo.logging import OutputLogger
    from agentdojo.task_suite import get_suite
    from agentdojo.types import ChatAssistantMessage, text_content_block_from_string

    script = [
        [("get_current_day", {}), ("get_file_by_id", {"file_id": "x"})],
        [("send_money", {"to": "x"})],
        [("get_current_day", {})],
    ]

    class Scripted(BasePipelineElement):
        name = "scripted"

        def query(self, query, runtime, env, messages=(), extra_args=None):
            done = sum(message["role"] == "assistant" for message in messages)
            calls = None
            if done < len(script):
                calls = [
                    FunctionCall(function=name, args=args, id=f"c{done}{at}")
                    for at, (name, args) in enumerate(script[done])
                ]
            text = [text_content_block_from_string("done")]
            message = ChatAssistantMessage(role="assistant", content=text, tool_calls=calls)
            return query, runtime, env, [*messages, message], extra_args or {}

    model = Scripted()
    pipeline = AgentPipeline([InitQuery(), model, ToolsExecutionLoop([ToolsExecutor(), model])])
    pipeline.name = "scripted"
    suite = get_suite("v1", "workspace")
    with tempfile.TemporaryDirectory() as folder, OutputLogger(folder):
        benchmark_suite_without_injections(
            pipeline, suite, logdir=Path(folder), force_rerun=True, user_tasks=["user_task_0"]
        )
        [path] = Path(folder).rglob("none.json")
        save("agentdojo.json", path.read_text())


def harbor() -> None:
    """harbor 0.26, its models alone (`harbor/models/trajectories` needs nothing but pydantic)."""
    from harbor.models.trajectories import (
        Agent,
        Metrics,
        Observation,
        ObservationResult,
        Step,
        ToolCall,
        Trajectory,
    )

    steps = [Step(step_id=1, source="user", message="find it")]
    for number, step in enumerate(STEPS):
        calls = [
            ToolCall(tool_call_id=f"c{number}{at}", function_name=name, arguments=args)
            for at, (name, args) in enumerate(step)
        ]
        results = [
            ObservationResult(source_call_id=call.tool_call_id, content=answer_of(call.arguments))
            for call in calls
        ]
        steps.append(
            Step(
                step_id=number + 2, source="agent", message="", tool_calls=calls,
                timestamp="2026-11-30T12:00:00Z", observation=Observation(results=results),
                metrics=Metrics(prompt_tokens=10, completion_tokens=5),
            )
        )  # fmt: skip
    steps.append(Step(step_id=len(steps) + 1, source="agent", message="done"))
    agent = Agent(name="finder", version="1")
    inner = Trajectory(trajectory_id="t2", agent=agent, steps=steps)
    whole = Trajectory(session_id="s1", agent=agent, steps=steps, subagent_trajectories=[inner])
    save("atif.json", json.dumps(whole.to_json_dict()))


def answer_of(args: dict) -> str:
    """Say what the tools of the story give back."""
    try:
        return search(**args) if "query" in args else read_file(**args)
    except ValueError as error:
        return f"Error: {error}"


def bfcl() -> None:
    """bfcl-eval 2026.3.23: a task of several turns with a scripted model."""
    from bfcl_eval.model_handler.base_handler import BaseHandler
    from bfcl_eval.utils import make_json_serializable

    script = [
        [{"ls": "{}"}, {"pwd": "{}"}], [{"cat": '{"file_name": "none"}'}], [],
        [{"ls": "{}"}], [],
    ]  # fmt: skip

    class Scripted(BaseHandler):
        def __init__(self):
            super().__init__("scripted-FC", 0, "scripted-FC", True)

        def _query_FC(self, inference_data):
            return script.pop(0), 0.1

        def _pre_query_processing_FC(self, inference_data, test_entry):
            return {"message": []}

        def _compile_tools(self, inference_data, test_entry):
            return inference_data

        def _parse_query_response_FC(self, api_response):
            return {"model_responses": api_response, "input_token": 10, "output_token": 5}

        def decode_execute(self, result, has_tool_call_tag=False):
            made = []
            for one in result:
                name, args = next(iter(one.items()))
                given = ", ".join(f"{key}={value!r}" for key, value in json.loads(args).items())
                made.append(f"{name}({given})")
            return made

        def add_first_turn_message_FC(self, inference_data, message):
            return inference_data

        _add_next_turn_user_message_FC = add_first_turn_message_FC
        _add_assistant_message_FC = add_first_turn_message_FC

        def _add_execution_results_FC(self, inference_data, results, response):
            return inference_data

    files = {"type": "directory", "contents": {"a.txt": {"type": "file", "content": "a"}}}
    task = {
        "id": "multi_turn_base_0", "function": [], "involved_classes": ["GorillaFileSystem"],
        "initial_config": {"GorillaFileSystem": {"root": {"w": files}}},
        "question": [[{"role": "user", "content": text}] for text in ("find it", "go on")],
    }  # fmt: skip
    result, metadata = Scripted().inference(task, False, False)
    told = make_json_serializable({"id": task["id"], "result": result, **metadata})
    save("bfcl.jsonl", json.dumps(told) + "\n")


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


RESPONSES = [
    [("exec_command", {"cmd": "echo a"}), ("exec_command", {"cmd": "echo b"})],
    [("exec_command", {"cmd": "echo broken >&2; exit 3"})],
    [("exec_command", {"cmd": "echo a"})],
]


def codex() -> None:
    """@openai/codex 0.171 (its program as CODEX), with a model server on this machine."""
    answered = []

    class Model(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"models": []}')

        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            number = len(answered)
            answered.append(self.path)
            items = [
                {"type": "function_call", "id": f"f{number}{at}", "call_id": f"c{number}{at}",
                 "name": name, "arguments": json.dumps(args)}
                for at, (name, args) in enumerate(RESPONSES[number])
            ] if number < len(RESPONSES) else [
                {"type": "message", "id": f"m{number}", "role": "assistant",
                 "content": [{"type": "output_text", "text": "done", "annotations": []}]}
            ]  # fmt: skip
            usage = {"input_tokens": 10, "input_tokens_details": None, "output_tokens": 5,
                     "output_tokens_details": None, "total_tokens": 15}  # fmt: skip
            events = [{"type": "response.created", "response": {"id": f"r{number}"}}]
            events += [{"type": "response.output_item.done", "output_index": at, "item": item}
                       for at, item in enumerate(items)]  # fmt: skip
            events += [
                {"type": "response.completed", "response": {"id": f"r{number}", "usage": usage}}
            ]
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in events:
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/v1"
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as work:
        provider = f'{{name="local",base_url="{address}",wire_api="responses"}}'
        done = subprocess.run(
            [os.environ["CODEX"], "exec", "--json", "--skip-git-repo-check",
             "--dangerously-bypass-approvals-and-sandbox", "-C", work, "-m", "gpt-5.1-codex",
             "-c", f"model_providers.local={provider}", "-c", 'model_provider="local"', "find it"],
            env={**os.environ, "CODEX_HOME": home}, capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        [rollout] = Path(home, "sessions").rglob("rollout-*.jsonl")
        for name, text in (("codex_exec", done.stdout), ("codex_rollout", rollout.read_text())):
            save(f"{name}.jsonl", slim(text.replace(work, "w").replace(home, "h")))
    server.shutdown()


def slim(text: str) -> str:
    """Cut the long instructions that Codex writes, which no reader looks at."""

    def cut(value):
        if isinstance(value, dict):
            return {key: cut(item) for key, item in value.items()}
        if isinstance(value, list):
            return [cut(item) for item in value]
        return value[:200] if isinstance(value, str) and len(value) > 1000 else value

    return "".join(json.dumps(cut(json.loads(line))) + "\n" for line in text.splitlines())


def node() -> None:
    """ai 6 and @google/gemini-cli-core 0.61, by `write_samples.mjs` (modules under NODE_PATH)."""
    script = Path(__file__).with_suffix(".mjs")
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(script, Path(os.environ["NODE_PATH"]).parent)
        subprocess.run([shutil.which("node"), copy, folder], check=True, timeout=120)
        for path in Path(folder).rglob("*.json*"):
            name = "gemini_cli.jsonl" if path.name.startswith("session-") else path.name
            save(name, path.read_bytes())
        Path(copy).unlink()


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for wanted in sys.argv[1:]:
        globals()[wanted]()
