"""Is a person asked in time, however the guard was added, and is the answer carried out?"""

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command

from langchain_loopguard import LoopGuardPolicy
from langchain_loopguard.langchain.errors import InvalidResumeError
from tests.adapters.agents import WAYS, every_way, every_way_and_mode, looping
from tests.adapters.guarded import assert_complete, assert_requests_complete, owned
from tests.hosts import (
    ScriptedChatModel,
    ai_calls,
    ask,
    counting_tool,
    drive,
    every_mode,
    listed_model,
    repeating_model,
    thread,
)

SEARCH = ("search", {"q": "a"})
BATCH = [SEARCH, ("open", {"q": "b"}), ("list", {"q": "c"})]
NAMES = ("search", "open", "list")
COUNTED = {name: build for name, build in WAYS.items() if name != "by-hand-folding"}
with_counts = pytest.mark.parametrize("build", COUNTED.values(), ids=COUNTED)
"""Where no counts are saved, only that a person let a step run is known from the messages."""


def resume(graph, value, config=None):
    return graph.invoke(Command(resume=value), config or thread("t"))


def edit(q):
    return {"type": "edit", "edited_action": {"name": "search", "args": {"q": q}}}


ANSWERS = (
    # the answer, runs of the tool after it (2 before it), the last of them, whether it goes on
    pytest.param("continue", 3, "a", True, id="continue"),
    pytest.param(True, 3, "a", True, id="true"),
    pytest.param({"decisions": [{"type": "approve"}]}, 3, "a", True, id="hitl-approve"),
    pytest.param([{"type": "accept", "args": None}], 3, "a", True, id="inbox-accept"),
    pytest.param("always", 3, "a", True, id="always"),
    pytest.param({"decisions": [edit("b")]}, 3, "b", True, id="hitl-edit"),
    pytest.param("stop", 2, "a", False, id="stop"),
    pytest.param(False, 2, "a", False, id="false"),
    pytest.param([{"type": "ignore", "args": None}], 2, "a", False, id="inbox-ignore"),
    pytest.param({"__agui_cancelled__": True}, 2, "a", False, id="agui-cancel"),
    pytest.param("use b", 2, "a", True, id="text"),
    pytest.param({"decisions": [{"type": "reject", "message": "no"}]}, 2, "a", True, id="reject"),
    pytest.param({"decisions": [{"type": "respond", "message": "4"}]}, 2, "a", True, id="respond"),
)
FEW = (ANSWERS[0], ANSWERS[5], ANSWERS[6], ANSWERS[10])
FORMS = [
    pytest.param(build, *answer.values, id=f"{name}-{answer.id}")
    for name, build in WAYS.items()
    # They are read alike; what carries them out differs.
    for answer in (ANSWERS if name in {"owned", "middleware"} else FEW)
]


@every_way_and_mode
async def test_it_comes_before_the_third_run_of_a_repeated_call(build, mode):
    graph, counter, _ = looping(build)
    outcome = await drive(graph, mode, ask(), thread("t"))
    assert counter.total == 2
    assert [one.value["type"] for one in outcome.interrupts] == ["loop_detected"]


@pytest.mark.parametrize(("build", "value", "runs", "last", "goes_on"), FORMS)
@pytest.mark.parametrize("mode", ["invoke", "astream"])
async def test_each_form_of_an_answer_is_carried_out(build, value, runs, last, goes_on, mode):
    model = listed_model(*[[SEARCH]] * 3)
    graph, counter, model = looping(build, model=model)
    await drive(graph, mode, ask(), thread("t"))
    outcome = await drive(graph, mode, Command(resume=value), thread("t"))
    assert outcome.interrupts == ()
    assert counter.total == runs
    assert counter.runs[-1][1]["q"] == last
    assert (outcome.messages[-1].content == "done") is goes_on
    assert_complete(outcome.messages)
    assert_requests_complete(model)


@every_way
def test_continue_asks_again_after_more_and_more_runs(build):
    graph, counter, _ = looping(build, policy=LoopGuardPolicy())
    graph.invoke(ask(), thread("t"))
    runs = [counter.total]
    for _ in range(2):
        resume(graph, "continue")
        runs.append(counter.total)
    assert runs[2] - runs[1] > runs[1] - runs[0] > runs[0] > 2


@with_counts
def test_always_never_asks_about_this_loop_again(build):
    graph, counter, _ = looping(build, model=repeating_model(times=20))
    graph.invoke(ask(), thread("t", recursion_limit=200))
    result = resume(graph, "always", thread("t", recursion_limit=200))
    assert result["messages"][-1].content == "done"
    assert counter.total == 20


@every_way
def test_a_text_reaches_the_model_and_never_ends_the_run(build):
    graph, _, model = looping(build)
    graph.invoke(ask(), thread("t"))
    for number in range(5):
        result = resume(graph, f"try {number}")
        assert "__interrupt__" in result
        told = [m for request in model.requests for m in request if m.content == f"try {number}"]
        assert told[0].status == "error"
    assert_requests_complete(model)


@every_way
@pytest.mark.parametrize("value", ["", 3, {"type": "maybe"}, {"decisions": []}])
async def test_a_wrong_answer_is_an_error_and_leaves_the_question_open(build, value):
    graph, counter, _ = looping(build)
    graph.invoke(ask(), thread("t"))
    with pytest.raises(InvalidResumeError):
        resume(graph, value)
    with pytest.raises(InvalidResumeError):
        await graph.ainvoke(Command(resume=value), thread("t"))
    assert graph.get_state(thread("t")).interrupts
    assert_complete(resume(graph, "stop")["messages"])
    assert counter.total == 2


@every_way_and_mode
async def test_a_step_is_one_question_and_each_call_gets_its_decision(build, mode):
    graph, counter, model = looping(build, model=listed_model(*[BATCH] * 3), names=NAMES)
    outcome = await drive(graph, mode, ask(), thread("t"))
    assert len(outcome.interrupts[0].value["action_requests"]) == len(BATCH)
    assert counter.total == 2 * len(BATCH)
    decisions = [
        {"type": "reject", "message": "no more searching"},
        {"type": "approve"},
        {"type": "respond", "message": "c.txt"},
    ]
    done = await drive(graph, mode, Command(resume={"decisions": decisions}), thread("t"))
    assert [counter.of(name) for name in NAMES] == [2, 3, 2]
    results = {m.name: (m.content, m.status) for m in done.messages[-4:-1]}
    assert results["search"] == ("no more searching", "error")
    assert results["list"] == ("c.txt", "success")
    assert_complete(done.messages)
    assert_requests_complete(model)


@every_way
def test_calls_that_share_an_id_cannot_be_told_apart(build):
    def respond(messages):
        asked = ai_calls([SEARCH, ("search", {"q": "b"})], len(messages))
        for call in asked.tool_calls:
            call["id"] = f"c{len(messages)}"
        return asked

    graph, counter, model = looping(build, model=ScriptedChatModel(respond=respond))
    graph.invoke(ask(), thread("t"))
    runs = counter.total
    decisions = [{"type": "approve"}, {"type": "reject", "message": "not b"}]
    with pytest.raises(InvalidResumeError, match="share an id"):
        resume(graph, {"decisions": decisions})
    assert_complete(resume(graph, "stop")["messages"])
    assert counter.total == runs
    assert_requests_complete(model)


def test_an_edit_changes_the_call_in_the_content_too():
    def respond(messages):
        call = ai_calls([SEARCH], sum(isinstance(m, AIMessage) for m in messages))
        block = {"type": "tool_use", "id": call.tool_calls[0]["id"], "name": "search"}
        raw = {"tool_calls": [{"id": block["id"], "function": {"name": "search"}}]}
        content = [{"type": "text", "text": "hm"}, {**block, "input": {"q": "a"}}]
        return AIMessage(content, tool_calls=call.tool_calls, additional_kwargs=raw)

    for build in (owned, WAYS["middleware"]):
        graph, _, _ = looping(build, model=ScriptedChatModel(respond=respond))
        graph.invoke(ask(), thread("t"))
        result = resume(graph, {"decisions": [edit("b")]})
        edited = [m for m in result["messages"] if isinstance(m, AIMessage)][2]
        assert edited.content[1]["input"] == {"q": "b"}
        assert "tool_calls" not in edited.additional_kwargs


@every_way
@pytest.mark.parametrize("value", ["stop", "continue", "use the cache"])
def test_the_thread_can_be_used_on_afterwards(build, value):
    graph, _, model = looping(build, model=repeating_model(times=3))
    graph.invoke(ask(), thread("t"))
    resume(graph, value)
    assert "__interrupt__" in graph.invoke(ask("again"), thread("t"))
    assert_requests_complete(model)


@pytest.mark.parametrize("build", [owned, WAYS["owned-schema"], WAYS["middleware"]])
@every_mode
async def test_a_user_who_writes_something_new_instead_gets_a_valid_history(build, mode):
    def respond(messages):
        if messages[-1].content == "never mind":
            return AIMessage("done")
        return ai_calls([SEARCH], len(messages))

    graph, counter, model = looping(build, model=ScriptedChatModel(respond=respond))
    await drive(graph, mode, ask(), thread("t"))
    outcome = await drive(graph, mode, ask("never mind"), thread("t"))
    assert outcome.interrupts == ()
    assert counter.total == 2
    assert_complete(outcome.messages)
    assert_requests_complete(model)


@every_way
def test_good_work_is_let_alone(build):
    graph, counter, _ = looping(build, model=repeating_model(times=1))
    for turn in range(9):
        assert "__interrupt__" not in graph.invoke(ask(str(turn)), thread("t"))
    assert counter.total == 9
    changing = build(repeating_model(times=9), [counting_tool(counter, answer=str)])
    assert "__interrupt__" not in changing.invoke(ask(), thread("t"))


@every_way
def test_calls_of_a_tool_that_does_not_exist_count(build):
    graph, _, model = looping(build, model=repeating_model(("nothing", {})))
    assert "__interrupt__" in graph.invoke(ask(), thread("t"))
    assert len(model.requests) == 3


@every_way
@pytest.mark.parametrize("how", ["with it", "before it"])
@pytest.mark.parametrize(("value", "runs"), [("stop", 2), ("use b", 2), ("continue", 3)])
def test_a_remark_beside_the_answer_leaves_it_what_it_is(build, value, runs, how):
    def respond(messages):
        said = [message.content for message in messages if isinstance(message, HumanMessage)]
        return AIMessage("done") if "be brief" in said else ai_calls([SEARCH], len(messages))

    graph, counter, model = looping(build, model=ScriptedChatModel(respond=respond))
    graph.invoke(ask(), thread("t"))
    remark = {"messages": [HumanMessage("be brief")]}
    if how == "before it":
        graph.update_state(thread("t"), remark)
        remark = None
    result = graph.invoke(Command(resume=value, update=remark), thread("t"))
    assert counter.total == runs
    assert_complete(result["messages"])
    assert_requests_complete(model)
    assert "be brief" in [message.content for message in result["messages"]]
    last = result["messages"][-1].content
    assert last.startswith("Stopped.") if value == "stop" else last == "done"


@every_way
def test_the_final_message_of_a_stop_is_streamed(build):
    graph, _, _ = looping(build)
    graph.invoke(ask(), thread("t"))
    given = {"type": "stop", "message": "too dear"}
    parts = graph.stream(Command(resume=given), thread("t"), stream_mode="messages")
    told = "".join(message.text for message, _ in parts if isinstance(message, AIMessage))
    assert told.startswith("Stopped.")
    assert told.endswith("Reason: too dear")
    assert graph.get_state(thread("t")).values["messages"][-1].text == told


@every_way
async def test_many_runs_of_one_graph_at_once_are_kept_apart(build):
    graph, counter, _ = looping(build)
    runs = [graph.ainvoke(ask(), thread(f"t{number}")) for number in range(20)]
    results = await asyncio.gather(*runs)
    assert all("__interrupt__" in result for result in results)
    assert counter.total == 40


def test_version_2_of_the_output_holds_the_question():
    graph, counter, _ = looping(owned)
    output = graph.invoke(ask(), thread("t"), version="v2")
    assert output.interrupts[0].value["type"] == "loop_detected"
    done = graph.invoke(Command(resume="stop"), thread("t"), version="v2")
    assert_complete(done.value["messages"])
    assert counter.total == 2
