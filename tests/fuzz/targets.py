"""What is fuzzed, and what may happen to each input?

A target takes bytes and returns, or raises what is a fault. What it may raise for bad input is
caught in it, by the documented error alone.
"""

import contextlib
import io
import json
import os
import tempfile
from functools import cache
from pathlib import Path

import orjson
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_loopguard.core.answers import match_results
from langchain_loopguard.core.detector import LoopDetector
from langchain_loopguard.core.signature import batch_signature, call_signature
from langchain_loopguard.core.stagnation import StagnationDetector
from langchain_loopguard.core.tools import declared_traits, traits_of_name
from langchain_loopguard.failures import looks_failed, says_it_failed
from langchain_loopguard.history import answer_open_calls, last_batch, without_foreign_answers
from langchain_loopguard.interrupts import (
    InvalidResumeError,
    interrupt_payload,
    parse_resume,
    resume_schema,
)
from langchain_loopguard.messages import MessageReader
from langchain_loopguard.policy_file import PolicyFileError, read_policy

from langchain_loopguard.core.canonical import canonical_arguments, canonical_content
from langchain_loopguard.core.clock import mask_clock
from langchain_loopguard.core.decision import Action, Decision
from langchain_loopguard.core.errors import GuardStateError, LoopDetectedError
from langchain_loopguard.core.guard import LoopGuard
from langchain_loopguard.core.policy import LoopGuardPolicy
from langchain_loopguard.core.results import hash_results
from langchain_loopguard.langchain.masks import mask_secrets, mask_value
from langchain_loopguard.middleware import LoopGuardMiddleware
from langchain_loopguard.node import LoopGuardNode
from langchain_loopguard.replay.conversation import Conversation, ConversationError, Problem
from langchain_loopguard.replay.readers.base import Events
from langchain_loopguard.replay.readers.checkpoints import unpack
from langchain_loopguard.replay.readers.langchain_messages import events_of, message_of
from langchain_loopguard.replay.readers.swe_agent import tool_of
from langchain_loopguard.replay.run import replay
from langchain_loopguard.replay.sources import Source, file_pieces
from langchain_loopguard.replay.streams import parse
from tests.fuzz.documents import MESSAGES, RUNS
from tests.fuzz.feed import Feed, broken

MOST_STATE = 8192
"""Bytes of JSON that a default guard's state may have."""

READER_STATE = MOST_STATE + 1024
"""The same with a reader's place, whose ids may be long."""

_PRESETS = ("seed", "signals", "hermes", "openclaw", "takt", "hermes_agent", "openhands")


@cache
def policies():
    presets = [LoopGuardPolicy.preset(name) for name in _PRESETS[1:]]
    return [LoopGuardPolicy(), LoopGuardPolicy.seed(), *presets]


# --- Calls and answers ----------------------------------------------------------------------------


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


def play(guard, feed, steps=6):
    """Run a guard through odd calls and answers; the last state is given back."""
    for _ in range(steps):
        kind = feed.byte() % 16
        if kind < 11:
            calls = [a_call(feed) for _ in range(1 + kind % 3)]
            decision = guard.check(calls)
            results = [a_result(feed) for _ in range(feed.byte() % 4)]
            if kind == 7 and decision.action >= Action.ASK:
                guard.refuse(decision)
            elif kind == 8:
                guard.approve(decision)
            after = guard.record_results(decision.record, results)
            assert decision.to_model is not None
            assert after.to_person is not None
        elif kind == 11:
            guard.human_message()
        elif kind == 12:
            guard.prose(feed.text())
        elif kind == 13:
            guard.declare(feed.text(), feed.any())
        elif kind == 14:
            record = guard.record_for([a_call(feed)])
            guard.record_results(record, [a_result(feed)])
        else:
            guard.ledger()
    return checked_state(guard)


def checked_state(guard, most=MOST_STATE):
    state = guard.to_state()
    written = orjson.dumps(state)  # Refuses what JSON or 64 bits can't hold, surrogates too.
    assert len(written) <= most, f"a state of {len(written)} bytes"
    if len(written) < 600:  # No part of a state that is left out here is any different.
        assert orjson.dumps(json.loads(json.dumps(state, allow_nan=False))) == written
    return written


def calls(data):
    """The core: calls, answers, and a guard that is stored and restored between them."""
    feed = Feed(data)
    policy = feed.pick(policies())
    guard = LoopGuard(policy)
    written = play(guard, feed)
    restored = LoopGuard.from_state(policy, orjson.loads(written))
    same = [a_call(feed)]
    assert restored.check(same).action is guard.check(same).action


# --- States ---------------------------------------------------------------------------------------


@cache
def real_states():
    """States that guards and readers wrote, one a policy."""
    states = []
    for policy in policies():
        guard = LoopGuard(policy)
        for number in range(40):
            batch = [{"name": f"t{number % 5}", "args": {"p": number % 7}, "id": "1"}]
            decision = guard.check(batch)
            status = "error" if number % 4 == 0 else "success"
            answer = {"id": "1", "content": f"a {number % 3}\nb\nc", "status": status}
            if decision.action >= Action.ASK and number % 2:
                guard.refuse(decision)
            guard.record_results(decision.record, [answer])
            if number == 25:
                guard.human_message()
        guard.prose("I go on.")
        states.append((policy, orjson.dumps(guard.to_state()), _reader_state(policy)))
    return states


def _reader_state(policy):
    reader = MessageReader(LoopGuard(policy))
    history = [HumanMessage("go", id="h")]
    for number in range(6):
        history += [
            AIMessage("", id=f"a{number}", tool_calls=[_call("read", {"p": 1}, f"c{number}")]),
            ToolMessage("same", tool_call_id=f"c{number}", id=f"t{number}"),
        ]
    reader.read(history)
    reader.check(AIMessage("", id="open", tool_calls=[_call("read", {"p": 1}, "c")]))
    return orjson.dumps(reader.to_state())


def _call(name, args, call_id):
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def states(data):
    """Stored states: refused with `GuardStateError`, or good to go on with."""
    feed = Feed(data)
    policy, guard_state, reader_state = feed.pick(real_states())
    if feed.flag():
        state = broken(feed, guard_state) if feed.byte() % 8 else feed.any()
        with contextlib.suppress(GuardStateError):
            guard = LoopGuard.from_state(policy, state)
            written = checked_state(guard)
            again = LoopGuard.from_state(policy, orjson.loads(written))
            assert checked_state(again) is not None
            play(guard, feed, 3)
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            detector = StagnationDetector()
            detector.load_state(feed.any())
            detector.check("a")
            orjson.dumps(detector.to_state())
        with contextlib.suppress(ValueError):
            detector = LoopDetector()
            detector.load_state(feed.json())
            with contextlib.suppress(LoopDetectedError):
                detector.check([a_call(feed)])
            orjson.dumps(detector.to_state())
        return
    state = broken(feed, reader_state) if feed.byte() % 8 else feed.any()
    with contextlib.suppress(GuardStateError):
        reader = MessageReader.from_state(policy, state)
        checked_state(reader, READER_STATE)
        reader.read(history(feed))
        checked_state(reader, READER_STATE)


# --- Messages -------------------------------------------------------------------------------------

_KWARGS = (
    {},
    {},
    {},
    {"lc_source": "loop_guard"},
    {"lc_source": "hitl_interrupt_decision"},
    {"lc_source": ["x"]},
    {"loop_guard": {"notices": 1}},
    {"loop_guard": {"notices": 99, "was_text": True}},
    {"loop_guard": {"notices": "x", "error": {"tools": 5, "count": "x"}}},
    {"loop_guard": {"error": {"tools": ["a"], "count": 3}}},
    {"loop_guard": {"wrap_up": "done"}},
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
        made = [
            _call(feed.pick(("read", "edit", "", "wait")), {"a": feed.byte() % 2}, feed.pick(_IDS))
            for _ in range(feed.byte() % 4)
        ]
        if kind == 5:
            return AIMessage.model_construct(
                content=content, tool_calls=[a_call(feed)], invalid_tool_calls=[], **extra,
                response_metadata={"loop_guard_approved": feed.any()}, usage_metadata=None,
            )  # fmt: skip
        unread = [{"name": "x", "args": feed.text(), "id": feed.pick(_IDS), "error": None}]
        bad = [{**one, "type": "invalid_tool_call"} for one in unread[: feed.byte() % 2]]
        approved = {"loop_guard_approved": True} if feed.byte() % 8 == 1 else {}
        kind = AIMessageChunk if kind == 4 else AIMessage
        return kind(
            content, tool_calls=made, invalid_tool_calls=bad, response_metadata=approved, **extra
        )
    if kind < 12 or kind == 14:
        status = feed.pick(("success", "error"))
        call_id = feed.pick(_IDS) or ""
        if kind == 11:
            odd = {"content": feed.any(), "status": feed.any(), "artifact": feed.any()}
            return ToolMessage.model_construct(tool_call_id=call_id, **odd, **extra)
        return ToolMessage(content, tool_call_id=call_id, status=status, **extra)
    if kind == 12:
        return SystemMessage(content, **extra)
    if kind == 15 and feed.flag():
        return RemoveMessage(id="1")
    return HumanMessage(content, **extra)


def history(feed, most=6):
    return [a_message(feed) for _ in range(1 + feed.byte() % most)]


_MODES = ("refuse", "warn", "wrap_up", "raise")


@cache
def nodes():
    policy = LoopGuardPolicy().tune(same_answer={"warn": 2, "ask": 2})
    return [LoopGuardNode(policy, on_detected=mode, fail_open=False) for mode in _MODES]


@cache
def middlewares():
    policy = LoopGuardPolicy().tune(same_answer={"warn": 2, "ask": 2})
    return [LoopGuardMiddleware(policy, on_detected=mode, fail_open=False) for mode in _MODES]


def messages(data):
    """Message lists: through a reader that is stored in between."""
    feed = Feed(data)
    policy = feed.pick(policies())
    reader = MessageReader(LoopGuard(policy))
    whole = history(feed)
    for end in (feed.byte() % (len(whole) + 1), len(whole)):
        part = whole[:end]
        reader.read(part)
        reader.take_notice(part)
        written = checked_state(reader, READER_STATE)
        reader = MessageReader.from_state(policy, orjson.loads(written))
    decision = reader.check(whole[-1])
    (reader.approve, reader.refuse)[feed.byte() % 2](decision)
    checked_state(reader, READER_STATE)
    answer_open_calls(without_foreign_answers(whole))


def steps(data):
    """The node's and the middleware's step on a state with odd messages and odd counts."""
    feed = Feed(data)
    state = {"messages": history(feed)}
    counts = feed.byte() % 4
    if counts:
        _, _, saved = feed.pick(real_states())
        state["loop_guard"] = broken(feed, saved) if counts > 1 else orjson.loads(saved)
    elif feed.byte() % 4 == 1:
        state["loop_guard"] = feed.any()
    with contextlib.suppress(LoopDetectedError, GuardStateError):
        if feed.flag():
            feed.pick(nodes())(state)
        else:
            middleware = feed.pick(middlewares())
            middleware.before_model(state, None)
            middleware.after_model(state, None)


# --- Resume values --------------------------------------------------------------------------------


def resume(data):
    """Answers to a question: `InvalidResumeError`, or an answer with as many parts as calls."""
    feed = Feed(data)
    made = [a_call(feed) for _ in range(feed.byte() % 4)]
    given = [call for call in made if type(call) is dict]
    value = _an_answer(feed)
    with contextlib.suppress(InvalidResumeError):
        found = parse_resume(value, given)
        assert found.kind in {"continue", "stop", "feedback", "decisions"}
        assert len(found.calls) in {0, len(given)}
    if feed.byte() % 4 == 0:
        decision = Decision(Action.ASK, (), LoopGuard().record_for(given))
        orjson.dumps(interrupt_payload(decision, given))
        resume_schema(given)


def _an_answer(feed):
    kind = feed.byte() % 8
    if kind == 0:
        return feed.text()
    word = feed.pick(("approve", "edit", "reject", "respond", "accept", "response", feed.text()))
    one = {"type": word, feed.pick(("message", "args", "edited_action", "text")): feed.any()}
    if kind == 1:
        return one
    if kind == 2:
        return {"decisions": [one for _ in range(feed.byte() % 4)]}
    if kind == 3:
        return [one for _ in range(feed.byte() % 4)]
    if kind == 4:
        return {"type": "edit", "edited_action": {"name": feed.text(), "args": feed.any()}}
    return feed.any()


# --- Written forms --------------------------------------------------------------------------------


def canonical(data):
    """Arguments and answers written down: never an error, and equal for equal JSON."""
    feed = Feed(data)
    value = feed.deep() if feed.byte() == 77 else feed.any()
    first = canonical_arguments(value)
    assert first == canonical_arguments(value)
    whole = canonical_content(value)
    call = {"name": feed.text(), "args": value, "id": "1"}
    call_signature(call).encode()
    batch_signature([call, a_call(feed)])
    hash_results([call], [value])
    match_results(["1", None], [a_result(feed), value])
    mask_clock(whole[:2000])
    mask_clock(feed.take(80))
    traits_of_name(feed.text())
    declared_traits("a", feed.any())


_FOLDER = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir())  # noqa: S108


@cache
def _file():
    return _FOLDER / f"loop-guard-fuzz-{os.getpid()}.json"


@cache
def real_policies():
    return [orjson.dumps(policy.model_dump(mode="json")) for policy in policies()]


def policy_files(data):
    """Policy files: `PolicyFileError`, or a policy that a guard runs by."""
    feed = Feed(data)
    kind = feed.byte() % 4
    if kind == 0:
        text = feed.rest()
    else:
        value = broken(feed, feed.pick(real_policies())) if kind > 1 else feed.json()
        text = json.dumps(value).encode()
    _file().write_bytes(text)
    try:
        policy = read_policy(_file())
    except PolicyFileError:
        return
    finally:
        _file().unlink()
    guard = LoopGuard(policy)
    play(guard, feed, 2) if len(policy.rules) == 1 else guard.check([a_call(feed)])


# --- Texts ----------------------------------------------------------------------------------------


def texts(data):
    """What is read out of plain text: clocks, names, failures, secrets, a person's words."""
    mask_clock(data)
    text = data.decode("utf-8", "surrogateescape")
    traits_of_name(text)
    says_it_failed(text)
    looks_failed(text)
    if data[:1] < b"@":  # Takes longer than all the rest.
        mask_secrets(text)
    tool_of(text)
    with contextlib.suppress(InvalidResumeError):
        parse_resume(text, 1)
    with contextlib.suppress(ValueError):
        parse(data)


# --- Transcripts ----------------------------------------------------------------------------------


def transcripts(data):
    """Files of runs: a `Problem`, or a conversation that can be replayed."""
    feed = Feed(data)
    kind = feed.byte() % 8
    if kind == 0:
        text = feed.rest()
    elif kind < 6:
        values = [broken(feed, feed.pick(RUNS)) for _ in range(1 + feed.byte() % 3)]
        text = b"\n".join(json.dumps(value).encode() for value in values)
    elif kind == 6:
        text = json.dumps([broken(feed, feed.pick(RUNS)), feed.json()]).encode()
        at = feed.byte() % 64
        text = text[:at] + feed.take(4) + text[at + feed.byte() % 8 :]
    else:
        text = json.dumps(feed.json()).encode()
    for piece in _pieces(text, found=feed.flag()):
        for found in () if isinstance(piece, Problem) else piece.read():
            assert isinstance(found, Problem | Conversation)
            if isinstance(found, Conversation) and found.calls < 20 and feed.byte() % 4 == 0:
                replay(found, feed.pick(policies()))
                mask_value(found.to_dict())


def _pieces(text, *, found):
    stream = io.BufferedReader(io.BytesIO(text))
    return file_pieces(Source("made", "made", found=found, size=len(text)), stream, frozenset())


def stored_messages(data):
    """Stored messages and packed values of checkpoints: `ConversationError`, or messages."""
    feed = Feed(data)
    if feed.flag():
        with contextlib.suppress(ConversationError):
            unpack(feed.pick(("msgpack", "json", "pickle", None, "json+aes")), feed.rest())
        return
    given = [broken(feed, feed.pick(MESSAGES)) for _ in range(1 + feed.byte() % 3)]
    loaded = []
    for value in given:
        with contextlib.suppress(ConversationError):
            loaded.append(message_of(value))
    found = [message for message in loaded if message is not None]
    events = Events()
    events.events = events_of(found)
    last_batch(found)
    MessageReader(LoopGuard()).read(found)


TARGETS = {
    "calls": calls,
    "canonical": canonical,
    "resume": resume,
    "states": states,
    "messages": messages,
    "steps": steps,
    "policies": policy_files,
    "texts": texts,
    "transcripts": transcripts,
    "stored": stored_messages,
}
"""Every target by its name."""

SHARES = {
    "calls": 25,
    "canonical": 40,
    "resume": 150,
    "states": 40,
    "messages": 21,
    "steps": 30,
    "policies": 40,
    "texts": 400,
    "transcripts": 24,
    "stored": 230,
}
"""Of a thousand inputs, how many go to each target when none is named: the quick ones get most."""
