"""How does an agent made with `create_agent` ask before it runs a batch that repeats itself?

`LoopGuardMiddleware` decides after each model call and takes in the answers before the next one.
It counts nothing itself: the counts are a private key of the agent's state, so they are saved
with the thread, and a resume, a fork and another process reach the same verdict. One instance
may serve any number of agents and threads.

What it cannot see: the calls of agents inside a tool, which need a middleware of their own
(`langchain_loopguard.subagents` gives it to those of deepagents), and tools that a provider runs
on its own side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
    hook_config,
)
from langchain_core.messages import RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from langchain_loopguard.graph.endings import check_ended, is_wrapping_up
from langchain_loopguard.graph.gate import Gate
from langchain_loopguard.graph.tracing import TRACE_POLICY
from langchain_loopguard.graph.turn import Turn
from langchain_loopguard.history import (
    answer_open_calls,
    is_same,
    last_batch,
    rewritten,
    surplus_answers,
)
from langchain_loopguard.messages import makes_calls
from langchain_loopguard.options import OnDetected, check_choice, check_flag, check_name, policy_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from langgraph.runtime import Runtime

    from langchain_loopguard.core.policy import LoopGuardPolicy
    from langchain_loopguard.graph.gate import Step
    from langchain_loopguard.telemetry import Count

__all__ = ["LoopGuardMiddleware", "OnDetected"]

_STATE_KEY = "loop_guard"
_REMOVE_ALL = RemoveMessage(id=REMOVE_ALL_MESSAGES)

_TOOL_SETTINGS = {"tools", "tool_choice", "parallel_tool_calls"}
"""Model settings that some providers refuse in a call without tools."""


class LoopGuardMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Lets the tool calls of an agent run, asks about them, or refuses them.

    Order: after a model call the hooks run from the last middleware to the first. List it
    behind `HumanInTheLoopMiddleware` and a loop is asked about before a person is asked to
    approve its calls; list it before, and only what the person approved is looked at. Both work,
    and so does either order with `ToolCallLimitMiddleware`, `ToolRetryMiddleware` and
    `SummarizationMiddleware`.

    In each agent of a swarm it also finds agents that hand over to each other for ever, since
    they share their messages. Under `langgraph-supervisor` it can't, because the supervisor
    takes no middleware: use `LoopGuardCallbackHandler` on the call of the whole graph there.
    What is found is told as `langchain_loopguard.telemetry` says.

    Args:
        policy: What counts as a loop; `LoopGuardPolicy()` without one.
        on_detected: What happens to a batch that is a loop. `"interrupt"` asks a person with
            `langgraph.types.interrupt`; see `langchain_loopguard.interrupts` for the question
            and the accepted answers. `"raise"` ends the run in `LoopDetectedError`; where the
            thread is saved, the calls are answered first, so that it can go on later.
            `"refuse"` answers the calls with an error and lets the model go on, until
            `LoopGuardPolicy.max_refusals` ends the run with a final message. `"wrap_up"`
            answers the calls with an error and calls the model once more, without tools, so
            that the run ends with what was found. `"warn"` holds nothing back. In every mode
            the model is told, and what no person hears of otherwise is logged.
        name: Names the middleware in the agent's graph, by default as the class. Two in one
            agent need a name each.
        state_key: The state's key for the counts. By default `loop_guard`, followed by the name
            where that is another one than `LoopGuardMiddleware`.
        agent_inbox: Whether a question carries the older form too that Agent Inbox reads.
        fail_open: Whether a fault of the guard itself is logged once and the agent goes on
            unguarded; `False` raises it.

    Raises:
        ValueError: If an option has a value it can't have; the message names both.

    Examples:
        !!! example "Ask a person"

            ```python
            from langchain.agents import create_agent
            from langgraph.checkpoint.memory import InMemorySaver
            from langchain_loopguard import LoopGuardMiddleware

            agent = create_agent(
                "openai:gpt-5.5",
                tools=[search],
                middleware=[LoopGuardMiddleware()],
                checkpointer=InMemorySaver(),
            )
            ```

        !!! example "Nobody there to ask"

            ```python
            agent = create_agent(
                "openai:gpt-5.5",
                tools=[search],
                middleware=[LoopGuardMiddleware(on_detected="wrap_up")],
            )
            ```
    """

    trace_policy = TRACE_POLICY

    def __init__(
        self,
        policy: LoopGuardPolicy | None = None,
        *,
        on_detected: OnDetected = "interrupt",
        name: str | None = None,
        state_key: str | None = None,
        agent_inbox: bool = False,
        fail_open: bool = True,
    ) -> None:
        super().__init__()
        self.policy = policy_of(policy)
        check_choice("on_detected", on_detected, OnDetected)
        name = type(self).__name__ if name is None else name
        check_name("name", name)
        if state_key is None:
            own = name == LoopGuardMiddleware.__name__
            state_key = _STATE_KEY if own else f"{_STATE_KEY}_{name}"
        check_name("state_key", state_key)
        check_flag("agent_inbox", agent_inbox)
        check_flag("fail_open", fail_open)
        if state_key in AgentState.__annotations__:
            raise ValueError(f"state_key: must not be a key of the agent's own, {state_key!r}")
        self.on_detected = on_detected
        self.state_key = state_key
        self._name = name
        self._gate = Gate(
            self.policy,
            adapter="middleware",
            on_detected=on_detected,
            agent_inbox=agent_inbox,
            fail_open=fail_open,
            answers_unreadable=False,
        )
        self.state_schema = _schema(state_key)
        self.tools = []

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the schema, a class that no module holds."""
        return {name: value for name, value in vars(self).items() if name != "state_schema"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the schema anew."""
        vars(self).update(state)
        self.state_schema = _schema(self.state_key)

    @property
    def name(self) -> str:
        """The name of the middleware instance."""
        return self._name

    def stats(self) -> Mapping[Count, int]:
        """Count what it did since it was made, over all threads; see `Telemetry.stats`."""
        return self._gate.telemetry.stats()

    # --- Hooks ----------------------------------------------------------------------------

    @hook_config(can_jump_to=["model", "end"])
    def after_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Let the calls of the model run, or not.

        Raises:
            GraphInterrupt: LangGraph's signal that a person is asked.
            LoopDetectedError: When the run is to end in an error and no thread is saved, or when
                a person was to be asked and the agent has no checkpointer.
            InvalidResumeError: If the agent was resumed with a value that is no answer. The
                question stays open.
        """
        # What stands behind the AI message changes nothing: the agent runs its calls all the same.
        batch = last_batch(state["messages"])
        if batch is None or not makes_calls(batch.message):
            return None
        if batch.answered and not batch.waiting and state.get("structured_response") is not None:
            return None  # The run ends with it.
        messages = batch.ends(state["messages"])
        step = self._gate.before_tools(Turn(messages, batch, state.get(self.state_key)))
        if step is None:
            return None
        jump = {"tools": None, "end": "end"}.get(step.to, "model")
        update = self._update(step, jump)
        if batch.others and step.to != "tools":
            # Where tools run, `before_model` puts their answers in their place.
            first = step.to not in {"agent", "end"}
            whole = rewritten(messages, batch, step.messages, others_first=first)
            update = {**(update or {}), "messages": [_REMOVE_ALL, *whole]}
        return update

    @hook_config(can_jump_to=["model", "end"])
    async def aafter_model(
        self, state: AgentState[Any], runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        """As `after_model`; there is nothing to wait for."""
        return self.after_model(state, runtime)

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Take in what the calls brought, and tell the model what that revealed.

        Calls that an interrupted turn left open are answered, so that the model can be called.

        Raises:
            LoopDetectedError: If the run was to end in it once its calls were answered.
        """
        messages: list[Any] = state["messages"]
        check_ended(messages)
        batch = last_batch(messages)
        if batch is None or not batch.answered or batch.spoken:
            return _repaired(messages)
        own = batch.ends(messages)
        surplus = surplus_answers(own)
        if surplus:
            removed = {message.id for message in surplus}
            own = [message for message in own if message.id not in removed]
        step = self._gate.after_tools(Turn(own, batch, state.get(self.state_key)))
        update = self._update(step, None) if step is not None else None
        added = step.messages if step is not None else ()
        if batch.apart or (batch.others and not all(message.id for message in added)):
            whole = rewritten(own, batch, added, others_first=False)
            return {**(update or {}), "messages": [_REMOVE_ALL, *whole]}
        removals = [RemoveMessage(id=str(message.id)) for message in surplus]
        if removals:
            update = update or {}
            update["messages"] = [*update.get("messages", ()), *removals]
        return update

    async def abefore_model(
        self, state: AgentState[Any], runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        """As `before_model`; there is nothing to wait for."""
        return self.before_model(state, runtime)

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Call the model without tools if it is to give its last answer; else note the tools."""
        if is_wrapping_up(request.state["messages"]):
            return handler(_without_tools(request))
        return self._with_declarations(request, handler(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """As `wrap_model_call`."""
        if is_wrapping_up(request.state["messages"]):
            return await handler(_without_tools(request))
        return self._with_declarations(request, await handler(request))

    # --- Helpers --------------------------------------------------------------------------

    def _update(self, step: Step, jump: str | None) -> dict[str, Any] | None:
        update: dict[str, Any] = {}
        if step.counts is not None:
            update[self.state_key] = step.counts
        if step.messages:
            update["messages"] = list(step.messages)
        if jump is not None:
            update["jump_to"] = jump
        return update or None

    def _with_declarations(
        self, request: ModelRequest[Any], response: ModelResponse[Any]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Save what the tools declare of themselves, so that every process knows it."""
        counts = self._gate.declare(request.state.get(self.state_key), request.tools)
        if counts is None:
            return response
        return ExtendedModelResponse(response, Command(update={self.state_key: counts}))


def _schema(state_key: str) -> Any:
    """Make the state schema: a key that is saved, and no part of the agent's input and output."""
    counts = NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    # The agent's own keys come from its own schema, which this one must not override.
    return TypedDict("LoopGuardAgentState", {state_key: counts})  # type: ignore[operator]


def _repaired(messages: list[Any]) -> dict[str, Any] | None:
    whole = answer_open_calls(messages)
    if is_same(whole, messages):
        return None
    return {"messages": [_REMOVE_ALL, *whole]}


def _without_tools(request: ModelRequest[Any]) -> ModelRequest[Any]:
    settings = {k: v for k, v in request.model_settings.items() if k not in _TOOL_SETTINGS}
    return request.override(tools=[], tool_choice=None, model_settings=settings)
