"""What the notebooks share: a chat model that needs no key, and how they print what happened.

The model is the only stand-in. It replies as a function of the messages says; the agent, the
tools, the checkpointer and the guard are the real ones.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import langchain_loopguard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

_WIDTH = 76

RECORDED = Path(langchain_loopguard.__file__).parent.parent / "tests" / "data" / "corpus.jsonl.xz"
"""The recorded runs of the repository; a package without its repository has none."""


class StandInModel(BaseChatModel):
    """A chat model whose replies come from a function.

    Attributes:
        reply: Gets the messages and returns the text or the AI message to reply with.
    """

    reply: Any

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Take the tools as a real model does; the function knows them by itself."""
        return self.bind(tools=tools, **kwargs)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        said = self.reply(messages)
        message = said if isinstance(said, AIMessage) else AIMessage(said)
        return ChatResult(generations=[ChatGeneration(message=message)])


def call(name: str, **args: Any) -> AIMessage:
    """Make the AI message that calls one tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": uuid4().hex}])


def show_question(result: dict[str, Any]) -> None:
    """Print what a person is asked, the calls that wait, and what can be answered."""
    question = result["__interrupt__"][0].value
    print("A person is asked:")
    for line in question["message"].splitlines():
        print(textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent="  "))
    for request in question["action_requests"]:
        print(f"  Waiting: {_call_text(request)}")
    for choice in question["choices"]:
        print(f"  {choice['value']:<9} {choice['label']}")
    print(f"  TEXT      {question['free_text']}")


def show(messages: Sequence[BaseMessage]) -> None:
    """Print a conversation; equal lines that follow each other once, with their number."""
    lines = [line for message in messages for line in _lines(message)]
    place = 0
    while place < len(lines):
        # A call and its result are two lines, so they repeat as a pair.
        pair, times = lines[place : place + 2], 1
        while pair == lines[place + 2 * times : place + 2 * times + 2]:
            times += 1
        if times > 1 and len(pair) > 1:
            _print(*pair[0], f"   x {times}")
            _print(*pair[1])
            place += 2 * times
        else:
            _print(*lines[place])
            place += 1


def run_command(*words: str, folder: str | Path, last: int | None = None) -> None:
    """Run `loopguard` in a folder, as a terminal would, and print what it prints.

    Args:
        words: The command and its options.
        folder: Where it runs.
        last: How many of its last lines to print; all of them without.
    """
    command = [sys.executable, "-m", langchain_loopguard.__name__, *words]
    # A kernel asks for colours, which a page does not show.
    kept = {name: value for name, value in os.environ.items() if "COLOR" not in name}
    done = subprocess.run(  # noqa: S603 - this package, on the notebook's own files
        command,
        cwd=folder,
        env={**kept, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": str(_WIDTH)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (done.stdout + done.stderr).splitlines()
    print("$ loopguard", *words)
    if last is not None and len(lines) > last:
        print("...")
    for line in lines[-(last or len(lines)) :]:
        print(textwrap.fill(line.rstrip(), _WIDTH, subsequent_indent="  "))
    print(f"(exit code {done.returncode})")


def quiet() -> None:
    """Keep the guard's log lines out of a page on which they are printed another way."""
    logging.getLogger("langchain_loopguard").setLevel(logging.ERROR)


def _lines(message: BaseMessage) -> list[tuple[str, str]]:
    calls = [(message.type, _call_text(one)) for one in getattr(message, "tool_calls", ())]
    return calls or [(message.type, message.text)]


def _print(kind: str, text: str, more: str = "") -> None:
    print(textwrap.fill(f"{kind:>6}: {text}{more}", _WIDTH, subsequent_indent=" " * 8))


def _call_text(request: dict[str, Any]) -> str:
    args = ", ".join(f"{key}={value!r}" for key, value in request["args"].items())
    return f"{request['name']}({args})"
