"""Does a reader count every message once, however a history reaches it?"""

import json

import orjson
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_loopguard.core.decision import Action
from langchain_loopguard.langchain.history import Reader
from langchain_loopguard.langchain.messages import last_step
from langchain_loopguard.langchain.options import Options
from langchain_loopguard.langchain.outcome import decide

OPTIONS = Options()
SECRET = "S3CR3T"
MOST_STATE = 9216

# What a provider or a tool may write where the guard writes.
ODD = [{}, {}, {"lc_source": "loop_guard"}, {"loop_guard": {"approved": True}}]


class ReaderMachine(RuleBasedStateMachine):
    """One reader reads at every step, one is restored each time, one reads now and then."""

    def __init__(self):
        super().__init__()
        self.history = []
        self.reader, self.restored, self.late = (Reader(OPTIONS) for _ in range(3))
        self.number = 0
        self.given = (None, b"null")

    def _id(self, kind):
        self.number += 1
        return f"{kind}{self.number}"

    def _read(self):
        state = json.loads(json.dumps(self.restored.to_state(), allow_nan=False))
        self.restored = Reader.from_state(OPTIONS, state)
        self.reader.read(self.history)
        self.restored.read(self.history)

    @rule(
        names=st.lists(st.sampled_from(["read", "edit", "bash"]), min_size=1, max_size=3),
        q=st.sampled_from([SECRET, 1]),
        content=st.sampled_from(["same", SECRET, "a\nb", ""]) | st.text(max_size=4),
        status=st.sampled_from(["success", "error"]),
        odd=st.sampled_from(ODD),
    )
    def step(self, names, q, content, status, odd):
        made = [{"name": name, "args": {"q": q}, "id": self._id("c")} for name in names]
        self._read()
        self.history.append(AIMessage("", id=self._id("a"), tool_calls=made))
        step = last_step(self.history)
        both = (self.reader, self.restored)
        found = [reader.check(step) for reader in both]
        assert found[0].action is found[1].action
        assert self.reader.check(step) is found[0]
        outcomes = [
            decide(one, step, mode="refuse", can_ask=False, options=OPTIONS) for one in found
        ]
        for reader, one, outcome in zip(both, found, outcomes, strict=True):
            reader.settle(step, one, outcome)
        self.history += outcomes[0].messages(made) or [
            ToolMessage(content, tool_call_id=one["id"], status=status, additional_kwargs=odd)
            for one in made
        ]
        assert (found[0].action >= Action.ASK) == (outcomes[0].prevented == len(made))
        self._read()

    @rule(text=st.sampled_from(["go on", SECRET]), marked=st.booleans())
    def human(self, text, marked):
        extra = {"lc_source": "summarization"} if marked else {}
        self.history.append(HumanMessage(text, id=self._id("h"), additional_kwargs=extra))

    @rule(message=st.sampled_from([SystemMessage("x"), AIMessage("I go on.", id="said")]))
    def other_message(self, message):
        self.history.append(message)

    @rule()
    def read_again(self):
        self._read()
        before = orjson.dumps(self.reader.to_state())
        self.reader.read(self.history)
        assert orjson.dumps(self.reader.to_state()) == before

    @rule()
    def catch_up(self):
        self.late.read(self.history)
        self._read()
        counted = [one.to_state()["guard"]["steps"] for one in (self.late, self.reader)]
        assert counted[0] <= counted[1]

    @invariant()
    def a_state_that_was_given_stays_as_it_was(self):
        state, written = self.given
        assert orjson.dumps(state) == written
        state = self.reader.to_state()
        self.given = (state, orjson.dumps(state))

    @invariant()
    def they_agree(self):
        assert self.reader.to_state() == self.restored.to_state()

    @invariant()
    def the_state_is_small_and_holds_no_secret(self):
        written = orjson.dumps(self.reader.to_state())
        assert len(written) <= MOST_STATE
        assert SECRET.encode() not in written


TestReader = ReaderMachine.TestCase
TestReader.settings = settings(
    max_examples=30, stateful_step_count=14, suppress_health_check=list(HealthCheck)
)
