"""Which step is it, in which conversation, and what stands before it?

Finds the AI message behind a tool call, or the history that a model call continues: in the
graph's state, in what a model has just said, or nowhere, when the call is a step of its own. What
is to be done about a step is not decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_loopguard.adapters.conversations import Conversations, Pending, call_in
from langchain_loopguard.adapters.runs import MISSING, configurable
from langchain_loopguard.langchain.marks import is_generated
from langchain_loopguard.langchain.messages import (
    calls_of,
    id_of,
    key_of,
    makes_calls,
    short,
    step_at,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_loopguard.adapters.conversations import Conversation, Session
    from langchain_loopguard.adapters.gate import Gate
    from langchain_loopguard.adapters.runs import Key, Run, RunTree
    from langchain_loopguard.langchain.history import Reader


class Place(NamedTuple):
    """The conversation of a call, and where the AI message is that makes it."""

    kept: Conversation
    messages: Sequence[BaseMessage]
    at: int
    in_state: bool = False  # Whether the messages are the graph's state.
    direct: bool = False  # Whether no model made the call, so that the message is made up.


def in_task(run: Run) -> bool:
    """Tell whether LangGraph knows the task that a run is in."""
    if run.host is None:
        run.host = (False, False)
        if run.ns:
            from langchain_loopguard.adapters import _langgraph  # noqa: PLC0415 - loads LangGraph

            inside = _langgraph.runs_in(run.ns)
            run.host = (inside, inside and _langgraph.can_ask())
    return run.host[0]


def can_ask(run: Run) -> bool:
    """Tell whether a person can be asked in the task that a run is in."""
    return in_task(run) and run.host == (True, True)


class StepFinder:
    """Finds the steps of one handler's conversations and reads what stands before them."""

    def __init__(
        self, gate: Gate, runs: RunTree, *, scope: str, messages_key: str, limit: int
    ) -> None:
        """Take the handler's options."""
        self.gate = gate
        self.runs = runs
        self.table = Conversations(self._new_reader, limit, runs)
        self._scope = scope
        self._key = messages_key

    def _new_reader(self) -> Reader:
        reader = self.gate.open(None)
        if reader is None:
            raise LookupError("no counts are those of no release")
        return reader

    # --- Conversations; the caller holds the handler's lock --------------------------------

    def keys(self, run: Run) -> tuple[Key, Key]:
        """Name the conversations that a run may belong to.

        First that of an agent that lives inside one task, a loop in a node. Then that of the agent
        around the run, whose model and tools are different tasks; outside a graph they are equal.
        """
        if self._scope == "handler":
            base: Key = ("handler",)
        else:
            thread = configurable().get("thread_id")
            saved = thread is not None and (can_ask(run) or not in_task(run))
            base = ("thread", str(thread)) if saved else ("session", run.session.int)
        agent: Key = (*base, run.scope, run.around)
        return ((*base, f"{run.ns}|", run.around) if run.ns else agent), agent

    def of_model(self, run: Run, sent: Sequence[BaseMessage]) -> Conversation:
        """Find the conversation that a model call continues."""
        if run.is_loose and self._scope != "handler":
            return self.table.get(self.table.loop_of(sent) or ("loose", run.id.int), run)
        task, agent = self.keys(run)
        within = task != agent and self.table.find(task) is not None
        return self.table.get(task if within else agent, run, in_task=within)

    def of_call(
        self, run: Run, call: dict[str, Any], state: Sequence[BaseMessage], *, again: bool
    ) -> Place:
        """Find the AI message that makes a call; its id is filled in where it came without."""
        if run.is_loose and self._scope != "handler":
            task = agent = self.table.loop_with(call) or ("loose", run.id.int)
        else:
            task, agent = self.keys(run)
        at = _place_of(call, state) if call["id"] and not run.around else -1
        if at >= 0:
            return Place(self.table.get(agent, run), state, at, in_state=True)
        for key in (task, agent) if task != agent else (agent,):
            kept = self.table.find(key)
            for said in reversed(kept.spoken if kept is not None else ()):
                made = call_in(said.message, call)
                if made is not None:
                    call["id"] = made
                    # A loop in one node: what it adds is not in the graph's state.
                    within = key != agent or (task != agent and said.attempt == run.attempt)
                    kept = self.table.get(task if within else agent, run, in_task=within)
                    return Place(kept, [*said.sent, said.message], len(said.sent))
        for key in (task, agent):
            kept = self.table.find(key)
            known = kept.step_with(call["id"]) if kept is not None and call["id"] else None
            if kept is not None and known is not None:
                return Place(kept, [known.step.message], 0, in_state=known.in_state)
        kept = self.table.get((*agent, "direct"), run)
        return Place(kept, [_direct_message(kept, run, call, again=again)], 0, direct=True)

    def state(self, run: Run) -> Sequence[BaseMessage] | None:
        """Give the messages of the graph's state, `None` if it has none under this key."""
        if not in_task(run):
            return None
        from langchain_loopguard.adapters import _langgraph  # noqa: PLC0415 - loads LangGraph

        value = _langgraph.read_channel(self._key)
        # One is looked at: a long history is read at every model call.
        if not isinstance(value, list | tuple) or not value:
            return None
        return value if isinstance(value[-1], BaseMessage) else None

    # --- Steps; the caller holds the conversation's lock ------------------------------------

    def step_of_call(self, place: Place, run: Run, session: Session) -> Pending:
        """Give the step of a call that starts.

        What stands before it is read, unless it is in the graph's state: the gate reads that.
        """
        kept, messages, at = place.kept, place.messages, place.at
        message = messages[at]
        pending = kept.steps.get(key_of(message))
        question = pending.question if pending is not None else None
        if question is not None and question.is_replayed_by(run):
            kept.reader, pending = self.table.new_reader(), None
        if pending is not None and (message.id or pending.step.index == at):
            counted = kept.reader.counts.last == key_of(message)
            if place.in_state and pending.outcome is None and not counted:
                self._renew(kept, messages[:at])  # Another branch of the thread was read since.
            return pending
        if not place.in_state:
            self._read_before(place, run)
        elif not self.begin_turn(kept, run, session, messages[:at]):
            self._renew(kept, messages[:at])
        parent = run.parent if place.direct else None
        step = step_at(messages, at)
        return kept.add(Pending(step, messages, parent=parent, in_state=place.in_state))

    def _read_before(self, place: Place, run: Run) -> None:
        """Read what stands before a step that is not in a graph's state."""
        kept = place.kept
        opening = kept.openings.pop(key_of(place.messages[place.at]), "")
        if opening:
            self.prompted(kept, opening)
        last = kept.last
        results = last.results() if last is not None else None
        if results and kept.reader.counts.last == key_of(results[0]):
            self.gate.read(kept.reader, results)  # No message list tells what its tools gave.
        if place.direct:
            # A graph that shows no messages begins a turn where it is called again.
            fresh = kept.prompted not in {None, run.session} and run.resume is MISSING
            if run.ns and fresh:
                kept.reader.start_turn()
            kept.prompted = run.session
        else:
            self.read(kept, place.messages[: place.at])

    def begin_turn(
        self, kept: Conversation, run: Run, session: Session, messages: Sequence[BaseMessage]
    ) -> bool:
        """Begin a turn where a graph's run was started with an input; tells whether it did."""
        if session.begun or not run.ns or run.scope or run.around or kept.key[-2:] == (run.ns, ""):
            return False
        leader = self.runs.get(run.session)
        if leader is None or not leader.has_input:
            return False
        session.begun = True
        if not kept.reader.knows(messages):
            kept.steps.clear()
        self.gate.start_run(kept.reader, messages)
        return True

    def read(self, kept: Conversation, messages: Sequence[BaseMessage]) -> None:
        """Read messages; where a history was taken back (a fork), from its beginning."""
        self._renew(kept, messages)
        calling = (one for one in reversed(messages) if makes_calls(one))
        last = next(map(key_of, calling), "")
        if not kept.reader.counts.last and last in self.table.revealed:
            kept.reader.read(messages)  # Another agent has read it, and what that revealed is out.
        else:
            self.gate.read(kept.reader, messages)
        self.table.revealed.note(last)

    def _renew(self, kept: Conversation, messages: Sequence[BaseMessage]) -> None:
        """Start at the beginning where a history was taken back; one that was trimmed goes on."""
        counts = kept.reader.counts
        gone = counts.last and counts.first and not _has(messages, counts.last)
        if gone and any(short(one.id or "") == counts.first for one in messages):
            kept.reader = self.table.new_reader()

    def history(
        self,
        kept: Conversation,
        run: Run,
        sent: Sequence[BaseMessage],
        state: Sequence[BaseMessage] | None,
    ) -> Sequence[BaseMessage] | None:
        """Choose what a model call continues: the graph's state, or what the model is sent.

        The state is whole where the prompt was trimmed, and free of the questions that a node
        asks a model on the side, for which this is `None`. But a loop inside one node is not in it.
        """
        if state and (kept.last is None or kept.last.in_state):
            last = kept.reader.counts.last
            if not last or _has(state, last) or not _has(sent, last):
                return state
        if any(map(makes_calls, sent)):
            return _with_ids(kept, sent)
        # No tool calls: the first prompt of a turn, a text agent's, or a question on the side.
        human = next((one for one in reversed(sent) if is_users(one)), None)
        if human is None:
            return None
        if human.id is not None:
            return None if state else [human]
        # Without an id only its text tells a new turn: a text agent's prompt grows.
        if kept.prompted == run.session:
            run.prompt = str(human.text)
        else:
            kept.prompted = run.session
            self.prompted(kept, str(human.text))
        return None

    def prompted(self, kept: Conversation, text: str) -> None:
        """Take in a human text without an id, with which a person may have spoken."""
        if kept.reader.counts.recent and not text.startswith(kept.prompt):
            kept.reader.start_turn()
        kept.prompt = text


def is_users(message: BaseMessage) -> bool:
    """Tell a message that a person may have written."""
    return isinstance(message, HumanMessage) and not is_generated(message)


def _place_of(call: dict[str, Any], state: Sequence[BaseMessage]) -> int:
    for at in range(len(state) - 1, -1, -1):
        message = state[at]
        if isinstance(message, AIMessage) and call_in(message, call) is not None:
            return at
    return -1


def _direct_message(
    kept: Conversation, run: Run, call: dict[str, Any], *, again: bool
) -> AIMessage:
    """Make up the message of a call that no model made; a further attempt keeps the first one's."""
    args = call["args"] if isinstance(call["args"], dict) else {"input": call["args"]}
    last = kept.last
    if last is not None and run.parent is not None and last.parent == run.parent:
        tried = calls_of(last.step.message)[0]
        same = (tried["name"], tried["args"]) == (call["name"], args)
        if same and (again or call["id"] == tried["id"]):
            call["id"] = tried["id"]
            return last.step.message
    call["id"] = call["id"] or str(run.id)
    made = {"name": call["name"], "args": args, "id": call["id"]}
    return AIMessage("", id=f"direct:{run.id}", tool_calls=[made])


def _has(messages: Sequence[BaseMessage], key: str) -> bool:
    return any(isinstance(one, AIMessage) and key_of(one) == key for one in reversed(messages))


def _with_ids(kept: Conversation, sent: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Put in the place of AI messages without ids what the model said with the same calls."""
    if all(one.id or not isinstance(one, AIMessage) for one in sent):
        return sent
    said = [one.message for one in kept.spoken]
    said += [one.step.message for one in kept.steps.values()]
    by_calls = {tuple(map(id_of, calls_of(one))): one for one in said}
    return [
        by_calls.get(tuple(map(id_of, calls_of(one))), one)
        if isinstance(one, AIMessage) and not one.id and makes_calls(one)
        else one
        for one in sent
    ]
