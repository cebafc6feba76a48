"""What do the guards of a LangGraph graph have in common?

Reading a state of any schema, deciding about the step at its end, and writing what was decided.
Must not know where a guard stands: see `node` and `wiring`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command
from pydantic import BaseModel

from langchain_loopguard.adapters._langgraph import (
    ask_person,
    can_ask,
    replaces_by_id,
    running_channel,
)
from langchain_loopguard.adapters.gate import Decided, Gate
from langchain_loopguard.langchain.errors import error_of_facts
from langchain_loopguard.langchain.marks import (
    SOURCE,
    Mark,
    ends_of,
    final_message,
    mark_of,
    replacement,
    with_mark,
)
from langchain_loopguard.langchain.messages import calls_of, id_of, makes_calls
from langchain_loopguard.langchain.options import Options, check_name
from langchain_loopguard.langchain.repair import only_calls, rewritten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_loopguard.langchain.history import Reader
    from langchain_loopguard.langchain.messages import MessageStep

_USUAL: frozenset[type] = frozenset({AIMessage, HumanMessage, SystemMessage, ToolMessage})
_LAST = Mark(ends={"as": "final"})


class LastAnswer(NamedTuple):
    """What `wrap_up_model` is asked with, and what makes the node's output of its answer."""

    history: list[BaseMessage]
    finish: Callable[[Any], Any]


class GraphGuard:
    """What guards of graphs have in common: reading a state, deciding, and writing it."""

    def __init__(
        self,
        options: Options,
        *,
        tools: Iterable[Any],
        messages_key: str,
        state_key: str,
        wrap_up_model: Any,
    ) -> None:
        """Check the options."""
        check_name("messages_key", messages_key)
        check_name("state_key", state_key)
        if state_key == messages_key:
            raise ValueError(f"state_key: must be another key than messages_key, {messages_key!r}")
        if wrap_up_model is not None and not callable(getattr(wrap_up_model, "invoke", None)):
            raise ValueError(
                f"wrap_up_model: must be a chat model or another runnable, not {wrap_up_model!r}"
            )
        self.gate = Gate(options, "node", tools)
        self.messages_key = messages_key
        self.state_key = state_key
        self.wrap_up_model = wrap_up_model
        self.replaces: bool | None = None
        """Whether the messages' reducer puts a message in the place of one with the same id;
        `None` until it is known."""

    def messages(self, state: Any) -> list[BaseMessage]:
        """Read the messages of a state, whatever form its schema and its reducer leave them in."""
        return self.as_messages(read_key(state, self.messages_key))

    def as_messages(self, messages: Any) -> list[BaseMessage]:
        """Give a list of messages, converted where they are kept in another form."""
        if not isinstance(messages, Sequence) or isinstance(messages, str):
            raise ValueError(  # noqa: TRY004 - the option is wrong, not the state's type
                f"messages_key: the state holds no list of messages under {self.messages_key!r}"
            )
        # By type, of which there are few, since a history may be long. The usual ones are not
        # asked what they are.
        kinds = set(map(type, messages))
        if kinds <= _USUAL or all(issubclass(kind, BaseMessage) for kind in kinds):
            return messages if isinstance(messages, list) else list(messages)
        try:
            return [*convert_to_messages(messages)]
        except Exception as error:  # noqa: BLE001 - odd messages are no reason to end a run
            self.gate.fault(error)
            return [message for message in messages if isinstance(message, BaseMessage)]

    def can_replace(self) -> bool:
        """Tell whether a message can be put in the place of one with the same id."""
        if self.replaces is None:
            channel = running_channel(self.messages_key)
            return channel is None or replaces_by_id(channel)
        return self.replaces

    def decide(
        self, reader: Reader, step: MessageStep, messages: list[BaseMessage]
    ) -> Decided | None:
        """Decide about a step; `None` after a fault.

        Raises:
            GraphInterrupt: LangGraph's signal that a person is asked.
            LoopDetectedError: Where the run ends in it and no thread is saved.
            InvalidResumeError: If the answer is none. The question stays open.
        """
        asks = can_ask()
        decided = self.gate.take(reader, step, messages, ask=ask_person if asks else None)
        if decided is not None and decided.outcome.next == "raise" and (step.late or not asks):
            raise error_of_facts(decided.outcome.facts)
        return decided

    def added(self, decided: Decided, *, marks: bool) -> list[BaseMessage]:
        """List what is written into the history before the calls run, or in their place."""
        replaced, results = decided.replaced(marks=marks), decided.results()
        if marks and decided.outcome.settle == "advise":
            results = [with_mark(one, Mark(advised=True)) for one in results]
        return [*(replaced if replaced and self.can_replace() else []), *results]

    def written(
        self, decided: Decided, messages: list[BaseMessage], added: list[BaseMessage]
    ) -> list[BaseMessage]:
        """Give the update of the messages: nothing may stand between calls and their results."""
        step, runs = decided.step, decided.outcome.next == "run"
        if step.others and (added or runs) and self.can_replace():
            whole = rewritten(messages, step, added, others_first=runs)
            return [RemoveMessage(id=REMOVE_ALL_MESSAGES), *whole]
        return added

    def for_tools(self, state: Any, decided: Decided, messages: list[BaseMessage]) -> Any:
        """Give the state that a tools node is called with, which runs every call it sees.

        Returns:
            The state itself where it is to run them all.
        """
        if decided.as_made:
            return state
        step, runs = decided.step, decided.runs()
        everything = runs == {id_of(call) for call in calls_of(decided.message)}
        if everything and decided.edited is None and not step.others:
            return state
        history = [*messages[: step.index], only_calls(decided.message, runs)]
        return with_key(state, self.messages_key, history)

    def stopped_again(
        self, step: MessageStep, messages: list[BaseMessage]
    ) -> list[BaseMessage] | None:
        """End a run in which the model makes calls although it was to use no tools."""
        if step.index == 0 or not isinstance(messages[step.index - 1], HumanMessage | ToolMessage):
            return None
        ends = ends_of(messages[: step.index])
        if ends.get("as") != "final":
            return None
        text = self.gate.options.wording.stopped
        stubs = [replacement(call, text) for call in step.open_calls]
        return [*stubs, final_message(step.message.text.strip() or str(ends.get("text", "")))]

    def last_answer(self, decided: Decided, messages: list[BaseMessage], finish: Any) -> LastAnswer:
        """Ask for a last answer, after the results that say that the calls were not run."""
        results = decided.results()
        history = [*messages[: decided.step.index + 1], *decided.step.results, *results]

        def done(said: Any) -> Any:
            return finish([*results, _final(said, decided.outcome.final)])

        return LastAnswer(history, done)


def read_key(state: Any, key: str) -> Any:
    """Read a key of a graph's state, `None` without it; the state's schema may be any kind."""
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def with_key(state: Any, key: str, value: Any) -> Any:
    """Copy a graph's state with another value for a key."""
    if isinstance(state, Mapping):
        return {**state, key: value}
    if isinstance(state, BaseModel):
        return state.model_copy(update={key: value})
    return dataclasses.replace(state, **{key: value})


def results_in(output: Any, key: str) -> list[ToolMessage]:
    """List the results in what a tools node gives: an update, a command, or a list of these."""
    if isinstance(output, Command):
        return [] if output.graph is not None else results_in(output.update, key)
    if isinstance(output, ToolMessage):
        return [output]
    if isinstance(output, Mapping):
        return results_in(output.get(key), key)
    if isinstance(output, list | tuple):
        if len(output) == len(("key", "value")) and output[0] == key:
            return results_in(output[1], key)
        return [result for one in output for result in results_in(one, key)]
    return []


def leaves_graph(output: Any) -> bool:
    """Tell whether a tool sends the run to the graph around this one."""
    outputs = output if isinstance(output, list | tuple) else [output]
    return any(isinstance(one, Command) and one.graph is not None for one in outputs)


def is_ended(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether the guard, or the last answer that it had made, has ended the run."""
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            source = message.additional_kwargs.get("lc_source")
            by_guard = source == SOURCE and not makes_calls(message)
            return by_guard or bool(mark_of(message).ends)
    return False


def _final(said: Any, text: str) -> BaseMessage:
    """Give the message that ends a run: a model's last answer, or the guard's without one."""
    if isinstance(said, AIMessage) and not makes_calls(said) and said.text.strip():
        return with_mark(said, _LAST)
    words = said.text if isinstance(said, AIMessage) else said
    if isinstance(words, str) and words.strip():
        return with_mark(AIMessage(words), _LAST)
    return final_message(text)
