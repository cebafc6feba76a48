"""In which conversation is a model or a tool called, and where is the AI message that calls it?

It is in the graph's state, in what a model has just said, or nowhere, when the call is a step of
its own. What is done about a step is not decided here.

Conversations whose agents are at work are kept until these end. Of the others a bounded number
is kept; those that were idle longest are dropped. What is dropped is read again from the messages
when it goes on.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_loopguard.adapters.conversations import Conversation, Noted, Place
from langchain_loopguard.adapters.runs import thread_id
from langchain_loopguard.langchain.messages import calls_of, id_of, key_of, short

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_loopguard.adapters.gate import Gate
    from langchain_loopguard.adapters.runs import Key, Run, RunTree

_LOOSE = 2048
"""AI messages and calls of theirs by which loops written by hand are known again."""


class Conversations:
    """The conversations of one handler. The caller holds the handler's lock."""

    def __init__(self, gate: Gate, runs: RunTree, *, scope: str, limit: int) -> None:
        """Keep up to `limit` conversations whose agents are not at work."""
        self._gate = gate
        self._runs = runs
        self._scope = scope
        self._limit = limit
        self._working: dict[Key, Conversation] = {}
        self._idle: OrderedDict[Key, Conversation] = OrderedDict()
        self._loose: OrderedDict[str, Key] = OrderedDict()
        # In whichever conversation: decided about, and read with results. What results revealed is
        # emitted by the reader that comes first, since agents that hand over share messages.
        self.decided = Noted()
        self._revealed = Noted()

    def of_model(self, run: Run, sent: Sequence[BaseMessage]) -> Conversation:
        """Find the conversation that a model call continues."""
        if run.is_loose and self._scope != "handler":
            said = (one for one in reversed(sent) if isinstance(one, AIMessage))
            names = (name for message in said for name in _names_of(message))
            known = (self._loose[name] for name in names if name in self._loose)
            return self._get(next(known, ("loose", run.id.int)), run)
        *within, agent = self._keys(run)
        return self._get(next((key for key in within if self._find(key)), agent), run)

    def of_call(
        self, run: Run, call: dict[str, Any], state: Sequence[BaseMessage], *, again: bool
    ) -> Place:
        """Find the AI message that makes a call; its id is filled in where it came without."""
        if run.is_loose and self._scope != "handler":
            name = f"call {call['id']}" if call["id"] else _words_of(call)
            keys: list[Key] = [self._loose.get(name, ("loose", run.id.int))]
        else:
            keys = self._keys(run)
        agent = keys[-1]
        at = _place_of(call, state) if call["id"] and not run.around else -1
        if at >= 0:
            return Place(self._get(agent, run), state, at, in_state=True)
        found = [kept for kept in map(self._find, keys) if kept is not None]
        for kept in found:
            for said in reversed(kept.spoken):
                made = _call_in(said.message, call)
                if made is not None:
                    call["id"] = made
                    # A loop in one node: what it adds is not in the graph's state.
                    key = keys[0] if said.attempt is run.attempt else kept.key
                    messages = [*said.sent, said.message]
                    return Place(self._get(key, run), messages, len(said.sent), prompt=said.prompt)
        for kept in found:
            known = kept.step_with(call["id"]) if call["id"] else None
            if known is not None:
                return Place(kept, [known.step.message], 0, in_state=known.in_state)
        kept = self._get((*agent, "direct"), run)
        return Place(kept, [_direct_message(kept, run, call, again=again)], 0, direct=True)

    def follow(self, message: AIMessage, kept: Conversation) -> None:
        """Note in which loop written by hand an AI message was made."""
        names = [*_names_of(message), *map(_words_of, message.tool_calls)]
        self._loose.update(dict.fromkeys(names, kept.key))
        while len(self._loose) > _LOOSE:
            self._loose.popitem(last=False)

    def let_go(self, run: Run) -> None:
        """Let go of what is over with a run that has ended."""
        for kept in run.holds:
            del self._working[kept.key]
            kept.spoken.clear()
            if kept.key[0] != "session":  # Nobody comes back to one of a session.
                self._rest(kept)

    def _keys(self, run: Run) -> list[Key]:
        """Name the conversations that a run may belong to.

        In a graph, first that of an agent that lives inside one task, a loop in a node. Then that
        of the agent around the run, whose model and tools are different tasks.
        """
        base: Key = ("handler",)
        if self._scope != "handler":
            thread = thread_id()
            is_saved = thread is not None and (run.can_ask or not run.in_task)
            base = ("thread", str(thread)) if is_saved else ("session", run.session.id.int)
        around = run.around
        agent: Key = (*base, run.scope, around)
        return [(*base, f"{run.ns}|", around), agent] if run.ns else [agent]

    def _find(self, key: Key) -> Conversation | None:
        return self._working.get(key) or self._idle.get(key)

    def _get(self, key: Key, run: Run) -> Conversation:
        """Give a conversation, a new one if need be, and keep it while the run's agent works."""
        in_task = f"{run.ns}|" in key
        kept = self._working.get(key)
        if kept is None:
            kept = self._idle.pop(key, None) or Conversation(key, self._gate, self._revealed)
            holder = self._runs.holder(run, in_task=in_task)
            if holder is None:
                self._rest(kept)
            else:
                self._working[key] = kept
                holder.holds = (*holder.holds, kept)
        above = run.attempt.above
        if above is not None and not in_task and not run.around:
            above.agent = kept
        return kept

    def _rest(self, kept: Conversation) -> None:
        self._idle[kept.key] = kept
        if len(self._idle) > self._limit:
            self._idle.popitem(last=False)


def _names_of(message: AIMessage) -> list[str]:
    return [key_of(message), *(f"call {id_of(call)}" for call in calls_of(message))]


def _words_of(call: Mapping[str, Any]) -> str:
    """Name a call by what it says: a tool may be called without the call's id."""
    return short(f"{call['name']} {call['args']!r}")


def _call_in(message: AIMessage, call: Mapping[str, Any]) -> str | None:
    """Find a call in an AI message: by id, or by name and arguments where none came along.

    Returns:
        The call's id, `None` if the message makes no such call.
    """
    for made in message.tool_calls:
        same = made.get("name") == call["name"] and made.get("args") == call["args"]
        if made.get("id") == call["id"] if call["id"] else same:
            return str(made.get("id"))
    return None


def _place_of(call: dict[str, Any], state: Sequence[BaseMessage]) -> int:
    for at in range(len(state) - 1, -1, -1):
        message = state[at]
        if isinstance(message, AIMessage) and _call_in(message, call) is not None:
            return at
    return -1


def _direct_message(
    kept: Conversation, run: Run, call: dict[str, Any], *, again: bool
) -> AIMessage:
    """Make up the message of a call that no model made; a further attempt keeps the first one's."""
    args = call["args"] if isinstance(call["args"], dict) else {"input": call["args"]}
    last = kept.last
    if last is not None and run.above is not None and last.caller == run.above.id:
        tried = calls_of(last.step.message)[0]
        same = (tried["name"], tried["args"]) == (call["name"], args)
        if same and (again or call["id"] == tried["id"]):
            call["id"] = tried["id"]
            return last.step.message
    call["id"] = call["id"] or str(run.id)
    made = {"name": call["name"], "args": args, "id": call["id"]}
    return AIMessage("", id=f"direct:{run.id}", tool_calls=[made])
