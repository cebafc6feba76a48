"""Which states has a release of this package left in people's databases?

    python -m tests.faults.make_states

writes one file for each conversation below, with the state after each of its batches and what
the guard went on to say, under `states/v<version>/`. Run it once for each version of the state,
at its last release, and never change what it wrote: `test_versions` reads every version there is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_loopguard import Action, LoopGuardPolicy
from langchain_loopguard.langchain.history import Reader
from langchain_loopguard.langchain.messages import last_step
from langchain_loopguard.langchain.options import Options
from langchain_loopguard.langchain.outcome import decide
from langchain_loopguard.langchain.replies import Reply
from tests.hosts import ai_calls

FOLDER = Path(__file__).parent / "states"

POLICIES = {
    "default": LoopGuardPolicy(),
    "seed": LoopGuardPolicy.seed(),
    "signals": LoopGuardPolicy.signals(),
}

SEARCH = [("search", {"q": "a"})]
PAIR = [("search", {"q": "a"}), ("write", {"q": "b"})]
READS = [[("read_file", {"path": f"{n}.py", "line": n})] for n in range(8)]
EDITS = [[("edit", {"path": "a.py", "text": str(n)})] for n in range(10)]

CONVERSATIONS: dict[str, Sequence[Any]] = {
    # Batches; a text is a user turn.
    "repeat": ["go", *[SEARCH] * 8],
    "cycle": ["go", *[SEARCH, PAIR] * 6],
    "work-then-loop": ["go", *READS, *[PAIR] * 6],
    "errors": ["go", *EDITS],
    "second-turn": ["go", *[SEARCH] * 4, "and?", *[SEARCH] * 6],
}


def answer(name: str, args: dict[str, Any]) -> tuple[str, str]:
    """Give a tool's answer and its status."""
    if name == "edit":
        return "error: the text was not found in line 12", "error"
    if name == "read_file":
        return "\n".join(f"line {n} of {args['path']}" for n in range(3)), "success"
    return "ok" if name == "write" else "nothing found", "success"


def messages_of(parts: Sequence[Any]) -> list[list[BaseMessage]]:
    """Make each part's messages: a user turn, or an AI message with its answers."""
    made: list[list[BaseMessage]] = []
    for number, part in enumerate(parts):
        if isinstance(part, str):
            made.append([HumanMessage(part, id=f"human-{number}")])
            continue
        message = ai_calls(part, number)
        message.id = f"ai-{number}"
        answers = []
        for call in message.tool_calls:
            text, status = answer(call["name"], call["args"])
            answers.append(
                ToolMessage(text, tool_call_id=call["id"], name=call["name"], status=status)
            )
        made.append([message, *answers])
    return made


def step(reader: Reader, history: list[BaseMessage], part: list[BaseMessage]) -> list[Any]:
    """Play one part; a batch that is asked about is refused every second time.

    Args:
        reader: The reader.
        history: The messages before; the part's are added.
        part: The messages of the part.

    Returns:
        What the guard said: action, rule and count of each finding.
    """
    first = part[0]
    if not isinstance(first, AIMessage):
        history.extend(part)
        reader.read(history)
        return []
    history.append(first)
    reader.read(history[:-1])
    made = last_step(history)
    assert made is not None
    decision = reader.check(made)
    said = [[f.action.name, f.rule, f.count, f.since] for f in decision.findings]
    refused = decision.action >= Action.ASK and int(str(first.id).rpartition("-")[2]) % 2
    reply = Reply("text", "no") if refused else Reply("continue")
    outcome = decide(
        decision,
        made,
        mode="interrupt",
        can_ask=True,
        options=reader.options,
        reply=reply if decision.action >= Action.ASK else None,
    )
    reader.settle(made, decision, outcome)
    history.extend(outcome.messages(made.open_calls) if refused else part[1:])
    reader.read(history)
    return said


def record(policy: str, name: str) -> dict[str, Any]:
    """Play a conversation and note the state after each part, and what is said in it."""
    reader = Reader(Options(policy=POLICIES[policy]))
    history: list[BaseMessage] = []
    states, said = [], []
    for part in messages_of(CONVERSATIONS[name]):
        said.append(step(reader, history, part))
        states.append(json.loads(json.dumps(reader.to_state())))
    return {"policy": policy, "conversation": name, "said": said, "states": states}


def main() -> int:
    """Write the states of this release's version."""
    version = Reader(Options()).to_state()["v"]
    folder = FOLDER / f"v{version}"
    folder.mkdir(parents=True, exist_ok=True)
    for policy in POLICIES:
        for name in CONVERSATIONS:
            text = json.dumps(record(policy, name), separators=(",", ":"))
            (folder / f"{policy}-{name}.json").write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
