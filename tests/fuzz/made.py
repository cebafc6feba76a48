"""Which calls, results and messages are made of the bytes of an input?"""

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)


def a_call(feed):
    kind = feed.byte()
    if kind < 120:
        return {"name": feed.text(), "args": {"a": feed.byte() % 3}, "id": feed.text()}
    if kind < 220:
        return {"name": feed.text(), "args": feed.any(), "id": feed.pick(("1", "2", None, 5, ""))}
    return feed.any()


def a_result(feed):
    kind = feed.byte()
    if kind < 90:
        return {"tool_call_id": feed.pick(("1", "2", "")), "content": feed.text()}
    if kind < 200:
        status = feed.pick(("error", "success", None, 7))
        return {"id": feed.text(), "content": feed.any(), "status": status}
    return feed.any()


_KWARGS = (
    {},
    {},
    {},
    {"lc_source": "loop_guard"},
    {"lc_source": "hitl_interrupt_decision"},
    {"lc_source": ["x"]},
    {"loop_guard": {"approved": True, "advised": 1}},
    {"loop_guard": {"ends": {"as": "raise", "tools": 5, "count": "x"}}},
    {"loop_guard": {"ends": {"as": "final", "text": ["done"]}}},
    {"loop_guard": 5},
)
_IDS = (None, "1", "2", "3", "h", "call_123456", "")


def a_message(feed):
    kind = feed.byte() % 16
    content = feed.pick(("same", "", "other", feed.text(), ["a", {"type": "text", "text": "b"}]))
    if kind > 13:
        blocks = [block for block in (feed.json(), feed.json()) if isinstance(block, dict | str)]
        content = [*blocks, {"type": "text", "text": feed.json()}]
    extra = {"id": feed.pick(_IDS), "additional_kwargs": dict(feed.pick(_KWARGS))}
    if kind < 6:
        return _ai_message(feed, kind, content, extra)
    if kind < 12 or kind == 14:
        call_id = feed.pick(_IDS) or ""
        if kind == 11:
            odd = {"content": feed.any(), "status": feed.any(), "artifact": feed.any()}
            return ToolMessage.model_construct(tool_call_id=call_id, **odd, **extra)
        status = feed.pick(("success", "error"))
        return ToolMessage(content, tool_call_id=call_id, status=status, **extra)
    return (SystemMessage if kind == 12 else HumanMessage)(content, **extra)


def _ai_message(feed, kind, content, extra):
    marks = {"loop_guard": {"before": feed.pick(("approved", "refused", 5))}} if kind == 1 else {}
    if kind == 5:
        return AIMessage.model_construct(
            content=content, tool_calls=[a_call(feed)], invalid_tool_calls=[], **extra,
            response_metadata={"loop_guard": feed.any()}, usage_metadata=None,
        )  # fmt: skip
    made = [
        {"name": feed.pick(("read", "edit", "", "wait")), "args": {"a": feed.byte() % 2},
         "id": feed.pick(_IDS), "type": "tool_call"}
        for _ in range(feed.byte() % 4)
    ]  # fmt: skip
    bad = [
        {"name": "x", "args": feed.text(), "id": feed.pick(_IDS), "error": None,
         "type": "invalid_tool_call"}
    ][: feed.byte() % 2]  # fmt: skip
    of = AIMessageChunk if kind == 4 else AIMessage
    return of(content, tool_calls=made, invalid_tool_calls=bad, response_metadata=marks, **extra)


def history(feed, most=6):
    return [a_message(feed) for _ in range(1 + feed.byte() % most)]
