"""One run, told in every format that is read.

A person asks; the agent searches and reads in one batch; a shell command fails; the person
speaks again; the agent repeats its search.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)

STEPS = [
    "find it",
    [
        ("c1", "search", {"q": "a"}, "three hits", False),
        ("c2", "read_file", {"path": "b"}, "the text of b", False),
    ],
    [("c3", "bash", {"command": "pytest"}, "Error: no tests ran", True)],
    "go on",
    [("c4", "search", {"q": "a"}, "three hits", False)],
]


def story():
    """The events of the run, as every reader must tell them."""
    events = []
    for step in STEPS:
        if isinstance(step, str):
            events.append(("human",))
            continue
        calls = tuple((i, name, json.dumps(args)) for i, name, args, _, _ in step)
        results = tuple((i, text, "error" if bad else "success") for i, _, _, text, bad in step)
        events.append(("batch", calls, results))
    return events


def told(conversation):
    """A conversation's events in the form of `story`."""
    events = []
    for event in conversation.events:
        if event["type"] != "batch":
            events.append((event["type"],))
            continue
        calls = tuple((c["id"], c["name"], json.dumps(c["args"])) for c in event["calls"])
        results = tuple((r["id"], _text(r["content"]), _status(r)) for r in event["results"])
        events.append(("batch", calls, results))
    return events


def _status(result):
    """What a source that tells nothing of failure tells in its text."""
    read = "error" if _text(result["content"]).startswith("Error") else "success"
    return result.get("status", read)


def _text(content):
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def langchain_messages():
    messages = [SystemMessage("You help.")]
    for step in STEPS:
        if isinstance(step, str):
            messages.append(HumanMessage(step))
            continue
        calls = [{"id": i, "name": name, "args": args} for i, name, args, _, _ in step]
        messages.append(AIMessage("", tool_calls=calls))
        messages.extend(
            ToolMessage(text, tool_call_id=i, name=name, status="error" if bad else "success")
            for i, name, _, text, bad in step
        )
    return [*messages, AIMessage("done")]


def openai_chat():
    messages = [{"role": "system", "content": "You help."}]
    for step in STEPS:
        if isinstance(step, str):
            messages.append({"role": "user", "content": step})
            continue
        calls = [
            {
                "id": i,
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(args)},
            }
            for i, name, args, _, _ in step
        ]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.extend({"role": "tool", "tool_call_id": i, "content": t} for i, _, _, t, _ in step)
    return [*messages, {"role": "assistant", "content": "done"}]


def openai_responses():
    items = []
    for step in STEPS:
        if isinstance(step, str):
            items.append({"role": "user", "content": step})
            continue
        items.append({"type": "reasoning", "id": "rs_1", "summary": []})
        items.extend(
            {
                "type": "function_call",
                "id": f"fc_{i}",
                "call_id": i,
                "name": name,
                "arguments": json.dumps(args),
                "status": "completed",
            }
            for i, name, args, _, _ in step
        )
        items.extend(
            {"type": "function_call_output", "call_id": i, "output": text}
            for i, _, _, text, _ in step
        )
    content = [{"type": "output_text", "text": "done", "annotations": []}]
    return [*items, {"type": "message", "id": "msg_1", "role": "assistant", "content": content}]


def anthropic():
    messages = []
    for step in STEPS:
        if isinstance(step, str):
            content = [{"type": "text", "text": step}]
            # A turn of the person follows the answers in the same message.
            if messages and messages[-1]["role"] == "user":
                messages[-1]["content"].extend(content)
            else:
                messages.append({"role": "user", "content": content})
            continue
        uses = [
            {"type": "tool_use", "id": i, "name": name, "input": args}
            for i, name, args, _, _ in step
        ]
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "so"}, *uses]})
        results = []
        for i, _, _, text, bad in step:
            result = {
                "type": "tool_result",
                "tool_use_id": i,
                "content": [{"type": "text", "text": text}],
            }
            results.append({**result, "is_error": True} if bad else result)
        messages.append({"role": "user", "content": results})
    return [*messages, {"role": "assistant", "content": [{"type": "text", "text": "done"}]}]


def claude_code():
    """Each block is a line, and an answer may come before the message's next call."""
    lines = [{"type": "summary", "summary": "Finding it", "leafUuid": "u1"}]
    common = {"isSidechain": False, "sessionId": "session-1", "version": "2.1.63", "cwd": "w"}

    def add(kind, message, **more):
        uuid = f"u{len(lines)}"
        parent = lines[-1].get("uuid")
        line = {"parentUuid": parent, "type": kind, "message": message, "uuid": uuid}
        lines.append({**line, **common, **more})

    for number, step in enumerate(STEPS):
        if isinstance(step, str):
            add("user", {"role": "user", "content": step})
            continue
        for i, name, args, text, bad in step:
            use = {"type": "tool_use", "id": i, "name": name, "input": args}
            message = {"id": f"msg_{number}", "role": "assistant", "content": [use]}
            add("assistant", message)
            result = {"type": "tool_result", "tool_use_id": i, "content": text}
            content = [{**result, "is_error": True} if bad else result]
            add("user", {"role": "user", "content": content}, toolUseResult={"stdout": text})
    add("user", {"role": "user", "content": "<local-command-stdout>ok</local-command-stdout>"})
    add("user", {"role": "user", "content": "Caveat"}, isMeta=True)
    return lines


def opencode():
    messages = []
    for number, step in enumerate(STEPS):
        if isinstance(step, str):
            part = {"type": "text", "text": step}
            messages.append({"info": {"id": f"m{number}", "role": "user"}, "parts": [part]})
            continue
        parts = [{"type": "step-start"}]
        for i, name, args, text, bad in step:
            state = {"status": "error" if bad else "completed", "input": args}
            state["error" if bad else "output"] = text
            parts.append({"type": "tool", "callID": i, "tool": name, "state": state})
        parts.append({"type": "step-finish", "reason": "tool-calls"})
        messages.append({"info": {"id": f"m{number}", "role": "assistant"}, "parts": parts})
    return {"info": {"id": "ses_1", "title": "Finding it"}, "messages": messages}


def tau2():
    messages = []
    for step in STEPS:
        if isinstance(step, str):
            messages.append({"role": "user", "content": step, "tool_calls": None})
            continue
        calls = [
            {"id": i, "name": name, "arguments": args, "requestor": "assistant"}
            for i, name, args, _, _ in step
        ]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        answers = [
            {"id": i, "role": "tool", "content": t, "requestor": "assistant", "error": bad}
            for i, _, _, t, bad in step
        ]
        one = {"role": "tool", "tool_messages": answers}
        messages.extend([one] if len(answers) > 1 else answers)
    return {
        "id": "sim-1",
        "task_id": "7",
        "termination_reason": "user_stop",
        "reward_info": {"reward": 1.0},
        "messages": messages,
    }


def own():
    events = []
    for step in STEPS:
        if isinstance(step, str):
            events.append({"type": "human"})
            continue
        calls = [{"id": i, "name": name, "args": args} for i, name, args, _, _ in step]
        results = [
            {"id": i, "content": text, "status": "error" if bad else "success"}
            for i, _, _, text, bad in step
        ]
        events.append({"type": "batch", "calls": calls, "results": results})
    return {"source": "made", "id": "own-1", "outcome": "success", "events": events}


def langsmith():
    """The root run of a graph and one of its model calls, as the API returns them."""
    written = [message.model_dump(mode="json") for message in langchain_messages()]
    root = {
        "id": "11111111-0000-0000-0000-000000000000",
        "trace_id": "11111111-0000-0000-0000-000000000000",
        "parent_run_id": None,
        "name": "LangGraph",
        "run_type": "chain",
        "inputs": {"messages": [{"role": "user", "content": "find it"}]},
        "outputs": {"messages": written},
        "status": "success",
        "events": [{"name": "start", "time": "2026-01-01T00:00:00"}],
    }
    model = {
        "id": "22222222-0000-0000-0000-000000000000",
        "trace_id": root["id"],
        "parent_run_id": root["id"],
        "name": "ChatOpenAI",
        "run_type": "llm",
        "inputs": {"messages": [[dumpd(message) for message in langchain_messages()[:2]]]},
        "outputs": {"generations": [[{"message": dumpd(langchain_messages()[2])}]]},
    }
    return [root, model]


def langsmith_model_calls():
    """The same trace without its root: the longest model call tells the run."""
    messages = [dumpd(message) for message in langchain_messages()]
    return [
        {
            "id": f"{at}",
            "trace_id": "t",
            "parent_run_id": "t",
            "run_type": "llm",
            "inputs": {"messages": [messages[:at]]},
            "outputs": {"generations": [[{"message": messages[at]}]]},
        }
        for at in (2, 5, len(messages) - 1)
    ]


@dataclass
class Told:
    """The story in one format: as lines, or as one document."""

    lines: list | None = None
    document: object = None
    outcome: str = "unknown"

    @property
    def text(self):
        if self.lines is None:
            return json.dumps(self.document, indent=1)
        return "".join(json.dumps(line) + "\n" for line in self.lines)


def _holders():
    messages = openai_chat()
    items = openai_responses()
    talk = anthropic()
    return {
        "OpenAI chat: a request": Told(document={"model": "m", "messages": messages}),
        "OpenAI chat: a request and its response": Told(
            document={
                "request": {"messages": messages[:-2]},
                "response": {
                    "id": "r",
                    "object": "chat.completion",
                    "choices": [{"index": 0, "message": messages[-2]}],
                },
            }
        ),
        "OpenAI Responses: input and output": Told(
            document={"model": "m", "input": items[:-1], "output": items[-1:]}
        ),
        "Anthropic: a request": Told(document={"system": "s", "messages": talk}),
        "LangGraph server: a thread's state": Told(
            document={
                "values": {"messages": [m.model_dump(mode="json") for m in langchain_messages()]},
                "next": [],
            }
        ),
    }


TOLD = {
    "own form": Told(lines=[own()], outcome="success"),
    "own form: a document": Told(document=[own()], outcome="success"),
    "LangChain: messages_to_dict": Told(document=messages_to_dict(langchain_messages())),
    "LangChain: dumpd": Told(document=[dumpd(message) for message in langchain_messages()]),
    "LangChain: a dumped state": Told(document=dumpd({"messages": langchain_messages()})),
    "LangChain: a message a line": Told(lines=messages_to_dict(langchain_messages())),
    "LangChain: model_dump": Told(
        document=[message.model_dump(mode="json") for message in langchain_messages()]
    ),
    "LangSmith: runs a line": Told(lines=langsmith()),
    "LangSmith: a query's answer": Told(document={"runs": langsmith()}),
    "LangSmith: nested": Told(document=[{**langsmith()[0], "child_runs": [langsmith()[1]]}]),
    "LangSmith: model calls": Told(lines=langsmith_model_calls()),
    "OpenAI chat": Told(document=openai_chat()),
    "OpenAI chat: a message a line": Told(lines=openai_chat()),
    "OpenAI chat: a run a line": Told(lines=[{"messages": openai_chat()}]),
    "OpenAI chat: a list a line": Told(lines=[openai_chat()]),
    "OpenAI Responses": Told(document=openai_responses()),
    "Anthropic": Told(document=anthropic()),
    "Claude Code": Told(lines=claude_code()),
    "opencode": Told(document=opencode()),
    "tau2": Told(document={"info": {}, "tasks": [], "simulations": [tau2()]}, outcome="success"),
    "tau-bench": Told(
        document=[{"task_id": 3, "reward": 0.0, "info": {}, "traj": openai_chat(), "trial": 1}],
        outcome="fail",
    ),
    **_holders(),
}
