# ruff: noqa: N802, N815 - BFCL names its methods so
"""Writes files of `tests/data/formats` with their own software: benchmarks and programs.

As `write_samples`: `python -m tests.replay.readers.write_more_samples inspect_ai`.
"""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from tests.replay.readers.write_samples import OUT, STEPS, answer_of, read_file, save, search


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
    script = Path(__file__).with_name("write_samples.mjs")
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
