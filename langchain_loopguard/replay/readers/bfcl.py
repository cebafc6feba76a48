"""Reads the result files of the Berkeley Function Calling Leaderboard (bfcl-eval).

A line a task: `id`, `result`, and for tasks of several turns `inference_log`, a list of turns with
`begin_of_turn_query`, `step_0`, `step_1` and so on. Each step has what the model answered, the
calls that were decoded of it as Python text (`model_response_decoded`), and a message of the role
`tool` for each result. Without the log, `result` has the calls alone: of one turn as a list, or by
turn and step. A result says nothing of failure but in its text.

The scores stand in files of their own, so that the outcome is unknown.

Facts: `bfcl_eval.model_handler.base_handler` of bfcl-eval 2026.3.23, read 2026-11.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from langchain_loopguard.replay.conversation import ConversationError
from langchain_loopguard.replay.readers.base import (
    Events,
    Format,
    call,
    dicts_of,
    first_text,
    one_run,
    parsed_arguments,
)

if TYPE_CHECKING:
    from langchain_loopguard.replay.conversation import Event

_LONGEST = 20_000


def _matches(value: Any) -> bool:
    if "id" not in value or "result" not in value:
        return False
    return (
        "inference_log" in value
        or "traceback" in value
        or ("input_token_count" in value and "latency" in value)
    )


def _read(run: Events, values: list[Any]) -> None:
    run.name = first_text(values[0], "id")
    log = values[0].get("inference_log")
    turns = [t for t in log if isinstance(t, dict)] if isinstance(log, list) else []
    if any("begin_of_turn_query" in turn for turn in turns):
        for turn in turns:
            _add_turn(run, turn)
    else:
        _add_results(run, values[0].get("result"))


def _add_turn(events: Events, turn: dict[str, Any]) -> None:
    if "begin_of_turn_query" not in turn:
        return  # The state of the world between two turns.
    events.user()
    for number in range(len(turn)):
        step = turn.get(f"step_{number}")
        if step is None:
            break
        told = dicts_of(step, f"step_{number}")
        decoded = [one["model_response_decoded"] for one in told if "model_response_decoded" in one]
        calls = _calls_of(decoded[0], f"{len(events.events)}") if decoded else []
        events.step(calls)
        results = [one for one in told if one.get("role") == "tool"]
        for made, result in zip(calls, results, strict=False):
            events.result(made["id"], result.get("content"))


def _add_results(events: Events, result: Any) -> None:
    """Add calls without results: a step as it stands, or turns of steps."""
    turns = result if isinstance(result, list) else []
    if not turns or not all(isinstance(turn, list) for turn in turns):
        turns = [[result]]
    for turn in turns:
        events.user()
        for step in turn:
            events.step(_calls_of(step, f"{len(events.events)}"))


def _calls_of(given: Any, step: str) -> list[Event]:
    """Read calls: Python text, or objects of a name and its arguments; other text is an answer."""
    calls = []
    for at, one in enumerate(given if isinstance(given, list) else [given]):
        call_id = f"{step}.{at}"
        if isinstance(one, str):
            calls.extend(_parsed(one, call_id))
        elif isinstance(one, dict) and len(one) == 1:
            name, args = next(iter(one.items()))
            calls.append(call(call_id, name, parsed_arguments(args)))
        elif one:
            raise ConversationError(f"{step}: a call of an unknown form")
    return calls


def _parsed(text: str, call_id: str) -> list[Event]:
    try:
        tree = ast.parse(text.strip(), mode="eval").body if len(text) < _LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # An answer in words.
    nodes = tree.elts if isinstance(tree, ast.List) else [tree]
    found = [node for node in nodes if isinstance(node, ast.Call)]
    return [
        call(
            call_id if len(found) == 1 else f"{call_id}.{at}",
            ast.unparse(node.func),
            {f"arg{n}": _value(arg) for n, arg in enumerate(node.args)}
            | {key.arg or "**": _value(key.value) for key in node.keywords},
        )
        for at, node in enumerate(found)
    ]


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return ast.unparse(node)


BFCL = Format("BFCL result", _matches, one_run(_read), exact=True)
