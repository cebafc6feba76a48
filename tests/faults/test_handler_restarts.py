"""Does a callback handler that knows nothing yet go on as the one before would have?

The process that died is told by a graph that stops where it died, and the next one by a fresh
handler; the kills themselves are in `test_kills`.
"""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_loopguard import LoopDetectedError, LoopGuardCallbackHandler, LoopGuardPolicy
from tests.hosts import GRAPHS, Counter, ask, counting_tool, listed_model, repeating_model, thread

SEED = LoopGuardPolicy.seed()
SEARCH = ("search", {"q": "a"})
NOWHERE = ("nowhere", {"q": "a"})
every_host = pytest.mark.parametrize("host", GRAPHS)


def fresh(**options) -> dict:
    """Give the config of the thread with a handler of its own."""
    return thread("t", LoopGuardCallbackHandler(SEED, **{"fail_open": False, **options}))


def graph_of(host, model, ran=None):
    tool = counting_tool(Counter() if ran is None else ran)
    return GRAPHS[host](model, [tool], checkpointer=InMemorySaver())


def model_node(host) -> str:
    return "model" if host == "create_agent" else "agent"


@every_host
def test_the_last_batch_of_a_turn_is_not_counted_again_in_the_next(host):
    # Two searches in each turn are no loop; one that is carried over makes them three.
    graph = graph_of(host, repeating_model(SEARCH, times=2))
    config = fresh()
    for _ in range(3):
        assert "__interrupt__" not in graph.invoke(ask(), config)


@every_host
def test_a_stop_holds_when_the_batch_ends_with_a_tool_that_does_not_exist(host):
    ran = Counter()
    model = repeating_model(SEARCH, NOWHERE)
    graph = graph_of(host, model, ran)
    graph.invoke(ask(), fresh())
    asked = len(model.requests)
    # The calls are answered, and the process dies before the model node that ends the run.
    graph.invoke(Command(resume="stop"), fresh(), interrupt_before=[model_node(host)])
    graph.invoke(None, fresh())
    assert len(model.requests) == asked
    assert ran.total == 2
    assert graph.get_state(fresh()).values["messages"][-1].content.startswith("Stopped.")


@every_host
def test_a_batch_that_a_person_let_run_is_not_asked_about_after_it_ran(host):
    ran = Counter()
    graph = graph_of(host, repeating_model(SEARCH, times=3), ran)
    graph.invoke(ask(), fresh())
    # The tools ran, and the process dies before the model is called.
    graph.invoke(Command(resume="continue"), fresh(), interrupt_after=["tools"])
    assert ran.total == 3
    result = graph.invoke(None, fresh())
    assert "__interrupt__" not in result
    assert result["messages"][-1].content == "done"


@every_host
@pytest.mark.parametrize("again", [False, True], ids=["same-handler", "fresh-handler"])
def test_a_loop_that_was_stopped_is_not_asked_about_in_the_next_turn(host, again):
    # No tool is started for these calls, so they are asked about before the model is called.
    graph = graph_of(host, listed_model([NOWHERE], [NOWHERE], [NOWHERE]))
    config = fresh()
    assert "__interrupt__" in graph.invoke(ask(), config)
    graph.invoke(Command(resume="stop"), config)
    model = listed_model([SEARCH])
    graph = GRAPHS[host](model, [counting_tool(Counter())], checkpointer=graph.checkpointer)
    result = graph.invoke(ask("other"), fresh() if again else config)
    assert "__interrupt__" not in result
    assert result["messages"][-1].content == "done"


@every_host
def test_a_run_that_was_to_end_in_an_error_does_so_in_the_next_process(host):
    graph = graph_of(host, repeating_model())
    graph.invoke(ask(), fresh(on_detected="raise"), interrupt_before=["tools"])
    for _ in range(2):
        graph.invoke(None, fresh(on_detected="raise"), interrupt_before=["tools"])
    # The calls are answered, and the process dies before the model call that ends the run. Where
    # the graph only pauses there, the handler ends it after all.
    with pytest.raises(LoopDetectedError):
        graph.invoke(None, fresh(on_detected="raise"), interrupt_before=[model_node(host)])
    assert len(graph.get_state(fresh()).values["messages"]) == 7
    with pytest.raises(LoopDetectedError):
        graph.invoke(None, fresh(on_detected="raise"))


@every_host
def test_a_loop_that_ended_a_turn_in_an_error_does_not_end_the_next_turn(host):
    graph = graph_of(host, listed_model([NOWHERE], [NOWHERE], [NOWHERE]))
    with pytest.raises(LoopDetectedError):
        graph.invoke(ask(), fresh(on_detected="raise"))
    model = listed_model([SEARCH])
    graph = GRAPHS[host](model, [counting_tool(Counter())], checkpointer=graph.checkpointer)
    result = graph.invoke(ask("other"), fresh(on_detected="raise"))
    assert result["messages"][-1].content == "done"


@every_host
def test_a_batch_that_was_let_run_in_part_counts_as_let_run(host):
    # Approved in part: counted anew, so the next two repeats run. The same in a new process.
    def play(configs) -> list[int]:
        graph = graph_of(host, repeating_model(SEARCH, ("search", {"q": "b"})))
        graph.invoke(ask(), configs())
        mixed = [{"type": "approve"}, {"type": "reject", "message": "Not this."}]
        graph.invoke(
            Command(resume={"decisions": mixed}), configs(), interrupt_before=[model_node(host)]
        )
        result = graph.invoke(None, configs())
        return [finding["since"] for finding in result["__interrupt__"][0].value["findings"]]

    config = fresh()
    assert play(fresh) == play(lambda: config)


@every_host
@pytest.mark.parametrize("answer", ["continue", "Use the archive."])
def test_a_handler_that_asked_learns_of_the_answer_that_another_one_took(host, answer):
    def play(first, second) -> list[list]:
        graph = graph_of(host, repeating_model(times=5))
        asked = [graph.invoke(ask(), first())]
        graph.invoke(Command(resume=answer), second(), interrupt_after=["tools"])
        # The first one goes on, and knows only what is in the thread.
        asked.append(graph.invoke(None, first()))
        return [
            [item.value["findings"] for item in result.get("__interrupt__", ())] for result in asked
        ]

    one, other, alone = fresh(), fresh(), fresh()
    assert play(lambda: one, lambda: other) == play(lambda: alone, lambda: alone)


@every_host
def test_a_persons_text_is_added_to_an_answer_that_carries_a_hint_already(host):
    # The hint made the answer a list of blocks; its `repr` would be no text for a model.
    model = repeating_model(NOWHERE)
    graph = GRAPHS[host](model, [counting_tool(Counter())], checkpointer=InMemorySaver())
    config = thread("t", LoopGuardCallbackHandler(fail_open=False))
    assert "__interrupt__" in graph.invoke(ask(), config)
    graph.invoke(Command(resume="Use the archive."), config)
    told = str(model.requests[-1][-1].text)
    assert "Use the archive." in told
    assert "'type':" not in told
