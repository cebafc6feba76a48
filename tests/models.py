"""Which chat models do the tests need? Scripted ones, whose answers are computed from the messages.

One model may serve many threads at once, since it keeps nothing but a list of what it was sent.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import ConfigDict, Field


class ScriptedChatModel(BaseChatModel):
    """A chat model whose answer to a message list is computed by `respond`."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    respond: Callable[[Sequence[BaseMessage]], AIMessage]
    requests: list[list[BaseMessage]] = Field(default_factory=list)
    """Copies of every message list that was sent, in order of arrival."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable:
        """Accept tools and ignore them: the script knows what to call."""
        return self.bind()

    def _generate(self, messages, stop=None, run_manager=None, **kwargs: Any) -> ChatResult:
        self.requests.append([message.model_copy() for message in messages])
        return ChatResult(generations=[ChatGeneration(message=self.respond(messages))])

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs: Any) -> ChatResult:
        return self._generate(messages)

    def _chunks(self, messages: Sequence[BaseMessage]) -> Iterator[ChatGenerationChunk]:
        self.requests.append([message.model_copy() for message in messages])
        message = self.respond(messages)
        if message.content:
            yield ChatGenerationChunk(
                message=AIMessageChunk(content=message.content, id=message.id)
            )
        for index, call in enumerate(message.tool_calls):
            text = json.dumps(call["args"])
            half = len(text) // 2
            parts = [(call["name"], call["id"], text[:half]), (None, None, text[half:])]
            for name, call_id, args in parts:
                chunk = {"name": name, "args": args, "id": call_id, "index": index}
                yield ChatGenerationChunk(
                    message=AIMessageChunk(content="", tool_call_chunks=[chunk], id=message.id)
                )
        if not message.content and not message.tool_calls:
            yield ChatGenerationChunk(message=AIMessageChunk(content="", id=message.id))

    def _stream(
        self, messages, stop=None, run_manager=None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self, messages, stop=None, run_manager=None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def turns_since_human(messages: Sequence[BaseMessage]) -> int:
    """Count the AI messages after the last human one."""
    count = 0
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            break
        count += isinstance(message, AIMessage)
    return count


def ai_calls(calls: Sequence[tuple[str, Mapping[str, Any]]], turn: int | str) -> AIMessage:
    """Make an AI message of `(name, args)` pairs with ids that are unique to the turn."""
    return AIMessage(
        content="",
        tool_calls=[
            {"name": name, "args": dict(args), "id": f"call_{turn}_{index}", "type": "tool_call"}
            for index, (name, args) in enumerate(calls)
        ],
    )


def repeating_model(
    *calls: tuple[str, Mapping[str, Any]], times: int | None = None
) -> ScriptedChatModel:
    """Make a model that sends the same batch for ever, or `times` times a user turn."""
    batch = calls or (("search", {"q": "a"}),)

    def respond(messages: Sequence[BaseMessage]) -> AIMessage:
        done = turns_since_human(messages)
        if times is not None and done >= times:
            return AIMessage(content="done")
        return ai_calls(batch, sum(isinstance(message, AIMessage) for message in messages))

    return ScriptedChatModel(respond=respond)


def listed_model(*batches: Sequence[tuple[str, Mapping[str, Any]]]) -> ScriptedChatModel:
    """Make a model that sends the batches in order after each human message, then says `done`."""

    def respond(messages: Sequence[BaseMessage]) -> AIMessage:
        turn = turns_since_human(messages)
        if turn >= len(batches) or not batches[turn]:
            return AIMessage(content="done")
        return ai_calls(batches[turn], sum(isinstance(message, AIMessage) for message in messages))

    return ScriptedChatModel(respond=respond)
