"""The story of `tests.replay.stories` in formats whose software can't be run here.

Cursor, Claude Code, OpenHands, Cline, Bedrock, Langfuse and LangSmith's bulk export, by their
documentation.
"""

from __future__ import annotations

import json

from tests.replay.stories import STEPS, anthropic, langsmith


def cursor():
    """Calls of one `model_call_id` are one step; an MCP tool is named within its arguments."""
    common = {"session_id": "s1", "timestamp_ms": 1}
    lines = [{"type": "system", "subtype": "init", "cwd": "w", "model": "m", **common}]
    for number, step in enumerate(STEPS):
        if isinstance(step, str):
            content = [{"type": "text", "text": step}]
            lines.append(
                {"type": "user", "message": {"role": "user", "content": content}, **common}
            )
            continue
        content = [{"type": "text", "text": "so"}]
        message = {"role": "assistant", "content": content}
        lines.append({"type": "assistant", "message": message, **common})
        for subtype in ("started", "completed"):
            for i, name, args, text, bad in step:
                told = {"args": {**args, "toolCallId": i}}
                if name == "search":
                    told = {"args": {"name": f"notes-{name}", "toolName": name, "args": args}}
                if subtype == "completed":
                    told["result"] = {"error" if bad else "success": text}
                key = "mcpToolCall" if name == "search" else f"{name}ToolCall"
                call = {key: told, "toolCallId": i}
                line = {"type": "tool_call", "subtype": subtype, "call_id": i, "tool_call": call,
                        "model_call_id": f"m{number}"}  # fmt: skip
                lines.append({**line, **common})
    return [*lines, {"type": "result", "subtype": "success", "is_error": False, **common}]


def claude_stream():
    lines = [{"type": "system", "subtype": "init", "session_id": "s1", "tools": []}]
    for number, step in enumerate(STEPS):
        if isinstance(step, str):
            message = {"role": "user", "content": [{"type": "text", "text": step}]}
            lines.append({"type": "user", "message": message})
            continue
        for i, name, args, _, _ in step:
            use = {"type": "tool_use", "id": i, "name": name, "input": args}
            message = {"id": f"m{number}", "role": "assistant", "content": [use]}
            lines.append({"type": "assistant", "message": message})
        for i, _, _, text, bad in step:
            result = {"type": "tool_result", "tool_use_id": i, "content": text, "is_error": bad}
            lines.append({"type": "user", "message": {"role": "user", "content": [result]}})
    lines.append({"type": "result", "subtype": "success", "is_error": False})
    common = {"session_id": "s1", "parent_tool_use_id": None, "uuid": "u"}
    return [{**line, **common} for line in lines]


def openhands():
    """The server's events; calls of one response follow each other, then their observations."""
    events = []

    def add(source, **more):
        events.append({"id": len(events), "timestamp": "t", "source": source, **more})

    add("agent", action="system", args={"content": "You help."})
    add("environment", observation="agent_state_changed", content="", extras={}, cause=None)
    for number, step in enumerate(STEPS):
        if isinstance(step, str):
            add("user", action="message", args={"content": step, "wait_for_response": False})
            continue
        first = len(events)
        for i, name, args, _, _ in step:
            told = {"function_name": name, "tool_call_id": i, "total_calls_in_response": len(step),
                    "model_response": {"id": f"r{number}"}}  # fmt: skip
            add("agent", action="run", args={**args, "thought": f"so {number}"},
                tool_call_metadata=told)  # fmt: skip
        for at, (_, _, _, text, bad) in enumerate(step):
            add("agent", observation="run", content=text, cause=first + at, success=not bad,
                extras={"metadata": {"exit_code": int(bad)}})  # fmt: skip
    add("agent", action="finish", args={"final_thought": "done"})
    return events


def openhands_output():
    report = {"report": {"resolved": True}}
    return {"instance_id": "task-1", "instance": {}, "history": openhands(), "test_result": report}


def openhands_sdk():
    events = [{"kind": "SystemPromptEvent", "id": "e0", "source": "agent", "tools": []}]
    for number, step in enumerate(STEPS):
        if isinstance(step, str):
            message = {"role": "user", "content": [{"type": "text", "text": step}]}
            events.append({"kind": "MessageEvent", "source": "user", "llm_message": message})
            continue
        for i, name, args, _, _ in step:
            call = {"id": i, "name": name, "arguments": json.dumps(args), "origin": "completion"}
            events.append(
                {"kind": "ActionEvent", "source": "agent", "id": f"a{i}", "thought": [],
                 "action": {"kind": "X", **args}, "tool_name": name, "tool_call_id": i,
                 "tool_call": call, "llm_response_id": f"r{number}"}
            )  # fmt: skip
        for i, name, _, text, bad in step:
            told = {"tool_name": name, "tool_call_id": i, "action_id": f"a{i}"}
            if bad:
                event = {"kind": "AgentErrorEvent", "source": "agent", "error": text}
            else:
                content = [{"type": "text", "text": text}]
                seen = {"kind": "X", "content": content, "is_error": False}
                event = {"kind": "ObservationEvent", "source": "environment", "observation": seen}
            events.append({**event, **told})
    return events


def bedrock():
    messages = []
    for step in STEPS:
        if isinstance(step, str):
            if messages and messages[-1]["role"] == "user":
                messages[-1]["content"].append({"text": step})
            else:
                messages.append({"role": "user", "content": [{"text": step}]})
            continue
        uses = [{"toolUse": {"toolUseId": i, "name": n, "input": a}} for i, n, a, _, _ in step]
        messages.append({"role": "assistant", "content": [{"text": "so"}, *uses]})
        results = [
            {"toolResult": {"toolUseId": i, "content": [{"text": text}],
                            "status": "error" if bad else "success"}}
            for i, _, _, text, bad in step
        ]  # fmt: skip
        messages.append({"role": "user", "content": results})
    return {"modelId": "m", "system": [{"text": "s"}], "messages": messages}


def vercel_4():
    """UI messages of version 4: invocations beside the text, with the number of their step."""
    messages, step_number = [], 0
    for step in STEPS:
        if isinstance(step, str):
            messages.append({"id": "m", "role": "user", "content": step})
            continue
        told = [
            {"state": "result", "step": step_number, "toolCallId": i, "toolName": name,
             "args": args, "result": text}
            for i, name, args, text, _ in step
        ]  # fmt: skip
        step_number += 1
        if messages[-1]["role"] == "assistant":
            messages[-1]["toolInvocations"].extend(told)
        else:
            messages.append(
                {"id": "m", "role": "assistant", "content": "", "toolInvocations": told}
            )
    return messages


def cline():
    """The XML of a model without tools; one call a message."""
    messages = [{"role": "user", "content": [{"type": "text", "text": "<task>\nfind it\n</task>"}]}]

    def say(name, inner, text, *, more=()):
        call = f"I look.\n\n<{name}>\n{inner}\n</{name}>"
        messages.append({"role": "assistant", "content": [{"type": "text", "text": call}]})
        blocks = [
            f"[{name} for 'b'] Result:",
            text,
            *more,
            "<environment_details>\n</environment_details>",
        ]
        content = [{"type": "text", "text": block} for block in blocks]
        messages.append({"role": "user", "content": content})

    say("read_file", "<path>b</path>", "the text of b")
    failed = "The tool execution failed with the following error:\n<error>\nno file\n</error>"
    say("read_file", "<path>c</path>", failed, more=["<feedback>\ngo on\n</feedback>"])
    say(
        "execute_command",
        "<command>ls</command>\n<requires_approval>false</requires_approval>",
        "b",
    )
    return messages


def cline_native():
    [first, *rest] = anthropic()
    first = {"role": "user", "content": [{"type": "text", "text": "<task>\nfind it\n</task>"}]}
    told = json.loads(
        json.dumps(rest).replace('"text": "go on"', '"text": "<feedback>go on</feedback>"')
    )
    return [first, *told]


def cline_text_results():
    """A call in a block whose result is text, as some providers make Cline write it."""
    use = {"type": "tool_use", "id": "c1", "name": "use_subagents", "input": {"prompt_1": "x"}}
    result = {"type": "text", "text": "[subagents] Result:\nTotal: 1"}
    return [
        {
            "role": "user",
            "content": [{"type": "text", "text": "<task>\nfind it\n</task>"}],
            "ts": 1,
        },
        {"role": "assistant", "content": [use], "ts": 2},
        {"role": "user", "content": [result], "ts": 3},
    ]


def _observations():
    rows, at = [], 0
    messages = []

    def add(kind, name, given, output, **more):
        nonlocal at
        at += 1
        rows.append(
            {"id": f"o{at}", "type": kind, "name": name, "input": given, "output": output,
             "startTime": f"2026-01-01T00:00:{at:02}.000Z", "endTime": None, "level": "DEFAULT",
             "statusMessage": None, "parentObservationId": None, "metadata": {}, **more}
        )  # fmt: skip

    add("AGENT", "finder", None, None)
    for step in STEPS:
        if isinstance(step, str):
            messages.append({"role": "user", "content": step})
            continue
        calls = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, n, a, _, _ in step
        ]
        answer = {"role": "assistant", "content": "", "tool_calls": calls}
        add("GENERATION", "model", list(messages), answer)
        messages.append(answer)
        for i, name, args, text, bad in step:
            level = {"level": "ERROR", "statusMessage": text} if bad else {}
            told = {"role": "tool", "tool_call_id": i, "content": text}
            metadata = {"attributes": {"gen_ai.tool.call.id": i}}
            add("TOOL", name, args, None if bad else text, metadata=metadata, **level)
            messages.append(told)
    return rows


def langfuse():
    return {"id": "t1", "name": "finder", "input": None, "output": None,
            "observations": _observations(), "scores": []}  # fmt: skip


def langfuse_rows():
    """Rows of the blob storage export: snake case, input and output as JSON text."""
    names = {"startTime": "start_time", "endTime": "end_time", "statusMessage": "status_message",
             "parentObservationId": "parent_observation_id"}  # fmt: skip
    rows = []
    for row in reversed(_observations()):
        told = {names.get(key, key): value for key, value in row.items()}
        for key in ("input", "output", "metadata"):
            if told[key] is not None and not isinstance(told[key], str):
                told[key] = json.dumps(told[key])
        rows.append({**told, "trace_id": "t1"})
    return rows


def langsmith_bulk():
    """Rows of the bulk export: inputs, outputs and extra as JSON text."""
    rows = []
    for run in langsmith():
        told = {key: json.dumps(run[key]) for key in ("inputs", "outputs")}
        more = {"extra": "{}", "is_root": run["parent_run_id"] is None, "tenant_id": "t"}
        rows.append({**run, **told, **more})
    return rows
