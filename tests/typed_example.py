"""Does the public interface type-check for somebody who uses it?

Checked by mypy in strict mode and never run: no test imports this file.
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
    LoopDetectedError,
    LoopDetector,
    LoopGuard,
    LoopGuardCallbackHandler,
    LoopGuardMiddleware,
    LoopGuardNode,
    LoopGuardPolicy,
    LoopGuardState,
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
    from langchain_core.messages import ToolCall

CALL: ToolCall = {"name": "search", "args": {"q": "a"}, "id": "c1", "type": "tool_call"}


def use_the_detector() -> RepeatOutcome | None:
    """Count one batch with the seed's detector."""
    detector = LoopDetector(max_strikes=2, observation_tools=["read_file"], max_observation_steps=5)
    try:
        record: BatchRecord = detector.check([CALL])
    except LoopDetectedError as error:
        print(error.signature, error.tools, error.count + error.threshold)
        return None
    answers: int | None = hash_results([CALL], ["nothing found"])
    outcome: RepeatOutcome = detector.record_results(record, answers)
    detector.break_run()
    return outcome


def use_the_guard() -> LoopGuard:
    """Ask the guard about one batch and tell it the answer."""
    guard = LoopGuard(LoopGuardPolicy.seed())
    decision: Decision = guard.check([CALL])
    if decision.action >= Action.ASK:
        finding: Finding = decision.findings[0]
        print(finding.rule, finding.count, decision.to_person, decision.to_model)
        guard.approve(decision)
    guard.record_results(decision.record, [ToolMessage("nothing found", tool_call_id="c1")])
    guard.record_results(decision.record, [{"tool_call_id": "c1", "content": "nothing found"}])
    guard.human_message()
    state: dict[str, Any] = guard.to_state()
    return LoopGuard.from_state(LoopGuardPolicy.seed(), state)


def use_the_signatures() -> tuple[str, str, bool, bool]:
    """Name a batch and say what kind it is."""
    return (
        call_signature(CALL),
        batch_signature([CALL]),
        is_observation_batch([CALL], ["search"]),
        is_costly_batch([CALL]),
    )


def use_the_adapters(agent: Any) -> Any:
    """Put a guard into a graph, by hand and by the helper."""
    handler = LoopGuardCallbackHandler(LoopGuardPolicy(), on_detected="raise")
    node = LoopGuardNode(LoopGuardPolicy(), on_detected="refuse")
    builder = StateGraph(LoopGuardState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([]))
    builder.add_edge(START, "agent")
    add_loop_guard(builder, agent="agent", tools="tools", policy=node.policy)
    return builder.compile(checkpointer=InMemorySaver()).with_config(callbacks=[handler])


def use_the_middleware(model: str) -> Any:
    """Put a guard into an agent, and into the sub-agents of a deep agent."""
    guard = LoopGuardMiddleware(LoopGuardPolicy(), on_detected="wrap_up", name="loops")
    subagents: list[Any] = guard_subagents([{"name": "writer", "description": "Writes."}], guard)
    agent = create_agent(model, tools=[], middleware=[guard], checkpointer=InMemorySaver())
    return agent, subagents
