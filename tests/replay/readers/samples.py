"""One sample of each format, and what it holds by a count of its own on the raw JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.conversations import DATA
from tests.replay.readers import handmade
from tests.replay.stories import TOLD

FORMATS = DATA / "formats"


class Counts(NamedTuple):
    """What a sample holds, over all of its runs; failures are those that the source tells."""

    runs: int
    turns: int
    steps: int
    calls: int
    results: int
    failures: int


@dataclass(frozen=True)
class Sample:
    """One sample.

    Attributes:
        format: The name of the format that must be found.
        values: Its lines, or its one document.
        count: Counts what it holds.
        real: Whether the format's own software wrote it.
        story: Whether it tells the story of `tests.replay.stories`.
    """

    format: str
    values: list[Any]
    count: Callable[[list[Any]], Counts]
    real: bool = False
    story: bool = False

    @property
    def numbered(self):
        return list(enumerate(self.values, 1))

    @property
    def unit(self):
        return "value" if len(self.values) == 1 else "line"


def _lines(name):
    return [json.loads(line) for line in (FORMATS / name).read_text("utf-8").splitlines()]


def _document(name):
    return [json.loads((FORMATS / name).read_text("utf-8"))]


def _everywhere(value, wanted):
    """All objects within a value for which a test holds."""
    found = []
    if isinstance(value, dict):
        found = [value] if wanted(value) else []
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        found.extend(_everywhere(one, wanted))
    return found


def _fixed(*numbers):
    return lambda _: Counts(*numbers)


STORY = _fixed(1, 2, 3, 4, 4, 1)
"""The story's own numbers, where the source tells of failure."""
STORY_UNTOLD = _fixed(1, 2, 3, 4, 4, 0)


def _messages(values, calls, results, failed, users):
    """Count on a list of messages: each function counts within one message."""
    [value] = values
    found = value.get("messages", value.get("contents")) if isinstance(value, dict) else value
    made = [calls(message) for message in found]
    return Counts(
        1, sum(map(users, found)), sum(n > 0 for n in made), sum(made),
        sum(map(results, found)), sum(map(failed, found)),
    )  # fmt: skip


def _parts(key, *kinds):
    def count(message):
        return sum(part.get(key) in kinds for part in message.get("parts") or [])

    return count


def _pydantic_ai(values):
    returns = _everywhere(values, lambda one: one.get("part_kind") == "tool-return")
    bad = sum(one["outcome"] in {"failed", "retried"} for one in returns)
    bad += len(_everywhere(values, lambda o: o.get("part_kind") == "retry-prompt"))
    results = len(
        _everywhere(values, lambda o: "tool_call_id" in o and o["part_kind"] != "tool-call")
    )
    counted = _messages(
        values, _parts("part_kind", "tool-call"), lambda _: 0, lambda _: 0,
        _parts("part_kind", "user-prompt"),
    )  # fmt: skip
    return counted._replace(results=results, failures=bad)


def _autogen(values):
    def of(kind):
        return lambda m: len(m["content"]) if m["type"] == kind else 0

    return _messages(
        values, of("ToolCallRequestEvent"), of("ToolCallExecutionEvent"),
        lambda m: sum(isinstance(o, dict) and o.get("is_error", False) for o in m["content"]),
        lambda m: m["source"] == "user",
    )  # fmt: skip


def _autogen_state(values):
    found = values[0]["llm_context"]["messages"]
    lists = [one["content"] for one in found if isinstance(one["content"], list)]
    calls = [[o for o in one if "arguments" in o] for one in lists]
    results = [o for one in lists for o in one if "call_id" in o]
    return Counts(
        1, sum(one["type"] == "UserMessage" for one in found), sum(map(bool, calls)),
        sum(map(len, calls)), len(results), sum(o["is_error"] for o in results),
    )  # fmt: skip


def _ag2(values):
    return _messages(
        values, lambda m: len(m.get("tool_calls") or []),
        lambda m: len(m.get("tool_responses") or []), lambda _: 0,
        lambda m: m.get("name") == "user" and m["role"] != "tool",
    )  # fmt: skip


def _autogen_team(values):
    return _autogen_state(_everywhere(values, lambda one: "llm_context" in one))


def _ag2_events(values):
    """Each call and each result stands alone too."""
    kinds = Counter(line["type"].rpartition(".")[2] for line in values)
    return Counts(
        1, kinds["ModelRequest"], kinds["ToolCallsEvent"], kinds["ToolCallEvent"],
        kinds["ToolResultEvent"] + kinds["ToolErrorEvent"], kinds["ToolErrorEvent"],
    )  # fmt: skip


def _agentdojo(values):
    return _messages(
        values, lambda m: len(m.get("tool_calls") or []), lambda m: m["role"] == "tool",
        lambda m: bool(m.get("error")), lambda m: m["role"] == "user",
    )  # fmt: skip


def _inspect(values):
    [log] = values
    messages = [m for sample in log["samples"] for m in sample["messages"]]
    counted = _agentdojo([{"messages": messages}])
    return counted._replace(runs=len(log["samples"]))


def _vercel(values):
    def of(*kinds):
        return lambda m: sum(
            p["type"] in kinds for p in m["content"] if not isinstance(m["content"], str)
        )

    return _messages(
        values, of("tool-call"), of("tool-result"),
        lambda m: json.dumps(m).count('"error-'), lambda m: m["role"] == "user",
    )  # fmt: skip


def _vercel_ui(values):
    parts = values[0][1]["parts"]
    calls = [part for part in parts if part["type"].startswith("tool-")]
    states = Counter(part["state"] for part in calls)
    steps = json.dumps([p["type"] for p in parts]).split("step-start")
    failed = states["output-error"]
    return Counts(1, 1, sum("tool-" in one for one in steps), len(calls),
                  failed + states["output-available"], failed)  # fmt: skip


def _contents(values):
    calls = ("functionCall", "function_call")
    results = ("functionResponse", "function_response")

    def of(keys):
        return lambda m: sum(any(k in part for k in keys) for part in m["parts"])

    failed = _everywhere(values, lambda one: "error" in one)
    counted = _messages(values, of(calls), of(results), lambda _: 0, of(["text"]))
    said = _everywhere(values, lambda one: one.get("role") == "user")
    users = sum(any("text" in part for part in one["parts"]) for one in said)
    return counted._replace(failures=len(failed), turns=users)


def _gemini_cli(values):
    last = {line["id"]: line for line in values if "type" in line}.values()
    calls = [call for line in last for call in line.get("toolCalls", [])]
    return Counts(
        1, sum(line["type"] == "user" for line in last),
        sum("toolCalls" in line for line in last), len(calls), len(calls),
        sum(call["status"] == "error" for call in calls),
    )  # fmt: skip


def _codex(values):
    kinds = [line["payload"].get("type") for line in values if line["type"] == "response_item"]
    text = "".join("c" if k == "function_call" else "." for k in kinds if k != "reasoning")
    outputs = [line["payload"] for line in values
               if line["payload"].get("type") == "function_call_output"]  # fmt: skip
    return Counts(
        1, json.dumps(values).count('"UserMessage"'), len([s for s in text.split(".") if s]),
        text.count("c"), len(outputs),
        sum("exited with code 0" not in json.dumps(one["output"]) for one in outputs),
    )  # fmt: skip


def _codex_exec(values):
    done = [line["item"] for line in values if line["type"] == "item.completed"]
    ran = [item for item in done if item["type"] == "command_execution"]
    turns = sum(line["type"] == "turn.started" for line in values)
    # Calls that began before the first of them had ended are one step.
    order = "".join(line["type"][5] for line in values if "exit_code" in line.get("item", {}))
    steps = sum(bool(begun) for begun in order.split("c"))
    return Counts(1, turns, steps, len(ran), len(ran), sum(i["status"] == "failed" for i in ran))


def _smolagents(values):
    steps = values[0]["steps"] if isinstance(values[0], dict) else values[0]
    made = [
        len(step.get("tool_calls") or [])
        or (len((step.get("model_output_message") or {}).get("tool_calls") or []))
        for step in steps
    ]
    bad = sum(n for n, step in zip(made, steps, strict=True) if step.get("error"))
    return Counts(1, sum("task" in step for step in steps), sum(map(bool, made)), sum(made),
                  sum(made), bad)  # fmt: skip


def _atif(values):
    runs = [values[0], *values[0]["subagent_trajectories"]]
    steps = [step for run in runs for step in run["steps"]]
    calls = [len(step.get("tool_calls") or []) for step in steps]
    results = [len((step.get("observation") or {}).get("results") or []) for step in steps]
    turns = sum(step["source"] == "user" for step in steps)
    return Counts(len(runs), turns, sum(map(bool, calls)), sum(calls), sum(results), 0)


def _bfcl(values):
    turns = [turn for turn in values[0]["inference_log"] if isinstance(turn, dict)]
    steps = [step for turn in turns for key, step in turn.items() if key.startswith("step_")]
    results = [sum(one["role"] == "tool" for one in step) for step in steps]
    made = [step for turn in values[0]["result"] for step in turn]
    return Counts(1, len(turns), sum(map(bool, made)), sum(map(len, made)), sum(results), 0)


def _spans(values):
    """Tool spans; how many model calls asked for tools is the number of steps."""
    text = json.dumps(values)
    tools = text.count('\\"status\\": \\"success\\"') and _everywhere(
        values, lambda one: one.get("openinference.span.kind") == "TOOL"
    )
    failed = _everywhere(values, lambda one: one.get("status_code") == "ERROR")
    asked = [
        one for one in _everywhere(values, lambda o: o.get("openinference.span.kind") == "LLM")
        if any(key.startswith("llm.output_messages.0.message.tool_calls") for key in one)
    ]  # fmt: skip
    return Counts(1, 1, len(asked), len(tools), len(tools), len(failed))


def _otlp(values):
    spans = _everywhere(values, lambda one: "spanId" in one and "attributes" in one)
    kinds = [
        attribute["value"]["stringValue"]
        for span in spans
        for attribute in span["attributes"]
        if attribute["key"] == "gen_ai.operation.name"
    ]
    tools = kinds.count("execute_tool")
    names = [span for span in spans if span["name"].startswith(("execute_tool", "running tool"))]
    failed = sum(str(span["status"].get("code")) == "STATUS_CODE_ERROR" for span in names)
    answers = kinds.count("chat") - 1  # The last one is the final answer.
    return Counts(1, 1, answers, tools, tools, failed)


def _otel_messages(values):
    return _messages(
        values, _parts("type", "tool_call"), _parts("type", "tool_call_response"), lambda _: 0,
        lambda message: message["role"] == "user" and "response" not in json.dumps(message),
    )  # fmt: skip


def _in_otlp(name):
    """The messages that one of pydantic-ai's spans holds."""
    spans = _everywhere(_document("otlp_pydantic_ai.json"), lambda one: one.get("key") == name)
    return [json.loads(max((one["value"]["stringValue"] for one in spans), key=len))]


def _real(form, values, count):
    return Sample(form, values, count, real=True)


def _story(form, values, count=STORY):
    return Sample(form, values, count, story=True)


SAMPLES = {
    "inspect_ai": _real("inspect_ai log", _document("inspect_ai.json"), _inspect),
    "pydantic-ai": _real("pydantic-ai messages", _document("pydantic_ai.json"), _pydantic_ai),
    "smolagents": _real("smolagents run", _document("smolagents.json"), _smolagents),
    "smolagents: code": _real("smolagents run", _document("smolagents_code.json"), _smolagents),
    "AutoGen": _real("AutoGen messages", _document("autogen.json"), _autogen),
    "AutoGen: state": _real("AutoGen messages", _document("autogen_state.json"), _autogen_state),
    "AG2": _real("AG2 chat history", _document("ag2.json"), _ag2),
    "AutoGen: team": _real("AutoGen team state", _document("autogen_team.json"), _autogen_team),
    "AG2: events": _real("AG2 event log", _lines("ag2_events.jsonl"), _ag2_events),
    "AgentDojo": _real("AgentDojo run", _document("agentdojo.json"), _agentdojo),
    "BFCL": _real("BFCL result", _lines("bfcl.jsonl"), _bfcl),
    "ATIF": _real("ATIF trajectory", _document("atif.json"), _atif),
    "Gemini contents": _real("Gemini contents", _document("gemini_contents.json"), _contents),
    "Gemini contents: Python": _real(
        "Gemini contents", _document("gemini_contents_python.json"), _contents
    ),
    "Gemini CLI": _real("Gemini CLI session", _lines("gemini_cli.jsonl"), _gemini_cli),
    "Codex": _real("Codex session", _lines("codex_rollout.jsonl"), _codex),
    "Codex exec": _real("Codex exec events", _lines("codex_exec.jsonl"), _codex_exec),
    "Vercel": _real("Vercel AI messages", _document("vercel_messages.json"), _vercel),
    "Vercel UI": _real("Vercel AI messages", _document("vercel_ui.json"), _vercel_ui),
    "OpenInference": _real("OpenTelemetry spans", _lines("openinference_langchain.jsonl"), _spans),
    "OTLP": _real("OTLP spans", _document("otlp_pydantic_ai.json"), _otlp),
    "inspect_ai: messages": _real(
        "inspect_ai messages",
        [_document("inspect_ai.json")[0]["samples"][0]["messages"]],
        _agentdojo,
    ),
    "OpenTelemetry messages": _real(
        "OpenTelemetry messages", _in_otlp("gen_ai.input.messages"), _otel_messages
    ),
    "Cursor": _story("stream-json of Cursor or Claude Code", handmade.cursor()),
    "Claude stream-json": _story("stream-json of Cursor or Claude Code", handmade.claude_stream()),
    "OpenHands": _story("OpenHands events", handmade.openhands()),
    "OpenHands: output": _story("OpenHands evaluation", [handmade.openhands_output()]),
    "OpenHands SDK": _story("OpenHands events", handmade.openhands_sdk()),
    "Bedrock": _story("Bedrock Converse", [handmade.bedrock()]),
    "Vercel UI: 4": Sample("Vercel AI messages", [handmade.vercel_4()], STORY_UNTOLD),
    "Cline": Sample("Cline conversation", [handmade.cline()], _fixed(1, 2, 3, 3, 3, 1)),
    "Cline: text results": Sample(
        "Cline conversation", [handmade.cline_text_results()], _fixed(1, 1, 1, 1, 1, 0)
    ),
    "Cline: tools": _story("Cline conversation", [handmade.cline_native()]),
    "Langfuse": _story("Langfuse trace", [handmade.langfuse()]),
    "Langfuse: rows": _story("Langfuse observations", handmade.langfuse_rows()),
    "LangSmith: bulk": _story("LangSmith runs", handmade.langsmith_bulk()),
    "own form": _story("loopguard", TOLD["own form"].lines),
    "LangChain": _story("LangChain messages", [TOLD["LangChain: messages_to_dict"].document]),
    "LangSmith": _story("LangSmith runs", TOLD["LangSmith: runs a line"].lines),
    "OpenAI chat": _story("OpenAI chat", [TOLD["OpenAI chat"].document], STORY_UNTOLD),
    "OpenAI Responses": _story(
        "OpenAI Responses", [TOLD["OpenAI Responses"].document], STORY_UNTOLD
    ),
    "Anthropic": _story("Anthropic messages", [TOLD["Anthropic"].document]),
    "Claude Code": _story("Claude Code session", TOLD["Claude Code"].lines),
    "opencode": _story("opencode session", [TOLD["opencode"].document]),
    "tau2": _story("tau-bench results", TOLD["tau2"].document["simulations"]),
    "tau-bench": _story("tau-bench results", TOLD["tau-bench"].document, STORY_UNTOLD),
    "SWE-agent": Sample(
        "SWE-agent trajectory",
        [{"trajectory": [{"action": "open a", "observation": "x"}], "history": [], "info": {}}],
        _fixed(1, 1, 1, 1, 1, 0),
    ),
}
"""Name -> sample; those that are not real are made by the documentation of their software."""
