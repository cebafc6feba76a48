"""What does a real LangGraph agent do with a script of tool calls, with and without a guard?

The graph, the tool node, the guard and the interrupt are the real ones. The chat model reads
from the script and the tool's results are in it, so a run needs no network, no key and no shell.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command
from langsmith import tracing_context

from langchain_loopguard.adapters.node import LoopGuardState
from langchain_loopguard.adapters.wiring import add_loop_guard
from langchain_loopguard.langchain.marks import result_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.runnables import RunnableConfig

    from langchain_loopguard.demo.scripts import Script
    from langchain_loopguard.policy import LoopGuardPolicy

TOOL = "bash"
TASK = "Is the change in src/app/main.py complete?"
ENDED = "The script ends here."
HEEDED = "Understood, I stop repeating the call."


@dataclass(frozen=True, slots=True)
class Ran:
    """One tool call that ran.

    Attributes:
        number: Its place among the calls that ran, from 1.
        command: The command line.
        seen: How often this very result had come back before.
    """

    number: int
    command: str
    seen: int


@dataclass(frozen=True, slots=True)
class Asked:
    """One question to a person.

    Attributes:
        before: The number that the held call would have had among the calls that ran.
        payload: The interrupt's value, as any approval UI receives it.
        answer: What was answered.
    """

    before: int
    payload: dict[str, Any]
    answer: str


@dataclass(slots=True)
class RunLog:
    """What happened in one run; the run writes it, the display reads it.

    Attributes:
        ran: The tool calls that ran.
        asked: The questions to a person.
        warned: For each warning, after how many calls it came.
        model_calls: How often the model was called.
        characters: How much text the model was sent, over all its calls.
        messages: The thread's messages at the end.
    """

    ran: list[Ran] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    warned: list[int] = field(default_factory=list)
    model_calls: int = 0
    characters: int = 0
    messages: list[AnyMessage] = field(default_factory=list)

    @property
    def final_text(self) -> str:
        """The run's last message."""
        return self.messages[-1].text if self.messages else ""


class ScriptedModel(BaseChatModel):
    """A chat model that asks for the script's next call, whatever it reads.

    It knows its place by the AI messages before it, so a resumed thread goes on where it was.
    It heeds one thing: a refusal with a person's words ends its work, because a person who
    tries the demo wants to see where the words go.
    """

    script: Any
    log: Any

    @property
    def _llm_type(self) -> str:
        return "loopguard-demo"

    def _generate(
        self,
        messages: list[Any],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager, kwargs
        self.log.model_calls += 1
        self.log.characters += sum(len(message.text) for message in messages)
        place = sum(isinstance(message, AIMessage) for message in messages)
        if self._was_refused(messages):
            answer = AIMessage(HEEDED)
        elif place < len(self.script.calls):
            call = {"name": TOOL, "args": {"command": self.script.calls[place].command}}
            answer = AIMessage("", tool_calls=[{**call, "id": f"call-{place + 1}"}])
        else:
            answer = AIMessage(ENDED)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    @staticmethod
    def _was_refused(messages: list[Any]) -> bool:
        last = messages[-1]
        return isinstance(last, ToolMessage) and result_by(last) == "guard"


def scripted_tool(script: Script, log: RunLog) -> StructuredTool:
    """The tool whose results come from the script; it notes each call in the log."""
    by_command = {call.command: call for call in script.calls}
    seen: Counter[str] = Counter()

    def run_command(command: str) -> str:
        """Run a shell command."""
        call = by_command[command]
        log.ran.append(Ran(len(log.ran) + 1, command, seen[call.result]))
        seen[call.result] += 1
        if call.failed:
            raise ToolException(call.result)
        return call.result

    return StructuredTool.from_function(run_command, name=TOOL, handle_tool_error=True)


def run_unguarded(script: Script, on_call: Callable[[Ran], None]) -> RunLog:
    """Run the script to its end with nothing in the way.

    Args:
        script: The calls.
        on_call: Called with each call that ran.
    """
    log = RunLog()
    builder = StateGraph(MessagesState)
    _add_agent(builder, script, log)
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    _stream(builder.compile(), {"messages": [HumanMessage(TASK)]}, {}, log, on_call)
    return log


def run_guarded(
    script: Script,
    policy: LoopGuardPolicy,
    on_call: Callable[[Ran], None],
    ask: Callable[[dict[str, Any], int], str],
) -> RunLog:
    """Run the script on the same agent with the guard between the model and the tools.

    Args:
        script: The calls.
        policy: The guard's policy.
        on_call: Called with each call that ran.
        ask: Gets the interrupt's payload and the number of the stopped call; returns the answer.
    """
    log = RunLog()
    builder = StateGraph(LoopGuardState)
    _add_agent(builder, script, log)
    add_loop_guard(builder, agent="agent", tools="tools", policy=policy)
    graph = builder.compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": str(uuid.uuid4())}}

    turn: Any = {"messages": [HumanMessage(TASK)]}
    with _warnings_noted_in(log):
        while (payload := _stream(graph, turn, config, log, on_call)) is not None:
            before = len(log.ran) + 1
            answer = ask(payload, before)
            log.asked.append(Asked(before, payload, answer))
            turn = Command(resume=answer)
    return log


class _Noting(logging.Handler):
    """Notes the guard's warnings, and prints what is worse as it would be printed anyway."""

    def __init__(self, log: RunLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.WARNING:
            self._log.warned.append(len(self._log.ran))
        elif logging.lastResort is not None:
            logging.lastResort.handle(record)


@contextmanager
def _warnings_noted_in(log: RunLog) -> Iterator[None]:
    logger = logging.getLogger("langchain_loopguard")
    handler = _Noting(log)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _add_agent(builder: StateGraph[Any, Any, Any, Any], script: Script, log: RunLog) -> None:
    model = ScriptedModel(script=script, log=log)

    def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([scripted_tool(script, log)]))
    builder.add_edge(START, "agent")


def _stream(
    graph: Any,
    turn: Any,
    config: RunnableConfig,
    log: RunLog,
    on_call: Callable[[Ran], None],
) -> dict[str, Any] | None:
    """Run until the end or the next interrupt, whose payload is returned."""
    told = len(log.ran)
    payload: dict[str, Any] | None = None
    # A tracer set up for the user's own work must not send the demo anywhere.
    with tracing_context(enabled=False):
        for state in graph.stream(turn, config, stream_mode="values"):
            for ran in log.ran[told:]:
                on_call(ran)
            told = len(log.ran)
            log.messages = state.get("messages", log.messages)
            if interrupts := state.get("__interrupt__"):
                payload = interrupts[0].value
    return payload
