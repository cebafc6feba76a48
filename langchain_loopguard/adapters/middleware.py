"""How does an agent made with `create_agent` ask before it runs a step that repeats itself?

`LoopGuardMiddleware` decides behind each model call, in the one super-step that it costs, and
speaks to the model through the request, so the saved thread stays as the tools wrote it. The
counts are a private key of the agent's state: a resume, a fork and another process reach the same
verdict. One instance may serve any number of agents and threads.

Host traps that are answered here: hooks are nodes, and nodes count against `recursion_limit`, so
there is no `before_model`; `jump_to` needs its `hook_config`; an error raised behind the model
leaves calls without results in the thread, so it is raised at the next model call, when they have
some; a node hook that does nothing is saved all the same, so mode `observe` has none.

What it can't see: the calls of agents inside a tool, which need a middleware of their own
(`guard_subagents` gives it to those of deepagents), and tools that a provider runs on its side.
"""

from __future__ import annotations

import inspect
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
from langchain_core.messages import AIMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from langchain_loopguard.adapters._langgraph import (
    TRACE_POLICY,
    ask_person,
    begins_turn,
    can_ask,
    is_nested,
    thread_key,
)
from langchain_loopguard.adapters.gate import Gate
from langchain_loopguard.adapters.request import ask_model
from langchain_loopguard.langchain.errors import error_of_facts
from langchain_loopguard.langchain.marks import final_message
from langchain_loopguard.langchain.messages import last_step, makes_calls
from langchain_loopguard.langchain.options import (
    IsUserMessage,
    OnDetected,
    Options,
    ShowContent,
    check_name,
)
from langchain_loopguard.langchain.repair import complete, rewritten

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from langchain_core.messages import BaseMessage
    from langgraph.runtime import Runtime

    from langchain_loopguard.adapters.gate import Decided
    from langchain_loopguard.langchain.telemetry import Count
    from langchain_loopguard.langchain.wording import Wording
    from langchain_loopguard.policy import LoopGuardPolicy

_STATE_KEY = "loop_guard"


class LoopGuardMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Lets the tool calls of an agent run, asks a person, or refuses them.

    Order: behind a model call the hooks run from the last middleware to the first. List it behind
    `HumanInTheLoopMiddleware` and a person is asked what to do with a loop before they approve its
    calls; list it before, and only what the person approved is looked at. Either order works, and
    so it does with `ToolCallLimitMiddleware`, `ToolRetryMiddleware` and
    `SummarizationMiddleware`.

    In each agent of a swarm it also finds agents that hand over for ever. Under
    `langgraph-supervisor`, which takes no middleware, use `LoopGuardCallbackHandler`.

    Args:
        policy: What counts as a loop; `LoopGuardPolicy()` without one.
        on_detected: What happens to a step that is a loop. `"interrupt"` asks a person with
            `langgraph.types.interrupt`; where the thread isn't saved, so that nobody can be
            asked, the run ends with a final message. `"refuse"` puts an error in the place of the
            results and lets the model go on, until `LoopGuardPolicy.max_refusals` ends the run
            with a final message. `"wrap_up"` does so too and calls the model again, without
            tools, so that the run ends with what was found. `"raise"` ends it in
            `LoopDetectedError`; where the thread is saved, the calls get results first, so that
            it can be used on. `"warn"` only tells the model. `"observe"` changes nothing at all
            and emits what is found. A callable gets an `outcome.Detected` and gives one of these,
            an answer as a person would, or `None` to warn.
        name: Names the middleware in the agent's graph, by default as the class. Two in one agent
            need a name each.
        state_key: The state's key for the counts. By default `loop_guard`, followed by the name
            where that is another one than `LoopGuardMiddleware`.
        show_content: How much of arguments and results a question shows: `"full"`, `"masked"`
            (what looks like a secret is), or `"none"`.
        agent_inbox: Whether a question carries the older form too that Agent Inbox reads.
        is_user_message: Which human messages a user wrote: a callable, or texts that no user
            writes, a harness's `"continue"` for one.
        wording: The sentences to use; a mapping may name some of `Wording`'s fields.
        fail_open: Whether a fault of the guard itself is logged and the agent goes on unguarded;
            `False` raises it.

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
            guard = LoopGuardMiddleware(on_detected="wrap_up")
            agent = create_agent("openai:gpt-5.5", tools=[search], middleware=[guard])
            ```
    """

    trace_policy = TRACE_POLICY

    def __new__(cls, *_: Any, on_detected: OnDetected = "interrupt", **__: Any) -> Any:
        """Make one without node hooks where nothing may change."""
        observes = cls is LoopGuardMiddleware and on_detected == "observe"
        return super().__new__(_Observing if observes else cls)

    def __init__(
        self,
        policy: LoopGuardPolicy | None = None,
        *,
        on_detected: OnDetected = "interrupt",
        name: str | None = None,
        state_key: str | None = None,
        show_content: ShowContent = "full",
        agent_inbox: bool = False,
        is_user_message: IsUserMessage = None,
        wording: Wording | Mapping[str, str] | None = None,
        fail_open: bool = True,
    ) -> None:
        super().__init__()
        options = Options(
            policy=policy,  # type: ignore[arg-type]
            on_detected=on_detected,
            show_content=show_content,
            agent_inbox=agent_inbox,
            is_user_message=is_user_message,
            wording=wording,  # type: ignore[arg-type]
            fail_open=fail_open,
        )
        usual = LoopGuardMiddleware.__name__
        if name is None:
            name = usual if isinstance(self, _Observing) else type(self).__name__
        check_name("name", name)
        if state_key is None:
            state_key = _STATE_KEY if name == usual else f"{_STATE_KEY}_{name}"
        check_name("state_key", state_key)
        if state_key in AgentState.__annotations__:
            raise ValueError(f"state_key: must not be a key of the agent's own, {state_key!r}")
        self.policy, self.on_detected, self.state_key = options.policy, on_detected, state_key
        self.tools = []
        self._name = name
        self._gate = Gate(options, "middleware")
        self.state_schema = self._schema()

    def _schema(self) -> Any:
        # Saved, and no part of the agent's input and output. The agent's own keys come from its
        # own schema, which this one must not override.
        counts = NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
        return TypedDict("LoopGuardAgentState", {self.state_key: counts})  # type: ignore[operator]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the schema, a class that no module holds."""
        return {name: value for name, value in vars(self).items() if name != "state_schema"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the schema again."""
        vars(self).update(state)
        self.state_schema = self._schema()

    @property
    def name(self) -> str:
        """The name of the middleware instance."""
        return self._name

    def stats(self) -> Mapping[Count, int]:
        """Count what was done since it was made, over all threads; see `telemetry.Stats`."""
        return self._gate.stats()

    # --- The start of a run ---------------------------------------------------------------

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Begin a turn, and give results to the calls that an interrupted one left open."""
        messages = state["messages"]
        whole = complete(messages, self._gate.options.wording.not_run)
        update: dict[str, Any] = {"messages": _all(whole)} if whole is not None else {}
        counts = state.get(self.state_key)
        reader = self._gate.open(counts, messages) if begins_turn(messages, counts) else None
        if reader is not None:
            self._gate.start_run(reader, whole or messages)
            saved = self._gate.save(reader, messages)
            if saved is not None:
                update[self.state_key] = saved
        return update or None

    async def abefore_agent(
        self, state: AgentState[Any], runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        """As `before_agent`."""
        return self.before_agent(state, runtime)

    # --- Behind the model -----------------------------------------------------------------

    @hook_config(can_jump_to=["model", "end"])
    def after_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """Let the calls of the model run, or not.

        Raises:
            GraphInterrupt: LangGraph's signal that a person is asked.
            LoopDetectedError: When the run is to end in it and no thread is saved.
            InvalidResumeError: If the agent was resumed with a value that is no answer. The
                question stays open.
        """
        messages = state["messages"]
        step = last_step(messages)
        if step is None or not step.calls:
            return None
        if step.late and state.get("structured_response") is not None:
            return None  # The run ends with it.
        reader = self._gate.open(state.get(self.state_key), messages)
        if reader is None:
            return None
        asks = can_ask()
        decided = self._gate.take(reader, step, messages, ask=ask_person if asks else None)
        saved = self._gate.save(reader, messages)
        update: dict[str, Any] = {} if saved is None else {self.state_key: saved}
        if decided is None:
            return update or None
        if decided.outcome.next == "raise" and (step.late or not asks):
            raise error_of_facts(decided.outcome.facts)
        return update if decided.as_made else {**update, **self._carried_out(decided, messages)}

    @hook_config(can_jump_to=["model", "end"])
    async def aafter_model(
        self, state: AgentState[Any], runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        """As `after_model`; there is nothing to wait for."""
        return self.after_model(state, runtime)

    def _carried_out(self, decided: Decided, messages: Sequence[BaseMessage]) -> dict[str, Any]:
        step, outcome = decided.step, decided.outcome
        update: dict[str, Any] = {}
        # The counts of an agent within a graph don't outlive its run.
        marks = decided.approved and is_nested()
        added: list[BaseMessage] = [*decided.replaced(marks=marks), *decided.results()]
        if outcome.next == "end":
            added.append(final_message(outcome.final))
            update["jump_to"] = "end"
        elif outcome.next != "run" or not (decided.runs() or step.late):
            update["jump_to"] = "model"
        if step.others and (added or step.waiting):
            # Nothing may stand between the calls and their results.
            first = outcome.next == "run"
            update["messages"] = _all(rewritten(messages, step, added, others_first=first))
        elif added:
            update["messages"] = added
        return update

    # --- Around the model -----------------------------------------------------------------

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Tell the model what was found, and call it without tools for its last answer.

        Raises:
            LoopDetectedError: If the run was to end in it once its calls had results.
        """
        asked = ask_model(self._gate, request, self.state_key)
        return asked.answered(handler(asked.request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """As `wrap_model_call`."""
        asked = ask_model(self._gate, request, self.state_key)
        return asked.answered(await handler(asked.request))


_hooks: tuple[Any, ...] = (
    LoopGuardMiddleware.wrap_model_call,
    LoopGuardMiddleware.awrap_model_call,
)
for _hook in _hooks:  # LangSmith's wrapper reads the signature at each call.
    _hook.__signature__ = inspect.signature(_hook)


class _Observing(LoopGuardMiddleware):
    """Changes nothing: no node, no key, no request. Counts in memory, by thread."""

    before_agent = AgentMiddleware.before_agent
    abefore_agent = AgentMiddleware.abefore_agent
    after_model = AgentMiddleware.after_model
    aafter_model = AgentMiddleware.aafter_model

    def _schema(self) -> Any:
        return AgentState

    def wrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
        response = handler(request)
        self._observe(request, response)
        return response

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
        response = await handler(request)
        self._observe(request, response)
        return response

    def _observe(self, request: ModelRequest[Any], response: Any) -> None:
        said = [one for one in getattr(response, "result", ()) if isinstance(one, AIMessage)]
        messages = [*request.state["messages"], *said]
        step = last_step(messages)
        key = f"{thread_key()}|{messages[0].id if messages else ''}"
        reader = self._gate.recall(key, messages)
        self._gate.declare(reader, request.tools)
        self._gate.read(reader, messages)
        if said and step is not None and makes_calls(step.message):
            self._gate.take(reader, step, messages, ask=None)
        self._gate.remember(key, reader)


def _all(messages: list[BaseMessage]) -> list[BaseMessage]:
    return [RemoveMessage(id=REMOVE_ALL_MESSAGES), *messages]
