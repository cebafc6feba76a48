"""Which well-formed documents does the fuzzer start from? One of every format that is read."""

import json

_CALL = {"id": "c1", "name": "read", "args": {"p": 1}}
_ASKED = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"p": 1}'}}
_CHAT = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": None, "tool_calls": [_ASKED]},
    {"role": "tool", "tool_call_id": "c1", "content": "text"},
]
_ANTHROPIC = [
    {"role": "user", "content": [{"type": "text", "text": "go"}]},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {"p": 1}}],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "text", "is_error": False}
        ],
    },
]
_RESPONSES = [
    {"role": "user", "content": "go"},
    {
        "type": "function_call",
        "id": "f",
        "call_id": "c1",
        "name": "read",
        "arguments": "{}",
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "c1", "output": "text"},
]
_LANGCHAIN = [
    {"type": "human", "data": {"content": "go", "id": "h"}},
    {
        "type": "ai",
        "data": {"content": "", "id": "a", "tool_calls": [{**_CALL, "type": "tool_call"}]},
    },
    {"type": "tool", "data": {"content": "text", "tool_call_id": "c1", "status": "success"}},
]
_DUMPED = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "AIMessage"],
    "kwargs": {"content": "", "tool_calls": [{**_CALL, "type": "tool_call"}], "id": "a"},
}
_PLAIN = [{"type": one["type"], **one["data"]} for one in _LANGCHAIN]

_DOCUMENTS = (
    {
        "source": "s",
        "id": "1",
        "outcome": "fail",
        "events": [
            {"type": "human"},
            {
                "type": "batch",
                "calls": [_CALL],
                "results": [{"id": "c1", "content": "text", "status": "error"}],
            },
            {"type": "note", "text": "approve"},
        ],
    },
    {"messages": _CHAT, "id": "1"},
    _CHAT,
    _CHAT[1],
    {"messages": _ANTHROPIC, "thread_id": "t"},
    _ANTHROPIC,
    {"input": _RESPONSES, "output": _RESPONSES[1:]},
    _RESPONSES,
    {"request": {"messages": _CHAT[:1]}, "response": {"choices": [{"message": _CHAT[1]}]}},
    {"values": {"messages": _PLAIN}},
    _LANGCHAIN,
    _PLAIN,
    _DUMPED,
    {
        "id": "1",
        "run_type": "chain",
        "trace_id": "t",
        "inputs": {},
        "outputs": {"messages": _LANGCHAIN},
        "child_runs": [
            {"id": "2", "run_type": "llm", "inputs": {"messages": [_CHAT]}, "outputs": {}},
            {
                "id": "3",
                "run_type": "tool",
                "name": "read",
                "inputs": {},
                "outputs": {"output": "text"},
                "error": None,
                "start_time": "2024",
            },
        ],
    },
    {
        "type": "assistant",
        "sessionId": "s",
        "uuid": "u",
        "parentUuid": None,
        "message": {"id": "m", **_ANTHROPIC[1]},
    },
    {
        "type": "user",
        "sessionId": "s",
        "uuid": "v",
        "isSidechain": True,
        "message": _ANTHROPIC[2],
    },
    {
        "info": {"id": "s"},
        "messages": [
            {"info": {"role": "user"}, "parts": [{"type": "text", "text": "go"}]},
            {
                "info": {"role": "assistant"},
                "parts": [
                    {
                        "type": "tool",
                        "callID": "c1",
                        "tool": "read",
                        "state": {"status": "completed", "input": {}, "output": "text"},
                    }
                ],
            },
        ],
    },
    {"trajectory": [{"action": "ls -a", "observation": "text"}], "instance_id": "i"},
    {
        "messages": [
            {"role": "assistant", "extra": {"actions": [{"command": "ls"}]}},
            {"role": "user", "content": "text"},
        ]
    },
    {"task_id": 1, "traj": _CHAT, "reward": 1.0},
    {"simulations": [{"id": "1", "messages": _CHAT, "reward_info": {"reward": 0}}]},
)

RUNS = [json.dumps(document).encode() for document in _DOCUMENTS]
"""JSON of every format."""

MESSAGES = [json.dumps(one).encode() for one in (*_LANGCHAIN, *_PLAIN, _DUMPED)]
"""JSON of LangChain's messages in each of their forms."""
