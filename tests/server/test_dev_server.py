"""Does a guarded agent work under the LangGraph development server?

The real server in a process of its own, on a free port of this machine; the client is the one
that chat screens and Studio's API users have, over HTTP. Nothing leaves the machine: tracing and
usage reports are switched off.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MISSING = [n for n in ("langgraph_cli", "langgraph_api") if importlib.util.find_spec(n) is None]

pytestmark = [
    pytest.mark.skipif(
        bool(MISSING), reason="needs the development server: pip install 'langgraph-cli[inmem]'"
    ),
    pytest.mark.timeout(400),
]

GRAPHS = ("node", "middleware")
ASK = {"messages": [{"role": "user", "content": "go"}]}
STARTS_WITHIN = 200


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment() -> dict[str, str]:
    keys = ("LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "OTEL_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(keys)}
    return {
        **own,
        "PYTHONPATH": str(HERE.parents[1]),
        "LANGSMITH_TRACING": "false",
        "LANGCHAIN_TRACING_V2": "false",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "NO_PROXY": "127.0.0.1",
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Start the server, give its address, and stop it."""
    import httpx

    home = tmp_path_factory.mktemp("server")
    graphs = {name: f"{HERE / 'agent.py'}:{name}" for name in GRAPHS}
    settings = home / "langgraph.json"
    settings.write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    port = free_port()
    log = home / "log.txt"
    with log.open("w") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "langgraph_cli", "dev", "--config", str(settings)),
                *("--host", "127.0.0.1", "--port", str(port), "--no-browser", "--no-reload"),
            ],
            cwd=home,
            env=environment(),
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        address = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + STARTS_WITHIN
            while True:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                try:
                    if httpx.get(f"{address}/ok", timeout=2, trust_env=False).is_success:
                        break
                except httpx.TransportError:
                    time.sleep(0.2)
            yield address
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture
async def client(server):
    from langgraph_sdk import get_client

    async with get_client(url=server, api_key=None) as made:
        yield made


async def asked(client, graph):
    """Run a looping agent until it asks; gives the thread's id and the open questions."""
    thread_id = (await client.threads.create())["thread_id"]
    result = await client.runs.wait(thread_id, graph, input=ASK)
    assert "__interrupt__" in result, result
    state = await client.threads.get_state(thread_id)
    return thread_id, [item for task in state["tasks"] for item in task["interrupts"]]


async def resumed(client, thread_id, graph, value):
    return await client.runs.wait(thread_id, graph, command={"resume": value})


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_client_sees_one_question_with_all_that_a_screen_needs(client, graph):
    _, questions = await asked(client, graph)

    assert len(questions) == 1
    question = questions[0]["value"]
    assert question["type"] == "loop_detected"
    assert [request["name"] for request in question["action_requests"]] == ["search"]
    assert question["cost"]["calls"] == question["findings"][0]["count"] - 1


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_thread_that_waits_says_so(client, graph):
    thread_id, _ = await asked(client, graph)

    assert (await client.threads.get(thread_id))["status"] == "interrupted"


@pytest.mark.parametrize("graph", GRAPHS)
async def test_continue_over_http_runs_the_calls_and_counts_anew(client, graph):
    thread_id, _ = await asked(client, graph)
    before = await client.threads.get_state(thread_id)

    result = await resumed(client, thread_id, graph, {"decisions": [{"type": "approve"}]})

    assert "__interrupt__" in result
    assert len(result["messages"]) > len(before["values"]["messages"]) + 2


@pytest.mark.parametrize("graph", GRAPHS)
async def test_stop_over_http_ends_the_run(client, graph):
    thread_id, _ = await asked(client, graph)

    result = await resumed(client, thread_id, graph, "stop")

    assert "__interrupt__" not in result
    assert result["messages"][-1]["content"].startswith("Stopped.")
    assert (await client.threads.get(thread_id))["status"] == "idle"


@pytest.mark.parametrize("graph", GRAPHS)
async def test_a_wrong_answer_leaves_the_question_open(client, graph):
    thread_id, _ = await asked(client, graph)

    await client.runs.wait(
        thread_id, graph, command={"resume": {"decisions": []}}, raise_error=False
    )
    result = await resumed(client, thread_id, graph, "stop")

    assert result["messages"][-1]["content"].startswith("Stopped.")


@pytest.mark.parametrize("graph", GRAPHS)
async def test_the_event_reaches_a_client_that_streams(client, graph):
    thread_id = (await client.threads.create())["thread_id"]

    events = [
        part.data
        async for part in client.runs.stream(thread_id, graph, input=ASK, stream_mode=["custom"])
        if part.event == "custom"
    ]

    assert [event["action"] for event in events if event["type"] == "loop_guard"][-1] == "ask"
