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
    HumanMessage,
    ToolMessage,
    message_to_dict,
)

from langchain_loopguard import LoopDetectedError, LoopGuard, LoopGuardPolicy
from langchain_loopguard.core.canonical import canonical_arguments, canonical_content
from langchain_loopguard.core.clock import mask_clock
from langchain_loopguard.core.decision import Action, Decision
from langchain_loopguard.core.errors import GuardStateError
from langchain_loopguard.core.kinds import declared_kind, kind_of_name
from langchain_loopguard.core.results import tells_of_failure
from langchain_loopguard.langchain.errors import InvalidResumeError
from langchain_loopguard.langchain.history import Reader
from langchain_loopguard.langchain.masks import mask_secrets, mask_value
from langchain_loopguard.langchain.messages import last_step
from langchain_loopguard.langchain.options import Options
from langchain_loopguard.langchain.outcome import decide
from langchain_loopguard.langchain.question import Asked, make_question, reply_schema
from langchain_loopguard.langchain.repair import complete
from langchain_loopguard.langchain.replies import read_reply
from langchain_loopguard.middleware import LoopGuardMiddleware
from langchain_loopguard.node import LoopGuardNode
from langchain_loopguard.policy import PolicyFileError
from langchain_loopguard.replay.conversation import Conversation, ConversationError, Problem
from langchain_loopguard.replay.readers.checkpoints import unpack
from langchain_loopguard.replay.readers.langchain_messages import events_of, message_of
from langchain_loopguard.replay.readers.swe_agent import tool_of
from langchain_loopguard.replay.run import replay
from langchain_loopguard.replay.sources import Source, file_pieces
from langchain_loopguard.replay.streams import parse
from langchain_loopguard.seed.detector import LoopDetector
from langchain_loopguard.seed.results import hash_results
from langchain_loopguard.seed.signature import batch_signature
from tests.fuzz.feed import Feed, broken
from tests.fuzz.made import a_call, a_result, history
from tests.replay.readers import handmade
from tests.replay.stories import TOLD, langchain_messages

MOST_STATE = 8192
"""Bytes of JSON that a default guard's state may have."""

READER_STATE = MOST_STATE + 4096
"""The same with a reader's place, its warnings and the tools' declarations."""

PRESETS = ("seed", "signals", "hermes", "openclaw", "takt", "hermes_agent", "openhands")
EARLY = LoopGuardPolicy().tune(repeat={"warn": 2, "ask": 2})


@cache
def policies():
    return [LoopGuardPolicy(), EARLY, *map(LoopGuardPolicy.preset, PRESETS)]


def play(guard, feed, steps=6):
    """Run a guard through odd calls and results; gives its last state back."""
    for _ in range(steps):
        kind = feed.byte() % 16
        if kind < 11:
            calls = [a_call(feed) for _ in range(1 + kind % 3)]
            decision = guard.check(calls)
            results = [a_result(feed) for _ in range(feed.byte() % 4)]
            if kind == 7 and decision.action >= Action.ASK:
                guard.refuse(decision)
            elif kind >= 8:
                guard.approve(decision, always=kind == 9)
            after = guard.record_results(decision.record, results)
            assert decision.to_model is not None
            assert after.to_person is not None
        elif kind == 11:
            guard.start_turn()
        elif kind == 12:
            guard.observe(feed.text())
        elif kind == 13:
            guard.declare(feed.text(), feed.any())
        else:
            guard.record_results(guard.record_for([a_call(feed)]), [a_result(feed)])
    return checked_state(guard)


def checked_state(guard, most=MOST_STATE):
    state = guard.to_state()
    written = orjson.dumps(state)  # Refuses what JSON or 64 bits can't hold, surrogates too.
    assert len(written) <= most, f"a state of {len(written)} bytes"
    assert orjson.dumps(json.loads(json.dumps(state, allow_nan=False))) == written
    return written


def calls(data):
    """The core: calls, results, and a guard that is stored and restored between them."""
    feed = Feed(data)
    policy = feed.pick(policies())
    guard = LoopGuard(policy)
    restored = LoopGuard.from_state(policy, orjson.loads(play(guard, feed)))
    same = [a_call(feed)]
    assert restored.check(same).action is guard.check(same).action


# --- States ---------------------------------------------------------------------------------------


@cache
def real_states():
    """States that guards and readers wrote, one a policy."""
    states = []
    for policy in policies():
        reader, whole = Reader(Options(policy=policy)), [HumanMessage("go", id="h")]
        for number in range(40):
            call = {"name": f"t{number % 5}", "args": {"p": number % 7}, "id": f"c{number}"}
            whole.append(AIMessage("", id=f"a{number}", tool_calls=[call]))
            reader.read(whole)
            step = last_step(whole)
            found = reader.check(step)
            mode = ("warn", "refuse")[number % 2]
            outcome = decide(found, step, mode=mode, can_ask=False, options=reader.options)
            reader.settle(step, found, outcome)
            status = "error" if number % 4 == 0 else "success"
            text = f"a {number % 3}\nb\nc"
            whole += outcome.messages(step.open_calls) or [
                ToolMessage(text, tool_call_id=call["id"], id=f"t{number}", status=status)
            ]
        states.append((policy, orjson.dumps(reader.to_state())))
    return states


def states(data):
    """Stored states: refused with `GuardStateError`, or good to go on with."""
    feed = Feed(data)
    policy, stored = feed.pick(real_states())
    state = broken(feed, stored) if feed.byte() % 8 else feed.any()
    if feed.flag():
        guard_state = state.get("guard") if type(state) is dict else state
        with contextlib.suppress(GuardStateError):
            guard = LoopGuard.from_state(policy, guard_state)
            written = checked_state(guard)
            assert checked_state(LoopGuard.from_state(policy, orjson.loads(written)))
            play(guard, feed, 3)
        with contextlib.suppress(ValueError):
            detector = LoopDetector()
            detector.load_state(feed.json())
            with contextlib.suppress(LoopDetectedError):
                detector.check([a_call(feed)])
            orjson.dumps(detector.to_state())
        return
    with contextlib.suppress(GuardStateError):
        reader = Reader.from_state(Options(policy=policy), state)
        checked_state(reader, READER_STATE)
        reader.read(history(feed))
        checked_state(reader, READER_STATE)


_MODES = ("refuse", "warn", "wrap_up", "raise", "observe")


@cache
def hosts():
    options = [{"on_detected": mode, "fail_open": False} for mode in _MODES]
    return [
        *(LoopGuardNode(EARLY, **one) for one in options),
        *(LoopGuardMiddleware(EARLY, **one) for one in options),
    ]


def messages(data):
    """Message lists: through a reader that is stored in between, and every kind of outcome."""
    feed = Feed(data)
    options = Options(policy=feed.pick(policies()))
    reader, whole = Reader(options), history(feed)
    for end in (feed.byte() % (len(whole) + 1), len(whole)):
        part = whole[:end]
        (reader.start_run if feed.flag() else reader.read)(part)
        written = checked_state(reader, READER_STATE)
        reader = Reader.from_state(options, orjson.loads(written))
    reader.request(whole)
    complete(whole, "not run")
    step = last_step(whole)
    if step is None:
        return
    found = reader.check(step)
    outcome = decide(found, step, mode=feed.pick(_MODES), can_ask=False, options=options)
    outcome.messages(step.calls if step.late else step.open_calls)
    reader.settle(step, found, outcome)
    checked_state(reader, READER_STATE)


def steps(data):
    """The node's and the middleware's step on a state with odd messages and odd counts."""
    feed = Feed(data)
    host, state = feed.pick(hosts()), {"messages": history(feed)}
    counts = feed.byte() % 4
    if counts:
        saved = feed.pick(real_states())[1]
        state["loop_guard"] = broken(feed, saved) if counts > 1 else orjson.loads(saved)
    elif feed.byte() % 4 == 1:
        state["loop_guard"] = feed.any()
    with contextlib.suppress(LoopDetectedError, GuardStateError):
        if isinstance(host, LoopGuardNode):
            host(state)
        else:
            host.before_model(state, None)
            host.after_model(state, None)


# --- Replies --------------------------------------------------------------------------------------


def resume(data):
    """Answers to a question: `InvalidResumeError`, or a reply with as many parts as calls."""
    feed = Feed(data)
    made = [a_call(feed) for _ in range(feed.byte() % 4)]
    given = [call for call in made if type(call) is dict]
    with contextlib.suppress(InvalidResumeError):
        found = read_reply(_an_answer(feed), given)
        assert found.kind in {"continue", "always", "stop", "text", "decisions"}
        assert len(found.calls) in {0, len(given)}
    if feed.byte() % 4 == 0:
        step = last_step([AIMessage.model_construct(content="", tool_calls=made,
                                                    invalid_tool_calls=[])])  # fmt: skip
        decision = Decision(Action.ASK, (), LoopGuard().record_for(given))
        shows = Options(show_content=feed.pick(("full", "masked", "none")))
        question = make_question(decision, step, [step.message], asked=Asked(), options=shows)
        orjson.dumps(question)
        reply_schema(given)


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


# --- Written forms and texts ----------------------------------------------------------------------


def canonical(data):
    """Arguments and results written down: never an error, and equal for equal JSON."""
    feed = Feed(data)
    value = feed.deep() if feed.byte() == 77 else feed.any()
    assert canonical_arguments(value) == canonical_arguments(value)
    whole = canonical_content(value)
    call = {"name": feed.text(), "args": value, "id": "1"}
    batch_signature([call, a_call(feed)]).encode()
    hash_results([call], [value])
    mask_clock(whole[:2000])
    declared_kind("a", feed.any())


def texts(data):
    """What is read out of plain text: clocks, names, failures, secrets, a person's words."""
    mask_clock(data)
    tells_of_failure(data)
    text = data.decode("utf-8", "surrogateescape")
    kind_of_name(text)
    if data[:1] < b"@":  # Takes longer than all the rest.
        mask_secrets(text)
    tool_of(text)
    with contextlib.suppress(InvalidResumeError):
        read_reply(text, [{"name": "a", "args": {}, "id": "1"}])
    with contextlib.suppress(ValueError):
        parse(data)


_FOLDER = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir())  # noqa: S108


@cache
def real_policies():
    return [orjson.dumps(policy.model_dump(mode="json")) for policy in policies()]


def policy_files(data):
    """Policy files: `PolicyFileError`, or a policy that a guard runs by."""
    feed = Feed(data)
    kind = feed.byte() % 4
    value = broken(feed, feed.pick(real_policies())) if kind > 1 else feed.json()
    file = _FOLDER / f"loop-guard-fuzz-{os.getpid()}.json"
    file.write_bytes(feed.rest() if kind == 0 else json.dumps(value).encode())
    try:
        policy = LoopGuardPolicy.from_file(file)
    except PolicyFileError:
        return
    finally:
        file.unlink()
    play(LoopGuard(policy), feed, 2)


# --- Transcripts ----------------------------------------------------------------------------------

_MADE = (handmade.cursor, handmade.claude_stream, handmade.openhands, handmade.openhands_sdk)


@cache
def documents():
    """One run in every format that is read."""
    told = [one.document or one.lines for one in TOLD.values()]
    return [json.dumps(one).encode() for one in (*told, *[make() for make in _MADE])]


@cache
def stored_forms():
    whole = langchain_messages()
    return [
        orjson.dumps(form)
        for one in whole
        for form in (message_to_dict(one), one.model_dump(mode="json"))
    ]


def transcripts(data):
    """Files of runs: a `Problem`, or a conversation that can be replayed."""
    feed = Feed(data)
    kind = feed.byte() % 8
    if kind == 0:
        text = feed.rest()
    elif kind < 6:
        values = [broken(feed, feed.pick(documents())) for _ in range(1 + feed.byte() % 2)]
        if kind < 3 and isinstance(values[0], list):
            values = values[0]
        text = b"\n".join(json.dumps(value).encode() for value in values)
    elif kind == 6:
        text = json.dumps([broken(feed, feed.pick(documents())), feed.json()]).encode()
        at = feed.byte() % 64
        text = text[:at] + feed.take(4) + text[at + feed.byte() % 8 :]
    else:
        text = json.dumps(feed.json()).encode()
    for found in read_text(text, found=feed.flag()):
        assert isinstance(found, Problem | Conversation)
        if isinstance(found, Conversation) and found.calls < 20 and feed.byte() % 4 == 0:
            replay(found, feed.pick(policies()))
            mask_value(found.to_dict())


def read_text(text, *, found=False):
    """Read a file with this text."""
    stream = io.BufferedReader(io.BytesIO(text))
    for piece in file_pieces(Source("made", "made", found, len(text)), stream, frozenset()):
        yield from [piece] if isinstance(piece, Problem) else piece.read()


def stored_messages(data):
    """Stored messages and packed values of checkpoints: `ConversationError`, or messages."""
    feed = Feed(data)
    if feed.flag():
        with contextlib.suppress(ConversationError):
            unpack(feed.pick(("msgpack", "json", "pickle", None, "json+aes")), feed.rest())
        return
    loaded = []
    for _ in range(1 + feed.byte() % 3):
        with contextlib.suppress(ConversationError):
            loaded.append(message_of(broken(feed, feed.pick(stored_forms()))))
    found = [message for message in loaded if message is not None]
    events_of(found)
    Reader(Options()).read(found)


TARGETS = {
    "calls": (calls, 25),
    "canonical": (canonical, 40),
    "resume": (resume, 150),
    "states": (states, 40),
    "messages": (messages, 21),
    "steps": (steps, 30),
    "policies": (policy_files, 40),
    "texts": (texts, 400),
    "transcripts": (transcripts, 24),
    "stored": (stored_messages, 230),
}
"""Name -> a target, and how many of a thousand inputs it gets: the quick ones get most."""
