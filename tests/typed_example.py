"""The public interface type-checks for somebody who uses it.

Checked by mypy and pyright in strict mode and never run: no test imports this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode

from langchain_loopguard import (
    Action,
    BatchRecord,
    Decision,
    Finding,
    GuardStateError,
    InvalidResumeError,
    LoopDetectedError,
    LoopDetector,
    LoopGuard,
    LoopGuardCallbackHandler,
    LoopGuardMiddleware,
    LoopGuardNode,
    LoopGuardPolicy,
    LoopGuardState,
    PolicyFileError,
    RepeatOutcome,
    add_loop_guard,
    batch_signature,
    call_signature,
    guard_subagents,
    hash_results,
    is_costly_batch,
    is_observation_batch,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.messages import ToolCall
    from langgraph.graph.state import CompiledStateGraph

CALL: ToolCall = {"name": "search", "args": {"q": "a"}, "id": "c1", "type": "tool_call"}


def use_the_detector() -> RepeatOutcome | None:
    """Count one step with the seed's detector."""
    detector = LoopDetector(max_strikes=2, observation_tools=["read_file"], max_observation_steps=5)
    try:
        record: BatchRecord = detector.check([CALL])
    except LoopDetectedError as error:
        print(error.signature, error.tools, error.count + error.threshold)
        return None
    results: int | None = hash_results([CALL], ["nothing found"])
    outcome: RepeatOutcome = detector.record_results(record, results)
    detector.break_run()
    return outcome


def use_a_policy() -> LoopGuardPolicy:
    """Make, change, write and read policies."""

    def is_failure(tool: str, content: Any) -> bool | None:
        return True if tool == "book" and "sorry" in str(content) else None

    policy = LoopGuardPolicy(poll_tools=("get_build",), is_failure=is_failure)
    policy = policy.tune(stall={"ask": 10}, in_vain=None).for_tool("refund", repeat=2)
    policy.to_file("policy.json")
    names: tuple[str, ...] = LoopGuardPolicy.preset_names()
    try:
        return LoopGuardPolicy.from_file("policy.json")
    except PolicyFileError as error:
        print(error)
    return LoopGuardPolicy.preset(names[0], max_refusals=1)


def use_the_guard() -> LoopGuard:
    """Ask the guard about one step and hand it the results."""
    guard = LoopGuard(LoopGuardPolicy.seed())
    guard.declare("search", {"loop_guard": {"read_only": True, "identity": ["q"]}})
    decision: Decision = guard.check([CALL])
    if decision.action >= Action.ASK:
        finding: Finding = decision.findings[0]
        print(finding.rule, finding.count, decision.to_person, decision.to_model)
        guard.approve(decision, always=True)
    elif decision.action is Action.WARN:
        guard.refuse(decision)
    guard.record_results(decision.record, [ToolMessage("nothing found", tool_call_id="c1")])
    guard.record_results(decision.record, [{"tool_call_id": "c1", "content": "nothing found"}])
    guard.observe("What another agent reported.")
    guard.start_turn()
    state: dict[str, Any] = guard.to_state()
    try:
        return LoopGuard.from_state(LoopGuardPolicy.seed(), state)
    except GuardStateError:
        return LoopGuard()


def use_the_signatures() -> tuple[str, str, bool, bool]:
    """Name a step as the seed does and say what kind it is."""
    return (
        call_signature(CALL),
        batch_signature([CALL]),
        is_observation_batch([CALL], ["search"]),
        is_costly_batch([CALL]),
    )


def use_the_handler(graph: CompiledStateGraph[Any, Any, Any, Any]) -> Mapping[str, int]:
    """Run a graph under a callback handler."""
    handler = LoopGuardCallbackHandler(LoopGuardPolicy(), on_detected="raise")
    try:
        graph.invoke({"messages": [("user", "Go.")]}, {"callbacks": [handler]})
    except (LoopDetectedError, InvalidResumeError) as error:
        print(error)
    return {str(name): count for name, count in handler.stats().items()}


def use_the_node(agent: Any) -> tuple[Any, Any]:
    """Put a guard into a graph, by the helper and by hand."""
    builder: StateGraph[Any, None, Any, Any] = StateGraph(LoopGuardState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([]))
    builder.add_edge(START, "agent")
    add_loop_guard(builder, agent="agent", tools="tools", policy=LoopGuardPolicy.seed())
    node = LoopGuardNode(LoopGuardPolicy(), on_detected="refuse")
    return builder.compile(checkpointer=InMemorySaver()), node.stats()


def use_the_middleware(model: str) -> tuple[Any, list[Any]]:
    """Put a guard into an agent, and into the sub-agents of a deep agent."""
    guard = LoopGuardMiddleware(
        LoopGuardPolicy(), on_detected="wrap_up", name="loops", show_content="masked"
    )
    subagents: list[Any] = guard_subagents([{"name": "writer", "description": "Writes."}], guard)
    agent = create_agent(model, tools=[], middleware=[guard], checkpointer=InMemorySaver())
    return agent, subagents


def use_a_callable_as_the_mode(model: str) -> Any:
    """Decide for each loop what happens."""
    guard = LoopGuardMiddleware(
        on_detected=lambda detected: "interrupt" if detected.can_ask else "wrap_up"
    )
    return create_agent(model, tools=[], middleware=[guard])
